//! Cost of the systems of a variant.

use recording::{
    InstanceUsage, RoundPart, RoundRecord, SystemRecord, SystemUsage, describe, float,
};
use serde::Serialize;

use super::estimate::{MetricSummary, mean_by_round};

/// Cost of one system of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemSummary {
    /// Name of the system in the lab.
    pub name: String,
    /// Version that the system reports.
    pub version: Option<String>,
    /// Processor time per complete response. Absent if it could not be read.
    pub cpu_us_per_request: Option<MetricSummary>,
    /// Peak memory. Absent if it could not be read.
    pub memory_peak_bytes: Option<MetricSummary>,
    /// Context switches per complete response, voluntary and involuntary. Absent if they could not be read.
    pub context_switches_per_request: Option<MetricSummary>,
    /// Involuntary context switches per complete response: another thread took the core although this thread
    /// could have continued. Absent if they could not be read.
    pub context_switches_involuntary_per_request: Option<MetricSummary>,
    /// Time that the system's threads waited for a core while they were ready to run. In microseconds per
    /// complete response, summed over threads. Absent if it could not be read.
    pub waited_for_cpu_us_per_request: Option<MetricSummary>,
    /// Limits of the system in words: no limit, in force, or not in force with the reason.
    pub limits: String,
    /// True if the lab requests a limit that is not in force, or if another limit is in force.
    pub is_limit_unmet: bool,
    /// Share of scheduler periods with a stop by a limit, 0 to 1. Absent without a limit.
    pub throttled_periods_share: Option<f64>,
    /// Source of the numbers.
    pub source: Option<String>,
    /// Work of each instance over all rounds. Empty for a system without a balancer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceSummary>,
}

/// Work of one instance behind a balancer, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceSummary {
    /// Name of the instance.
    pub name: String,
    /// Responses of the instance.
    pub answers: u64,
    /// Share of the responses of all instances, 0 to 1. It is 0 if there are no responses.
    pub share: f64,
    /// Processor time per response of the instance. Absent if it could not be read, or without a response.
    pub cpu_us_per_answer: Option<f64>,
}

/// Values with the index of their round.
type ByRound = Vec<(u32, f64)>;

/// The figures of one system, round by round.
pub(super) struct SystemFigures {
    pub(super) name: String,
    source: String,
    /// Processor time by round and group.
    pub(super) cpu: Vec<(RoundPart, f64)>,
    memory: ByRound,
    switches: ByRound,
    switches_involuntary: ByRound,
    waited: ByRound,
    periods: u64,
    throttled_periods: u64,
    instances: Vec<InstanceUsage>,
}

impl SystemFigures {
    /// Empty figures of the system that `usage` describes.
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

    /// Adds the usage of one round.
    pub(super) fn add(&mut self, usage: &SystemUsage, round: &RoundRecord) {
        // The variant's own figures do the same, because systems also work for discarded requests.
        let answered = round.answered();
        if answered > 0 {
            let per_request = |amount: u64| (round.round, float(amount) / float(answered));
            let switches = usage.context_switches.map(per_request);
            let involuntary = usage.context_switches_involuntary.map(per_request);
            let cpu = usage.cpu_us.map(per_request);
            self.cpu
                .extend(cpu.map(|(_, amount)| (round.part(), amount)));
            self.switches.extend(switches);
            self.switches_involuntary.extend(involuntary);
            let waited = usage.waited_for_cpu_us.map(per_request);
            self.waited.extend(waited);
        }
        // Memory is not divided by responses, so it does not depend on the condition above.
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

    /// The cost of the system. `record` describes the system in the recording.
    pub(super) fn summary(&self, record: Option<&SystemRecord>) -> SystemSummary {
        let over_rounds =
            |values: &ByRound| MetricSummary::of(mean_by_round(values.iter().copied()));
        SystemSummary {
            name: self.name.clone(),
            version: record.and_then(|record| record.version.clone()),
            cpu_us_per_request: over_rounds(&self.cpu_by_round()),
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

    fn cpu_by_round(&self) -> ByRound {
        let figures = self.cpu.iter();
        figures
            .map(|(part, amount)| (part.round, *amount))
            .collect()
    }

    fn add_instance(&mut self, usage: &InstanceUsage) {
        let known = self.instances.iter_mut().find(|it| it.name == usage.name);
        match known {
            Some(known) => {
                known.answers += usage.answers;
                // If one round is unknown, the sum is unknown. The known part would look like a low cost.
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
            // Without any response, every instance has the share 0.
            share: ratio(it.answers, all).unwrap_or(0.0),
            cpu_us_per_answer: it.cpu_us.and_then(|cpu_us| ratio(cpu_us, it.answers)),
        };
        self.instances.iter().map(summary).collect()
    }
}
