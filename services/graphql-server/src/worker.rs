//! The shared part of the worker threads of both servers: counting and logging of requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis::{AllowedOrigins, CorsHeader};
use graphql_http::body::BodyError;
use graphql_http::{Head, Media};
use telemetry::log::REQUEST;

use crate::clock;
use crate::exchange::{self, NextStep};
use crate::metrics::{Metrics, Shard};
use crate::reply::{self, Outcome, Reply};
use crate::startup::Setup;

/// The server's state from one worker's side.
#[derive(Debug, Clone)]
pub struct Worker {
    body_limit: u64,
    request_timeout: Duration,
    metrics: Arc<Metrics>,
    shard: Arc<Shard>,
    origins: AllowedOrigins,
}

impl Worker {
    /// Creates the state of one more worker.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        Self {
            body_limit: setup.config.body_limit,
            request_timeout: setup.config.request_timeout,
            metrics: Arc::clone(&setup.metrics),
            shard: setup.metrics.shard(),
            origins: AllowedOrigins::of(&setup.config.cors),
        }
    }

    /// The headers for the web page that sent a request. `origin` is the header of the request.
    #[must_use]
    pub fn cors(&self, origin: Option<&[u8]>) -> Vec<CorsHeader> {
        self.origins.headers(origin)
    }

    /// The headers of the response to a preflight. `None` if the request is no preflight. `header` returns the
    /// value of a header by its name.
    #[must_use]
    pub fn preflight_headers<'a>(
        &self,
        method: &str,
        header: impl Fn(&str) -> Option<&'a [u8]>,
    ) -> Option<Vec<CorsHeader>> {
        if method != "OPTIONS" {
            return None;
        }
        self.origins.preflight_of(|name| header(name.as_str()))
    }

    /// The largest body, in bytes.
    #[must_use]
    pub fn body_limit(&self) -> u64 {
        self.body_limit
    }

    /// Maximum time for a client to send a body.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Decides the next step for a request to `/graphql`.
    pub fn admit<'a, Lines>(&self, head: Head<'a, Lines>) -> NextStep
    where
        Lines: Iterator<Item = &'a [u8]>,
    {
        exchange::admit(head, self.body_limit)
    }

    /// The response to an unreadable body.
    #[must_use]
    pub fn unread(&self, media: Media, error: BodyError) -> Reply {
        exchange::unread(media, error, self.body_limit)
    }

    /// The response to an executed or refused request.
    #[must_use]
    pub fn executed(&self, media: Media, outcome: Outcome) -> Reply {
        self.shard.executed(&outcome);
        reply::of(media, outcome)
    }

    /// The response of `/health`.
    #[must_use]
    pub fn health(&self, method: &str) -> Reply {
        self.done(method, "/health", exchange::show(method, reply::health))
    }

    /// The response of `/metrics`.
    #[must_use]
    pub fn metrics(&self, method: &str) -> Reply {
        // A closure, so that counters are read only if the method is allowed.
        let page = || reply::metrics(self.metrics.text());
        self.done(method, "/metrics", exchange::show(method, page))
    }

    /// The response to a preflight, which a browser sends before a request of another origin.
    #[must_use]
    pub fn preflight(&self, path: &str) -> Reply {
        self.done("OPTIONS", path, reply::no_content())
    }

    /// The response for an unknown path.
    #[must_use]
    pub fn not_found(&self, method: &str, path: &str) -> Reply {
        self.done(method, path, reply::not_found())
    }

    /// Counts the response to a request to `/graphql`. The head of the request was read at `start`.
    #[must_use]
    pub fn answered(&self, start: Instant, method: &str, reply: Reply) -> Reply {
        self.shard.answered(start);
        self.done(method, "/graphql", reply)
    }

    /// The start time of a request, for [`Worker::answered`].
    #[must_use]
    pub fn start(&self) -> Instant {
        clock::now()
    }

    fn done(&self, method: &str, path: &str, reply: Reply) -> Reply {
        self.shard.responded(reply.status);
        tracing::info!(target: REQUEST, method, path, status = reply.status.code());
        reply
    }
}
