//! The queue of spans for the collector, and counters of the export's results.
//!
//! Workers add the spans of a whole request at once, so that a traced request costs one lock. A full batch
//! wakes the exporter. Otherwise it wakes up periodically.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_config::BatchProcessor;
use tokio::sync::Notify;

use crate::span::Span;

/// A receiver of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A collector of OpenTelemetry.
    Otlp,
    /// A Zipkin server.
    Zipkin,
    /// A Datadog agent.
    Datadog,
}

impl Destination {
    /// All receivers.
    pub const ALL: [Self; 3] = [Self::Otlp, Self::Zipkin, Self::Datadog];

    /// The name of the export in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Otlp => "otlp-tracing",
            Self::Zipkin => "zipkin-tracing",
            Self::Datadog => "datadog-tracing",
        }
    }
}

/// Results of spans for one receiver.
#[derive(Debug, Default)]
pub struct SpanCounts {
    /// Spans that the receiver accepted.
    pub exported: AtomicU64,
    /// Spans that were dropped because the queue was full.
    pub overflown: AtomicU64,
    /// Spans that the receiver refused or did not accept in time.
    pub failed: AtomicU64,
}

/// Results of spans and pushes since the start, summed over all configurations of a process.
#[derive(Debug, Default)]
pub struct ExportCounts {
    otlp: SpanCounts,
    zipkin: SpanCounts,
    datadog: SpanCounts,
    /// Pushes of metrics that the collector refused or did not accept in time.
    pub failed_metrics: AtomicU64,
}

impl ExportCounts {
    /// The results of spans for a receiver.
    #[must_use]
    pub fn spans(&self, destination: Destination) -> &SpanCounts {
        match destination {
            Destination::Otlp => &self.otlp,
            Destination::Zipkin => &self.zipkin,
            Destination::Datadog => &self.datadog,
        }
    }

    /// The current value of a counter.
    pub fn of(counter: &AtomicU64) -> u64 {
        // Relaxed, because no other memory depends on it.
        counter.load(Ordering::Relaxed)
    }

    pub(crate) fn add(counter: &AtomicU64, amount: usize) {
        counter.fetch_add(amount as u64, Ordering::Relaxed);
    }
}

/// A bounded queue of finished spans.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    wake: Notify,
    closing: Notify,
    most: usize,
    batch: usize,
    pub(crate) destination: Destination,
    all_counts: Arc<ExportCounts>,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Span>,
    is_closed: bool,
    has_overflown: bool,
}

impl Queue {
    pub(crate) fn new(
        destination: Destination,
        batches: &BatchProcessor,
        all_counts: Arc<ExportCounts>,
    ) -> Self {
        let most = batches.max_queue_size.get();
        let batch = batches.max_export_batch_size.get();
        Self {
            waiting: Mutex::default(),
            wake: Notify::new(),
            closing: Notify::new(),
            most,
            // If a batch could never fill, only the delay would send it.
            batch: batch.min(most),
            destination,
            all_counts,
        }
    }

    /// The results of the spans of this queue.
    pub(crate) fn counts(&self) -> &SpanCounts {
        self.all_counts.spans(self.destination)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // No code panics while it holds this lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the spans of a request. Spans beyond the limit are dropped and counted.
    pub(crate) fn put(&self, spans: Vec<Span>) {
        let mut waiting = self.lock();
        let before = waiting.spans.len();
        let room = self.most - before.min(self.most);
        let lost = spans.len().saturating_sub(room);
        waiting.spans.extend(spans.into_iter().take(room));
        let is_full = before < self.batch && waiting.spans.len() >= self.batch;
        let is_first_loss = lost > 0 && !std::mem::replace(&mut waiting.has_overflown, lost > 0);
        drop(waiting);
        if lost > 0 {
            ExportCounts::add(&self.counts().overflown, lost);
        }
        if is_first_loss {
            log::warn!(
                "spans are dropped: more than {} wait for the collector; `apollo_router_telemetry_batch_processor_errors_total` counts them",
                self.most
            );
        }
        if is_full {
            self.wake.notify_one();
        }
    }

    /// Removes the spans of one message. `None` if the queue is empty.
    pub(crate) fn take(&self) -> Option<Vec<Span>> {
        let mut waiting = self.lock();
        let count = waiting.spans.len().min(self.batch);
        (count > 0).then(|| waiting.spans.drain(..count).collect())
    }

    /// True if a full message waits.
    pub(crate) fn has_batch(&self) -> bool {
        self.lock().spans.len() >= self.batch
    }

    /// Closes the queue: no more spans will be added.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
        self.closing.notify_one();
    }

    /// Waits until the queue is closed. Only one task may wait.
    pub(crate) async fn closed(&self) {
        while !self.is_closed() {
            self.closing.notified().await;
        }
    }

    /// Number of messages that the waiting spans need.
    pub(crate) fn batches(&self) -> usize {
        self.lock().spans.len().div_ceil(self.batch)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until a message is full, the queue is closed, or `delay` has passed.
    pub(crate) async fn ready(&self, delay: Duration) {
        if self.has_batch() || self.is_closed() {
            return;
        }
        // After the delay, an incomplete message is sent.
        let _ = tokio::time::timeout(delay, self.wake.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{SpanId, TraceId};
    use crate::span::SpanKind;

    fn spans(count: usize) -> Vec<Span> {
        let span = Span {
            trace: TraceId([1; 16]),
            id: SpanId([1; 8]),
            parent: None,
            parent_is_remote: false,
            state: None,
            name: "a".into(),
            kind: SpanKind::Internal,
            start_ns: 0,
            end_ns: 0,
            attributes: Vec::new(),
            dropped_attributes: 0,
            failure: None,
        };
        vec![span; count]
    }

    #[test]
    fn what_has_no_room_is_dropped_and_counted() {
        let count = |count| std::num::NonZeroUsize::new(count).unwrap();
        let batches = BatchProcessor {
            max_queue_size: count(10),
            max_export_batch_size: count(4),
            ..BatchProcessor::default()
        };
        let queue = Queue::new(Destination::Zipkin, &batches, Arc::default());
        for _ in 0..5 {
            queue.put(spans(3));
        }
        assert_eq!(ExportCounts::of(&queue.counts().overflown), 5);
        let mut taken = Vec::new();
        while let Some(batch) = queue.take() {
            taken.push(batch.len());
        }
        assert_eq!(taken, [4, 4, 2]);
        queue.put(spans(10));
        assert_eq!(ExportCounts::of(&queue.counts().overflown), 5);
        assert!(queue.has_batch());
    }
}
