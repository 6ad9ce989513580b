//! The client of one worker.

use std::cell::{Cell, OnceCell, RefCell};
use std::num::NonZeroUsize;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use rustls::RootCertStore;
use tokio_rustls::TlsConnector;

use crate::call::Call;
use crate::connection::Stream;
use crate::counters::{Counters, Tally, Traffic};
use crate::endpoint::{Endpoint, Policy};
use crate::error::SendError;
use crate::http1::{self, Broken};
use crate::http2;
use crate::negotiation::Http2;
use crate::places::{Place, Places};
use crate::pool::{Origin, Pool};
use crate::reply::Reply;
use crate::tls;

mod lasting;

pub use lasting::LastingPlace;
pub(crate) use lasting::{Held, Lasting};

/// What holds for every call of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Longer bodies of answers are refused.
    pub reply_bytes_max: usize,
    /// So many idle connections are kept for an origin.
    pub idle_per_origin_max: usize,
    /// Authorities to trust instead of those of the operating system.
    pub roots: Option<RootCertStore>,
    /// How many connections there may be.
    pub connections: ConnectionLimits,
    /// Workers that share these limits, each of which gets its part.
    pub workers: NonZeroUsize,
    /// Where the clients of all workers count.
    pub traffic: Arc<Traffic>,
}

/// How many connections the clients of all workers may have open, and how many calls may wait for one.
///
/// Each worker has an equal part, at least one. Idle connections count. A connection of HTTP/2 carries
/// many calls; what is counted then is the call for which it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// To all origins.
    pub total: usize,
    /// To one origin, unless its endpoint says otherwise; as many as are left for others without it.
    pub per_origin: Option<usize>,
    /// Calls that wait for a connection to one origin; more fail at once.
    pub waiting: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            total: 1024,
            per_origin: None,
            waiting: 1024,
        }
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            reply_bytes_max: 64 * 1024 * 1024,
            idle_per_origin_max: 512,
            roots: None,
            connections: ConnectionLimits::default(),
            workers: NonZeroUsize::MIN,
            traffic: Arc::default(),
        }
    }
}

/// The HTTP client of one worker thread. Clones share connections.
///
/// Needs a tokio runtime with I/O and time. Dropping the future of a call
/// closes its connection.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

struct Inner {
    settings: ClientSettings,
    limits: Cell<ConnectionLimits>,
    pool: RefCell<Pool>,
    /// For exchanges with all origins together.
    places: Rc<Places>,
    tally: Tally,
    roots: OnceCell<RootCertStore>,
    tls: [OnceCell<TlsConnector>; 3],
}

enum Connection {
    Http1 {
        stream: Stream,
        is_reused: bool,
    },
    Http2 {
        sender: SendRequest<Full<Bytes>>,
        is_reused: bool,
    },
}

impl Client {
    /// A client without connections.
    pub fn new(settings: ClientSettings) -> Self {
        Self(Rc::new(Inner {
            limits: Cell::new(settings.connections),
            settings,
            places: Rc::default(),
            pool: RefCell::default(),
            tally: Tally::default(),
            roots: OnceCell::new(),
            tls: Default::default(),
        }))
    }

    /// Sends `call` to `endpoint` and waits for the whole answer.
    pub async fn send(&self, endpoint: &Endpoint, call: Call<'_>) -> Result<Reply, SendError> {
        let _counted = self.0.tally.enter();
        // One of it, limited or not, where it is: what is given to the limit itself moves there.
        let attempts = pin!(self.attempts(endpoint, &call));
        match call.timeout {
            None => attempts.await,
            Some(limit) => tokio::time::timeout(limit, attempts)
                .await
                .unwrap_or(Err(SendError::TimedOut { limit })),
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        let tally = &self.0.tally;
        Counters {
            connects: tally.connects.get(),
            reused: tally.reused.get(),
            retried: tally.retried.get(),
            in_flight: tally.in_flight(),
            idle: self.0.pool.borrow().idle() as u64,
        }
    }

    /// Closes idle connections whose time is over. Every call looks after its
    /// own origin; an idle worker calls this about once a second.
    pub fn sweep(&self) {
        self.0.pool.borrow_mut().sweep();
    }

    /// Calls count against other limits from now on. Connections that are open stay.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.0.limits.set(limits);
    }

    /// At most two: a second one on a new connection when the first met a
    /// connection that the other side had closed meanwhile.
    async fn attempts(&self, endpoint: &Endpoint, call: &Call<'_>) -> Result<Reply, SendError> {
        let origin = self.0.pool.borrow_mut().origin(endpoint);
        let (place, connection) = self.connection(endpoint, &origin).await?;
        match self.attempt(endpoint, &origin, call, connection).await {
            Ok(reply) => Ok(reply),
            Err((error, false)) => Err(error),
            Err((_, true)) => {
                Tally::add(&self.0.tally.retried);
                let (_place, connection) = if place.is_some() {
                    // A new connection, not another idle one: that may be just as stale.
                    let fresh = Box::pin(self.new_connection(endpoint, &origin)).await?;
                    (place, fresh)
                } else {
                    // All who shared one come here, so that these, too, need a place or the first
                    // one's new connection.
                    Box::pin(self.connection(endpoint, &origin)).await?
                };
                // No third attempt: an error on a new connection is about the service, not about
                // the pool.
                self.attempt(endpoint, &origin, call, connection)
                    .await
                    .map_err(|(error, _)| error)
            }
        }
    }

    /// A connection, and the place of one that is not shared.
    async fn connection(
        &self,
        endpoint: &Endpoint,
        origin: &Origin,
    ) -> Result<(Option<[Place; 2]>, Connection), SendError> {
        // A connection of HTTP/2 is shared, so it needs no place.
        if let Some(connection) = self.shared_connection(endpoint, origin) {
            return Ok((None, connection));
        }
        let place = self.place(endpoint, &origin.places).await?;
        // Who has waited may find a shared one now, and lets the next see it at once.
        if let Some(connection) = self.shared_connection(endpoint, origin) {
            return Ok((None, connection));
        }
        let connection = match self.idle_connection(origin) {
            // It may have been closed meanwhile, which only its use shows.
            Some(connection) => connection,
            // Boxed, as in `attempts`: the future of a TLS handshake is larger than all the rest, and
            // every call would make room for it.
            None => Box::pin(self.new_connection(endpoint, origin)).await?,
        };
        Ok((Some(place), connection))
    }

    /// The answer, or the error and whether trying again is safe and sensible.
    async fn attempt(
        &self,
        endpoint: &Endpoint,
        origin: &Origin,
        call: &Call<'_>,
        connection: Connection,
    ) -> Result<Reply, (SendError, bool)> {
        let own = self.0.settings.reply_bytes_max;
        let limit = call.reply_bytes_max.map_or(own, |limit| limit.min(own));
        match connection {
            Connection::Http1 {
                mut stream,
                is_reused,
            } => match http1::exchange(&mut stream, endpoint, call, limit).await {
                Ok(exchanged) => {
                    // Only now: a connection with an unread answer would give it to the next
                    // request.
                    if exchanged.keep {
                        origin.put(stream, self.0.settings.idle_per_origin_max);
                    }
                    Ok(exchanged.reply)
                }
                Err(Broken {
                    error,
                    before_answer,
                    before_request,
                }) => {
                    let is_safe = before_request || call.is_idempotent;
                    // Only a reused connection that was closed before any byte of an answer;
                    // otherwise the request may have been carried out.
                    Err((error, is_reused && before_answer && is_safe))
                }
            },
            Connection::Http2 {
                mut sender,
                is_reused,
            } => http2::exchange(&mut sender, endpoint, call, limit)
                .await
                .map_err(|error| {
                    let is_stale =
                        matches!(&error, SendError::Http2 { source } if is_never_sent(source));
                    (error, is_reused && is_stale)
                }),
        }
    }

    /// The right to an exchange with this origin: as many have it as there may be connections.
    async fn place(
        &self,
        endpoint: &Endpoint,
        places: &Rc<Places>,
    ) -> Result<[Place; 2], SendError> {
        // The origin's first: who waits for a slow one keeps nobody else waiting.
        let most = || self.most(endpoint, places);
        let own = match places.take(most) {
            Some(place) => place,
            None => {
                let place = Box::pin(self.wait(places, endpoint)).await?;
                // There may be more of them now than when the last one came.
                places.allow(most);
                place
            }
        };
        let total = || left_of(&self.0.places, self.part(self.0.limits.get().total));
        let any = match self.0.places.take(total) {
            Some(place) => place,
            None => Box::pin(self.wait(&self.0.places, endpoint)).await?,
        };
        Ok([own, any])
    }

    /// How many connections to this origin there may be now.
    fn most(&self, endpoint: &Endpoint, origin: &Places) -> usize {
        match self.own_limit(endpoint) {
            Some(most) => left_of(origin, self.part(most)),
            // As many as are left: one slow origin gets half, two get a third each, and the next one
            // finds a place. Connections of its own that last do not count twice.
            None => {
                let total = self.part(self.0.limits.get().total);
                let left = total.saturating_sub(origin.count_all());
                left_of(origin, left + origin.lasting())
            }
        }
    }

    /// How many connections to its origin there may be by what is configured, over all workers.
    fn own_limit(&self, endpoint: &Endpoint) -> Option<usize> {
        let own = endpoint.policy().connections_max.map(NonZeroUsize::get);
        own.or(self.0.limits.get().per_origin)
    }

    async fn wait(&self, places: &Places, endpoint: &Endpoint) -> Result<Place, SendError> {
        let traffic = &self.0.settings.traffic;
        if places.waiting() >= self.part(self.0.limits.get().waiting) {
            traffic.refuse();
            return Err(SendError::Crowded {
                origin: endpoint.as_str().to_owned(),
            });
        }
        let _waits = traffic.waits();
        let place = places.wait().await;
        Ok(place.expect("places outlive those who wait for them"))
    }

    /// This worker's part.
    fn part(&self, all: usize) -> usize {
        (all / self.0.settings.workers).max(1)
    }

    /// A connection of HTTP/2 to this origin.
    fn shared_connection(&self, endpoint: &Endpoint, origin: &Origin) -> Option<Connection> {
        // Without TLS and without prior knowledge the pool has none to look for.
        if !may_be_http2(endpoint) {
            return None;
        }
        let sender = origin.http2()?;
        Tally::add(&self.0.tally.reused);
        Some(Connection::Http2 {
            sender,
            is_reused: true,
        })
    }

    fn idle_connection(&self, origin: &Origin) -> Option<Connection> {
        let stream = origin.take()?;
        Tally::add(&self.0.tally.reused);
        Some(Connection::Http1 {
            stream,
            is_reused: true,
        })
    }

    async fn new_connection(
        &self,
        endpoint: &Endpoint,
        origin: &Origin,
    ) -> Result<Connection, SendError> {
        Tally::add(&self.0.tally.connects);
        self.make_room();
        let tls = || self.tls(endpoint.policy());
        let stream = Stream::connect(endpoint, tls, &self.0.settings.traffic).await?;
        let is_http2 = endpoint.policy().http2 == Http2::Only || stream.agreed_to_http2();
        if !is_http2 {
            return Ok(Connection::Http1 {
                stream,
                is_reused: false,
            });
        }
        let sender = http2::open(stream, endpoint.policy()).await?;
        origin.share_http2(sender.clone());
        Ok(Connection::Http2 {
            sender,
            is_reused: false,
        })
    }

    /// Closes idle connections to other origins that leave no room for one more.
    fn make_room(&self) {
        let pool = self.0.pool.borrow();
        let most = self.part(self.0.limits.get().total);
        // The one to come is among the places that are taken.
        let more = (self.0.places.count() + pool.kept()).saturating_sub(most);
        for _ in 0..more {
            pool.close_oldest();
        }
    }

    fn tls(&self, policy: &Policy) -> TlsConnector {
        let http2 = policy.http2;
        if let Some(trust) = &policy.trust {
            return trust.connector(http2);
        }
        self.0.tls[http2 as usize]
            // Created when first needed: a gateway without `https` reads no root certificates.
            .get_or_init(|| {
                let roots = self.0.roots.get_or_init(|| {
                    let given = self.0.settings.roots.clone();
                    given.unwrap_or_else(tls::native_roots)
                });
                tls::connector(http2, roots)
            })
            .clone()
    }
}

/// So many places, of which one at least is for an exchange.
fn left_of(places: &Places, most: usize) -> usize {
    most.max(places.lasting() + 1)
}

fn may_be_http2(endpoint: &Endpoint) -> bool {
    match endpoint.policy().http2 {
        Http2::Disable => false,
        Http2::Only => true,
        Http2::Enable => endpoint.uri().scheme_str() == Some("https"),
    }
}

/// The connection was gone before the request was handed to it, or before a stream was free for it.
fn is_never_sent(error: &hyper::Error) -> bool {
    // hyper drops the one that is next for a stream together with the connection, which it calls a mistake
    // of ours. Those that are under way belong to tasks of their own.
    let was_next = error.is_user();
    error.is_canceled() || was_next || (error.is_closed() && !error.is_incomplete_message())
}

#[cfg(test)]
mod tests;
