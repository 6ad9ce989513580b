//! TLS: whom an endpoint trusts, and what it shows of itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::negotiation::Http2;

/// Why texts in PEM cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// No certificate is in the text, or one that cannot be read.
    #[error(
        "`{key}` holds no certificate in PEM: {reason}; expected `-----BEGIN CERTIFICATE-----`"
    )]
    Certificates {
        /// Which text.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// No key is in the text, or one that cannot be read.
    #[error("`client_authentication.key` holds no private key in PEM: {0}")]
    Key(String),
    /// Key and certificate do not belong together, or are of an unknown kind.
    #[error("`client_authentication` cannot be used: {0}")]
    Identity(String),
}

/// Whom an endpoint trusts, and the certificate that it shows. Clones are the same; two that were made
/// from the same texts are not, so that no connection outlives the texts it was made with.
#[derive(Clone, Debug)]
pub struct Trust(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// Unique in this process.
    number: u64,
    configs: [Arc<ClientConfig>; 3],
}

impl Trust {
    /// `authorities` are trusted in place of those of the operating system; `identity` is a chain of
    /// certificates and its key. All are texts in PEM.
    ///
    /// # Errors
    /// When a text does not hold what it should.
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
            // Relaxed: the number is only compared.
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            configs: [
                build(Http2::Disable)?,
                build(Http2::Enable)?,
                build(Http2::Only)?,
            ],
        })))
    }

    /// Tells connections with this trust from others.
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

/// The connector for one answer to "HTTP/2?". Reading the authorities costs
/// milliseconds and memory, so it happens at the first `https` call only.
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

/// What the operating system trusts; a certificate that cannot be read is left out.
pub(crate) fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
