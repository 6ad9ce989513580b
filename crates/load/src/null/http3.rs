//! A null server for HTTP/3, with the behavior of the null server for HTTP/1.1.
//!
//! A response has left when QUIC has it. The kernel has it a little later, unlike over TCP.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use h3::error::{Code, StreamError};
use h3::server::RequestStream;
use h3_quinn::BidiStream;
use http::{HeaderValue, Method, Response, StatusCode, header};
use quinn::{
    Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, TransportConfig,
    ZeroRttAccepted,
};
use stats::Histogram;
use tokio::task::LocalSet;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::behavior::Behavior;
use super::pace::Timetable;
use super::planted::Planted;
use super::seen::Seen;
use super::server::body;
use crate::clock::Clock;
use crate::general::Timer;
use crate::job::Job;

/// Time between two looks at the stop flag.
const LOOK: Duration = Duration::from_millis(20);

/// Time between two looks for a client that has left a response without an end.
const LOOK_FOR_CLIENT: Duration = Duration::from_millis(100);

/// Requests that a client may have under way on a connection, the largest `--streams`.
const STREAMS_MAX: u32 = 1000;

/// The largest number of tickets that the server keeps.
const TICKETS_MAX: usize = 64 * 1024;

/// Responses to requests that arrive before the handshake is complete (0-RTT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullEarlyData {
    /// Reject the 0-RTT of every Nth connection. Such a connection has no ticket for a later one. At least 2, because
    /// otherwise no connection has a ticket.
    pub rejected_every: Option<u64>,
}

/// The certificate of a null server, signed by itself, with its key.
pub struct NullCertificate {
    signed: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl std::fmt::Debug for NullCertificate {
    /// Writes no key, because logs contain this text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NullCertificate(hidden)")
    }
}

impl NullCertificate {
    /// Makes a certificate for these names and addresses.
    ///
    /// # Errors
    /// If a name cannot be in a certificate.
    pub fn new(names: Vec<String>) -> io::Result<NullCertificate> {
        let signed = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        Ok(NullCertificate { signed })
    }

    /// Returns the certificate in PEM form, without its key.
    #[must_use]
    pub fn pem(&self) -> String {
        self.signed.cert.pem()
    }

    /// Returns the settings of connections without 0-RTT.
    fn config(&self) -> Result<rustls::ServerConfig, rustls::Error> {
        let key = PrivatePkcs8KeyDer::from(self.signed.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(
                vec![self.signed.cert.der().clone()],
                PrivateKeyDer::from(key),
            )?;
        tls.alpn_protocols = vec![crate::general::HTTP3_ALPN.to_vec()];
        tls.session_storage = rustls::server::ServerSessionMemoryCache::new(TICKETS_MAX);
        Ok(tls)
    }
}

fn over_quic(tls: rustls::ServerConfig) -> io::Result<ServerConfig> {
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls);
    let mut config = ServerConfig::with_crypto(Arc::new(crypto.map_err(io::Error::other)?));
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(STREAMS_MAX.into());
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// The settings of connections.
struct Settings {
    usual: Arc<ServerConfig>,
    /// The settings of each connection with this number and its multiples.
    rejecting: Option<(u64, Arc<ServerConfig>)>,
}

impl Settings {
    fn new(certificate: &NullCertificate, early: Option<NullEarlyData>) -> io::Result<Settings> {
        let mut tls = certificate.config().map_err(io::Error::other)?;
        let mut rejecting = None;
        if let Some(early) = early {
            // Both settings share the store of tickets.
            let mut without = tls.clone();
            without.send_tls13_tickets = 0;
            // QUIC permits no other number (RFC 9001, section 4.6.1).
            tls.max_early_data_size = u32::MAX;
            if let Some(every) = early.rejected_every {
                rejecting = Some((every, Arc::new(over_quic(without)?)));
            }
        }
        let usual = Arc::new(over_quic(tls)?);
        Ok(Settings { usual, rejecting })
    }

    /// Returns the settings of a connection by its number, from 1.
    fn of(&self, number: u64) -> Arc<ServerConfig> {
        let rejecting = self.rejecting.as_ref();
        let rejecting = rejecting.filter(|(every, _)| number.is_multiple_of(*every));
        Arc::clone(rejecting.map_or(&self.usual, |(_, config)| config))
    }
}

/// A connection that carries requests.
struct Carrier {
    quic: Connection,
    /// The end of the handshake, if requests may arrive before it.
    completed: Option<ZeroRttAccepted>,
}

impl Carrier {
    /// Accepts a connection. `None` if the handshake failed.
    async fn accept(
        incoming: Incoming,
        config: Arc<ServerConfig>,
        is_early: bool,
    ) -> Option<Carrier> {
        let connecting = incoming.accept_with(config).ok()?;
        if !is_early {
            let quic = connecting.await.ok()?;
            return Some(Carrier {
                quic,
                completed: None,
            });
        }
        let (quic, completed) = connecting.into_0rtt().ok()?;
        Some(Carrier {
            quic,
            completed: Some(completed),
        })
    }

    /// True if the handshake is not complete.
    fn is_early(&mut self) -> bool {
        let Some(completed) = &mut self.completed else {
            return false;
        };
        let is_complete = completed.now_or_never().is_some();
        if is_complete {
            self.completed = None;
        }
        !is_complete
    }
}

type Stream = RequestStream<BidiStream<Bytes>, Bytes>;

/// The state that all tasks share.
struct Host {
    clock: Clock,
    /// The time since 1970 at which the clock shows 0.
    epoch_ns: u64,
    behavior: Behavior,
    timetable: RefCell<Timetable>,
    planted: RefCell<Planted>,
    /// The bodies of right and of wrong responses.
    bodies: [Bytes; 2],
    seen: Cell<Seen>,
    late: RefCell<Histogram>,
}

/// A response that is decided when its request arrives.
#[derive(Clone, Copy, Debug)]
struct Planned {
    ready_ns: u64,
    is_wrong: bool,
    is_bodiless: bool,
}

/// Serves until `stop` is set, and returns its counts. A reset ends one stream and not its connection.
///
/// # Errors
/// If the socket or the certificate cannot be used.
pub fn serve_http3(
    socket: UdpSocket,
    certificate: &NullCertificate,
    behavior: &Behavior,
    early: Option<NullEarlyData>,
    stop: &AtomicBool,
) -> io::Result<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let clock = Clock::start();
    let host = Rc::new(Host {
        clock,
        epoch_ns: clock.epoch_ns(),
        behavior: behavior.clone(),
        timetable: RefCell::new(Timetable::new(behavior)),
        planted: RefCell::new(Planted::new(behavior)?),
        bodies: [false, true].map(|is_wrong| body(behavior, is_wrong).into()),
        seen: Cell::default(),
        late: RefCell::new(Histogram::new()),
    });
    let settings = Settings::new(certificate, early)?;
    let accepting = async {
        let (own, usual) = (
            EndpointConfig::default(),
            ServerConfig::clone(&settings.usual),
        );
        let endpoint = Endpoint::new(own, Some(usual), socket, Arc::new(TokioRuntime))?;
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            if let Ok(Some(incoming)) = tokio::time::timeout(LOOK, endpoint.accept()).await {
                number += 1;
                let (host, config) = (Rc::clone(&host), settings.of(number));
                tokio::task::spawn_local(async move {
                    let accepted = Carrier::accept(incoming, config, early.is_some());
                    if let Some(connection) = accepted.await {
                        host.count(|seen| {
                            seen.connections += 1;
                            seen.open += 1;
                        });
                        serve(&host, connection).await;
                        host.count(|seen| seen.open -= 1);
                    }
                });
            }
        }
        Ok(host.seen())
    };
    LocalSet::new().block_on(&runtime, accepting)
}

/// Serves one connection to its end.
async fn serve(host: &Rc<Host>, mut carrier: Carrier) {
    let own = h3_quinn::Connection::new(carrier.quic.clone());
    let built = h3::server::builder().send_grease(false).build(own).await;
    let Ok(mut connection) = built else {
        return;
    };
    let mut accepted = 0;
    while let Ok(Some(resolver)) = connection.accept().await {
        let is_early = carrier.is_early();
        let Ok((request, stream)) = resolver.resolve_request().await else {
            host.count(|seen| seen.malformed += 1);
            continue;
        };
        let host = Rc::clone(host);
        if request.uri().path() == "/seen" {
            tokio::task::spawn_local(async move { host.tell_seen(stream).await });
            continue;
        }
        host.count(|seen| seen.early += u64::from(is_early));
        accepted += 1;
        let is_last = host
            .behavior
            .close_after
            .is_some_and(|after| accepted >= after);
        let is_bodiless = request.method() == Method::HEAD;
        let answering =
            tokio::task::spawn_local(async move { host.answer(stream, is_bodiless).await });
        if is_last {
            // The announcement leaves before the response, so that no later request arrives.
            // The first stream that is not processed is the next stream.
            let _ = connection.shutdown(1).await;
            let _ = answering.await;
            break;
        }
    }
    // The client reads its last response, and then it closes the connection.
    carrier.quic.closed().await;
}

impl Host {
    fn count(&self, change: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.get();
        change(&mut seen);
        self.seen.set(seen);
    }

    fn seen(&self) -> Seen {
        let typical_ns = self.late.borrow().trimmed_mean_ns(Histogram::TYPICAL_SHARE);
        Seen {
            sent_ns_typical: typical_ns.unwrap_or_default(),
            ..self.seen.get()
        }
    }

    async fn tell_seen(&self, mut stream: Stream) {
        let body = Bytes::from(self.seen().to_string());
        let head = head("application/json", Some(body.len()), None);
        // The client may be gone.
        let _ = send(&mut stream, head, body).await;
    }

    /// Reads a whole request, and answers it as planned.
    async fn answer(&self, mut stream: Stream, is_bodiless: bool) {
        while let Ok(Some(_)) = stream.recv_data().await {}
        self.count(|seen| seen.requests += 1);
        let count = self.seen.get().requests;
        let is_turn = |every: Option<u64>| every.is_some_and(|every| count.is_multiple_of(every));
        let arrived_ns = self.clock.now_ns();
        let planned = Planned {
            ready_ns: self.timetable.borrow_mut().answer_ns(arrived_ns),
            is_wrong: is_turn(self.behavior.wrong_every),
            is_bodiless,
        };
        if is_turn(self.behavior.reset_every) {
            self.count(|seen| seen.reset += 1);
            return stream.stop_stream(Code::H3_INTERNAL_ERROR);
        }
        if is_turn(self.behavior.never_every) {
            self.count(|seen| seen.never += 1);
            return pending().await;
        }
        if self.wait_until(planned.ready_ns).await.is_err()
            || self.planted.borrow_mut().before_response().is_err()
        {
            return stream.stop_stream(Code::H3_INTERNAL_ERROR);
        }
        self.count(|seen| seen.wrong += u64::from(planned.is_wrong));
        let answered = match &self.behavior.stream {
            Some(_) => self.send_events(&mut stream, planned).await,
            None => self.send_body(&mut stream, planned).await,
        };
        // The client may be gone.
        if answered.is_ok() {
            self.count(|seen| seen.answered += 1);
        }
    }

    /// Waits until this time, and records how late it is then.
    async fn wait_until(&self, ready_ns: u64) -> io::Result<()> {
        if ready_ns > self.clock.now_ns() {
            let timer = Timer::new(self.clock, Job::SPIN_SHARE)?;
            timer.wait_until(ready_ns, true).await;
            let late_ns = self.clock.now_ns().saturating_sub(ready_ns);
            self.count(|seen| {
                seen.late_ns_sum += late_ns;
                seen.late_ns_max = seen.late_ns_max.max(late_ns);
            });
        }
        Ok(())
    }

    async fn send_body(&self, stream: &mut Stream, planned: Planned) -> Result<(), StreamError> {
        let body = self.bodies[usize::from(planned.is_wrong)].clone();
        let coding = self.behavior.encoding.as_ref().map(|it| it.coding.as_str());
        let head = head("application/json", Some(body.len()), coding);
        let body = if planned.is_bodiless {
            Bytes::new()
        } else {
            body
        };
        let sent = send(stream, head, body).await;
        let sent_ns = self.clock.now_ns().saturating_sub(planned.ready_ns);
        self.late.borrow_mut().record_ns(sent_ns);
        sent
    }

    /// Sends a head, and events at their times.
    async fn send_events(&self, stream: &mut Stream, planned: Planned) -> Result<(), StreamError> {
        let Some(events) = &self.behavior.stream else {
            return Ok(());
        };
        let head = head(events.media_type(), None, None);
        stream.send_response(head).await?;
        if planned.is_bodiless {
            return stream.finish().await;
        }
        for index in 0..events.events {
            let event_ns = events.event_ns(planned.ready_ns, index);
            if self.wait_until(event_ns).await.is_err() {
                stream.stop_stream(Code::H3_INTERNAL_ERROR);
                return Ok(());
            }
            // The first event is wrong, so that short streams are wrong, too.
            let data = match planned.is_wrong && index == 0 {
                true => "{".to_owned(),
                false => {
                    let at_ns = self.epoch_ns + self.clock.now_ns();
                    format!("{{\"n\":{},\"at\":{at_ns}}}", index + 1)
                }
            };
            stream.send_data(events.event(&data).into()).await?;
        }
        if let Some(marker) = &events.marker {
            stream.send_data(events.event(marker).into()).await?;
        }
        if events.stays_open {
            wait_for_client(stream).await;
            return Ok(());
        }
        stream.finish().await
    }
}

/// Waits until the client has left a response.
async fn wait_for_client(stream: &mut Stream) {
    loop {
        tokio::time::sleep(LOOK_FOR_CLIENT).await;
        // An empty frame fails if the client has left.
        if stream.send_data(Bytes::new()).await.is_err() {
            return;
        }
    }
}

fn head(media_type: &'static str, length: Option<usize>, coding: Option<&str>) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::OK;
    let headers = head.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    match length {
        Some(length) => headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length)),
        None => headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    };
    if let Some(coding) = coding {
        let coding = HeaderValue::from_str(coding).expect("the behavior was checked");
        headers.insert(header::CONTENT_ENCODING, coding);
    }
    head
}

async fn send(stream: &mut Stream, head: Response<()>, body: Bytes) -> Result<(), StreamError> {
    stream.send_response(head).await?;
    if !body.is_empty() {
        stream.send_data(body).await?;
    }
    stream.finish().await
}
