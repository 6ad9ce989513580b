//! TLS for clients.

use std::sync::Arc;
use std::time::Duration;

use chassis::{NamedPem, ServerIdentity, ServerSocket, TlsError, server_config};
use gateway_config::ServerTls;
use rustls::ServerConfig;
use tokio::net::TcpStream;

/// The gateway's certificate, and the time limit of a handshake. It belongs to a generation, so a connection
/// accepted after a reload receives the new certificate.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ServerConfig>,
    limit: Duration,
}

impl Tls {
    /// Loads the certificates and the private key.
    pub(crate) fn new(config: &ServerTls, limit: Duration) -> Result<Self, TlsError> {
        let identity = ServerIdentity {
            certificate: NamedPem {
                name: "`tls.supergraph.certificate`",
                text: &config.certificate.0,
            },
            chain: NamedPem {
                name: "`tls.supergraph.certificate_chain`",
                text: &config.certificate_chain.0,
            },
            key: NamedPem {
                name: "`tls.supergraph.key`",
                text: &config.key.0,
            },
            client_authorities: None,
        };
        Ok(Self {
            config: Arc::new(server_config(&identity, chassis::HTTP1_AND_2)?),
            limit,
        })
    }

    /// Performs a TLS handshake with a client.
    ///
    /// # Errors
    /// Returns the reason, only for the log, because any client can cause it.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Result<ServerSocket, String> {
        let mut socket = ServerSocket::secured(stream, Arc::clone(&self.config));
        match tokio::time::timeout(self.limit, socket.handshake()).await {
            Ok(done) => done.map(|()| socket).map_err(|error| error.to_string()),
            Err(_) => Err(format!("not within {:?}", self.limit)),
        }
    }
}
