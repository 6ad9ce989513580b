//! The client of one worker.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use rustls::RootCertStore;
use tokio_rustls::TlsConnector;

use crate::connection::Stream;
use crate::counters::{Counters, Tally};
use crate::endpoint::{Endpoint, Http2, Policy};
use crate::error::SendError;
use crate::http1::{self, Broken};
use crate::http2;
use crate::pool::Pool;
use crate::reply::Reply;
use crate::tls;

/// What holds for every call of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Longer bodies of answers are refused.
    pub reply_bytes_max: usize,
    /// So many idle connections are kept for an origin.
    pub idle_per_origin_max: usize,
    /// Authorities to trust instead of those of the operating system.
    pub roots: Option<RootCertStore>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            reply_bytes_max: 64 * 1024 * 1024,
            idle_per_origin_max: 512,
            roots: None,
        }
    }
}

/// One request.
#[derive(Debug)]
pub struct Call<'a> {
    /// The method; `POST` for everything but key sets.
    pub method: Method,
    /// Headers. Those about the connection, the host and the length are ignored.
    pub headers: &'a HeaderMap,
    /// Further headers, as `name: value\r\n` lines, rendered once by the caller.
    pub rendered_headers: &'static [u8],
    /// The body.
    pub body: Bytes,
    /// How long connecting and the whole answer may take; `None` is for ever.
    pub timeout: Option<Duration>,
    /// A longer body of the answer is refused; `None` for the client's own limit, which holds in
    /// any case.
    pub reply_bytes_max: Option<usize>,
    /// Whether sending it twice does no harm. Then it is sent again when a
    /// connection kept alive turns out to be closed only after the write.
    pub is_idempotent: bool,
}

/// The HTTP client of one worker thread. Clones share connections.
///
/// Needs a tokio runtime with I/O and time. Dropping the future of a call
/// closes its connection.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

struct Inner {
    settings: ClientSettings,
    pool: RefCell<Pool>,
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
            settings,
            pool: RefCell::default(),
            tally: Tally::default(),
            roots: OnceCell::new(),
            tls: Default::default(),
        }))
    }

    /// Sends `call` to `endpoint` and waits for the whole answer.
    pub async fn send(&self, endpoint: &Endpoint, call: Call<'_>) -> Result<Reply, SendError> {
        let _counted = self.0.tally.enter();
        match call.timeout {
            None => self.attempts(endpoint, &call).await,
            Some(limit) => tokio::time::timeout(limit, self.attempts(endpoint, &call))
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

    /// At most two: a second one on a new connection when the first met a
    /// connection that the other side had closed meanwhile.
    async fn attempts(&self, endpoint: &Endpoint, call: &Call<'_>) -> Result<Reply, SendError> {
        // A reused connection may have been closed meanwhile, which only its use shows.
        let connection = match self.idle_connection(endpoint) {
            Some(connection) => connection,
            // Boxed, as below: the future of a TLS handshake is larger than all the rest, and every
            // call would make room for it.
            None => Box::pin(self.new_connection(endpoint)).await?,
        };
        match self.attempt(endpoint, call, connection).await {
            Ok(reply) => Ok(reply),
            Err((error, false)) => Err(error),
            Err((_, true)) => {
                Tally::add(&self.0.tally.retried);
                // A new connection, not another idle one: that may be just as stale.
                let connection = Box::pin(self.new_connection(endpoint)).await?;
                // No third attempt: an error on a new connection is about the service, not about
                // the pool.
                self.attempt(endpoint, call, connection)
                    .await
                    .map_err(|(error, _)| error)
            }
        }
    }

    /// The answer, or the error and whether trying again is safe and sensible.
    async fn attempt(
        &self,
        endpoint: &Endpoint,
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
                        let idle_max = self.0.settings.idle_per_origin_max;
                        self.0.pool.borrow_mut().put(endpoint, stream, idle_max);
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

    fn idle_connection(&self, endpoint: &Endpoint) -> Option<Connection> {
        let mut pool = self.0.pool.borrow_mut();
        // Without TLS and without prior knowledge the pool has no HTTP/2 to look for.
        let connection = if let Some(sender) = may_be_http2(endpoint)
            .then(|| pool.http2(endpoint))
            .flatten()
        {
            Connection::Http2 {
                sender,
                is_reused: true,
            }
        } else {
            Connection::Http1 {
                stream: pool.take(endpoint)?,
                is_reused: true,
            }
        };
        Tally::add(&self.0.tally.reused);
        Some(connection)
    }

    async fn new_connection(&self, endpoint: &Endpoint) -> Result<Connection, SendError> {
        Tally::add(&self.0.tally.connects);
        let stream = Stream::connect(endpoint, || self.tls(endpoint.policy())).await?;
        let is_http2 = endpoint.policy().http2 == Http2::Only || stream.agreed_to_http2();
        if !is_http2 {
            return Ok(Connection::Http1 {
                stream,
                is_reused: false,
            });
        }
        let sender = http2::open(stream, endpoint.policy()).await?;
        self.0
            .pool
            .borrow_mut()
            .share_http2(endpoint, sender.clone());
        Ok(Connection::Http2 {
            sender,
            is_reused: false,
        })
    }

    /// A connection that only HTTP/1.1 is spoken over, for protocols that begin with it. It belongs to
    /// the caller and is never reused.
    pub(crate) async fn connect_http1(&self, endpoint: &Endpoint) -> Result<Stream, SendError> {
        Tally::add(&self.0.tally.connects);
        let policy = Policy {
            http2: Http2::Disable,
            ..endpoint.policy().clone()
        };
        Stream::connect(endpoint, || self.tls(&policy)).await
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

fn may_be_http2(endpoint: &Endpoint) -> bool {
    match endpoint.policy().http2 {
        Http2::Disable => false,
        Http2::Only => true,
        Http2::Enable => endpoint.uri().scheme_str() == Some("https"),
    }
}

/// The connection was gone before the request was handed to it.
fn is_never_sent(error: &hyper::Error) -> bool {
    error.is_canceled() || (error.is_closed() && !error.is_incomplete_message())
}

#[cfg(test)]
mod tests;
