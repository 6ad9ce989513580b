//! Certificates for tests, and a client with TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ALL_VERSIONS, ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion,
};

/// Read timeout. If a server hangs, the test fails after this time.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A certificate authority for one test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// Creates an authority with its own key.
    ///
    /// # Panics
    /// Panics if the system has no randomness.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are valid names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// The certificate of the authority, in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Creates a certificate for a host.
    ///
    /// # Panics
    /// Panics if the name of the host is invalid.
    #[must_use]
    pub fn identity(&self, host: &str) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![host.to_owned()]).expect("a valid name");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// A store that trusts this authority alone.
    ///
    /// # Panics
    /// Never panics, because the certificate is valid.
    #[must_use]
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let added = roots.add(self.0.der().clone());
        added.expect("a valid certificate");
        roots
    }
}

/// The cryptography of all tests.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A client with TLS.
#[derive(Clone, Copy)]
pub struct TlsClient<'a> {
    /// The authority that the client trusts.
    pub authority: &'a Authority,
    /// The certificate of the client.
    pub identity: Option<&'a Identity>,
    /// The versions of TLS that the client offers.
    pub versions: &'a [&'static SupportedProtocolVersion],
    /// The protocols that the client offers by ALPN.
    pub protocols: &'a [&'a [u8]],
}

/// The result of an exchange over TLS.
#[derive(Debug)]
pub struct TlsAnswer {
    /// All received bytes as text.
    pub text: String,
    /// The protocol that ALPN chose.
    pub protocol: Option<Vec<u8>>,
}

impl<'a> TlsClient<'a> {
    /// A client of an authority, without a certificate of its own, with all versions and without ALPN.
    #[must_use]
    pub const fn of(authority: &'a Authority) -> Self {
        Self {
            authority,
            identity: None,
            versions: ALL_VERSIONS,
            protocols: &[],
        }
    }

    fn config(&self) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(self.versions)
            .expect("known versions")
            .with_root_certificates(self.authority.roots());
        let mut config = match self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
                let chain = vec![chain.expect("a certificate")];
                let config = builder.with_client_auth_cert(chain, key.expect("a key"));
                config.expect("a matching key")
            }
        };
        config.alpn_protocols = self.protocols.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// Sends bytes to a server with the name `localhost`, and reads until the server closes.
    ///
    /// # Errors
    /// Fails with the text of the first error, if no byte was received.
    ///
    /// # Panics
    /// Panics if the server does not accept a connection, or if the response is not text.
    pub fn exchange(&self, address: &str, request: &[u8]) -> Result<TlsAnswer, String> {
        let name = ServerName::try_from("localhost").expect("a valid name");
        let connection = ClientConnection::new(Arc::new(self.config()), name).expect("a session");
        let socket = TcpStream::connect(address).expect("a server that listens");
        let limited = socket.set_read_timeout(Some(READ_TIMEOUT));
        limited.expect("a timeout");
        let mut stream = rustls::StreamOwned::new(connection, socket);
        stream
            .write_all(request)
            .map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(_) if !answer.is_empty() => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(TlsAnswer {
            text: String::from_utf8(answer).expect("text"),
            protocol: stream.conn.alpn_protocol().map(<[u8]>::to_vec),
        })
    }
}
