//! The certificate of a running service, read again when its files change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use rustls::ServerConfig;
use signal_hook::consts::SIGHUP;
use tokio::net::TcpStream;

use super::{NamedPem, ServerIdentity, ServerSocket, TlsError, server_config};

/// Time between two looks at the files. Three small reads per second are cheap.
const LOOK: Duration = Duration::from_secs(1);

/// The certificate of a service. New connections use its latest version. A handle, which is cheap to copy.
#[derive(Clone, Debug)]
pub struct ListenerTls(Arc<RwLock<Arc<ServerConfig>>>);

/// The files of a certificate.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) client_ca: Option<PathBuf>,
}

/// The texts of the files.
#[derive(PartialEq, Eq)]
struct Texts {
    certificate: String,
    key: String,
    client_ca: Option<String>,
}

impl ListenerTls {
    /// Reads the files, and starts the thread that follows their changes and SIGHUP.
    pub(super) fn open(
        files: Files,
        protocols: &'static [&'static [u8]],
    ) -> Result<Self, TlsError> {
        let texts = files.read()?;
        let config = files.config(&texts, protocols)?;
        let live = Self(Arc::new(RwLock::new(Arc::new(config))));
        let hangup = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&hangup)).map_err(TlsError::Watch)?;
        let follower = Follower {
            files,
            protocols,
            seen: Ok(texts),
            live: live.clone(),
        };
        // The thread ends with the process.
        let thread = thread::Builder::new().name("certificates".to_owned());
        let follow = move || follower.follow(&hangup);
        thread.spawn(follow).map_err(TlsError::Watch)?;
        Ok(live)
    }

    /// The settings for a new connection.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        // The lock is held for one assignment only, which cannot panic.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A client's socket that begins with a handshake.
    #[must_use]
    pub fn socket(&self, stream: TcpStream) -> ServerSocket {
        ServerSocket::secured(stream, self.config())
    }

    fn set(&self, config: ServerConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }
}

impl Files {
    fn read(&self) -> Result<Texts, TlsError> {
        Ok(Texts {
            certificate: text(CERTIFICATE, &self.certificate)?,
            key: text(KEY, &self.key)?,
            client_ca: match &self.client_ca {
                Some(path) => Some(text(CLIENT_CA, path)?),
                None => None,
            },
        })
    }

    fn config(&self, texts: &Texts, protocols: &[&[u8]]) -> Result<ServerConfig, TlsError> {
        let names = [
            named(CERTIFICATE, &self.certificate),
            named(KEY, &self.key),
            named(
                CLIENT_CA,
                self.client_ca.as_deref().unwrap_or(Path::new("")),
            ),
        ];
        let [certificate, key, client_ca] = &names;
        let identity = ServerIdentity {
            certificate: NamedPem {
                name: certificate,
                text: &texts.certificate,
            },
            chain: NamedPem {
                name: certificate,
                text: "",
            },
            key: NamedPem {
                name: key,
                text: &texts.key,
            },
            client_authorities: texts.client_ca.as_deref().map(|text| NamedPem {
                name: client_ca,
                text,
            }),
        };
        server_config(&identity, protocols)
    }
}

const CERTIFICATE: &str = "--tls-certificate";
const KEY: &str = "--tls-key";
const CLIENT_CA: &str = "--tls-client-ca";

/// A file as errors name it.
fn named(flag: &str, path: &Path) -> String {
    format!("the file `{}` of {flag}", path.display())
}

fn text(flag: &str, path: &Path) -> Result<String, TlsError> {
    fs::read_to_string(path).map_err(|source| TlsError::File {
        name: named(flag, path),
        source,
    })
}

/// The state of the thread that follows changes.
struct Follower {
    files: Files,
    protocols: &'static [&'static [u8]],
    /// The last texts, or the last error, so that each is reported once.
    seen: Result<Texts, String>,
    live: ListenerTls,
}

impl Follower {
    fn follow(mut self, hangup: &AtomicBool) {
        loop {
            thread::park_timeout(LOOK);
            self.look(hangup.swap(false, Ordering::Relaxed));
        }
    }

    /// Reads the files, and uses them if they have changed. After SIGHUP it reports unchanged files too.
    fn look(&mut self, is_asked: bool) {
        let read = self.files.read().map_err(|error| error.to_string());
        if read == self.seen {
            if is_asked {
                tracing::info!("certificates unchanged");
            }
            return;
        }
        let config = match &read {
            Ok(texts) => self.files.config(texts, self.protocols),
            // Perhaps the files are being replaced. The former certificate stays.
            Err(reason) => {
                tracing::warn!(reason, "certificates not reloaded");
                self.seen = read;
                return;
            }
        };
        self.seen = read;
        match config {
            Ok(config) => {
                self.live.set(config);
                tracing::info!("certificates reloaded");
            }
            Err(error) => tracing::warn!(reason = %error, "certificates not reloaded"),
        }
    }
}
