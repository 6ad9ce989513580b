//! Events of streamed responses: arrival by position, and stalls.

use recording::{EventsRecord, RoundRecord, float};
use serde::Serialize;
use stats::Histogram;

/// Share of the baseline's gaps that its own limit of a stall exceeds.
const STALL_SHARE: f64 = 0.999;

/// The events of a variant over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventsSummary {
    /// Complete streams.
    pub streams: u64,
    /// Events that arrived, including events of streams without an end.
    pub events: u64,
    /// Arrival of events by their position in the stream.
    pub positions: Vec<PositionSummary>,
    /// Gaps that are longer than nearly all gaps of the baseline. Absent without gaps of the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalls: Option<StallsSummary>,
}

/// Arrival of the events at one position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PositionSummary {
    /// The position in the stream, from 1.
    pub position: u64,
    /// Mean time from the due time of the stream to the event, in microseconds.
    pub us_mean: f64,
}

/// Gaps between events that are longer than 99.9 % of the gaps of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StallsSummary {
    /// The gap that 99.9 % of the baseline's gaps do not exceed, in microseconds.
    pub longer_than_us: f64,
    /// Number of longer gaps.
    pub stalls: u64,
    /// Number of longer gaps that the variant would have with the share of the baseline.
    pub expected: f64,
}

/// Summarizes the events of a variant. `baseline` contains the measurements of its baseline, or its own.
/// `None` if responses are not streams.
pub(super) fn of(complete: &[&RoundRecord], baseline: &[&RoundRecord]) -> Option<EventsSummary> {
    let own = merged(complete)?;
    Some(EventsSummary {
        streams: own.streams,
        events: own.events,
        positions: own
            .positions
            .iter()
            .filter(|one| one.events > 0)
            .map(|one| PositionSummary {
                position: one.position,
                us_mean: float(one.sum_ns) / float(one.events) / 1e3,
            })
            .collect(),
        stalls: merged(baseline).and_then(|baseline| {
            stalls(
                &own.gaps_ns_hdr.histogram(),
                &baseline.gaps_ns_hdr.histogram(),
            )
        }),
    })
}

/// The events of all rounds. `None` if no response is a stream.
fn merged(rounds: &[&RoundRecord]) -> Option<EventsRecord> {
    let events: Vec<_> = rounds
        .iter()
        .filter_map(|round| round.events.as_ref())
        .collect();
    (!events.is_empty()).then(|| EventsRecord::merged(&events))
}

/// Counts the gaps that are longer than nearly all gaps of the baseline.
fn stalls(own: &Histogram, baseline: &Histogram) -> Option<StallsSummary> {
    let limit_ns = baseline.quantile_ns(STALL_SHARE)?;
    let longer = |of: &Histogram| -> u64 {
        let recorded = of.recorded().filter(|(value_ns, _)| *value_ns > limit_ns);
        recorded.map(|(_, count)| count).sum()
    };
    let share = float(longer(baseline)) / float(baseline.len());
    Some(StallsSummary {
        longer_than_us: float(limit_ns) / 1e3,
        stalls: longer(own),
        expected: share * float(own.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_beyond_those_of_the_baseline_are_counted() {
        let mut baseline = Histogram::new();
        baseline.record_n_ns(20_000_000, 9_990);
        baseline.record_n_ns(90_000_000, 10);
        let mut own = Histogram::new();
        own.record_n_ns(20_000_000, 19_000);
        own.record_n_ns(50_000_000, 1_000);
        let found = stalls(&own, &baseline).unwrap();
        assert_eq!(found.stalls, 1_000);
        assert!((found.longer_than_us / 20_000.0 - 1.0).abs() < 1e-3);
        assert!((found.expected - 20.0).abs() < 1e-9, "{found:?}");
        assert_eq!(stalls(&own, &Histogram::new()), None);
    }
}
