//! TLS for clients: the certificate of a service, and the authority of its clients.
//!
//! A service gets files by [`TlsFlags`], and follows their changes by [`ListenerTls`]. The gateway reads its
//! texts itself, and uses [`server_config`] and [`ServerSocket`] alone.

mod live;
mod socket;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};

pub use live::ListenerTls;
pub use socket::{ServerSocket, beginning_tls};

/// The protocols of a service for HTTP/1.1, as ALPN names them.
pub const HTTP1: &[&[u8]] = &[b"http/1.1"];
/// The protocols of a service for HTTP/1.1 and HTTP/2. The first is preferred.
pub const HTTP1_AND_2: &[&[u8]] = &[b"h2", b"http/1.1"];

/// Flags that every service has for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct TlsFlags {
    /// File with the certificate of the service and its chain, in PEM. With it, the service accepts
    /// TLS only. A changed file applies to new connections within a second [default: no TLS].
    #[arg(long, env, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,

    /// File with the private key of the certificate, in PEM [default: no TLS].
    #[arg(long, env, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,

    /// File with authorities in PEM. With it, every client needs a certificate of one of them
    /// [default: any client].
    #[arg(long, env, value_name = "FILE", requires = "tls_certificate")]
    pub tls_client_ca: Option<PathBuf>,
}

impl TlsFlags {
    /// Reads the files, and follows their changes. Returns `None` if the flags name no certificate. `protocols`
    /// are the names of ALPN.
    ///
    /// # Errors
    /// Fails if a file is unreadable, or if certificate and key cannot be used together.
    pub fn open(
        &self,
        protocols: &'static [&'static [u8]],
    ) -> Result<Option<ListenerTls>, TlsError> {
        // clap has checked that both are present or absent.
        let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) else {
            return Ok(None);
        };
        let files = live::Files {
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: self.tls_client_ca.clone(),
        };
        ListenerTls::open(files, protocols).map(Some)
    }
}

/// The reason why clients cannot be served with TLS. No text contains a private key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or unreadable.
    #[error("cannot read {name}: {source}")]
    File {
        /// The flag and its file.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A text has no certificate, or an unreadable one.
    #[error("{name} holds no certificate in PEM: {reason}; expected `-----BEGIN CERTIFICATE-----`")]
    Certificates {
        /// The place of the text.
        name: String,
        /// The error of the PEM reader.
        reason: String,
    },
    /// A text has no private key, or an unreadable one.
    #[error("{name} holds no private key in PEM: {reason}; expected `-----BEGIN PRIVATE KEY-----`")]
    Key {
        /// The place of the text.
        name: String,
        /// The error of the PEM reader.
        reason: String,
    },
    /// The texts are readable, but not usable.
    #[error("{name} cannot be used: {reason}")]
    Identity {
        /// The place of the text.
        name: String,
        /// The error of the TLS library.
        reason: String,
    },
    /// The system refused the thread or the signal that follows changes.
    #[error("cannot follow changes of certificates: {0}")]
    Watch(io::Error),
}

/// A text in PEM, with the name of its place for errors.
#[derive(Clone, Copy)]
pub struct NamedPem<'a> {
    /// The place of the text, such as a flag with its file.
    pub name: &'a str,
    /// The text, which may be a key.
    pub text: &'a str,
}

/// The texts that a service needs for TLS.
#[derive(Clone, Copy)]
pub struct ServerIdentity<'a> {
    /// The certificate, followed by its chain.
    pub certificate: NamedPem<'a>,
    /// Further certificates of the chain. It may be empty, and may repeat the certificate.
    pub chain: NamedPem<'a>,
    /// The private key of the certificate.
    pub key: NamedPem<'a>,
    /// The authorities of clients. With them, every client needs a certificate.
    pub client_authorities: Option<NamedPem<'a>>,
}

/// Builds the settings of the TLS library. They allow TLS 1.2 and 1.3.
///
/// # Errors
/// Fails if a text is not PEM of the right kind, or if key and certificate differ.
///
/// # Panics
/// Never panics, because the library knows its own default versions.
pub fn server_config(
    identity: &ServerIdentity<'_>,
    protocols: &[&[u8]],
) -> Result<ServerConfig, TlsError> {
    let mut chain = certificates(identity.certificate)?;
    if !identity.chain.text.trim().is_empty() {
        let rest = certificates(identity.chain)?;
        // Some chains contain the service's own certificate, too.
        let known = chain.clone();
        chain.extend(rest.into_iter().filter(|it| !known.contains(it)));
    }
    let key = private_key(identity.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default protocol versions");
    let builder = match identity.client_authorities {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(authorities)? {
                roots.add(certificate).map_err(unusable(authorities.name))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(unusable(authorities.name))?)
        }
    };
    let config = builder.with_single_cert(chain, key);
    let mut config = config.map_err(|error| TlsError::Identity {
        name: identity.certificate.name.to_owned(),
        reason: match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("{} is the key of another certificate", identity.key.name)
            }
            error => error.to_string(),
        },
    })?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

fn unusable<E: std::fmt::Display>(name: &str) -> impl Fn(E) -> TlsError {
    move |error| TlsError::Identity {
        name: name.to_owned(),
        reason: error.to_string(),
    }
}

fn certificates(pem: NamedPem<'_>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |reason: String| TlsError::Certificates {
        name: pem.name.to_owned(),
        reason,
    };
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.text.as_bytes()).collect();
    let certificates = read.map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong(missing(pem.text).to_owned()));
    }
    Ok(certificates)
}

fn private_key(pem: NamedPem<'_>) -> Result<PrivateKeyDer<'static>, TlsError> {
    let read = PrivateKeyDer::from_pem_slice(pem.text.as_bytes());
    read.map_err(|error| TlsError::Key {
        name: pem.name.to_owned(),
        reason: match error {
            pem::Error::NoItemsFound if pem.text.contains("BEGIN ENCRYPTED PRIVATE KEY") => {
                "it is encrypted".to_owned()
            }
            pem::Error::NoItemsFound => missing(pem.text).to_owned(),
            // The reader's own text may repeat a line of the key.
            _ => "a section is damaged".to_owned(),
        },
    })
}

/// The reason why a text has no section of the wanted kind.
fn missing(text: &str) -> &'static str {
    if text.trim().is_empty() {
        "it is empty"
    } else {
        "it has no such section"
    }
}

#[cfg(test)]
mod tests;
