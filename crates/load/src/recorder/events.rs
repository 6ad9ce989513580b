//! The account of events of streamed responses.

use stats::Histogram;

use crate::clock::Clock;

/// The positions with a record of their own.
const POSITIONS: [u64; 16] = [
    1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1_000, 2_000, 5_000, 10_000,
];

/// Time stamps below these numbers are seconds, milliseconds and microseconds since 1970. Larger numbers are
/// nanoseconds. Each limit is the year 5138 in its own unit and the year 1973 in the next.
const UNITS: [(f64, u64); 3] = [(1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000)];

/// The events of one thread, and finally of all threads.
pub(crate) struct Events {
    streams: u64,
    events_of_streams: u64,
    events: u64,
    first: Histogram,
    event_sum_ns: u64,
    gaps: TimedSum,
    positions: [(u64, u64); POSITIONS.len()],
    delivery: TimedSum,
    round_trips: TimedSum,
    /// The time since 1970 at the start of the load's clock.
    epoch_ns: u64,
}

/// Durations with their exact sum.
#[derive(Clone, Debug, Default)]
pub struct TimedSum {
    /// The durations, in nanoseconds.
    pub times: Histogram,
    /// Their sum in nanoseconds.
    pub sum_ns: u64,
}

/// The arrival of the events at one position of their streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionSum {
    /// The position, from 1.
    pub position: u64,
    /// Number of events at this position.
    pub events: u64,
    /// Sum of the times from the due time of the stream to the event, in nanoseconds.
    pub sum_ns: u64,
}

/// The events of streamed responses. Slots that do not count are left out.
#[derive(Clone, Debug)]
pub struct EventsMeasurement {
    /// Complete streams, correct or not.
    pub streams: u64,
    /// Events of complete streams.
    pub events_of_streams: u64,
    /// Events that arrived, including events of streams that failed later.
    pub events: u64,
    /// From due to the first event, of complete streams with an event, in nanoseconds.
    pub first: Histogram,
    /// Sum of the times from due to each event, in nanoseconds.
    pub event_sum_ns: u64,
    /// Times between two consecutive events of one stream.
    pub gaps: TimedSum,
    /// Arrival by position, for positions with an event.
    pub positions: Vec<PositionSum>,
    /// From the time stamp in an event to its arrival. Empty if events have no time stamp.
    pub delivery: TimedSum,
    /// From a message to its reply on the same connection. Empty without such messages.
    pub round_trips: TimedSum,
}

impl TimedSum {
    /// Adds one duration.
    pub(crate) fn record_ns(&mut self, ns: u64) {
        self.times.record_ns(ns);
        self.sum_ns += ns;
    }

    fn add(&mut self, other: &TimedSum) {
        self.times.add(&other.times);
        self.sum_ns += other.sum_ns;
    }
}

impl Events {
    pub(crate) fn new(clock: Clock) -> Events {
        Events {
            streams: 0,
            events_of_streams: 0,
            events: 0,
            first: Histogram::new(),
            event_sum_ns: 0,
            gaps: TimedSum::default(),
            positions: [(0, 0); POSITIONS.len()],
            delivery: TimedSum::default(),
            round_trips: TimedSum::default(),
            epoch_ns: clock.epoch_ns(),
        }
    }

    /// Records an event at this position of its stream, from 1. `before_ns` is the time of the event before
    /// it.
    pub(crate) fn arrived(
        &mut self,
        position: u64,
        due_ns: u64,
        now_ns: u64,
        before_ns: Option<u64>,
    ) {
        let since_due_ns = now_ns.saturating_sub(due_ns);
        self.events += 1;
        self.event_sum_ns = self.event_sum_ns.saturating_add(since_due_ns);
        if let Some(before_ns) = before_ns {
            self.gaps.record_ns(now_ns.saturating_sub(before_ns));
        }
        if let Ok(index) = POSITIONS.binary_search(&position) {
            let (events, sum_ns) = &mut self.positions[index];
            *events += 1;
            *sum_ns = sum_ns.saturating_add(since_due_ns);
        }
    }

    /// Records the delivery of an event with a time stamp at this JSON pointer. Events without a number there
    /// are not recorded.
    pub(crate) fn delivered(&mut self, data: &[u8], pointer: &str, now_ns: u64) {
        let value: Option<serde_json::Value> = serde_json::from_slice(data).ok();
        let stamp = value.as_ref().and_then(|value| value.pointer(pointer));
        if let Some(sent_ns) = stamp.and_then(since_1970_ns) {
            // The clock of another machine may be ahead. No event arrives before it was sent.
            let arrived_ns = self.epoch_ns.saturating_add(now_ns);
            self.delivery.record_ns(arrived_ns.saturating_sub(sent_ns));
        }
    }

    /// Records the time from a message to its reply.
    pub(crate) fn replied(&mut self, took_ns: u64) {
        self.round_trips.record_ns(took_ns);
    }

    /// Records the end of a complete stream with this number of events. `first_ns` is the time of its first
    /// event, 0 without an event.
    pub(crate) fn ended(&mut self, events: u64, first_ns: u64, due_ns: u64) {
        self.streams += 1;
        self.events_of_streams += events;
        if first_ns > 0 {
            self.first.record_ns(first_ns.saturating_sub(due_ns));
        }
    }

    pub(crate) fn absorb(&mut self, other: &Events) {
        self.streams += other.streams;
        self.events_of_streams += other.events_of_streams;
        self.events += other.events;
        self.first.add(&other.first);
        self.event_sum_ns = self.event_sum_ns.saturating_add(other.event_sum_ns);
        self.gaps.add(&other.gaps);
        for (own, others) in self.positions.iter_mut().zip(&other.positions) {
            own.0 += others.0;
            own.1 = own.1.saturating_add(others.1);
        }
        self.delivery.add(&other.delivery);
        self.round_trips.add(&other.round_trips);
    }

    pub(crate) fn into_measurement(self) -> EventsMeasurement {
        let positions = POSITIONS.iter().zip(self.positions);
        EventsMeasurement {
            streams: self.streams,
            events_of_streams: self.events_of_streams,
            events: self.events,
            first: self.first,
            event_sum_ns: self.event_sum_ns,
            gaps: self.gaps,
            positions: positions
                .filter(|(_, (events, _))| *events > 0)
                .map(|(position, (events, sum_ns))| PositionSum {
                    position: *position,
                    events,
                    sum_ns,
                })
                .collect(),
            delivery: self.delivery,
            round_trips: self.round_trips,
        }
    }
}

/// Converts a time stamp to nanoseconds since 1970. `None` for another value than a number, or a negative
/// number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a nanosecond has no meaning, and the sign was checked"
)]
fn since_1970_ns(stamp: &serde_json::Value) -> Option<u64> {
    let parsed;
    let stamp = match stamp {
        serde_json::Value::String(text) => {
            parsed = serde_json::from_str(text).ok()?;
            &parsed
        }
        stamp => stamp,
    };
    let number = stamp.as_f64().filter(|number| *number >= 0.0)?;
    let unit = UNITS.iter().find(|(limit, _)| number < *limit);
    let unit_ns = unit.map_or(1, |(_, ns)| *ns);
    match stamp.as_u64() {
        // A float has too few digits for nanoseconds.
        Some(whole) => whole.checked_mul(unit_ns),
        None => Some((number * unit_ns as f64) as u64),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_time_stamp_shows_its_unit() {
        for (stamp, expected) in [
            (json!(1_764_000_000), Some(1_764_000_000_000_000_000)),
            (json!(1_764_000_000.5), Some(1_764_000_000_500_000_000)),
            (
                json!(1_764_000_000_250_u64),
                Some(1_764_000_000_250_000_000),
            ),
            (
                json!(1_764_000_000_000_001_u64),
                Some(1_764_000_000_000_001_000),
            ),
            (
                json!(1_764_000_000_000_000_001_u64),
                Some(1_764_000_000_000_000_001),
            ),
            (json!("1764000000"), Some(1_764_000_000_000_000_000)),
            (json!(-1), None),
            (json!(null), None),
        ] {
            assert_eq!(since_1970_ns(&stamp), expected, "{stamp}");
        }
    }
}
