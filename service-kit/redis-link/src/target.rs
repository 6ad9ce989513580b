//! The address of a Redis, or of the sentinels that know it, with its logins and its trust.
//!
//! The redis crate parses hosts, logins and databases. This module adds the schemes that it lacks: `rediss`,
//! `redis+sentinel` and `rediss+sentinel`.

use std::sync::Arc;

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo, RedisError,
};
use rustls::ClientConfig;

use crate::tls::{self, PemError};

const SENTINEL_PORT: u16 = 26_379;

/// The settings of a Redis that are not in its URL. Certificates and keys are texts in PEM.
#[derive(Clone, Default)]
pub struct RedisOptions {
    /// The user name. The URL may have one too only with `replaces_login`.
    pub username: Option<String>,
    /// The password. The URL may have one too only with `replaces_login`.
    pub password: Option<String>,
    /// True if the user name and the password replace those of the URL.
    pub replaces_login: bool,
    /// The user name for sentinels.
    pub sentinel_username: Option<String>,
    /// The password for sentinels.
    pub sentinel_password: Option<String>,
    /// The authorities to trust instead of the authorities of the system.
    pub authorities: Option<String>,
    /// The chain of certificates and the key that this client shows.
    pub identity: Option<(String, String)>,
}

/// The reason why a URL and its settings cannot be used. No message contains a password.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URL has no known form.
    #[error("{0}; {FORMS}")]
    Url(RedisError),
    /// The part of the URL with sentinels has another form.
    #[error("{0}; {FORMS}")]
    Sentinels(&'static str),
    /// A fragment could switch off the check of the server's name.
    #[error("the URL has a part after `#`; remove it, because the certificate is always checked")]
    Fragment,
    /// The URL and a setting have the same value.
    #[error("the URL has a {0}, and a setting of its own has one too; remove one of them")]
    Twice(&'static str),
    /// A user name has no password.
    #[error("found a user name without a password; set the password too")]
    NoPassword,
    /// A setting has no meaning for this URL.
    #[error("{setting} has no effect on this URL; expected a URL that starts with {expected}")]
    Unused {
        /// The setting.
        setting: &'static str,
        /// The schemes with this setting.
        expected: &'static str,
    },
    /// A certificate or a key cannot be used.
    #[error(transparent)]
    Pem(#[from] PemError),
}

const FORMS: &str = "expected redis://HOST:PORT/DATABASE, rediss://… for TLS, or \
                     redis+sentinel://HOST:PORT,HOST:PORT/MASTER/DATABASE (rediss+sentinel for TLS)";

/// A Redis, or the sentinels that know it.
#[derive(Clone)]
pub struct RedisTarget {
    pub(crate) route: Route,
    /// Login, database and protocol of the Redis with the data.
    pub(crate) settings: RedisConnectionInfo,
    /// `None` for a connection without TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// The way to the Redis with the data.
#[derive(Clone)]
pub(crate) enum Route {
    /// Always the same server.
    Direct(Box<ConnectionInfo>),
    /// The server that sentinels name.
    Sentinels(Sentinels),
}

/// The sentinels of one master.
#[derive(Clone)]
pub(crate) struct Sentinels {
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) master: String,
    /// The login for the sentinels.
    pub(crate) settings: RedisConnectionInfo,
}

/// The parts of a scheme.
struct Scheme {
    has_tls: bool,
    has_sentinels: bool,
}

impl Scheme {
    fn of(name: &str) -> Self {
        Self {
            has_tls: matches!(name, "rediss" | "valkeys" | "rediss+sentinel"),
            has_sentinels: matches!(name, "redis+sentinel" | "rediss+sentinel"),
        }
    }
}

impl RedisTarget {
    /// Reads a URL with its settings.
    ///
    /// # Errors
    /// Fails if the URL has another form, or does not go with the settings.
    pub fn read(url: &str, options: &RedisOptions) -> Result<Self, TargetError> {
        let (name, rest) = url.split_once("://").unwrap_or(("", url));
        let scheme = Scheme::of(name);
        check_use(&scheme, options)?;
        let tls = if scheme.has_tls {
            if rest.contains('#') {
                return Err(TargetError::Fragment);
            }
            let identity = options.identity.as_ref();
            let identity = identity.map(|(chain, key)| (chain.as_str(), key.as_str()));
            Some(tls::config(options.authorities.as_deref(), identity)?)
        } else {
            None
        };
        let (route, settings) = if scheme.has_sentinels {
            let (mut sentinels, settings) = sentinels(rest)?;
            let empty = RedisConnectionInfo::default();
            let (name, password) = (&options.sentinel_username, &options.sentinel_password);
            sentinels.settings = with_login(empty, name.as_deref(), password.as_deref(), false)?;
            (Route::Sentinels(sentinels), settings)
        } else {
            // The redis crate reads `rediss` only with its own TLS.
            let plain = scheme.has_tls.then(|| format!("redis://{rest}"));
            let info = plain.as_deref().unwrap_or(url).into_connection_info();
            let info = info.map_err(TargetError::Url)?;
            let settings = info.redis_settings().clone();
            (Route::Direct(Box::new(info)), settings)
        };
        let (username, password) = (options.username.as_deref(), options.password.as_deref());
        Ok(Self {
            route,
            settings: with_login(settings, username, password, options.replaces_login)?,
            tls,
        })
    }
}

impl From<ConnectionInfo> for RedisTarget {
    fn from(info: ConnectionInfo) -> Self {
        Self {
            settings: info.redis_settings().clone(),
            route: Route::Direct(Box::new(info)),
            tls: None,
        }
    }
}

/// Refuses settings that this scheme would ignore.
fn check_use(scheme: &Scheme, options: &RedisOptions) -> Result<(), TargetError> {
    let wrong = |setting, expected| Err(TargetError::Unused { setting, expected });
    if !scheme.has_tls {
        let expected = "rediss:// or rediss+sentinel://";
        if options.authorities.is_some() {
            return wrong("a file of authorities", expected);
        }
        if options.identity.is_some() {
            return wrong("a client certificate", expected);
        }
    }
    let has_login = options.sentinel_username.is_some() || options.sentinel_password.is_some();
    if !scheme.has_sentinels && has_login {
        let expected = "redis+sentinel:// or rediss+sentinel://";
        return wrong("a login for sentinels", expected);
    }
    Ok(())
}

/// Sets the user name and the password. `replaces` permits settings that have them already.
fn with_login(
    mut settings: RedisConnectionInfo,
    username: Option<&str>,
    password: Option<&str>,
    replaces: bool,
) -> Result<RedisConnectionInfo, TargetError> {
    if let Some(name) = username {
        if !replaces && settings.username().is_some() {
            return Err(TargetError::Twice("user name"));
        }
        settings = settings.set_username(name);
    }
    if let Some(password) = password {
        if !replaces && settings.password().is_some() {
            return Err(TargetError::Twice("password"));
        }
        settings = settings.set_password(password);
    }
    // The redis crate would drop the name.
    if username.is_some() && settings.password().is_none() {
        return Err(TargetError::NoPassword);
    }
    Ok(settings)
}

/// Reads `LOGIN@HOST:PORT,HOST:PORT/MASTER/DATABASE`. Returns the sentinels without their login, and the
/// settings of the master.
fn sentinels(rest: &str) -> Result<(Sentinels, RedisConnectionInfo), TargetError> {
    let wrong = |message| Err(TargetError::Sentinels(message));
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, format!("?{query}")),
        None => (rest, String::new()),
    };
    let Some((authority, path)) = rest.split_once('/') else {
        return wrong("the URL has no name of a master");
    };
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (master, database) = path.split_once('/').unwrap_or((path, ""));
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if master.is_empty() || !master.chars().all(is_name) {
        return wrong("the name of the master needs letters, digits, `.`, `_` and `-`");
    }
    let hosts: Result<Vec<_>, _> = hosts.split(',').map(sentinel).collect();
    // Any host: only the login, the database and the parameters are read from this text.
    let at = if login.is_empty() { "" } else { "@" };
    let master_url = format!("redis://{login}{at}master/{database}{query}");
    let info = master_url.as_str().into_connection_info();
    let info = info.map_err(TargetError::Url)?;
    let sentinels = Sentinels {
        hosts: hosts?,
        master: master.to_owned(),
        settings: RedisConnectionInfo::default(),
    };
    Ok((sentinels, info.redis_settings().clone()))
}

fn sentinel(host: &str) -> Result<(String, u16), TargetError> {
    let has_port = !host.ends_with(']') && host.contains(':');
    let url = if has_port {
        format!("redis://{host}")
    } else {
        format!("redis://{host}:{SENTINEL_PORT}")
    };
    let info = url.as_str().into_connection_info();
    match info.map_err(TargetError::Url)?.addr() {
        ConnectionAddr::Tcp(host, port) => Ok((host.clone(), *port)),
        _ => Err(TargetError::Sentinels("a sentinel is not HOST:PORT")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<RedisTarget, TargetError> {
        RedisTarget::read(url, &RedisOptions::default())
    }

    fn error(url: &str, options: &RedisOptions) -> String {
        let read = RedisTarget::read(url, options);
        read.err().expect("a refusal").to_string()
    }

    #[test]
    fn sentinels_have_a_master_and_logins_of_their_own() {
        let options = RedisOptions {
            sentinel_password: Some("watch".to_owned()),
            ..RedisOptions::default()
        };
        let url = "redis+sentinel://user:p%40ss@one:1,[::1],three/my-master/2";
        let target = RedisTarget::read(url, &options).unwrap();
        assert_eq!(target.settings.username(), Some("user"));
        assert_eq!(target.settings.password(), Some("p@ss"));
        assert_eq!(target.settings.db(), 2);
        assert!(target.tls.is_none());
        let Route::Sentinels(sentinels) = target.route else {
            panic!("no sentinels");
        };
        assert_eq!(sentinels.master, "my-master");
        assert_eq!(sentinels.settings.password(), Some("watch"));
        let expected = [("one", 1), ("::1", 26_379), ("three", 26_379)];
        assert_eq!(
            sentinels.hosts,
            expected.map(|(host, port)| (host.to_owned(), port))
        );
    }

    #[test]
    fn a_url_of_another_form_is_refused_with_the_forms() {
        for wrong in [
            "localhost",
            "localhost:6379",
            "http://localhost",
            "redis+sentinel://one",
            "redis+sentinel://one/",
            "redis+sentinel://one/a%20b",
            "redis+sentinel://one,/master",
            "redis+sentinel://one/master/two",
            "redis+sentinel://one:70000/master",
            "rediss://",
        ] {
            let told = error(wrong, &RedisOptions::default());
            assert!(
                told.contains("expected redis://HOST:PORT/DATABASE"),
                "{wrong}: {told}"
            );
        }
    }

    #[test]
    fn the_check_of_the_certificate_cannot_be_switched_off() {
        let told = error("rediss://localhost#insecure", &RedisOptions::default());
        assert!(told.contains("always checked"), "{told}");
    }

    #[test]
    fn a_login_may_replace_the_login_of_the_url() {
        let options = RedisOptions {
            password: Some("new".to_owned()),
            replaces_login: true,
            ..RedisOptions::default()
        };
        let target = RedisTarget::read("redis://me:old@a", &options).unwrap();
        assert_eq!(target.settings.username(), Some("me"));
        assert_eq!(target.settings.password(), Some("new"));
    }

    #[test]
    fn settings_without_effect_are_refused() {
        let of = |change: fn(&mut RedisOptions)| {
            let mut options = RedisOptions::default();
            change(&mut options);
            options
        };
        let text = || Some("text".to_owned());
        let ca = of(|it| it.authorities = Some(String::new()));
        assert!(error("redis://a", &ca).contains("rediss://"));
        let sentinel = of(|it| it.sentinel_password = Some(String::new()));
        assert!(error("redis://a", &sentinel).contains("redis+sentinel://"));
        let twice = RedisOptions {
            password: text(),
            ..RedisOptions::default()
        };
        assert!(error("redis://:secret@a", &twice).contains("remove one"));
        assert!(!error("redis://:secret@a", &twice).contains("secret"));
        let name = RedisOptions {
            username: text(),
            ..RedisOptions::default()
        };
        assert!(error("redis://a", &name).contains("set the password"));
        assert!(read("redis://a").is_ok() && read("unix:///tmp/redis").is_ok());
    }
}
