//! The metrics with names, help texts and values, for all output formats.

use std::collections::BTreeMap;

use load::{Counts, Durations};

use super::{State, Total};

/// A metric with its samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Family {
    /// Without the suffix that a format adds to counters.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// In the notation of UCUM. Empty for plain numbers.
    pub(super) unit: &'static str,
    pub(super) values: Values,
}

/// The values of a metric by their labels.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// Sums that only increase.
    Counters(Vec<(Labels, f64)>),
    /// Numbers that can also decrease.
    Gauges(Vec<(Labels, f64)>),
    /// Durations in buckets.
    Histograms(Vec<(Labels, Durations)>),
}

/// Label names with their values. A value may be any text.
pub(super) type Labels = Vec<(&'static str, String)>;

/// Upper bounds of the buckets of all histograms, in nanoseconds: two per doubling, from 16 us to 69 s. Each
/// is a bound of the generator's own cells, so that the counts are exact.
pub(super) fn edges_ns() -> Vec<u64> {
    let doublings = 14..36_u32;
    let both = doublings.flat_map(|bits| [1 << bits, (1 << bits) * 3 / 2]);
    both.chain([1 << 36]).collect()
}

/// The upper bounds of the buckets in seconds.
pub(super) fn edges_s() -> Vec<f64> {
    edges_ns().into_iter().map(seconds).collect()
}

/// Converts nanoseconds to seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// All metrics of a run.
pub(super) fn families(
    totals: &BTreeMap<String, Total>,
    state: &State,
    phase: &'static str,
) -> Vec<Family> {
    let mut all = of_load(totals);
    all.push(gauges(
        "weighbridge_phase",
        "The current phase: measuring, warm-up (a load without figures) or between loads",
        "",
        ["measuring", "warm-up", "between"]
            .into_iter()
            .map(|one| (vec![("phase", one.to_owned())], f64::from(one == phase)))
            .collect(),
    ));
    if let Some((number, planned)) = state.round {
        let one = |value: usize| vec![(Vec::new(), value as f64)];
        all.push(gauges(
            "weighbridge_round",
            "The current round, from 1",
            "",
            one(number),
        ));
        all.push(gauges(
            "weighbridge_rounds_planned",
            "Planned rounds, if known",
            "",
            one(planned),
        ));
    }
    all.extend(of_systems(state));
    // A metric without a sample is left out.
    all.retain(|family| !family.is_empty());
    all
}

fn of_load(totals: &BTreeMap<String, Total>) -> Vec<Family> {
    let label = |target: &String| vec![("target", target.clone())];
    let each = |value: &dyn Fn(&Total) -> Option<f64>| {
        let known = totals.iter();
        known
            .filter_map(|(target, total)| Some((label(target), value(total)?)))
            .collect::<Vec<_>>()
    };
    let durations = |of: &dyn Fn(&Total) -> Option<Durations>| {
        let known = totals.iter();
        let known = known.filter_map(|(target, total)| Some((label(target), of(total)?)));
        Values::Histograms(known.collect())
    };
    let outcomes = totals
        .iter()
        .flat_map(|(target, total)| outcomes(target, total));
    vec![
        Family {
            name: "weighbridge_requests",
            help: "Intended requests of measured loads that have an outcome",
            unit: "",
            values: Values::Counters(outcomes.collect()),
        },
        Family {
            name: "weighbridge_requests_sent",
            help: "Requests sent in measured loads",
            unit: "",
            values: Values::Counters(each(&|it| Some(it.progress.counts.sent as f64))),
        },
        gauges(
            "weighbridge_requests_in_flight",
            "Requests in flight (iterations if the load is a scenario)",
            "",
            each(&|it| Some(it.progress.counts.under_way() as f64)),
        ),
        gauges(
            "weighbridge_planned_requests_per_second",
            "The current rate of the plan. Absent in a closed loop and between loads",
            "",
            each(&|it| it.rate),
        ),
        Family {
            name: "weighbridge_request_duration_seconds",
            help: "Latency of complete answers, from the moment each request was due",
            unit: "s",
            values: durations(&|it| Some(it.progress.latency.clone())),
        },
        Family {
            name: "weighbridge_send_lateness_seconds",
            help: "Delay of the send after the due time, for answered requests",
            unit: "s",
            values: durations(&|it| it.is_planned.then(|| it.progress.lateness.clone())),
        },
    ]
}

fn outcomes(target: &str, total: &Total) -> [(Labels, f64); 4] {
    let Counts {
        passed,
        mismatched,
        failed,
        missed,
        ..
    } = total.progress.counts;
    [
        ("passed", passed),
        ("mismatched", mismatched),
        ("failed", failed),
        ("missed", missed),
    ]
    .map(|(outcome, count)| {
        let labels = vec![
            ("target", target.to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        (labels, count as f64)
    })
}

fn of_systems(state: &State) -> [Family; 2] {
    let labels = |(target, system): &(String, String)| {
        vec![("target", target.clone()), ("system", system.clone())]
    };
    let cpu = state.systems.iter().filter_map(|(key, total)| {
        let cpu_us = total.cpu_us?;
        Some((labels(key), cpu_us as f64 / 1e6))
    });
    let memory = state.systems.iter().filter_map(|(key, total)| {
        let bytes = total.memory_peak_bytes?;
        Some((labels(key), bytes as f64))
    });
    [
        Family {
            name: "weighbridge_system_cpu_seconds",
            help: "Processor time of a system in the measurements that have ended",
            unit: "s",
            values: Values::Counters(cpu.collect()),
        },
        gauges(
            "weighbridge_system_memory_peak_bytes",
            "Peak memory of a system since its start, as of its last measurement",
            "By",
            memory.collect(),
        ),
    ]
}

fn gauges(
    name: &'static str,
    help: &'static str,
    unit: &'static str,
    samples: Vec<(Labels, f64)>,
) -> Family {
    Family {
        name,
        help,
        unit,
        values: Values::Gauges(samples),
    }
}

impl Family {
    fn is_empty(&self) -> bool {
        match &self.values {
            Values::Counters(all) | Values::Gauges(all) => all.is_empty(),
            Values::Histograms(all) => all.is_empty(),
        }
    }
}
