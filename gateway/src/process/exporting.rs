//! The threads that send traces and metrics to OpenTelemetry collectors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_telemetry::{CollectorError, Exporter};

use crate::process::exports::Exports;
use crate::process::generation::Generation;
use crate::process::metrics::gathered;
use crate::process::process_state::ProcessState;

/// The export threads.
pub(crate) struct Exporting {
    process: Arc<ProcessState>,
    /// The generation of the caches in the pushed metrics.
    current: Arc<Mutex<Arc<Generation>>>,
    of: Arc<Exports>,
    running: Vec<Exporter>,
    /// The time at which counting began, in nanoseconds since 1970.
    start_ns: u64,
}

impl Exporting {
    /// Starts the exports of the first configuration.
    pub(crate) fn start(
        generation: &Arc<Generation>,
        process: &Arc<ProcessState>,
    ) -> Result<Self, CollectorError> {
        let mut this = Self {
            process: Arc::clone(process),
            current: Arc::new(Mutex::new(Arc::clone(generation))),
            of: Arc::clone(&generation.exports),
            running: Vec::new(),
            start_ns: gateway_telemetry::started_ns(),
        };
        this.running = this.spawn()?;
        Ok(this)
    }

    /// Continues with another generation.
    pub(crate) fn use_generation(&mut self, generation: &Arc<Generation>) {
        *lock(&self.current) = Arc::clone(generation);
        if Arc::ptr_eq(&self.of, &generation.exports) {
            return;
        }
        self.of = Arc::clone(&generation.exports);
        match self.spawn() {
            // The former threads end by themselves, after the last request with spans for them and one more
            // push.
            Ok(running) => self.running = running,
            Err(error) => log::error!("nothing is exported: {error}"),
        }
    }

    fn spawn(&self) -> Result<Vec<Exporter>, CollectorError> {
        let mut running = Vec::new();
        if let Some(tracer) = &self.of.tracer {
            for traces in &self.of.traces {
                running.extend(traces.start(tracer)?);
            }
        }
        if let Some(metrics) = &self.of.metrics {
            let (process, current) = (Arc::clone(&self.process), Arc::clone(&self.current));
            let read = move || {
                let generation = Arc::clone(&lock(&current));
                gathered::families(&process, &generation)
            };
            running.push(metrics.start(&self.process.exported, self.start_ns, read)?);
        }
        Ok(running)
    }

    /// Sends the remaining data within a few seconds. Call it after the end of all requests.
    pub(crate) fn finish(self) {
        self.running.iter().for_each(Exporter::close);
        self.running.into_iter().for_each(Exporter::wait);
    }
}

fn lock(current: &Mutex<Arc<Generation>>) -> MutexGuard<'_, Arc<Generation>> {
    // The value is replaced as a whole, so a panic elsewhere leaves it valid.
    current.lock().unwrap_or_else(PoisonError::into_inner)
}
