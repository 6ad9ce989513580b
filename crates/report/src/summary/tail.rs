//! From how many requests on a percentile is shown.
//!
//! A percentile of a round is the latency of one request, and which one depends on luck. With `k`
//! requests expected beyond it, its 95 % interval by order statistics reaches from `k - 1.96 sqrt(k)`
//! to `k + 1.96 sqrt(k)` of them: from 4 to 16 with `k` = 10. With fewer than four it would reach
//! beyond the longest request, and the percentile is little else than the maximum. So ten are asked
//! for, in each round; where a round has fewer, the requests of all rounds together are looked at.

use crate::float::float;
use crate::metric::Metric;

/// So many requests must lie beyond a percentile.
pub(crate) const BEYOND: f64 = 10.0;

/// Whether of so many requests enough lie beyond this share of them.
pub(crate) fn has_enough(requests: u64, share: f64) -> bool {
    // The nudge keeps the tenth of 1,000 requests beyond p99.
    float(requests) * (1.0 - share) >= BEYOND - 1e-6
}

/// The fewest requests of which enough lie beyond this share of them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ten, divided by a share of at least a thousandth"
)]
pub(crate) fn needed(share: f64) -> u64 {
    ((BEYOND - 1e-6) / (1.0 - share)).ceil() as u64
}

/// The share of the requests that do not exceed it, for a metric that is a tail. A median or a quartile
/// of few requests is uncertain, which its interval over rounds says, and no anecdote.
pub(crate) fn share_of(metric: Metric) -> Option<f64> {
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
