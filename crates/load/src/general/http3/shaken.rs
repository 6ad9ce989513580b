//! Facts about a handshake of QUIC that the library does not report: its kind, and the arrival of a ticket.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quinn::crypto::{self, ExportKeyingMaterialError, KeyPair, Keys};
use quinn::{ConnectError, Connection, ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use tokio::sync::Notify;

use crate::general::tls::Witness;

/// The facts about one handshake.
#[derive(Debug, Default)]
pub(super) struct Shaken {
    has_certificate: AtomicBool,
    has_ticket: AtomicBool,
    ticket: Notify,
}

impl Shaken {
    /// Returns the facts about the handshake of a connection.
    pub(super) fn of(connection: &Connection) -> Arc<Shaken> {
        let facts = connection.handshake_data();
        let facts = facts.and_then(|facts| facts.downcast::<Arc<Shaken>>().ok());
        *facts.expect("every connection has watched keys")
    }

    /// True if the target had to send no certificate, after the handshake.
    pub(super) fn is_resumed(&self) -> bool {
        !self.has_certificate.load(Ordering::Relaxed)
    }

    /// Waits for a ticket for a later connection.
    pub(super) async fn ticket(&self) {
        // The notification is kept until the first waiting task looks for it.
        if !self.has_ticket.load(Ordering::Relaxed) {
            self.ticket.notified().await;
        }
    }
}

/// The settings of TLS, with the verifier that they use.
pub(super) struct Watched {
    tls: Arc<crypto::rustls::QuicClientConfig>,
    witness: Arc<Witness>,
}

impl Watched {
    pub(super) fn new(tls: crypto::rustls::QuicClientConfig, witness: Arc<Witness>) -> Watched {
        Watched {
            tls: Arc::new(tls),
            witness,
        }
    }
}

impl crypto::ClientConfig for Watched {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let tls = Arc::clone(&self.tls);
        Ok(Box::new(WatchedSession {
            session: tls.start_session(version, server_name, params)?,
            witness: Arc::clone(&self.witness),
            shaken: Arc::default(),
        }))
    }
}

struct WatchedSession {
    session: Box<dyn crypto::Session>,
    witness: Arc<Witness>,
    shaken: Arc<Shaken>,
}

impl crypto::Session for WatchedSession {
    /// Returns an `Arc<Shaken>`.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Arc::clone(&self.shaken)))
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let is_over = !self.session.is_handshaking();
        let certificates = self.witness.certificates();
        let read = self.session.read_handshake(buf);
        // All handshakes with this verifier are on one thread, so this is the certificate of this connection.
        if self.witness.certificates() != certificates {
            self.shaken.has_certificate.store(true, Ordering::Relaxed);
        }
        // QUIC permits only tickets after a handshake (RFC 9001, sections 4.4 and 6).
        if is_over && read.is_ok() {
            self.shaken.has_ticket.store(true, Ordering::Relaxed);
            self.shaken.ticket.notify_one();
        }
        read
    }

    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.session.initial_keys(dst_cid, side)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.session.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>)> {
        self.session.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.session.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.session.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.session.write_handshake(buf)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn crypto::PacketKey>>> {
        self.session.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.session.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.session.export_keying_material(output, label, context)
    }
}
