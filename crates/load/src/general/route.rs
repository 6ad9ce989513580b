//! Opens connections to an address, until they are ready for requests.

use std::rc::Rc;
use std::time::Duration;

use super::fault::words;
use super::http2::Session;
use super::stream::{Socket, Stream, Traffic};
use super::tls::{Tls, fault};
use super::websocket::Upgraded;
use crate::error::TlsError;
use crate::job::{Target, Version};
use crate::measurement::FailureKind;
use crate::socket::{Connect, Peer, refusal};

/// Time between two tries to enter a full listener queue.
const QUEUE_RETRY: Duration = Duration::from_millis(1);

/// The protocol settings for a target. All threads of a load share one route.
#[derive(Clone)]
pub(crate) struct Route {
    pub(super) version: Version,
    tls: Option<Tls>,
}

/// A connection that is ready for requests.
pub(super) enum Channel {
    /// An HTTP/1.1 connection, for one request at a time.
    Http1 {
        stream: Box<dyn Stream>,
        /// True if it has carried a response.
        is_used: bool,
        /// The time at which the target will close it without a further request.
        idle_until_ns: u64,
        /// The time that the connect took, if it is recorded with an upgrade.
        connect_ns: u64,
    },
    /// A connection that was upgraded to WebSocket, for one conversation at a time.
    WebSocket(Box<Upgraded>),
    /// An HTTP/2 connection, for several requests.
    Http2(Rc<Session>),
}

impl Route {
    pub(crate) fn new(target: &Target) -> Result<Route, TlsError> {
        let trust = target.protocol.tls.as_ref();
        Ok(Route {
            version: target.protocol.version,
            tls: trust.map(|trust| Tls::new(target, trust)).transpose()?,
        })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Connects, including TLS and the protocol.
    ///
    /// # Errors
    ///
    /// The reason that there is no connection, as a message.
    pub(super) async fn connect(
        &self,
        peer: &Peer,
        traffic: &Rc<Traffic>,
    ) -> Result<Channel, (FailureKind, String)> {
        let socket = connect(peer, traffic)
            .await
            .map_err(|error| refusal(&error))?;
        let refuse = |reason: String| (FailureKind::Connect, reason);
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(socket),
            Some(tls) => {
                let shaken = tls.connector.connect(tls.name.clone(), socket).await;
                let stream = shaken.map_err(|error| refuse(fault(&error)))?;
                let agreed = stream.get_ref().1.alpn_protocol();
                // A target without negotiation uses HTTP/1.1, so only HTTP/2 must be negotiated.
                if self.version != Version::Http1 && agreed != Some(b"h2") {
                    return Err(refuse(
                        "TLS: expected a target that offers HTTP/2 (ALPN `h2`), found a target \
                         without it"
                            .to_owned(),
                    ));
                }
                Box::new(stream)
            }
        };
        Ok(match self.version {
            Version::Http1 => Channel::Http1 {
                stream,
                is_used: false,
                idle_until_ns: u64::MAX,
                connect_ns: 0,
            },
            Version::Http2 { .. } => {
                let session = Session::new(stream).await;
                let session = session.map_err(|error| refuse(words(&error)));
                Channel::Http2(Rc::new(session?))
            }
        })
    }
}

async fn connect(peer: &Peer, traffic: &Rc<Traffic>) -> std::io::Result<Socket> {
    loop {
        match peer.connect()? {
            Connect::Done(socket) => return Socket::new(socket, peer, traffic),
            Connect::Pending(socket) => {
                let socket = Socket::new(socket, peer, traffic)?;
                socket.decided().await?;
                peer.connected(socket.descriptor())?;
                return Ok(socket);
            }
            Connect::Full => tokio::time::sleep(QUEUE_RETRY).await,
        }
    }
}
