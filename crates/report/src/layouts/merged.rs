//! Merges all complete rounds of a variant into one measurement, which all layouts use.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use model::{Iterations, Outcomes};
use recording::{Recording, RequestText, RoundRecord, float};
use stats::Histogram;

/// All complete rounds of a variant as one measurement.
pub(super) struct Merged<'a> {
    pub(super) recording: &'a Recording,
    pub(super) name: &'a str,
    pub(super) rounds: Vec<&'a RoundRecord>,
    pub(super) latency: Histogram,
    pub(super) service: Histogram,
    pub(super) connect: Histogram,
    pub(super) first_byte: Histogram,
    pub(super) outcomes: Outcomes,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) bytes_in: u64,
    /// Bytes of bodies without heads. If they were not counted separately, it includes heads.
    pub(super) bytes_in_bodies: u64,
    pub(super) bytes_out: u64,
    /// Sum over rounds, in microseconds.
    pub(super) elapsed_us: u64,
}

impl<'a> Merged<'a> {
    pub(super) fn of(recording: &'a Recording, name: &'a str) -> Self {
        let is_single = recording.lab.is_none();
        let rounds = recording.rounds_of(name);
        let rounds: Vec<_> = rounds
            // A single load is shown even if it was stopped. Only complete rounds of a lab count.
            .filter(|round| is_single || !(round.interrupted || round.disturbed))
            .collect();
        let mut merged = Self {
            recording,
            name,
            rounds: Vec::new(),
            latency: Histogram::new(),
            service: Histogram::new(),
            connect: Histogram::new(),
            first_byte: Histogram::new(),
            outcomes: Outcomes::default(),
            statuses: BTreeMap::new(),
            bytes_in: 0,
            bytes_in_bodies: 0,
            bytes_out: 0,
            elapsed_us: 0,
        };
        for round in &rounds {
            merged.latency.add(&round.latency_ns_hdr.histogram());
            merged.service.add(&round.service_ns_hdr.histogram());
            merged.connect.add(&round.connect_ns_hdr.histogram());
            merged.first_byte.add(&round.first_byte_ns_hdr.histogram());
            merged.outcomes.add(&round.outcomes);
            for (code, count) in &round.statuses {
                *merged.statuses.entry(*code).or_insert(0) += count;
            }
            merged.bytes_in += round.bytes_in;
            // Older recordings have no separate count of bodies.
            merged.bytes_in_bodies += round.bytes_in_bodies.unwrap_or(round.bytes_in);
            merged.bytes_out += round.bytes_out;
            merged.elapsed_us += round.elapsed_us;
        }
        merged.rounds = rounds;
        merged
    }

    /// Outcomes of the iterations of a scenario. `None` for a rotation.
    pub(super) fn iterations(&self) -> Option<Iterations> {
        let iterations = self.rounds.iter().filter_map(|round| round.iterations);
        iterations.reduce(|mut total, round| {
            total.add(round);
            total
        })
    }

    pub(super) fn seconds(&self) -> f64 {
        float(self.elapsed_us) / 1e6
    }

    /// An amount per second of measurement. It is 0 for a measurement without length.
    pub(super) fn per_second(&self, amount: u64) -> f64 {
        if self.elapsed_us == 0 {
            0.0
        } else {
            float(amount) / self.seconds()
        }
    }

    /// Requests that were sent: all planned requests except the missed ones.
    pub(super) fn sent(&self) -> u64 {
        self.outcomes.total() - self.outcomes.missed
    }

    /// Complete responses with a status of this class: 2 for 200 to 299.
    pub(super) fn class(&self, class: u16) -> u64 {
        let codes = self.statuses.range(class * 100..class * 100 + 100);
        codes.map(|(_, count)| count).sum()
    }

    /// The connections of a closed loop, or the maximum number of an open loop.
    pub(super) fn connections(&self) -> u32 {
        self.recording.load.model.connections()
    }

    pub(super) fn request(&self) -> Option<&'a RequestText> {
        self.recording.load.requests.first()
    }

    /// The URL of a single load. A lab's ports change with every start, so its text is the lab and the
    /// variant.
    pub(super) fn url(&self) -> String {
        match (&self.recording.load.url, &self.recording.lab) {
            (Some(url), _) => url.clone(),
            (None, Some(lab)) => format!("lab:{}/{}", lab.name, self.name),
            (None, None) => self.name.to_owned(),
        }
    }

    /// Connect time per request, in the form of tools that time every request. It is zero for a request on an
    /// open connection.
    pub(super) fn connect_per_request(&self) -> Histogram {
        let mut connect = self.connect.clone();
        // Connections for requests that then failed have no response, so the subtraction saturates.
        connect.record_n_ns(0, self.outcomes.completed().saturating_sub(connect.len()));
        connect
    }

    /// Bytes of request bodies, by the weights of the rotation.
    pub(super) fn bytes_out_bodies(&self) -> f64 {
        let requests = &self.recording.load.requests;
        let weights: f64 = requests
            .iter()
            .map(|request| f64::from(request.weight))
            .sum();
        let weighted =
            |request: &RequestText| f64::from(request.weight) * float(request.body_bytes);
        // Weights are 0 only in a recording without requests.
        if weights <= 0.0 {
            return 0.0;
        }
        float(self.sent()) * requests.iter().map(weighted).sum::<f64>() / weights
    }

    /// Responses per second in whole windows.
    pub(super) fn rates(&self) -> Vec<f64> {
        analysis::summary::rates(&self.rounds)
    }

    /// Start of the first round and end of the last one.
    pub(super) fn span(&self) -> (Timestamp, Timestamp) {
        // A valid recording contains RFC 3339. In an edited file with an invalid time, the epoch makes the
        // mistake visible.
        let began: Timestamp = self
            .recording
            .started_at
            .parse()
            // The formats require a time. A time in 1970 shows that it is unknown.
            .unwrap_or(Timestamp::UNIX_EPOCH);
        let after = |us: u64| {
            let us = i64::try_from(us).unwrap_or(i64::MAX);
            began
                .saturating_add(SignedDuration::from_micros(us))
                .unwrap_or(began)
        };
        let first = self
            .rounds
            .first()
            .map_or(0, |round| round.started_offset_us);
        let last = self.rounds.last();
        let last = last.map_or(0, |round| round.started_offset_us + round.elapsed_us);
        (after(first), after(last))
    }

    /// Names and counts of the outcomes that did not pass, without zero counts.
    pub(super) fn errors(&self) -> Vec<(String, u64)> {
        let mismatched = self.outcomes.mismatched.by_name();
        let failed = self.outcomes.failed.by_name();
        let named = |group: &'static str| {
            move |(name, count): (&str, u64)| (format!("{group}: {name}"), count)
        };
        let all = mismatched
            .into_iter()
            .map(named("mismatched"))
            .chain(failed.into_iter().map(named("failed")))
            .chain([("missed".to_owned(), self.outcomes.missed)]);
        all.filter(|(_, count)| *count > 0).collect()
    }
}

/// A quantile in milliseconds. It is 0 for an empty histogram, because the layouts require a number.
pub(super) fn quantile_ms(histogram: &Histogram, share: f64) -> f64 {
    histogram.quantile_ns(share).map_or(0.0, float) / 1e6
}

pub(super) fn mean_ms(histogram: &Histogram) -> f64 {
    histogram.mean_ns().unwrap_or(0.0) / 1e6
}

pub(super) fn min_ms(histogram: &Histogram) -> f64 {
    histogram.min_ns().map_or(0.0, float) / 1e6
}

pub(super) fn max_ms(histogram: &Histogram) -> f64 {
    histogram.max_ns().map_or(0.0, float) / 1e6
}

pub(super) fn stddev_ms(histogram: &Histogram) -> f64 {
    histogram.stddev_ns().unwrap_or(0.0) / 1e6
}
