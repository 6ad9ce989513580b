//! The exports of a configuration to OpenTelemetry collectors.
//!
//! If the export settings do not change, a reload keeps the tracer and its threads, so no span is lost.

use std::sync::Arc;

use gateway_config::{Config, MetricsCommon, Otlp, TracingExporters};
use gateway_telemetry::{CollectorError, Export, ExportCounts, Metrics, Tracer, Traces};

use crate::process::environment::Environment;

/// The traces and metrics that a configuration exports to collectors.
pub(crate) struct Exports {
    /// The settings as written in the configuration.
    written: (TracingExporters, MetricsCommon, Otlp),
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// The exports of traces, one for each receiver.
    pub(crate) traces: Vec<Export<Traces>>,
    pub(crate) metrics: Option<Export<Metrics>>,
}

impl Exports {
    /// The exports of a configuration. Returns `former` if its settings are equal.
    pub(crate) fn of(
        config: &Config,
        former: Option<&Arc<Self>>,
        counts: &Arc<ExportCounts>,
        environment: &Environment,
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
        let common = &tracing.common;
        let mut traces = Vec::new();
        if tracing.otlp.enabled {
            traces.push(Export::traces(common, &tracing.otlp, &variables)?);
        }
        if tracing.zipkin.enabled {
            traces.push(Export::zipkin(common, &tracing.zipkin, &variables)?);
        }
        if tracing.datadog.enabled {
            traces.push(Export::datadog(common, &tracing.datadog, &variables)?);
        }
        let pushed = metrics.otlp.enabled.then(|| {
            let (common, otlp) = (&metrics.common, &metrics.otlp);
            Export::metrics(common, otlp, &variables)
        });
        Ok(Arc::new(Self {
            traces,
            metrics: pushed.transpose()?,
            tracer: Tracer::new(tracing, counts).map(Arc::new),
            written,
        }))
    }
}
