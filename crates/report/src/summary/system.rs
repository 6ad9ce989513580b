//! What the systems of a variant cost.

use serde::Serialize;

use super::estimate::{MetricSummary, mean_by_round};
use crate::describe;
use crate::float::float;
use crate::recording::{InstanceUsage, RoundRecord, SystemRecord, SystemUsage};

/// What one system of a variant cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemSummary {
    /// Its name.
    pub name: String,
    /// Its version, as it reports it.
    pub version: Option<String>,
    /// Processor time per complete answer; absent where it could not be read.
    pub cpu_us_per_request: Option<MetricSummary>,
    /// Peak memory; absent where it could not be read.
    pub memory_peak_bytes: Option<MetricSummary>,
    /// Context switches per complete answer, voluntary and not; absent where they could not be read.
    pub context_switches_per_request: Option<MetricSummary>,
    /// Context switches per complete answer in which others took the core although the thread could have
    /// gone on; absent where they could not be read.
    pub context_switches_involuntary_per_request: Option<MetricSummary>,
    /// How long its threads were ready to run while others had the cores, in microseconds per complete
    /// answer, summed over threads; absent where it could not be read.
    pub waited_for_cpu_us_per_request: Option<MetricSummary>,
    /// Its limits in words: none, in force, or not in force and why.
    pub limits: String,
    /// Whether it was asked to be limited and is not, or is limited otherwise.
    pub is_limit_unmet: bool,
    /// Share of scheduler periods in which a limit stopped it; absent without a limit.
    pub throttled_periods_share: Option<f64>,
    /// Where the numbers come from.
    pub source: Option<String>,
    /// What each of its instances did, over all rounds; empty for a system without a balancer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceSummary>,
}

/// What one instance behind a balancer did, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceSummary {
    /// Its name.
    pub name: String,
    /// Requests that it answered.
    pub answers: u64,
    /// Its share of the answers of all instances; 0 without any.
    pub share: f64,
    /// Processor time for each of its answers; absent where it could not be read, or without an
    /// answer.
    pub cpu_us_per_answer: Option<f64>,
}

/// Values with their rounds.
type ByRound = Vec<(u32, f64)>;

/// The figures of one system, round by round.
pub(super) struct SystemFigures {
    pub(super) name: String,
    source: String,
    cpu: ByRound,
    memory: ByRound,
    switches: ByRound,
    switches_involuntary: ByRound,
    waited: ByRound,
    periods: u64,
    throttled_periods: u64,
    instances: Vec<InstanceUsage>,
}

impl SystemFigures {
    /// Those of the system that a reading is of; it holds none yet.
    pub(super) fn new(usage: &SystemUsage) -> Self {
        Self {
            name: usage.name.clone(),
            source: usage.source.clone(),
            cpu: Vec::new(),
            memory: Vec::new(),
            switches: Vec::new(),
            switches_involuntary: Vec::new(),
            waited: Vec::new(),
            periods: 0,
            throttled_periods: 0,
            instances: Vec::new(),
        }
    }

    /// Adds what it used in a round.
    pub(super) fn add(&mut self, usage: &SystemUsage, round: &RoundRecord) {
        // As the variant's own figures: systems work for discarded requests, too.
        let answered = round.answered();
        if answered > 0 {
            let per_request = |amount: u64| (round.round, float(amount) / float(answered));
            let switches = usage.context_switches.map(per_request);
            let involuntary = usage.context_switches_involuntary.map(per_request);
            self.cpu.extend(usage.cpu_us.map(per_request));
            self.switches.extend(switches);
            self.switches_involuntary.extend(involuntary);
            let waited = usage.waited_for_cpu_us.map(per_request);
            self.waited.extend(waited);
        }
        // Outside of the condition above, because memory is not divided by answers.
        let memory = usage.memory_peak_bytes.map(float);
        self.memory.extend(memory.map(|bytes| (round.round, bytes)));
        if let Some(throttled) = usage.throttled {
            self.periods += throttled.periods;
            self.throttled_periods += throttled.throttled_periods;
        }
        for instance in &usage.instances {
            self.add_instance(instance);
        }
    }

    /// What it cost; `record` is what the recording says about it.
    pub(super) fn summary(&self, record: Option<&SystemRecord>) -> SystemSummary {
        let over_rounds =
            |values: &ByRound| MetricSummary::of(mean_by_round(values.iter().copied()));
        SystemSummary {
            name: self.name.clone(),
            version: record.and_then(|record| record.version.clone()),
            cpu_us_per_request: over_rounds(&self.cpu),
            memory_peak_bytes: over_rounds(&self.memory),
            context_switches_per_request: over_rounds(&self.switches),
            context_switches_involuntary_per_request: over_rounds(&self.switches_involuntary),
            waited_for_cpu_us_per_request: over_rounds(&self.waited),
            limits: record.map_or_else(String::new, describe::limits_in_force),
            is_limit_unmet: record.is_some_and(describe::is_limit_unmet),
            throttled_periods_share: (self.periods > 0)
                .then(|| float(self.throttled_periods) / float(self.periods)),
            source: Some(self.source.clone()),
            instances: self.instances(),
        }
    }

    fn add_instance(&mut self, usage: &InstanceUsage) {
        let known = self.instances.iter_mut().find(|it| it.name == usage.name);
        match known {
            Some(known) => {
                known.answers += usage.answers;
                // Unknown in one round is unknown in sum: a part of it would look like a low cost.
                let cpu = known.cpu_us.zip(usage.cpu_us);
                known.cpu_us = cpu.map(|(known, more)| known + more);
            }
            None => self.instances.push(usage.clone()),
        }
    }

    fn instances(&self) -> Vec<InstanceSummary> {
        let all: u64 = self.instances.iter().map(|it| it.answers).sum();
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| float(part) / float(whole));
        let summary = |it: &InstanceUsage| InstanceSummary {
            name: it.name.clone(),
            answers: it.answers,
            // Where no instance answered, each had nothing of it.
            share: ratio(it.answers, all).unwrap_or(0.0),
            cpu_us_per_answer: it.cpu_us.and_then(|cpu_us| ratio(cpu_us, it.answers)),
        };
        self.instances.iter().map(summary).collect()
    }
}
