//! The threads that export: one for traces and one for metrics, each with its own client.
//!
//! They are separate from the workers, so that a slow, missing or broken collector delays no request. Memory
//! is bounded: the number of waiting spans and of messages in flight has a limit.

mod sender;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{io, thread};

use gateway_config::{
    BatchProcessor, Datadog, MetricsCommon, Otlp, Temporality, TracingCommon, Zipkin,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use telemetry::metrics::Family;
use tokio::runtime::LocalOptions;
use tokio::sync::watch;

use crate::collector::{Collector, CollectorError, Signal};
use crate::queue::{Destination, ExportCounts, Queue};
use crate::resource::{Described, Variables, resource};
use crate::tracer::Tracer;
use sender::{MetricSender, SpanSender, Watched};

/// Maximum time to send the remaining data after the exporter is closed.
const FLUSH_MAX: Duration = Duration::from_secs(5);
/// Extra time for a thread to end. A thread that resolves a host name does not notice the end.
const END_MAX: Duration = Duration::from_millis(500);

/// A checked export: the data and its collector. It sends only after `start`.
#[derive(Debug)]
pub struct Export<T> {
    collector: Collector,
    resource: Resource,
    batch: BatchProcessor,
    of: T,
}

/// Marks an export of traces.
#[derive(Debug)]
pub struct Traces(Destination);

/// Marks an export of metrics, with the collector's temporality.
#[derive(Debug)]
pub struct Metrics(Temporality);

impl Export<Traces> {
    /// Checks the settings for traces.
    ///
    /// # Errors
    /// Fails if the collector cannot be called.
    pub fn traces(
        common: &TracingCommon,
        otlp: &Otlp,
        variables: Variables<'_>,
    ) -> Result<Self, CollectorError> {
        Ok(Self {
            collector: Collector::new(otlp, Signal::Traces, variables)?,
            resource: resource(&Described::from(common), variables),
            batch: otlp.batch_processor.clone(),
            of: Traces(Destination::Otlp),
        })
    }

    /// Checks the settings for traces to Zipkin.
    ///
    /// # Errors
    /// Fails if Zipkin cannot be called.
    pub fn zipkin(
        common: &TracingCommon,
        zipkin: &Zipkin,
        variables: Variables<'_>,
    ) -> Result<Self, CollectorError> {
        Ok(Self {
            collector: Collector::zipkin(zipkin)?,
            resource: resource(&Described::from(common), variables),
            batch: zipkin.batch_processor.clone(),
            of: Traces(Destination::Zipkin),
        })
    }

    /// Checks the settings for traces to a Datadog agent.
    ///
    /// # Errors
    /// Fails if the agent cannot be called.
    pub fn datadog(
        common: &TracingCommon,
        datadog: &Datadog,
        variables: Variables<'_>,
    ) -> Result<Self, CollectorError> {
        Ok(Self {
            collector: Collector::datadog(datadog)?,
            resource: resource(&Described::from(common), variables),
            batch: datadog.batch_processor.clone(),
            of: Traces(Destination::Datadog),
        })
    }

    /// Sends the spans of a tracer until the tracer is dropped. `None` if the tracer records no spans.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn start(&self, tracer: &Tracer) -> Result<Option<Exporter>, CollectorError> {
        let mut queues = tracer.queues.iter();
        let Some(queue) = queues.find(|it| it.destination == self.of.0).cloned() else {
            return Ok(None);
        };
        let (collector, resource) = (self.collector.clone(), self.resource.clone());
        let delay = self.batch.scheduled_delay.0;
        let at_a_time = self.batch.max_concurrent_exports.get();
        let spans = Arc::clone(&queue);
        let done = spawn(self.of.0.as_str(), move || async move {
            let sender = SpanSender {
                watched: Watched::new(collector),
                resource,
                queue: spans,
            };
            sender.send_until_closed(delay, at_a_time, FLUSH_MAX).await;
        })?;
        Ok(Some(Exporter {
            stop: Stop::Queue(queue),
            done,
        }))
    }
}

impl Export<Metrics> {
    /// Checks the settings for metrics.
    ///
    /// # Errors
    /// Fails if the collector cannot be called.
    pub fn metrics(
        common: &MetricsCommon,
        otlp: &Otlp,
        variables: Variables<'_>,
    ) -> Result<Self, CollectorError> {
        Ok(Self {
            collector: Collector::new(otlp, Signal::Metrics, variables)?,
            resource: resource(&Described::from(common), variables),
            batch: otlp.batch_processor.clone(),
            of: Metrics(otlp.temporality),
        })
    }

    /// Sends the result of `read` periodically until the exporter is closed, and then once more. `start_ns`
    /// is the time at which counting began, in nanoseconds since 1970.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn start(
        &self,
        counts: &Arc<ExportCounts>,
        start_ns: u64,
        read: impl Fn() -> Vec<Family> + Send + 'static,
    ) -> Result<Exporter, CollectorError> {
        let (stop, stopped) = watch::channel(false);
        let (collector, resource) = (self.collector.clone(), self.resource.clone());
        let counts = Arc::clone(counts);
        let since = (self.of.0, start_ns);
        let every = self.batch.scheduled_delay.0;
        let done = spawn("otlp-metrics", move || async move {
            let sender = MetricSender {
                watched: Watched::new(collector),
                resource,
                counts,
                since,
                read,
            };
            sender.push_until(stopped, every, FLUSH_MAX).await;
        })?;
        Ok(Exporter {
            stop: Stop::Flag(stop),
            done,
        })
    }
}

/// An exporting thread. Dropping this value lets the thread end by itself.
#[derive(Debug)]
pub struct Exporter {
    stop: Stop,
    done: Receiver<()>,
}

#[derive(Debug)]
enum Stop {
    Queue(Arc<Queue>),
    /// Dropping it also stops the thread.
    Flag(watch::Sender<bool>),
}

impl Exporter {
    /// Closes the exporter. It sends the remaining data, for at most five seconds.
    pub fn close(&self) {
        match &self.stop {
            Stop::Queue(queue) => queue.close(),
            // Fails only if the thread has ended.
            Stop::Flag(flag) => drop(flag.send(true)),
        }
    }

    /// Waits until the thread has ended, slightly longer than its time limit.
    pub fn wait(self) {
        // An error also means the end: the thread has dropped the sender.
        let _ = self.done.recv_timeout(FLUSH_MAX + END_MAX);
    }
}

fn spawn<W, F>(name: &str, work: W) -> io::Result<Receiver<()>>
where
    W: FnOnce() -> F + Send + 'static,
    F: Future<Output = ()>,
{
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            // For resolving the collector's name.
            .max_blocking_threads(1)
            .build_local(LocalOptions::default())
    };
    let (ended, done) = mpsc::channel();
    let run = move || {
        // Dropped at the end of the thread for any reason.
        let _ended: mpsc::Sender<()> = ended;
        match runtime() {
            Ok(runtime) => {
                runtime.block_on(work());
                // Does not wait for a name resolution in progress.
                runtime.shutdown_background();
            }
            Err(error) => log::error!("nothing is exported: {error}"),
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(done)
}
