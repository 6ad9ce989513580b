//! Opens connections to an address, until they are ready for requests.

use std::rc::Rc;
use std::time::Duration;

use tokio_rustls::rustls::HandshakeKind;

use super::fault::words;
use super::http2;
use super::http3;
use super::message::Message;
use super::stream::{Socket, Stream, Traffic};
use super::tls::{Tls, fault};
use super::websocket::Upgraded;
use crate::error::{RequestError, TlsError};
use crate::grpc::Calling;
use crate::job::{Address, Resumption, Target, Version};
use crate::measurement::FailureKind;
use crate::socket::{Connect, Peer, refusal};

/// Time between two tries to enter a full listener queue.
const QUEUE_RETRY: Duration = Duration::from_millis(1);

/// The protocol settings for a target. All threads of a load share one route.
#[derive(Clone)]
pub(crate) struct Route {
    pub(super) version: Version,
    tls: Option<Tls>,
    /// The settings of HTTP/3.
    quic: Option<quinn::ClientConfig>,
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
    /// A connection for several requests.
    Shared(Session),
}

/// A connection that several requests use at the same time.
#[derive(Clone)]
pub(super) enum Session {
    Http2(Rc<http2::Session>),
    Http3(Rc<http3::Session>),
}

impl Session {
    /// True if it may carry another request. The target may already have closed it.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Session::Http2(session) => session.is_open(),
            Session::Http3(session) => session.is_open(),
        }
    }

    /// Returns the reason that the target accepts no request, if it accepts none.
    pub(super) fn grants_no_stream(&self) -> Option<&'static str> {
        match self {
            Session::Http2(session) if session.grants_no_stream() => Some(
                "the server allows no HTTP/2 stream (it sent no SETTINGS, or MAX_CONCURRENT_STREAMS 0)",
            ),
            Session::Http3(session) if session.grants_no_stream() => {
                Some("the server allows no HTTP/3 stream (it sent no MAX_STREAMS)")
            }
            _ => None,
        }
    }

    pub(super) fn is_same(&self, other: &Session) -> bool {
        match (self, other) {
            (Session::Http2(one), Session::Http2(other)) => Rc::ptr_eq(one, other),
            (Session::Http3(one), Session::Http3(other)) => Rc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Route {
    pub(crate) fn new(target: &Target) -> Result<Route, TlsError> {
        let trust = target.protocol.tls.as_ref();
        let version = target.protocol.version;
        let tls = trust.map(|trust| Tls::new(target, trust)).transpose()?;
        let quic = match (version, &tls) {
            (Version::Http3 { .. }, None) => {
                return Err(TlsError::Http3("it is always encrypted. Use an https URL"));
            }
            (Version::Http3 { .. }, _) if matches!(target.address, Address::Unix(_)) => {
                return Err(TlsError::Http3(
                    "it has no Unix sockets. Use an address with a port",
                ));
            }
            (Version::Http3 { .. }, Some(tls)) => {
                Some(http3::settings(tls).map_err(TlsError::Library)?)
            }
            (_, Some(_)) if target.protocol.resumption == Resumption::EarlyData => {
                return Err(TlsError::EarlyData(version.name()));
            }
            _ => None,
        };
        Ok(Route { version, tls, quic })
    }

    /// Returns the route of one client, which has tickets of its own if the load uses them.
    pub(super) fn of_client(&self) -> Route {
        let tls = self.tls.as_ref().map(Tls::of_client);
        let quic = match (&self.quic, &tls) {
            // The settings were accepted with the same keys before.
            (Some(_), Some(tls)) => Some(http3::settings(tls).expect("usable keys")),
            _ => None,
        };
        Route { tls, quic, ..*self }
    }

    /// Translates a rendered request, and the JSON of a gRPC call into its messages.
    ///
    /// # Errors
    ///
    /// If this version of HTTP cannot carry the request.
    pub(super) fn message(
        &self,
        bytes: &[u8],
        calling: Option<&Calling>,
    ) -> Result<Message, RequestError> {
        let message = Message::new(bytes, self.is_encrypted());
        let message = message.and_then(|message| message.with_call(calling));
        match self.version {
            Version::Http3 { .. } => message
                .and_then(Message::without_upgrade)
                .map_err(RequestError::Http3),
            _ => message.map_err(RequestError::Http2),
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// True if connections use tickets of earlier connections.
    pub(super) fn resumes(&self) -> bool {
        self.tls.as_ref().is_some_and(Tls::resumes)
    }

    /// Tells targets that connections were closed, unless the kernel does.
    pub(super) async fn leave(&self) {
        if self.quic.is_some() {
            http3::leave().await;
        }
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
        if let (Some(quic), Some(tls)) = (&self.quic, &self.tls) {
            let session = http3::Session::open(quic, &tls.name.to_str(), peer, traffic).await?;
            return Ok(Channel::Shared(Session::Http3(Rc::new(session))));
        }
        let socket = connect(peer, traffic)
            .await
            .map_err(|error| refusal(&error))?;
        let refuse = |reason: String| (FailureKind::Connect, reason);
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(socket),
            Some(tls) => {
                let shaken = tls.connector.connect(tls.name.clone(), socket).await;
                let stream = shaken.map_err(|error| refuse(fault(&error)))?;
                let kind = stream.get_ref().1.handshake_kind();
                traffic.shaken(kind == Some(HandshakeKind::Resumed), None);
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
                let session = http2::Session::new(stream).await;
                let session = session.map_err(|error| refuse(words(&error)));
                Channel::Shared(Session::Http2(Rc::new(session?)))
            }
            Version::Http3 { .. } => unreachable!("HTTP/3 has its own settings"),
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
