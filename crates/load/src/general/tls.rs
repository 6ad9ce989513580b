//! The trusted certificates, in the form of rustls.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{ClientSessionMemoryCache, Resumption as Tickets};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::error::TlsError;
use crate::job::{ClientIdentity, Resumption, Target, Trust, Version};

mod witness;

pub(super) use witness::Witness;

/// The name of HTTP/3 in handshakes.
pub(crate) const HTTP3_ALPN: &[u8] = b"h3";

/// Tickets that a client keeps for its next connections. Targets send one or two with each handshake.
const TICKETS_MAX: usize = 8;

/// The configuration for every handshake with the target.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) connector: TlsConnector,
    pub(super) name: ServerName<'static>,
    /// The verifier of the configuration.
    pub(super) witness: Arc<Witness>,
    verifier: Arc<dyn ServerCertVerifier>,
    resumption: Resumption,
}

impl Tls {
    pub(super) fn new(target: &Target, trust: &Trust) -> Result<Tls, TlsError> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Library(error.to_string()))?;
        let verifier = verifier(trust, provider)?;
        let witness = Arc::new(Witness::new(Arc::clone(&verifier)));
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&witness) as Arc<_>);
        let mut config = match &target.protocol.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = chain_and_key(identity)?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| TlsError::Identity(error.to_string()))?
            }
        };
        // Every connection makes a whole handshake, so that connect times are comparable. Tickets need a client.
        config.resumption = Tickets::disabled();
        let protocol: &[u8] = match target.protocol.version {
            Version::Http1 => b"http/1.1",
            Version::Http2 { .. } => b"h2",
            Version::Http3 { .. } => HTTP3_ALPN,
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Tls {
            connector: TlsConnector::from(Arc::new(config)),
            name: name(&target.host)?,
            witness,
            verifier,
            resumption: target.protocol.resumption,
        })
    }

    /// True if connections use tickets of earlier connections.
    pub(super) fn resumes(&self) -> bool {
        self.resumption != Resumption::Off
    }

    /// Returns the configuration for the connections of one client, with tickets of its own if the load uses them.
    pub(super) fn of_client(&self) -> Tls {
        let mut config = ClientConfig::clone(self.connector.config());
        let witness = Arc::new(Witness::new(Arc::clone(&self.verifier)));
        config
            .dangerous()
            .set_certificate_verifier(Arc::clone(&witness) as Arc<_>);
        if self.resumes() {
            let store = ClientSessionMemoryCache::new(TICKETS_MAX);
            config.resumption = Tickets::store(Arc::new(store));
        }
        config.enable_early_data = self.resumption == Resumption::EarlyData;
        Tls {
            connector: TlsConnector::from(Arc::new(config)),
            witness,
            ..self.clone()
        }
    }
}

/// Returns the verifier of the target's certificate.
fn verifier(
    trust: &Trust,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let usual = |roots: RootCertStore| {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| TlsError::Library(error.to_string()))
    };
    Ok(match trust {
        Trust::System => usual(trusted_by_system()?)?,
        Trust::Authorities(pem) => Arc::new(OrTheTrustedOne {
            verifier: usual(authorities(pem)?)?,
            // All certificates are readable, because the line above has read them.
            trusted: CertificateDer::pem_slice_iter(pem).flatten().collect(),
        }),
        Trust::SkipVerification => Arc::new(SkipVerification { provider }),
    })
}

/// Returns the name in `host`, `host:port` or `[address]:port`.
fn name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let refuse = || TlsError::Name(host.to_owned());
    let authority: http::uri::Authority = host.parse().map_err(|_| refuse())?;
    let bare = authority.host().trim_matches(['[', ']']).to_owned();
    ServerName::try_from(bare).map_err(|_| refuse())
}

fn trusted_by_system() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Some systems have certificates that cannot be parsed. The remaining certificates can still be used.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let first = found.errors.first();
        let why = first.map_or_else(String::new, |error| format!(": {error}"));
        return Err(TlsError::System(why));
    }
    Ok(roots)
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| TlsError::Authorities(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| TlsError::Authorities(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(TlsError::Authorities("none".to_owned()));
    }
    Ok(roots)
}

/// Returns the certificates and the key of a client.
fn chain_and_key(
    identity: &ClientIdentity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&identity.certificate).collect();
    let chain = chain.map_err(|error| TlsError::Identity(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::Identity("no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&identity.key)
        .map_err(|error| TlsError::Identity(format!("no key: {error}")))?;
    Ok((chain, key))
}

/// Returns the message for a failed handshake.
pub(super) fn fault(error: &std::io::Error) -> String {
    words(&error.to_string())
}

/// Returns the message for an error of the library, in its words.
pub(super) fn words(error: &str) -> String {
    // The error has no type of its own, so its name is searched.
    match error.contains("CaUsedAsEndEntity") {
        true => "TLS: the server uses the certificate of an authority as its own. Pass this \
                 certificate with `--ca`, or use `--insecure`"
            .to_owned(),
        false => format!("TLS: {error}"),
    }
}

/// Verifies as usual, and also accepts a server certificate that equals a trusted certificate byte for byte.
/// A self-signed certificate is usually a certificate of an authority, which may not be used for a server.
#[derive(Debug)]
struct OrTheTrustedOne {
    verifier: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for OrTheTrustedOne {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .verifier
            .verify_server_cert(certificate, others, name, stapled, now);
        match verified {
            // The only objections to an authority's own certificate. Its dates are judged before, and its
            // name here.
            Err(Error::InvalidCertificate(
                CertificateError::Other(_) | CertificateError::UnknownIssuer,
            )) if self.trusted.iter().any(|it| it == certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
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

/// Accepts every certificate, but still verifies that the target has its private key.
#[derive(Debug)]
struct SkipVerification {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for SkipVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_host_is_that_of_its_certificate() {
        let shown = |host| name(host).map(|name| name.to_str().into_owned());
        assert_eq!(shown("example.test:8443"), Ok("example.test".to_owned()));
        assert_eq!(shown("127.0.0.1:1"), Ok("127.0.0.1".to_owned()));
        assert_eq!(shown("[::1]:8443"), Ok("::1".to_owned()));
        assert_eq!(shown("a b"), Err(TlsError::Name("a b".to_owned())));
    }

    #[test]
    fn what_is_no_certificate_is_no_authority() {
        assert_eq!(
            authorities(b"hello").unwrap_err(),
            TlsError::Authorities("none".to_owned())
        );
        let garbage = b"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        assert!(matches!(
            authorities(garbage),
            Err(TlsError::Authorities(_))
        ));
    }
}
