//! Processor time and memory of pods, from the kubelet.
//!
//! A kubelet reads the counters of a container about every ten seconds. It returns the last reading with its
//! time, independent of the number of requests. A figure is therefore the difference of two readings. Both
//! must lie within the load, because pods start and settle before it. A load with fewer than two readings has
//! no figure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// One reading of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time of the kubelet's reading, by the clock of its node.
    pub at: Timestamp,
    /// Processor time of all its containers since they started.
    pub cpu: Duration,
    /// Bytes in use that cannot be freed, as the kubelet counts them for evictions.
    pub working_set: Option<u64>,
}

/// The readings of pods over time.
#[derive(Clone, Debug, Default)]
pub struct Readings(BTreeMap<String, Vec<Reading>>);

/// The resources that a pod used within a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Processor time between the first and the last reading.
    pub cpu: Duration,
    /// Time between these readings.
    pub over: Duration,
    /// Number of readings.
    pub readings: usize,
}

impl Readings {
    /// Adds the readings of a kubelet summary for the pods of a namespace. A known reading has no effect.
    pub fn add(&mut self, summary: &Value, namespace: &str) {
        for pod in summary["pods"].as_array().into_iter().flatten() {
            let reference = &pod["podRef"];
            if reference["namespace"] != namespace {
                continue;
            }
            let (Some(name), Some(reading)) = (reference["name"].as_str(), reading(pod)) else {
                continue;
            };
            let known = self.0.entry(name.to_owned()).or_default();
            if known.last().is_none_or(|last| last.at < reading.at) {
                known.push(reading);
            }
        }
    }

    /// Returns the resources that a pod used between the first and the last reading within a stretch of time.
    /// `None` with fewer than two readings.
    #[must_use]
    pub fn used(&self, pod: &str, from: Timestamp, to: Timestamp) -> Option<Used> {
        let known = self.0.get(pod)?;
        let within: Vec<&Reading> = known
            .iter()
            .filter(|reading| reading.at >= from && reading.at <= to)
            .collect();
        let (first, last) = (within.first()?, within.last()?);
        let over = Duration::try_from(last.at.duration_since(first.at)).ok()?;
        (!over.is_zero()).then(|| Used {
            // A restarted container begins at zero, so its processor time is unknown.
            cpu: last.cpu.saturating_sub(first.cpu),
            over,
            readings: within.len(),
        })
    }

    /// Returns the largest memory of all readings of a pod.
    #[must_use]
    pub fn most_memory(&self, pod: &str) -> Option<u64> {
        let known = self.0.get(pod)?;
        known.iter().filter_map(|reading| reading.working_set).max()
    }

    /// True if there is a newer reading of this pod.
    #[must_use]
    pub fn is_newer(&self, pod: &str, than: Timestamp) -> bool {
        let last = self.0.get(pod).and_then(|known| known.last());
        last.is_some_and(|last| last.at >= than)
    }
}

/// Returns the sum of the containers of a pod, at the time of their oldest reading. `None` if a container has
/// no reading yet.
fn reading(pod: &Value) -> Option<Reading> {
    let containers = pod["containers"].as_array()?;
    let mut all: Option<Reading> = None;
    for container in containers {
        let cpu = &container["cpu"];
        let at: Timestamp = cpu["time"].as_str()?.parse().ok()?;
        let used = Duration::from_nanos(cpu["usageCoreNanoSeconds"].as_u64()?);
        let working_set = container["memory"]["workingSetBytes"].as_u64();
        all = Some(match all {
            None => Reading {
                at,
                cpu: used,
                working_set,
            },
            Some(before) => Reading {
                at: before.at.min(at),
                cpu: before.cpu + used,
                working_set: before.working_set.zip(working_set).map(|(a, b)| a + b),
            },
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary(second: u32, cpu_ns: u64) -> Value {
        json!({"pods": [
            {"podRef": {"name": "p", "namespace": "n"}, "containers": [
                {"cpu": {"time": format!("2026-01-01T00:00:{second:02}Z"), "usageCoreNanoSeconds": cpu_ns},
                 "memory": {"workingSetBytes": cpu_ns / 1000}}]},
            {"podRef": {"name": "p", "namespace": "other"}, "containers": [
                {"cpu": {"time": "2026-01-01T00:00:00Z", "usageCoreNanoSeconds": 7}}]},
            {"podRef": {"name": "unread", "namespace": "n"}, "containers": [{"name": "c"}]},
        ]})
    }

    fn at(second: u32) -> Timestamp {
        format!("2026-01-01T00:00:{second:02}Z")
            .parse()
            .expect("a time")
    }

    #[test]
    fn only_readings_within_the_load_count() {
        let mut readings = Readings::default();
        for (second, cpu) in [
            (1, 5_000_000),
            (11, 9_000_000),
            (21, 19_000_000),
            (31, 29_000_000),
        ] {
            readings.add(&summary(second, cpu), "n");
            // Requested again before a new reading.
            readings.add(&summary(second, cpu), "n");
        }
        let used = readings.used("p", at(5), at(35)).expect("three readings");
        assert_eq!(used.cpu, Duration::from_millis(20));
        assert_eq!(used.over, Duration::from_secs(20));
        assert_eq!(used.readings, 3);
        // Start and settling come before, so one reading within is no figure.
        assert_eq!(readings.used("p", at(5), at(15)), None);
        assert_eq!(readings.used("unread", at(0), at(59)), None);
        assert_eq!(readings.most_memory("p"), Some(29_000));
        assert!(readings.is_newer("p", at(31)) && !readings.is_newer("p", at(32)));
    }
}
