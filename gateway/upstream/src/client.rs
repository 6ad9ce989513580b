//! The HTTP client of one worker: connections, limits and retries.

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
use crate::endpoint::{Policy, UpstreamEndpoint};
use crate::error::SendError;
use crate::http1::{self, Broken};
use crate::http2;
use crate::negotiation::Http2;
use crate::places::{Place, Places};
use crate::pool::{Origin, Pool};
use crate::reply::Reply;
use crate::tls;

mod own_connection;

pub use own_connection::ConnectionPlace;
pub(crate) use own_connection::{HeldPlaces, OwnConnection};

/// Settings for all calls of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Maximum bytes of a response body.
    pub reply_bytes_max: usize,
    /// Maximum number of idle connections to one origin.
    pub idle_per_origin_max: usize,
    /// Trusted authorities. `None` for the authorities of the operating system.
    pub roots: Option<RootCertStore>,
    /// Limits on the number of connections.
    pub connections: ConnectionLimits,
    /// Number of workers that share these limits. Each gets an equal part.
    pub workers: NonZeroUsize,
    /// Counters that all workers share.
    pub traffic: Arc<Traffic>,
}

/// Limits on the open connections of all workers' clients, and on the calls that wait for one.
///
/// Each worker has an equal part, at least one. Idle connections count. An HTTP/2 connection carries many
/// calls. It counts through the call that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections to all origins together.
    pub total: usize,
    /// Maximum number of connections to one origin, unless its endpoint sets another. With `None`, an origin
    /// gets as many as it leaves for other origins.
    pub per_origin: Option<usize>,
    /// Maximum number of calls that wait for a connection to one origin. Further calls fail at once.
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
/// Requires a tokio runtime with I/O and time. Dropping the future of a call closes its connection.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

struct Inner {
    settings: ClientSettings,
    limits: Cell<ConnectionLimits>,
    pool: RefCell<Pool>,
    /// The places for exchanges with all origins together.
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
    /// Creates a client without open connections.
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

    /// Sends `call` to `endpoint` and waits for the whole response.
    pub async fn send(
        &self,
        endpoint: &UpstreamEndpoint,
        call: Call<'_>,
    ) -> Result<Reply, SendError> {
        let _counted = self.0.tally.enter();
        // Pinned once for both cases. Passing the future to `timeout` by value would move it.
        let attempts = pin!(self.attempts(endpoint, &call));
        match call.timeout {
            None => attempts.await,
            Some(limit) => tokio::time::timeout(limit, attempts)
                .await
                .unwrap_or(Err(SendError::TimedOut { limit })),
        }
    }

    /// The counters up to now.
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

    /// Closes idle connections after their idle timeout. Every call checks its own origin. An idle worker
    /// calls this about once a second.
    pub fn sweep(&self) {
        self.0.pool.borrow_mut().sweep();
    }

    /// Replaces the limits for further calls. Open connections stay open.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.0.limits.set(limits);
    }

    /// Makes at most two attempts. The second uses a new connection, if the first met a connection that the
    /// other side had closed.
    async fn attempts(
        &self,
        endpoint: &UpstreamEndpoint,
        call: &Call<'_>,
    ) -> Result<Reply, SendError> {
        let origin = self.0.pool.borrow_mut().origin(endpoint);
        let (place, connection) = self.connection(endpoint, &origin).await?;
        match self.attempt(endpoint, &origin, call, connection).await {
            Ok(reply) => Ok(reply),
            Err((error, false)) => Err(error),
            Err((_, true)) => {
                Tally::add(&self.0.tally.retried);
                let (_place, connection) = if place.is_some() {
                    // A new connection, because another idle one can be just as stale.
                    let fresh = Box::pin(self.new_connection(endpoint, &origin)).await?;
                    (place, fresh)
                } else {
                    // All calls that shared the connection come here. So they also need a place, or the new
                    // connection of the first of them.
                    Box::pin(self.connection(endpoint, &origin)).await?
                };
                // No third attempt, because an error on a new connection comes from the service and not from
                // the pool.
                self.attempt(endpoint, &origin, call, connection)
                    .await
                    .map_err(|(error, _)| error)
            }
        }
    }

    /// A connection, and the place of a connection that is not shared.
    async fn connection(
        &self,
        endpoint: &UpstreamEndpoint,
        origin: &Origin,
    ) -> Result<(Option<[Place; 2]>, Connection), SendError> {
        // An HTTP/2 connection is shared, so it needs no place.
        if let Some(connection) = self.shared_connection(endpoint, origin) {
            return Ok((None, connection));
        }
        let place = self.place(endpoint, &origin.places).await?;
        // After the wait there can be a shared connection. Then the call releases its place, and the next
        // waiting call finds the shared connection at once.
        if let Some(connection) = self.shared_connection(endpoint, origin) {
            return Ok((None, connection));
        }
        let connection = match self.idle_connection(origin) {
            // The other side may have closed it. Only the next use shows this.
            Some(connection) => connection,
            // Boxed, as in `attempts`. The future of a TLS handshake is larger than the rest, and would
            // increase the size of every call.
            None => Box::pin(self.new_connection(endpoint, origin)).await?,
        };
        Ok((Some(place), connection))
    }

    /// The response, or the error. With an error, true if another attempt is safe and useful.
    async fn attempt(
        &self,
        endpoint: &UpstreamEndpoint,
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
                    // Returned only now. Otherwise the next request could receive the unread response of this
                    // one.
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
                    // Only if a reused connection was closed before the first byte of a response. Otherwise
                    // the service may have executed the request.
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

    /// Waits for the right to one exchange with this origin. The number of places equals the maximum number
    /// of connections.
    async fn place(
        &self,
        endpoint: &UpstreamEndpoint,
        places: &Rc<Places>,
    ) -> Result<[Place; 2], SendError> {
        // The place at the origin comes first. So a call that waits for a slow origin does not occupy one of
        // the places for all origins.
        let most = || self.most(endpoint, places);
        let own = match places.take(most) {
            Some(place) => place,
            None => {
                let place = Box::pin(self.wait(places, endpoint)).await?;
                // There can be more places now than at the last call.
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

    /// Maximum number of connections to this origin at this moment.
    fn most(&self, endpoint: &UpstreamEndpoint, origin: &Places) -> usize {
        match self.own_limit(endpoint) {
            Some(most) => left_of(origin, self.part(most)),
            // As many as are left. One slow origin gets half, two get a third each, and the next origin still
            // finds a place. The origin's own WebSockets must not count twice.
            None => {
                let total = self.part(self.0.limits.get().total);
                let left = total.saturating_sub(origin.count_all());
                left_of(origin, left + origin.reservations())
            }
        }
    }

    /// The configured maximum of connections to the endpoint's origin, over all workers.
    fn own_limit(&self, endpoint: &UpstreamEndpoint) -> Option<usize> {
        let own = endpoint.policy().connections_max.map(NonZeroUsize::get);
        own.or(self.0.limits.get().per_origin)
    }

    async fn wait(&self, places: &Places, endpoint: &UpstreamEndpoint) -> Result<Place, SendError> {
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

    /// This worker's part of a limit, at least one.
    fn part(&self, all: usize) -> usize {
        (all / self.0.settings.workers).max(1)
    }

    /// The shared HTTP/2 connection to this origin, if there is one.
    fn shared_connection(
        &self,
        endpoint: &UpstreamEndpoint,
        origin: &Origin,
    ) -> Option<Connection> {
        // Without TLS and without prior knowledge, there is no HTTP/2 connection.
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
        endpoint: &UpstreamEndpoint,
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

    /// Closes the oldest idle connections if there is no room for one more.
    fn make_room(&self) {
        let pool = self.0.pool.borrow();
        let most = self.part(self.0.limits.get().total);
        // The taken places include the new connection.
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
            // Created at the first use. So a gateway without `https` reads no root certificates.
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

/// Returns `most` places, but at least one for an exchange.
fn left_of(places: &Places, most: usize) -> usize {
    most.max(places.reservations() + 1)
}

fn may_be_http2(endpoint: &UpstreamEndpoint) -> bool {
    match endpoint.policy().http2 {
        Http2::Disable => false,
        Http2::Only => true,
        Http2::Enable => endpoint.uri().scheme_str() == Some("https"),
    }
}

/// True if the connection ended before it received the request, or before a stream was free for the request.
fn is_never_sent(error: &hyper::Error) -> bool {
    // hyper drops the request that is next for a stream together with the connection, and reports it as a
    // user error. Requests that already have a stream belong to their own tasks.
    let was_next = error.is_user();
    error.is_canceled() || was_next || (error.is_closed() && !error.is_incomplete_message())
}

#[cfg(test)]
mod tests;
