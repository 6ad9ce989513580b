//! Minimum number of requests of a percentile.
//!
//! A percentile of a round is the latency of one request, and chance decides which request. Let `k` requests
//! be expected beyond it. Its 95 % interval by order statistics then reaches from `k - 1.96 sqrt(k)` to
//! `k + 1.96 sqrt(k)` of them, which is 4 to 16 for `k` = 10. With fewer than four requests, it would reach
//! beyond the longest request, and the percentile is little more than the maximum. So ten are required in
//! each round. If a round has fewer, the requests of all rounds together are used.

use model::Metric;
use recording::float;

/// Minimum number of requests beyond a percentile.
pub const BEYOND: f64 = 10.0;

/// True if enough of `requests` requests lie beyond the quantile `share`.
pub fn has_enough(requests: u64, share: f64) -> bool {
    // The small tolerance keeps the tenth of 1,000 requests beyond p99.
    float(requests) * (1.0 - share) >= BEYOND - 1e-6
}

/// Minimum number of requests, so that enough lie beyond the quantile `share`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ten, divided by a share of at least a thousandth"
)]
pub fn needed(share: f64) -> u64 {
    ((BEYOND - 1e-6) / (1.0 - share)).ceil() as u64
}

/// The share of the requests that do not exceed a tail metric. `None` for other metrics. A median or a
/// quartile of few requests is uncertain, but its interval over rounds includes this.
pub fn share_of(metric: Metric) -> Option<f64> {
    match metric {
        Metric::P90 => Some(0.9),
        Metric::P95 => Some(0.95),
        Metric::P99 => Some(0.99),
        Metric::P999 => Some(0.999),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_requests_must_lie_beyond_a_percentile() {
        for (requests, share, enough) in [
            (1_000, 0.99, true),
            (999, 0.99, false),
            (10_000, 0.999, true),
            (9_990, 0.999, false),
            (20, 0.5, true),
            (19, 0.5, false),
            (0, 0.5, false),
        ] {
            assert_eq!(has_enough(requests, share), enough, "{requests} {share}");
        }
    }
}
