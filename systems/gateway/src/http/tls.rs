//! TLS for clients.

use std::sync::Arc;
use std::time::Duration;

use gateway_config::{Pem, ServerTls};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The reason why clients cannot be served with TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error(
        "`tls.supergraph.{key}` holds no certificate in PEM: {reason}; expected `-----BEGIN CERTIFICATE-----`"
    )]
    Certificates { key: &'static str, reason: String },
    #[error("`tls.supergraph.key` holds no private key in PEM: {0}")]
    Key(String),
    #[error("`tls.supergraph` cannot be used: {0}")]
    Identity(String),
}

/// The gateway's certificate, and the time limit of a handshake. It belongs to a generation, so a connection
/// accepted after a reload receives the new certificate.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    limit: Duration,
}

impl Tls {
    /// Loads the certificates and the private key.
    pub(crate) fn new(config: &ServerTls, limit: Duration) -> Result<Self, TlsError> {
        let mut chain = certificates("certificate", &config.certificate)?;
        if !config.certificate_chain.0.trim().is_empty() {
            let rest = certificates("certificate_chain", &config.certificate_chain)?;
            // Some chains contain the gateway's own certificate, too.
            let known = chain.clone();
            chain.extend(rest.into_iter().filter(|it| !known.contains(it)));
        }
        let key = PrivateKeyDer::from_pem_slice(config.key.0.as_bytes())
            .map_err(|error| TlsError::Key(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks the default protocol versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::Identity(error.to_string()))?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            limit,
        })
    }

    /// Performs a TLS handshake with a client.
    ///
    /// # Errors
    /// Returns the reason, only for the log, because any client can cause it.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let handshake = self.acceptor.accept(stream);
        match tokio::time::timeout(self.limit, handshake).await {
            Ok(stream) => stream.map_err(|error| error.to_string()),
            Err(_) => Err(format!("not within {:?}", self.limit)),
        }
    }
}

fn certificates(key: &'static str, pem: &Pem) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.0.as_bytes()).collect();
    let wrong = |reason: String| TlsError::Certificates { key, reason };
    let certificates = read.map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("it is empty".to_owned()));
    }
    Ok(certificates)
}
