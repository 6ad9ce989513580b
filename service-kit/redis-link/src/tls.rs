//! TLS to Redis: the trusted authorities, the client certificate, and the handshake.
//!
//! The name of the server is always checked against its certificate.

use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::outage::ConnectError;

/// The reason why texts in PEM cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// The text has no certificate, or an unreadable one.
    #[error("{text}: {reason}; expected certificates in PEM (-----BEGIN CERTIFICATE-----)")]
    Certificates {
        /// The role of the text.
        text: &'static str,
        /// The error of the reader.
        reason: String,
    },
    /// The text has no private key, or an unreadable one.
    #[error("the key of the client certificate: {0}; expected a private key in PEM")]
    Key(String),
    /// The key does not belong to the certificate.
    #[error("the client certificate and its key cannot be used: {0}")]
    Identity(rustls::Error),
    /// The system has no trusted authorities.
    #[error(
        "the system trusts no authority of certificates; name a file with the authority of Redis"
    )]
    NoAuthorities,
}

/// Creates the settings of TLS. Without `authorities`, the authorities of the system are trusted.
pub(crate) fn config(
    authorities: Option<&str>,
    identity: Option<(&str, &str)>,
) -> Result<Arc<ClientConfig>, PemError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(pem) => {
            let text = "the authorities of Redis";
            for certificate in certificates(text, pem)? {
                roots
                    .add(certificate)
                    .map_err(|error| PemError::Certificates {
                        text,
                        reason: error.to_string(),
                    })?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(PemError::NoAuthorities);
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default protocol versions")
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = certificates("the client certificate", chain)?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
            let key = key.map_err(|error| PemError::Key(error.to_string()))?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(PemError::Identity)?
        }
    };
    Ok(Arc::new(config))
}

fn certificates(text: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let wrong = |reason| PemError::Certificates { text, reason };
    let certificates = read.map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("it has no certificate".to_owned()));
    }
    Ok(certificates)
}

/// Starts TLS on a connection to `host`.
pub(crate) async fn handshake(
    config: &Arc<ClientConfig>,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, ConnectError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| {
        ConnectError::Certificate(format!("`{host}` is no server name: {error}"))
    })?;
    let connecting = TlsConnector::from(Arc::clone(config)).connect(name, stream);
    connecting.await.map_err(|error| reason(&error))
}

/// The reason for a failed handshake.
fn reason(error: &io::Error) -> ConnectError {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => ConnectError::Certificate(format!(
            "its certificate is refused: {error}; check the file of authorities, and the host name in the URL"
        )),
        Some(rustls::Error::InvalidMessage(_)) => {
            ConnectError::NoTls(format!("it does not answer in TLS: {error}"))
        }
        Some(rustls::Error::AlertReceived(alert)) if is_of_certificate(&format!("{alert:?}")) => {
            refused_identity(error)
        }
        _ => ConnectError::Unreachable(error.to_string()),
    }
}

/// The alerts of a server that refuses the certificate of its client, or asks for one.
const ALERTS_OF_CERTIFICATES: [AlertDescription; 6] = [
    AlertDescription::CertificateRequired,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
];

/// True if the text of an error names an alert about the client certificate. With TLS 1.3, it arrives after
/// the handshake, as an error of the first command.
pub(crate) fn is_of_certificate(text: &str) -> bool {
    let mut alerts = ALERTS_OF_CERTIFICATES.iter();
    alerts.any(|alert| text.contains(&format!("{alert:?}")))
}

/// The reason if the server wants another client certificate.
pub(crate) fn refused_identity(error: &dyn std::fmt::Display) -> ConnectError {
    ConnectError::Certificate(format!(
        "it wants another client certificate: {error}; name a certificate and its key that it accepts"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_certificates_are_refused_by_their_role() {
        let told = |authorities, identity| config(authorities, identity).unwrap_err().to_string();
        for wrong in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA"] {
            assert!(
                told(Some(wrong), None).contains("the authorities of Redis"),
                "{wrong}"
            );
        }
        let told = told(None, Some(("", "secret")));
        assert!(
            told.contains("the client certificate") && !told.contains("secret"),
            "{told}"
        );
    }
}
