//! TLS settings of an endpoint: its trusted authorities and the client certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::negotiation::Http2;

/// Reason why texts in PEM are unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The text contains no certificate, or an unreadable one.
    #[error(
        "`{key}` holds no certificate in PEM: {reason}; expected `-----BEGIN CERTIFICATE-----`"
    )]
    Certificates {
        /// The configuration key of the text.
        key: &'static str,
        /// The error of the PEM reader.
        reason: String,
    },
    /// The text contains no private key, or an unreadable one.
    #[error("`client_authentication.key` holds no private key in PEM: {0}")]
    Key(String),
    /// The key and the certificate do not match, or have an unsupported type.
    #[error("`client_authentication` cannot be used: {0}")]
    Identity(String),
}

/// The trusted authorities of an endpoint and the client certificate. Clones are equal. Two values from equal
/// texts are not, so that a connection is not reused after its texts were loaded again.
#[derive(Clone, Debug)]
pub struct Trust(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// A number that is unique in this process.
    number: u64,
    configs: [Arc<ClientConfig>; 3],
}

impl Trust {
    /// `authorities` replace the authorities of the operating system. `identity` is a chain of certificates
    /// and its key. All are texts in PEM.
    ///
    /// # Errors
    /// If a text does not contain the required certificate or key.
    pub fn new(
        authorities: Option<&str>,
        identity: Option<(&str, &str)>,
    ) -> Result<Self, TrustError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let roots = match authorities {
            None => native_roots(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates("certificate_authorities", pem)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| TrustError::Certificates {
                        key: "certificate_authorities",
                        reason: error.to_string(),
                    })?;
                }
                roots
            }
        };
        let build = |http2| config(http2, &roots, identity).map(Arc::new);
        Ok(Self(Arc::new(Parts {
            // Relaxed, because the number is only compared.
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            configs: [
                build(Http2::Disable)?,
                build(Http2::Enable)?,
                build(Http2::Only)?,
            ],
        })))
    }

    /// Distinguishes connections with this trust from other connections.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn connector(&self, http2: Http2) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.0.configs[http2 as usize]))
    }
}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Trust {}

fn certificates(key: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let wrong = |reason: String| TrustError::Certificates { key, reason };
    let certificates = read.map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("it is empty".to_owned()));
    }
    Ok(certificates)
}

/// The connector for one HTTP/2 setting. Reading the authorities costs milliseconds and memory, so it happens
/// only at the first `https` call.
pub(crate) fn connector(http2: Http2, roots: &RootCertStore) -> TlsConnector {
    let config = config(http2, roots, None).expect("only an identity can be wrong");
    TlsConnector::from(Arc::new(config))
}

fn config(
    http2: Http2,
    roots: &RootCertStore,
    identity: Option<(&str, &str)>,
) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default protocol versions")
        .with_root_certificates(roots.clone());
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = certificates("client_authentication.certificate_chain", chain)?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                .map_err(|error| TrustError::Key(error.to_string()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| TrustError::Identity(error.to_string()))?
        }
    };
    config.alpn_protocols = match http2 {
        Http2::Disable => vec![b"http/1.1".to_vec()],
        Http2::Enable => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Http2::Only => vec![b"h2".to_vec()],
    };
    Ok(config)
}

/// The trusted authorities of the operating system, without unreadable certificates.
pub(crate) fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
