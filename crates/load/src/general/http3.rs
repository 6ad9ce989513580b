//! HTTP/3 over QUIC, with the quinn library, and with the h3 library for heads.
//!
//! A connection has a socket of its own, like a client that is somewhere else. Its handshake includes TLS.
//! Senders wait here until the target has room for one more stream, as over HTTP/2.
//!
//! With a ticket for 0-RTT, a connection carries requests with a safe method before its handshake is complete. If the
//! target rejects them, all streams are lost. The library then starts again on the same connection, and the requests
//! are sent again.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use h3::client::SendRequest;
use h3::error::Code;
use http::Method;
use model::Packets;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, SendStream, TokioRuntime, VarInt,
    ZeroRttAccepted,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::progress::ExchangeError;
use super::stream::Traffic;
use super::tls::Tls;
use crate::measurement::FailureKind;
use crate::socket::{Peer, refusal};

mod datagrams;
mod fault;
mod frames;
mod library;
mod sending;
mod shaken;

use datagrams::{Datagrams, SocketFault};
use fault::{of_connection, of_handshake};
use library::{Library, NextStream, Opener};
use shaken::{Shaken, Watched};

/// Bytes that the target may send on one stream before it must wait for us, as over HTTP/2.
const STREAM_WINDOW: u32 = 16 * 1024 * 1024;

/// The limit for all streams of a connection together.
const CONNECTION_WINDOW: u32 = 1024 * 1024 * 1024;

/// Streams that the target may open: its control stream, two for its compression of heads, and a few that
/// have no meaning for us.
const TARGET_STREAMS_MAX: u8 = 8;

/// Time between two signs of life. Servers end a connection without one after 5 seconds or later, even while
/// they work on a request.
const SIGN_OF_LIFE: Duration = Duration::from_secs(4);

/// The largest head that the library decodes. The limit of a load is smaller.
const DECODED_MAX: u64 = 1024 * 1024;

/// The longest wait of a connection without further requests for its ticket.
const TICKET_WAIT: Duration = Duration::from_secs(1);

/// Returns the settings of connections with these certificates.
///
/// # Errors
///
/// A message, if the certificates cannot be used with QUIC.
pub(super) fn settings(tls: &Tls) -> Result<ClientConfig, String> {
    let keys = QuicClientConfig::try_from(Arc::clone(tls.connector.config()));
    let keys = keys.map_err(|error| error.to_string())?;
    let watched = Watched::new(keys, Arc::clone(&tls.witness));
    let mut config = ClientConfig::new(Arc::new(watched));
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(0_u8.into())
        .max_concurrent_uni_streams(TARGET_STREAMS_MAX.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .datagram_receive_buffer_size(None)
        .keep_alive_interval(Some(SIGN_OF_LIFE));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// The progress of 0-RTT on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Early {
    /// The handshake is complete, and the library is ready.
    #[default]
    Over,
    /// Requests may leave, and the target has not decided about them.
    Offered,
    /// The target rejected the requests, and the library starts again.
    Rejected,
}

/// The state that a connection, its library and its streams share.
#[derive(Default)]
pub(super) struct Shared {
    early: Cell<Early>,
    /// The stream in the last GOAWAY, before the library has judged the frame.
    announced: Cell<Option<u64>>,
    /// The first stream that the target does not process, after it announced its end.
    leaving: Cell<Option<u64>>,
    /// The rule that the target broke.
    broken: RefCell<Option<(Code, String)>>,
    /// Notified with each of the above.
    changed: Notify,
    fault: SocketFault,
}

impl Shared {
    /// Handles the end that the target announced with a valid frame.
    fn leave(&self) {
        if let Some(first) = self.announced.take() {
            self.leaving.set(Some(first));
            self.changed.notify_waiters();
        }
    }

    /// Closes the connection, because the target broke a rule.
    fn close(&self, connection: &Connection, code: Code, reason: &[u8]) {
        if code != Code::H3_NO_ERROR {
            let words = String::from_utf8_lossy(reason).into_owned();
            self.broken.borrow_mut().get_or_insert((code, words));
        }
        connection.close(number(code), reason);
    }
}

fn number(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).expect("a code has 62 bits")
}

/// An open connection.
pub(super) struct Session {
    connection: Connection,
    client: Rc<RefCell<Client>>,
    shared: Rc<Shared>,
    shaken: Arc<Shaken>,
    task: JoinHandle<()>,
    under_way: Cell<usize>,
    /// True if the target has granted a stream.
    has_let_in: Cell<bool>,
    /// True if it has carried a response.
    pub(super) is_used: Cell<bool>,
    traffic: Rc<Traffic>,
    /// The part of the connection's own counts that the traffic contains.
    counted: Cell<Counted>,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    bytes_in: u64,
    bytes_out: u64,
    packets: Packets,
}

impl Session {
    /// Connects, and sends our settings. The target may respond to them later.
    ///
    /// # Errors
    ///
    /// The reason that there is no connection, as a message.
    pub(super) async fn open(
        config: &ClientConfig,
        name: &str,
        peer: &Peer,
        traffic: &Rc<Traffic>,
    ) -> Result<Session, (FailureKind, String)> {
        let Peer::Tcp(address) = peer else {
            unreachable!("a route of HTTP/3 has an address with a port")
        };
        let shared = Rc::new(Shared::default());
        let (connection, early) = handshake(config, name, *address, &shared.fault).await?;
        let shaken = Shaken::of(&connection);
        match early {
            None => traffic.shaken(shaken.is_resumed(), None),
            Some(_) => shared.early.set(Early::Offered),
        }
        let (driver, client) = start(&connection, &shared).await?;
        let client = Rc::new(RefCell::new(client));
        let attendant = Attendant {
            connection: connection.clone(),
            client: Rc::clone(&client),
            shared: Rc::clone(&shared),
            shaken: Arc::clone(&shaken),
            traffic: Rc::clone(traffic),
        };
        Ok(Session {
            connection,
            client,
            shared,
            shaken,
            task: tokio::task::spawn_local(attendant.attend(driver, early)),
            under_way: Cell::new(0),
            has_let_in: Cell::new(false),
            is_used: Cell::new(false),
            traffic: Rc::clone(traffic),
            counted: Cell::default(),
        })
    }

    /// True if it may carry another request. The target may already have closed it.
    pub(super) fn is_open(&self) -> bool {
        self.shared.leaving.get().is_none() && self.connection.close_reason().is_none()
    }

    /// True if only one request is under way.
    pub(super) fn is_alone(&self) -> bool {
        self.under_way.get() == 1
    }

    /// True if the target has granted no stream at all.
    pub(super) fn grants_no_stream(&self) -> bool {
        self.is_open() && !self.has_let_in.get()
    }

    /// Waits until the target accepts one more stream for a request with this method.
    ///
    /// # Errors
    ///
    /// If the connection cannot carry the request. No byte of it has left.
    pub(super) async fn enter(self: &Rc<Session>, method: &Method) -> Result<Room, ExchangeError> {
        self.decided(method).await;
        let opened = {
            let opening = pin!(self.connection.open_bi());
            let gone = pin!(self.gone(u64::MAX));
            match select(opening, gone).await {
                Either::Left((opened, _)) => opened.ok(),
                Either::Right(_) => None,
            }
        };
        let Some((send, receive)) = opened else {
            let (kind, reason) = of_connection(&self.connection, &self.shared);
            return Err(match self.shared.early.get() {
                Early::Over => ExchangeError::Stale(reason),
                // There never was a connection.
                Early::Offered | Early::Rejected => ExchangeError::failed(kind, reason),
            });
        };
        self.has_let_in.set(true);
        self.under_way.set(self.under_way.get() + 1);
        Ok(Room {
            under_way: UnderWay(Rc::clone(self)),
            send,
            receive,
        })
    }

    /// Waits until a request with this method may leave. Somebody can send the packets of 0-RTT to the target again,
    /// so other methods wait for the handshake (RFC 8470).
    async fn decided(&self, method: &Method) {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let may_leave = match self.shared.early.get() {
                Early::Over => true,
                Early::Offered => method.is_safe(),
                Early::Rejected => false,
            };
            if may_leave || self.connection.close_reason().is_some() {
                return;
            }
            changed.await;
        }
    }

    /// Keeps the connection until its ticket has arrived.
    pub(super) async fn linger(self: Rc<Session>) {
        let ticket = pin!(self.shaken.ticket());
        let closed = pin!(self.connection.closed());
        // A target may send no ticket.
        let _ = tokio::time::timeout(TICKET_WAIT, select(ticket, closed)).await;
    }

    /// Waits until the target announces that it does not process this stream.
    async fn gone(&self, stream: u64) {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if self
                .shared
                .leaving
                .get()
                .is_some_and(|first| first <= stream)
            {
                return;
            }
            changed.await;
        }
    }

    /// Adds the connection's own counts since the last call to the traffic.
    pub(super) fn settle(&self) {
        let stats = self.connection.stats();
        let now = Counted {
            bytes_in: stats.udp_rx.bytes,
            bytes_out: stats.udp_tx.bytes,
            packets: Packets {
                sent: stats.path.sent_packets,
                lost: stats.path.lost_packets,
            },
        };
        let before = self.counted.replace(now);
        let add = |total: &Cell<u64>, now: u64, before: u64| total.set(total.get() + now - before);
        add(&self.traffic.bytes_in, now.bytes_in, before.bytes_in);
        add(&self.traffic.bytes_out, now.bytes_out, before.bytes_out);
        let mut packets = self.traffic.packets.get();
        packets.sent += now.packets.sent - before.packets.sent;
        packets.lost += now.packets.lost - before.packets.lost;
        self.traffic.packets.set(packets);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.settle();
        self.task.abort();
        self.connection.close(number(Code::H3_NO_ERROR), b"");
    }
}

/// The library of a connection, for requests.
#[derive(Clone)]
struct Client {
    sender: SendRequest<Opener, Bytes>,
    next: NextStream,
}

type Driver = h3::client::Connection<Library, Bytes>;

/// Starts the library, which sends our settings.
async fn start(
    connection: &Connection,
    shared: &Rc<Shared>,
) -> Result<(Driver, Client), (FailureKind, String)> {
    let next = NextStream::default();
    let library = Library::new(connection.clone(), Rc::clone(shared), Rc::clone(&next));
    let built = h3::client::builder()
        .max_field_section_size(DECODED_MAX)
        .send_grease(false)
        .build(library)
        .await;
    let refused = |_| (FailureKind::Connect, of_connection(connection, shared).1);
    let (driver, sender) = built.map_err(refused)?;
    Ok((driver, Client { sender, next }))
}

/// The task of a connection.
struct Attendant {
    connection: Connection,
    client: Rc<RefCell<Client>>,
    shared: Rc<Shared>,
    shaken: Arc<Shaken>,
    traffic: Rc<Traffic>,
}

impl Attendant {
    /// Completes the handshake, and reads the streams of the target, until the connection ends.
    async fn attend(self, driver: Driver, early: Option<ZeroRttAccepted>) {
        let own = &self.shared;
        let ended = pin!(async {
            let driver = match early {
                None => Some(driver),
                Some(accepted) => self.decide(driver, accepted).await,
            };
            let Some(mut driver) = driver else {
                return;
            };
            poll_fn(|context| {
                let polled = driver.poll_close(context).map(drop);
                if polled.is_pending() {
                    own.leave();
                }
                polled
            })
            .await;
        });
        let fault = pin!(own.fault.raised());
        if let Either::Right(_) = select(ended, fault).await {
            self.connection.close(number(Code::H3_NO_ERROR), b"");
        }
        own.changed.notify_waiters();
    }

    /// Waits for the decision of the target about 0-RTT. Returns `None` if there is no connection.
    ///
    /// The library does not read before, because a second library could not read the same bytes again.
    async fn decide(&self, driver: Driver, accepted: ZeroRttAccepted) -> Option<Driver> {
        let is_accepted = accepted.await;
        // A connection that was not established reports a rejection, too.
        if !is_accepted && self.connection.close_reason().is_some() {
            return None;
        }
        self.traffic
            .shaken(self.shaken.is_resumed(), Some(is_accepted));
        let driver = match is_accepted {
            true => driver,
            false => {
                // Its streams are lost. With it, the end of its client would close the connection.
                drop(driver);
                self.shared.early.set(Early::Rejected);
                let (driver, client) = start(&self.connection, &self.shared).await.ok()?;
                self.client.replace(client);
                driver
            }
        };
        self.shared.early.set(Early::Over);
        self.shared.changed.notify_waiters();
        Some(driver)
    }
}

/// Connects. With a ticket for 0-RTT, the connection is usable before the target has responded.
async fn handshake(
    config: &ClientConfig,
    name: &str,
    peer: SocketAddr,
    fault: &SocketFault,
) -> Result<(Connection, Option<ZeroRttAccepted>), (FailureKind, String)> {
    let refuse = |reason: String| (FailureKind::Connect, reason);
    let socket = Datagrams::new(peer, fault).map_err(|error| refusal(&error))?;
    let endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        Arc::new(socket),
        Arc::new(TokioRuntime),
    );
    let endpoint = endpoint.map_err(|error| refusal(&error))?;
    let connecting = endpoint.connect_with(config.clone(), peer, name);
    let connecting = connecting.map_err(|error| refuse(error.to_string()))?;
    let connecting = match connecting.into_0rtt() {
        Ok((connection, accepted)) => return Ok((connection, Some(accepted))),
        Err(connecting) => connecting,
    };
    let shaken = match select(pin!(connecting), pin!(fault.raised())).await {
        Either::Left((shaken, _)) => Some(shaken),
        Either::Right(_) => None,
    };
    // The socket knows better than the library why it could not be used.
    if let Some(error) = fault.get() {
        return Err(refusal(error));
    }
    let connection = shaken
        .expect("the socket has no fault")
        .map_err(|error| refuse(of_handshake(&error)))?;
    Ok((connection, None))
}

/// Counts one request for as long as it is kept.
struct UnderWay(Rc<Session>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
    }
}

/// An open stream for one request.
pub(super) struct Room {
    under_way: UnderWay,
    send: SendStream,
    receive: quinn::RecvStream,
}

/// Gives closed connections the time to send their last packet.
pub(super) async fn leave() {
    // A step for the connection, one for its socket, and some in case that others run first.
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}
