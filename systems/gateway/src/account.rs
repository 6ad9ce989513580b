//! What is counted and logged about one request.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Instant;

use gateway_config::Config;
use gateway_telemetry::{NAME_CHARS_MAX, TEXT_CHARS_MAX, shortened};
use http::StatusCode;
use http::request::Parts;
use telemetry::log::REQUEST;

use crate::clock;
use crate::spans::Traced;
use crate::summary::Summary;
use crate::worker::Worker;

/// What is counted and logged about one request. Written on drop, so that a request whose client
/// disconnects is counted as well.
pub(crate) struct Account {
    worker: Rc<Worker>,
    start: Instant,
    peer: Option<IpAddr>,
    /// Method and path, when there will be a line in the log.
    head: Option<(String, String)>,
    pub(crate) summary: Summary,
    status: Option<StatusCode>,
    /// Whether a client that disconnects before its answer is logged.
    logs_disconnect: bool,
    /// Its trace, where requests are traced.
    pub(crate) traced: Option<Traced>,
}

impl Account {
    /// Opens the account of a request that comes now.
    pub(crate) fn open(
        worker: Rc<Worker>,
        peer: Option<IpAddr>,
        parts: &Parts,
        config: &Config,
    ) -> Self {
        let is_logged = tracing::enabled!(target: REQUEST, tracing::Level::INFO);
        Self {
            worker,
            start: clock::now(),
            peer,
            // Two copies per request, which a gateway without request log does not pay.
            head: is_logged.then(|| {
                let method = shortened(parts.method.as_str(), NAME_CHARS_MAX);
                let path = shortened(parts.uri.path(), TEXT_CHARS_MAX);
                (method.into_owned(), path.into_owned())
            }),
            summary: Summary::default(),
            status: None,
            logs_disconnect: config.supergraph.experimental_log_on_broken_pipe,
            traced: None,
        }
    }

    /// Ends with an answer that is handed over whole.
    pub(crate) fn close(mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// Adds what a further part of the answer came to.
    pub(crate) fn add(&mut self, error_count: usize, is_cut: bool) {
        self.summary.error_count += error_count;
        self.summary.is_cut |= is_cut;
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some(traced) = &mut self.traced {
            traced.end(self.status);
        }
        // 499: the client did not wait for its answer.
        let status = self.status.map_or(499, |status| status.as_u16());
        if self.status.is_none() && self.logs_disconnect {
            log::warn!("a client went away before its answer");
        }
        let end = clock::now();
        let took = end.duration_since(self.start);
        let shard = self.worker.shard();
        shard.answered(status, took);
        if self.summary.error_count > 0 {
            shard.executed_with_errors();
        }
        if self.summary.is_cut {
            shard.cut();
        }
        // What the gateway answers when it is at a limit or out of time; `health` reports it as not
        // ready when this lasts.
        if matches!(status, 503 | 504) {
            self.worker.health().overloaded(end);
        }
        if let Some((method, path)) = &self.head {
            let client = self.summary.client.as_ref();
            tracing::info!(
                target: REQUEST,
                method,
                path,
                status,
                // 2^64 microseconds are 584,000 years.
                duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
                peer = self.peer.map(tracing::field::display),
                operation = self.summary.operation_name.as_deref(),
                errors = self.summary.error_count,
                client_name = client.and_then(|it| it.name.as_deref()),
                client_version = client.and_then(|it| it.version.as_deref()),
                trace_id = self.traced.as_ref().map(|it| tracing::field::display(it.active.id())),
            );
        }
        if let Some(client) = self.summary.client.take() {
            shard.client(client.name, client.version);
        }
    }
}
