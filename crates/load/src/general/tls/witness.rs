//! A verifier that counts the certificates of targets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Verifies like another verifier, and counts. A resumed handshake has no certificate.
#[derive(Debug)]
pub(in crate::general) struct Witness {
    verifier: Arc<dyn ServerCertVerifier>,
    certificates: AtomicU64,
}

impl Witness {
    pub(super) fn new(verifier: Arc<dyn ServerCertVerifier>) -> Witness {
        Witness {
            verifier,
            certificates: AtomicU64::new(0),
        }
    }

    /// Returns the number of certificates until now.
    pub(in crate::general) fn certificates(&self) -> u64 {
        self.certificates.load(Ordering::Relaxed)
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.certificates.fetch_add(1, Ordering::Relaxed);
        self.verifier
            .verify_server_cert(certificate, others, name, stapled, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
