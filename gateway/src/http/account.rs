//! The account of one request: its counts and its line in the log.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use gateway_extensions::LogIds;
use gateway_telemetry::{NAME_CHARS_MAX, TEXT_CHARS_MAX, shortened};
use http::StatusCode;
use http::request::Parts;
use telemetry::log::REQUEST;

use crate::http::health::Health;
use crate::http::spans::Traced;
use crate::http::summary::Summary;
use crate::process::clock;
use crate::process::metrics::Shard;

/// The receivers of a worker's accounts.
pub(crate) struct Recorder {
    /// The metrics of the worker.
    pub(crate) shard: Arc<Shard>,
    /// The health of the gateway.
    pub(crate) health: Arc<Health>,
}

/// The account of one request. It is written on drop, so that a request is also counted if its client
/// disconnects.
pub(crate) struct Account {
    recorder: Rc<Recorder>,
    start: Instant,
    peer: Option<IpAddr>,
    /// Method and path. `None` if requests are not logged.
    head: Option<(String, String)>,
    pub(crate) summary: Summary,
    status: Option<StatusCode>,
    /// True if clients that disconnect before their response are logged.
    logs_disconnect: bool,
    /// The trace. `None` if requests are not traced.
    pub(crate) traced: Option<Traced>,
    /// The ids in the line of the log.
    pub(crate) ids: LogIds,
}

impl Account {
    /// Opens the account of a request that arrives now.
    pub(crate) fn open(
        recorder: Rc<Recorder>,
        peer: Option<IpAddr>,
        parts: &Parts,
        logs_disconnect: bool,
    ) -> Self {
        let is_logged = tracing::enabled!(target: REQUEST, tracing::Level::INFO);
        Self {
            recorder,
            start: clock::now(),
            peer,
            // Two copies per request, only with the request log on.
            head: is_logged.then(|| {
                let method = shortened(parts.method.as_str(), NAME_CHARS_MAX);
                let path = shortened(parts.uri.path(), TEXT_CHARS_MAX);
                (method.into_owned(), path.into_owned())
            }),
            summary: Summary::default(),
            status: None,
            logs_disconnect,
            traced: None,
            ids: LogIds {
                trace: None,
                span: false,
            },
        }
    }

    /// Closes the account after its response was passed to the connection.
    pub(crate) fn close(mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// Adds the errors of a later part of the response.
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
        // 499: the client disconnected before its response.
        let status = self.status.map_or(499, |status| status.as_u16());
        if self.status.is_none() && self.logs_disconnect {
            log::warn!("a client went away before its answer");
        }
        let end = clock::now();
        let took = end.duration_since(self.start);
        let shard = &self.recorder.shard;
        shard.answered(status, took);
        if self.summary.error_count > 0 {
            shard.executed_with_errors();
        }
        if self.summary.is_cut {
            shard.cut();
        }
        // Statuses for an overload or a timeout. If they last, `health` reports the gateway as not ready.
        if matches!(status, 503 | 504) {
            self.recorder.health.overloaded(end);
        }
        if let Some((method, path)) = &self.head {
            let client = self.summary.client.as_ref();
            let active = self.traced.as_ref().map(|it| &it.active);
            let format = self.ids.trace;
            let trace_id = active.zip(format).map(|(it, format)| it.shown_id(format));
            let span = active.filter(|_| self.ids.span);
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
                trace_id,
                span_id = span.map(|it| tracing::field::display(it.span_id())),
            );
        }
        if let Some(client) = self.summary.client.take() {
            shard.client(client.name, client.version);
        }
    }
}
