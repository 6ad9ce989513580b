//! What leaves for collectors of OpenTelemetry, from a configuration to the threads that send.
//!
//! A configuration that says the same as the one before keeps the tracer and the threads of that
//! one, so that a reload loses no span.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_config::{Config, MetricsCommon, Otlp, TracingExporters};
use gateway_telemetry::{CollectorError, Counts, Export, Exporter, Metrics, Tracer, Traces};

use crate::environment::Environment;
use crate::generation::Generation;
use crate::metrics;
use crate::worker::Common;

/// What a configuration says of traces and metrics for collectors.
pub(crate) struct Exports {
    /// What was written.
    written: (TracingExporters, MetricsCommon, Otlp),
    pub(crate) tracer: Option<Arc<Tracer>>,
    traces: Option<Export<Traces>>,
    metrics: Option<Export<Metrics>>,
}

impl Exports {
    /// What a configuration says; the former one, when it says the same.
    pub(crate) fn of(
        config: &Config,
        former: Option<&Arc<Self>>,
        (counts, environment): (&Arc<Counts>, &Environment),
    ) -> Result<Arc<Self>, CollectorError> {
        let exporters = &config.telemetry.exporters;
        let (tracing, metrics) = (&exporters.tracing, &exporters.metrics);
        let written = (
            tracing.clone(),
            metrics.common.clone(),
            metrics.otlp.clone(),
        );
        if let Some(former) = former.filter(|former| former.written == written) {
            return Ok(Arc::clone(former));
        }
        let variables = |name: &str| environment.open_telemetry(name);
        let traces = tracing.otlp.enabled.then(|| {
            let (common, otlp) = (&tracing.common, &tracing.otlp);
            Export::traces(common, otlp, &variables)
        });
        let pushed = metrics.otlp.enabled.then(|| {
            let (common, otlp) = (&metrics.common, &metrics.otlp);
            Export::metrics(common, otlp, &variables)
        });
        Ok(Arc::new(Self {
            traces: traces.transpose()?,
            metrics: pushed.transpose()?,
            tracer: Tracer::new(tracing, counts).map(Arc::new),
            written,
        }))
    }
}

/// The threads that send.
pub(crate) struct Exporting {
    common: Arc<Common>,
    /// Whose caches the pushed metrics tell of.
    current: Arc<Mutex<Arc<Generation>>>,
    of: Arc<Exports>,
    running: Vec<Exporter>,
    /// When counting began, in nanoseconds since 1970.
    start_ns: u64,
}

impl Exporting {
    /// Starts what the first configuration asks for.
    pub(crate) fn start(
        generation: &Arc<Generation>,
        common: &Arc<Common>,
    ) -> Result<Self, CollectorError> {
        let mut this = Self {
            common: Arc::clone(common),
            current: Arc::new(Mutex::new(Arc::clone(generation))),
            of: Arc::clone(&generation.exports),
            running: Vec::new(),
            start_ns: gateway_telemetry::started_ns(),
        };
        this.running = this.spawn()?;
        Ok(this)
    }

    /// Goes on with another generation.
    pub(crate) fn use_generation(&mut self, generation: &Arc<Generation>) {
        *lock(&self.current) = Arc::clone(generation);
        if Arc::ptr_eq(&self.of, &generation.exports) {
            return;
        }
        self.of = Arc::clone(&generation.exports);
        match self.spawn() {
            // Those before end by themselves: with the last request that they get spans of, and
            // after one more push.
            Ok(running) => self.running = running,
            Err(error) => log::error!("nothing is exported: {error}"),
        }
    }

    fn spawn(&self) -> Result<Vec<Exporter>, CollectorError> {
        let mut running = Vec::new();
        if let (Some(traces), Some(tracer)) = (&self.of.traces, &self.of.tracer) {
            running.extend(traces.start(tracer)?);
        }
        if let Some(metrics) = &self.of.metrics {
            let (common, current) = (Arc::clone(&self.common), Arc::clone(&self.current));
            let read = move || {
                let generation = Arc::clone(&lock(&current));
                metrics::families(&common, &generation)
            };
            running.push(metrics.start(&self.common.exported, self.start_ns, read)?);
        }
        Ok(running)
    }

    /// Sends what is left, for a few seconds at most. For when all requests are over.
    pub(crate) fn finish(self) {
        self.running.iter().for_each(Exporter::close);
        self.running.into_iter().for_each(Exporter::wait);
    }
}

fn lock(current: &Mutex<Arc<Generation>>) -> MutexGuard<'_, Arc<Generation>> {
    // It is replaced whole, and so valid whatever panicked beside it.
    current.lock().unwrap_or_else(PoisonError::into_inner)
}
