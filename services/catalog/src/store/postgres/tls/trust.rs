//! The check of PostgreSQL's certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::{Check, TlsUrlError};

/// The settings of the TLS library. The authorities are read now, so that a wrong file ends the start.
pub(super) fn config(check: Check, file: Option<&Path>) -> Result<ClientConfig, TlsUrlError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier {
        chain: match check {
            Check::Nothing => None,
            Check::Authority | Check::AuthorityAndName => Some(Chain::new(file, &provider)?),
        },
        is_name_checked: check == Check::AuthorityAndName,
        provider: Arc::clone(&provider),
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default protocol versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// The authorities, and the check of a chain of certificates.
#[derive(Debug)]
struct Chain {
    verifier: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Chain {
    fn new(file: Option<&Path>, provider: &Arc<CryptoProvider>) -> Result<Self, TlsUrlError> {
        let trusted = match file {
            Some(path) => authorities(path)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let provider = Arc::clone(provider);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let verifier = verifier.build().map_err(|_| TlsUrlError::NoAuthorities)?;
        Ok(Self { verifier, trusted })
    }
}

fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsUrlError> {
    let shown = || path.display().to_string();
    let pem = std::fs::read(path).map_err(|source| TlsUrlError::File {
        path: shown(),
        source,
    })?;
    let wrong = |reason: String| TlsUrlError::Authorities {
        path: shown(),
        reason,
    };
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = read.map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("it has no such section".to_owned()));
    }
    Ok(certificates)
}

/// The check of a URL. It always checks that the server has the key of its certificate.
#[derive(Debug)]
struct Verifier {
    chain: Option<Chain>,
    is_name_checked: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let checked = chain
            .verifier
            .verify_server_cert(certificate, others, name, stapled, now);
        match checked {
            // The library checks the name last, so the chain is right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_name_checked => Ok(ServerCertVerified::assertion()),
            // A server may use the trusted certificate itself. This is the library's only objection, and it
            // has checked the dates before.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if format!("{other:?}").contains("CaUsedAsEndEntity")
                    && chain.trusted.iter().any(|it| it == certificate) =>
            {
                if self.is_name_checked {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
