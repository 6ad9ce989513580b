//! The flags of the connection to Redis.

use std::path::{Path, PathBuf};

use redis_link::{RedisOptions, RedisTarget, TargetError};

/// The address of Redis, its logins and its certificates. Values with a password are hidden in `--help`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RedisFlags {
    /// Redis URL, such as redis://localhost:6379/0. With rediss:// the connection has TLS. With
    /// redis+sentinel://HOST:26379,HOST:26379/MASTER/0, sentinels name the master.
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    redis_url: Option<String>,

    /// Redis in the original's form: a URL, or a host with or without a port.
    #[arg(long, env = "REDIS_HOST", value_name = "HOST", hide_env_values = true)]
    redis_host: Option<String>,

    /// User name for Redis, instead of a name in the URL.
    #[arg(long, env = "REDIS_USERNAME", value_name = "NAME")]
    redis_username: Option<String>,

    /// Password for Redis, instead of a password in the URL.
    #[arg(
        long,
        env = "REDIS_PASSWORD",
        value_name = "TEXT",
        hide_env_values = true
    )]
    redis_password: Option<String>,

    /// User name for the sentinels.
    #[arg(long, env = "REDIS_SENTINEL_USERNAME", value_name = "NAME")]
    redis_sentinel_username: Option<String>,

    /// Password for the sentinels.
    #[arg(
        long,
        env = "REDIS_SENTINEL_PASSWORD",
        value_name = "TEXT",
        hide_env_values = true
    )]
    redis_sentinel_password: Option<String>,

    /// File with the authorities that the certificate of Redis may come from, in PEM
    /// [default: the authorities of the system].
    #[arg(long, env = "REDIS_CA_FILE", value_name = "FILE")]
    redis_ca_file: Option<PathBuf>,

    /// File with the certificate that this service shows to Redis, in PEM.
    #[arg(
        long,
        env = "REDIS_CERT_FILE",
        value_name = "FILE",
        requires = "redis_key_file"
    )]
    redis_cert_file: Option<PathBuf>,

    /// File with the key of this certificate, in PEM.
    #[arg(
        long,
        env = "REDIS_KEY_FILE",
        value_name = "FILE",
        requires = "redis_cert_file"
    )]
    redis_key_file: Option<PathBuf>,
}

/// The reason why the settings of Redis cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RedisFlagsError {
    /// A file cannot be read.
    #[error("cannot read `{}` of {flag}: {source}", path.display())]
    File {
        /// The flag of the file.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The URL and the settings do not go together.
    #[error("cannot use the settings of Redis: {0}")]
    Target(#[from] TargetError),
}

impl RedisFlags {
    /// The URL of the flags. `None` if they have no address.
    pub(crate) fn url(&self) -> Option<String> {
        let host = self.redis_host.as_ref().map(|host| match host {
            // The original accepts both forms under this name.
            url if url.contains("://") => url.clone(),
            host => format!("redis://{host}"),
        });
        self.redis_url.clone().or(host)
    }

    /// The first setting that has no effect without an address of Redis.
    pub(crate) fn without_address(&self) -> Option<&'static str> {
        [
            ("--redis-username", self.redis_username.is_some()),
            ("--redis-password", self.redis_password.is_some()),
            (
                "--redis-sentinel-username",
                self.redis_sentinel_username.is_some(),
            ),
            (
                "--redis-sentinel-password",
                self.redis_sentinel_password.is_some(),
            ),
            ("--redis-ca-file", self.redis_ca_file.is_some()),
            ("--redis-cert-file", self.redis_cert_file.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, is_set)| is_set.then_some(flag))
    }

    /// Reads the files, and checks them together with the URL.
    pub(crate) fn target(&self, url: &str) -> Result<RedisTarget, RedisFlagsError> {
        let chain = read("--redis-cert-file", self.redis_cert_file.as_deref())?;
        let key = read("--redis-key-file", self.redis_key_file.as_deref())?;
        let options = RedisOptions {
            username: self.redis_username.clone(),
            password: self.redis_password.clone(),
            replaces_login: false,
            sentinel_username: self.redis_sentinel_username.clone(),
            sentinel_password: self.redis_sentinel_password.clone(),
            authorities: read("--redis-ca-file", self.redis_ca_file.as_deref())?,
            identity: chain.zip(key),
        };
        Ok(RedisTarget::read(url, &options)?)
    }
}

fn read(flag: &'static str, path: Option<&Path>) -> Result<Option<String>, RedisFlagsError> {
    let text = path.map(|path| {
        std::fs::read_to_string(path).map_err(|source| RedisFlagsError::File {
            flag,
            path: path.to_owned(),
            source,
        })
    });
    text.transpose()
}
