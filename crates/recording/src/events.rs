//! Record of streamed responses: first bytes, events and the times between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Histogram;

use crate::Hdr;
use crate::float::float;
use crate::latency_means::LatencyMeans;

/// One duration of each of many responses, such as the time to the first byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesRecord {
    /// The durations.
    pub ns_hdr: Hdr,
    /// Their means without the rounding of a histogram, over the responses that count. Absent if the times of
    /// each response were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<LatencyMeans>,
}

impl TimesRecord {
    /// Makes a record without exact means.
    pub fn of(times: &Histogram) -> Self {
        Self {
            ns_hdr: Hdr::of(times),
            means: None,
        }
    }

    /// Adds the durations of other generators. The means are lost, because the fastest three quarters of a
    /// whole differ from the fastest three quarters of its parts.
    #[must_use]
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Histogram::new();
        for part in parts {
            all.add(&part.ns_hdr.histogram());
        }
        Self::of(&all)
    }
}

/// The events of streamed responses in one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventsRecord {
    /// Complete streams: their end arrived, whether or not their events were correct.
    pub streams: u64,
    /// Events of complete streams.
    pub events_of_streams: u64,
    /// Events that arrived, including events of streams without an end.
    pub events: u64,
    /// Time from the due time of a stream to its first event, one value for each complete stream that counts.
    pub first: TimesRecord,
    /// Sum of the times from the due time of a stream to each of its events, in nanoseconds.
    pub event_sum_ns: u64,
    /// Time between two consecutive events of one stream.
    pub gaps_ns_hdr: Hdr,
    /// Sum of these times in nanoseconds, without the rounding of a histogram.
    pub gaps_sum_ns: u64,
    /// Arrival of events by their position in the stream, for a few positions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positions: Vec<PositionRecord>,
    /// Time from the publisher's time stamp in an event to its arrival. Absent if events have no time stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<SummedTimes>,
    /// Time from a message to its reply on the same connection. Absent without such messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<SummedTimes>,
}

/// Durations with their exact sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummedTimes {
    /// The durations.
    pub ns_hdr: Hdr,
    /// Their sum in nanoseconds, without the rounding of a histogram.
    pub sum_ns: u64,
}

impl SummedTimes {
    /// Makes a record.
    pub fn of(times: &Histogram, sum_ns: u64) -> Self {
        Self {
            ns_hdr: Hdr::of(times),
            sum_ns,
        }
    }

    /// The mean in nanoseconds. `None` without a duration.
    pub fn mean_ns(&self) -> Option<f64> {
        mean(self.sum_ns, self.ns_hdr.histogram().len())
    }

    fn merged<'a>(parts: impl Iterator<Item = Option<&'a Self>>) -> Option<Self> {
        let parts: Vec<&Self> = parts.flatten().collect();
        if parts.is_empty() {
            return None;
        }
        let mut all = Histogram::new();
        for part in &parts {
            all.add(&part.ns_hdr.histogram());
        }
        Some(Self::of(&all, parts.iter().map(|part| part.sum_ns).sum()))
    }
}

/// Arrival of the events at one position of their streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PositionRecord {
    /// The position, from 1.
    pub position: u64,
    /// Number of events at this position.
    pub events: u64,
    /// Sum of the times from the due time of the stream to the event, in nanoseconds.
    pub sum_ns: u64,
}

/// The quotient of a sum and a count. `None` if the count is 0.
pub(crate) fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| float(sum) / float(count))
}

impl EventsRecord {
    /// Mean time between two events in nanoseconds. `None` without two events of one stream.
    pub fn mean_gap_ns(&self) -> Option<f64> {
        mean(self.gaps_sum_ns, self.gaps_ns_hdr.histogram().len())
    }

    /// Mean time from the due time of a stream to an event in nanoseconds. `None` without events.
    pub fn mean_event_ns(&self) -> Option<f64> {
        mean(self.event_sum_ns, self.events)
    }

    /// Mean number of events of a complete stream. `None` without streams.
    pub fn events_per_stream(&self) -> Option<f64> {
        mean(self.events_of_streams, self.streams)
    }

    /// Adds the records of several generators.
    ///
    /// # Panics
    /// Without a record.
    #[must_use]
    pub fn merged(parts: &[&Self]) -> Self {
        let total = |of: fn(&Self) -> u64| parts.iter().map(|part| of(part)).sum();
        let mut gaps = Histogram::new();
        let mut positions = parts[0].positions.clone();
        for part in parts {
            gaps.add(&part.gaps_ns_hdr.histogram());
        }
        for part in &parts[1..] {
            for one in &part.positions {
                match positions.iter_mut().find(|it| it.position == one.position) {
                    Some(known) => {
                        known.events += one.events;
                        known.sum_ns += one.sum_ns;
                    }
                    None => positions.push(*one),
                }
            }
        }
        positions.sort_by_key(|one| one.position);
        Self {
            streams: total(|part| part.streams),
            events_of_streams: total(|part| part.events_of_streams),
            events: total(|part| part.events),
            first: TimesRecord::merged(parts.iter().map(|part| &part.first)),
            event_sum_ns: total(|part| part.event_sum_ns),
            gaps_ns_hdr: Hdr::of(&gaps),
            gaps_sum_ns: total(|part| part.gaps_sum_ns),
            positions,
            delivery: SummedTimes::merged(parts.iter().map(|part| part.delivery.as_ref())),
            round_trips: SummedTimes::merged(parts.iter().map(|part| part.round_trips.as_ref())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(gaps: &[u64], positions: &[(u64, u64)]) -> EventsRecord {
        let mut all = Histogram::new();
        gaps.iter().for_each(|gap| all.record_ns(*gap));
        EventsRecord {
            streams: 1,
            events_of_streams: 2,
            events: 3,
            first: TimesRecord::of(&all),
            event_sum_ns: 30,
            gaps_ns_hdr: Hdr::of(&all),
            gaps_sum_ns: gaps.iter().sum(),
            positions: positions
                .iter()
                .map(|(position, sum_ns)| PositionRecord {
                    position: *position,
                    events: 1,
                    sum_ns: *sum_ns,
                })
                .collect(),
            delivery: None,
            round_trips: None,
        }
    }

    #[test]
    fn merged_records_keep_every_count_and_sum() {
        let (one, other) = (of(&[10, 20], &[(1, 5)]), of(&[60], &[(1, 7), (2, 9)]));
        let all = EventsRecord::merged(&[&one, &other]);
        assert_eq!((all.streams, all.events, all.events_of_streams), (2, 6, 4));
        assert_eq!(all.mean_gap_ns(), Some(30.0));
        assert_eq!(all.mean_event_ns(), Some(10.0));
        assert_eq!(all.events_per_stream(), Some(2.0));
        let found = all
            .positions
            .iter()
            .map(|it| (it.position, it.events, it.sum_ns));
        assert_eq!(found.collect::<Vec<_>>(), [(1, 2, 12), (2, 1, 9)]);
        assert_eq!(all.delivery, None);
    }
}
