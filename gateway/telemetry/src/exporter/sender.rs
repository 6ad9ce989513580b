//! The work of the exporting threads.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{self, Either};
use futures_util::stream::{self, StreamExt as _};
use gateway_config::Temporality;
use gateway_upstream::{Client, ClientSettings};
use opentelemetry_proto::tonic::resource::v1::Resource;
use telemetry::metrics::Family;
use tokio::sync::watch;

use crate::clock;
use crate::collector::{Collector, Message, Outcome};
use crate::metric_message::{self, Since, Taken};
use crate::queue::{Destination, ExportCounts, Queue, SpanCounts};
use crate::resource::text_of;
use crate::span::Span;
use crate::{datadog_message, span_message, zipkin_message};

/// A collector, and the state of its log lines. Its failure is logged once, and its recovery is logged once.
pub(super) struct Watched {
    collector: Collector,
    client: Client,
    is_failing: Cell<bool>,
    has_rejected: Cell<bool>,
}

impl Watched {
    pub(super) fn new(collector: Collector) -> Self {
        Self {
            collector,
            client: Client::new(ClientSettings::default()),
            is_failing: Cell::new(false),
            has_rejected: Cell::new(false),
        }
    }

    async fn deliver(&self, message: Message) -> Outcome {
        let report = |outcome: &Outcome| self.tell(outcome);
        self.collector.deliver(&self.client, message, report).await
    }

    fn tell(&self, outcome: &Outcome) {
        let (signal, address) = (self.collector.signal.name(), self.collector.address());
        match outcome {
            Outcome::Taken { rejected, why } => {
                if self.is_failing.replace(false) {
                    log::info!("the collector takes {signal} again ({address})");
                }
                if *rejected > 0 && !self.has_rejected.replace(true) {
                    log::warn!(
                        "the collector refused {rejected} of the {signal} ({address}): {why}"
                    );
                }
            }
            Outcome::Again { why, .. } | Outcome::Refused { why } => {
                if !self.is_failing.replace(true) {
                    log::warn!("the collector does not take {signal} ({address}): {why}");
                }
            }
        }
    }
}

/// Sends spans to a collector.
pub(super) struct SpanSender {
    pub(super) watched: Watched,
    pub(super) resource: Resource,
    pub(super) queue: Arc<Queue>,
}

/// One message with these spans, in the format of their receiver.
fn message(destination: Destination, resource: &Resource, spans: Vec<Span>) -> Message {
    match destination {
        Destination::Otlp => span_message::message(resource, spans).into(),
        Destination::Zipkin => {
            let service = text_of(resource, "service.name").unwrap_or_default();
            zipkin_message::message(service, &spans).into()
        }
        Destination::Datadog => {
            let made = datadog_message::message(resource, &spans);
            Message {
                body: made.body,
                traces: made.traces,
            }
        }
    }
}

impl SpanSender {
    /// Sends until the queue is closed and empty, or until `flush_max` after it was closed.
    pub(super) async fn send_until_closed(
        &self,
        delay: Duration,
        at_a_time: usize,
        flush_max: Duration,
    ) {
        let work = pin!(self.send_all(delay, at_a_time));
        let end = pin!(async {
            self.queue.closed().await;
            tokio::time::sleep(flush_max).await;
        });
        if let Either::Right(_) = future::select(work, end).await {
            // Spans in flight are counted when they are dropped.
            while let Some(spans) = self.queue.take() {
                ExportCounts::add(&self.queue.counts().failed, spans.len());
            }
        }
    }

    async fn send_all(&self, delay: Duration, at_a_time: usize) {
        loop {
            self.queue.ready(delay).await;
            // Spans that arrive meanwhile wait for the next turn, so that they leave in full messages.
            let batches = (0..self.queue.batches()).map_while(|_| self.queue.take());
            let sending = stream::iter(batches).map(|spans| self.send(spans));
            sending.buffer_unordered(at_a_time).collect::<()>().await;
            self.watched.client.sweep();
            if self.queue.is_closed() && self.queue.batches() == 0 {
                return;
            }
        }
    }

    async fn send(&self, spans: Vec<Span>) {
        let mut under_way = UnderWay {
            counts: self.queue.counts(),
            spans: spans.len(),
        };
        let message = message(self.queue.destination, &self.resource, spans);
        if let Outcome::Taken { rejected, .. } = self.watched.deliver(message).await {
            let failed = rejected.min(under_way.spans);
            let taken = under_way.spans - failed;
            ExportCounts::add(&self.queue.counts().exported, taken);
            under_way.spans = failed;
        }
    }
}

/// Spans in flight. They count as failed when this value is dropped.
struct UnderWay<'a> {
    counts: &'a SpanCounts,
    spans: usize,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        ExportCounts::add(&self.counts.failed, self.spans);
    }
}

/// Sends metrics to a collector.
pub(super) struct MetricSender<R> {
    pub(super) watched: Watched,
    pub(super) resource: Resource,
    pub(super) counts: Arc<ExportCounts>,
    /// The temporality, and the start of counting.
    pub(super) since: (Temporality, u64),
    pub(super) read: R,
}

impl<R: Fn() -> Vec<Family>> MetricSender<R> {
    /// Pushes until it is stopped, and then once more, for at most `flush_max`.
    pub(super) async fn push_until(
        &self,
        mut stopped: watch::Receiver<bool>,
        every: Duration,
        flush_max: Duration,
    ) {
        let mut last: Option<Taken> = None;
        // Also stopped if the sender of the stop signal is gone.
        while tokio::time::timeout(every, stopped.changed())
            .await
            .is_err()
        {
            let pushed = {
                let push = pin!(self.push(last.as_ref()));
                let stop = pin!(stopped.changed());
                match future::select(push, stop).await {
                    Either::Left((pushed, _)) => pushed,
                    // The last push also contains these counts.
                    Either::Right(_) => break,
                }
            };
            last = pushed.or(last);
            self.watched.client.sweep();
        }
        // `push` counts a failure. No receiver is left to report it to.
        let _ = tokio::time::timeout(flush_max, self.push(last.as_ref())).await;
    }

    /// Pushes once. Returns the pushed metrics if the collector accepted them.
    async fn push(&self, last: Option<&Taken>) -> Option<Taken> {
        let taken = Taken {
            at_ns: clock::unix_ns(),
            families: (self.read)(),
        };
        let (temporality, start_ns) = self.since;
        let since = Since {
            temporality,
            start_ns,
            last,
        };
        let message = metric_message::message(&self.resource, &taken, since);
        match self.watched.deliver(message.into()).await {
            Outcome::Taken { .. } => Some(taken),
            Outcome::Again { .. } | Outcome::Refused { .. } => {
                ExportCounts::add(&self.counts.failed_metrics, 1);
                None
            }
        }
    }
}
