//! Distribution of latency over the requests of all rounds.

use model::Metric;
use recording::float;
use serde::Serialize;
use stats::Histogram;

use super::tail;

/// Latency over the requests of all rounds, from losslessly merged histograms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of complete responses.
    pub requests: u64,
    /// Shortest latency.
    pub latency_us_min: f64,
    /// Mean latency over requests.
    pub latency_us_mean: f64,
    /// Standard deviation of latency over requests.
    pub latency_us_stdev: f64,
    /// 50 % of the requests do not exceed it.
    pub latency_us_p50: f64,
    /// 75 % of the requests do not exceed it.
    pub latency_us_p75: f64,
    /// 90 % of the requests do not exceed it.
    pub latency_us_p90: f64,
    /// 95 % of the requests do not exceed it.
    pub latency_us_p95: f64,
    /// 99 % of the requests do not exceed it.
    pub latency_us_p99: f64,
    /// 99.9 % of the requests do not exceed it.
    pub latency_us_p999: f64,
    /// 99.99 % of the requests do not exceed it.
    pub latency_us_p9999: f64,
    /// Longest latency.
    pub latency_us_max: f64,
}

impl Distribution {
    /// `None` without a response.
    pub(super) fn of(latency: &Histogram) -> Option<Self> {
        let us = |nanoseconds: f64| nanoseconds / 1e3;
        let quantile = |share: f64| latency.quantile_ns(share).map(float).map(us);
        Some(Self {
            requests: latency.len(),
            latency_us_min: us(float(latency.min_ns()?)),
            latency_us_mean: us(latency.mean_ns()?),
            latency_us_stdev: us(latency.stddev_ns()?),
            latency_us_p50: quantile(0.5)?,
            latency_us_p75: quantile(0.75)?,
            latency_us_p90: quantile(0.9)?,
            latency_us_p95: quantile(0.95)?,
            latency_us_p99: quantile(0.99)?,
            latency_us_p999: quantile(0.999)?,
            latency_us_p9999: quantile(0.9999)?,
            latency_us_max: us(float(latency.max_ns()?)),
        })
    }

    /// A percentile in microseconds. `None` if too few requests lie beyond it, and for a metric that is not a
    /// percentile.
    pub fn percentile_us(&self, metric: Metric) -> Option<f64> {
        let us = match metric {
            Metric::P50 => self.latency_us_p50,
            Metric::P75 => self.latency_us_p75,
            Metric::P90 => self.latency_us_p90,
            Metric::P95 => self.latency_us_p95,
            Metric::P99 => self.latency_us_p99,
            Metric::P999 => self.latency_us_p999,
            _ => return None,
        };
        let is_sparse = |share| !tail::has_enough(self.requests, share);
        (!tail::share_of(metric).is_some_and(is_sparse)).then_some(us)
    }
}
