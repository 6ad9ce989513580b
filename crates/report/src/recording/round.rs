//! Record of one measurement: one variant in one round.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{CodedAnswers, FailureSample, GeneratorCost, Iterations, Outcomes, Throttled, micros};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Histogram;

use super::{GeneratorRecord, NetworkRecord, ProofSeen};
use crate::Hdr;
use crate::float::float;

/// One measurement: one variant in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundRecord {
    /// The round, from 0.
    pub round: u32,
    /// The variant's turn within the round, from 0.
    pub position: u32,
    /// The group of variants that were up together, from 0, where a round has several. A baseline has
    /// one measurement in each of its groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The core of each system that the run placed on one, by the number of the kernel; empty where
    /// the scheduler placed all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cores: BTreeMap<String, usize>,
    /// The variant's name.
    pub variant: String,
    /// How its rate was found, where the highest one was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// Whether it was cut short. Such a measurement is kept and never compared.
    pub interrupted: bool,
    /// Whether the generator was kept from running for so much of it that the measurement was made
    /// again. Such a measurement is kept and never compared.
    #[serde(default)]
    pub disturbed: bool,
    /// When the measurement began, in microseconds since the run began.
    pub started_offset_us: u64,
    /// The time of the load in microseconds, without the warm-up: from its start to its planned end, or
    /// to the last outcome where that is later or a count ends it. Versions before counted from the
    /// first send to the last answer.
    pub elapsed_us: u64,
    /// Intended sends. In a closed loop the sends themselves.
    pub planned: u64,
    /// Sends that had to wait for a free connection (open loop): their lateness is the target's
    /// doing, not the generator's.
    pub waited: u64,
    /// How often a request was sent again because the target had declared it unprocessed (HTTP/2).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_again: u64,
    /// What became of the intended sends; the sum is `planned`.
    pub outcomes: Outcomes,
    /// Complete answers by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes received: heads and bodies, without TCP.
    pub bytes_in: u64,
    /// Bytes of bodies received; absent when not counted apart.
    pub bytes_in_bodies: Option<u64>,
    /// Complete responses by `Content-Encoding`, such as `gzip`. Responses without one are `identity`.
    /// Absent in recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encodings: Option<BTreeMap<String, u64>>,
    /// How answers with a `Content-Encoding` were judged; absent without such answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded: Option<CodedAnswers>,
    /// Latency of complete answers by status, where several statuses are right; empty elsewhere. Of all
    /// answers: what was left out of `latency_ns_hdr` is in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_by_status_ns_hdr: BTreeMap<u16, Hdr>,
    /// Bytes sent: heads and bodies, without TCP.
    pub bytes_out: u64,
    /// Latency of complete answers: from due to the last byte.
    pub latency_ns_hdr: Hdr,
    /// Each request of a rotation apart, in its order, where a round side by side has several and their
    /// times were kept; empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestRecord>,
    /// Latency in 24 parts of a single load, in order of time, where they were asked for (`--record`,
    /// `--gate`); empty elsewhere. Parts of a load that ends by time are equally long, those of one that ends
    /// by number have equally many answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks_latency_ns_hdr: Vec<Hdr>,
    /// Service time of complete answers: from the actual send to the last byte.
    pub service_ns_hdr: Hdr,
    /// Lateness of sends: actual send minus due. Empty in a closed loop, which has no due.
    pub lateness_ns_hdr: Hdr,
    /// Gaps between one send of a plan and the next of the same generator thread, as sent, without
    /// those that a pause or a wait for a connection has made; absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps_ns_hdr: Option<Hdr>,
    /// Time to open a connection, one value per connection opened.
    pub connect_ns_hdr: Hdr,
    /// From the actual send to the first byte of the answer.
    pub first_byte_ns_hdr: Hdr,
    /// Answers and errors over time.
    pub windows: Windows,
    /// What the generator itself cost.
    pub generator: GeneratorCost,
    /// Of a scenario, each step apart, in order; empty for a rotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// Of a scenario: what became of its iterations; absent for a rotation.
    #[serde(default, alias = "passes", skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Iterations>,
    /// What was seen of the proofs that look at the load itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<ProofSeen>,
    /// What of a round side by side is in no latency; absent in turn, and where times were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Latency of all complete answers of the plan, those of cycles that were left out included; absent
    /// where none was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_latency_ns_hdr: Option<Hdr>,
    /// Complete answers of the cycles that were left out, by cause; absent where none was left out, and in
    /// recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_answers: Option<LeftOutAnswers>,
    /// Means of the latencies that count, from the times of each request; absent where these were not kept.
    /// The buckets of `latency_ns_hdr` are up to 0.1 % of a latency wide. Where all answers of a slow service
    /// fall into one of them, a small difference would be the difference of two buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_means: Option<LatencyMeans>,
    /// The slices of time in which it had the load, where a closed loop was measured side by side. All
    /// figures are then of what counts of them, put end to end: `elapsed_us` is their sum, and a
    /// window is a slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<SlicesRecord>,
    /// What the whole machine did meanwhile; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// What each system cost.
    pub systems: Vec<SystemUsage>,
    /// What the systems cost that the variant shared with all others that were up: the same in the
    /// measurement of each of them, and in no figure of any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SystemUsage>,
    /// The network to the target, where that is on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRecord>,
    /// The generators that sent the load, where they were pods of a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorRecord>,
    /// The first few failures of each kind.
    pub failures: Vec<FailureSample>,
}

/// One request of a rotation in one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// How often the plan sends it: the same for all variants.
    pub planned: u64,
    /// Latency of its complete answers, of those that count: from due to the last byte.
    pub latency_ns_hdr: Hdr,
}

/// Means of latencies, in nanoseconds, without the rounding of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyMeans {
    /// Mean of all.
    pub mean_ns: f64,
    /// Mean of the fastest three quarters. Of several requests, each has its own, and they count as often as
    /// they are planned.
    pub typical_ns: f64,
}

/// A round, or one group of a round. Differences are taken within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoundPart {
    /// Index of the round, from 0.
    pub round: u32,
    /// Index of the group in the round, from 0.
    pub group: u32,
}

/// Cycles that say nothing about the variants, and are in no figure of latency or rate: due times, each
/// one request to every variant, or in a closed loop slices, one for every variant. Decided by clocks
/// and counters, never by a latency of the variant itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// All cycles of the round.
    pub cycles: u64,
    /// Left out because the host gave a core to other guests.
    pub host: u64,
    /// Left out because the generator did not run although work was due.
    pub generator: u64,
    /// Left out because the systems of another variant kept the cores busy.
    #[serde(default)]
    pub neighbor: u64,
    /// Left out because a request to another variant took longer than a cycle. Only recordings of
    /// method 2 and older have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun: Option<u64>,
}

impl LeftOut {
    /// All cycles that were left out.
    pub(crate) fn total(&self) -> u64 {
        self.host + self.generator + self.neighbor + self.overrun.unwrap_or(0)
    }
}

/// Complete answers of cycles that were left out, by the cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutAnswers {
    /// Left out because the host gave a core to other guests.
    pub host: Answers,
    /// Left out because the generator did not run although work was due.
    pub generator: Answers,
    /// Left out because the systems of another variant kept the cores busy.
    pub neighbor: Answers,
}

/// Some complete answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// How many.
    pub count: u64,
    /// Sum of their latencies in nanoseconds, each from due to the last byte.
    pub latency_sum_ns: u64,
}

impl Answers {
    /// Adds one response with this latency.
    pub fn add_one(&mut self, latency_ns: u64) {
        self.add(Answers {
            count: 1,
            latency_sum_ns: latency_ns,
        });
    }

    /// Adds the counts and sums of `other`.
    pub fn add(&mut self, other: Answers) {
        self.count = self.count.saturating_add(other.count);
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(other.latency_sum_ns);
    }
}

impl LeftOutAnswers {
    /// Adds the responses of another part.
    pub fn add(&mut self, other: &LeftOutAnswers) {
        self.host.add(other.host);
        self.generator.add(other.generator);
        self.neighbor.add(other.neighbor);
    }
}

/// How the load of a round moved from variant to variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlicesRecord {
    /// Length of a slice in microseconds.
    pub length_us: u64,
    /// Its beginning that does not count, in microseconds.
    pub uncounted_us: u64,
    /// How long nothing was sent after each slice, in microseconds.
    pub gap_us: u64,
    /// From the beginning of the load to its end, in microseconds, for all variants together.
    pub took_us: u64,
    /// What became of the requests that are in no other figure: of beginnings that do not count, and
    /// of slices that were left out. What systems cost is for these requests too.
    pub discarded: Outcomes,
}

/// One step of a scenario in one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepRecord {
    /// Its name.
    pub name: String,
    /// Latency of its complete answers: from its due to the last byte. The first step is due when its
    /// iteration is, a later one when the answer before it is complete and its pause is over.
    pub latency_ns_hdr: Hdr,
    /// Service time of its complete answers: from the actual send to the last byte.
    pub service_ns_hdr: Hdr,
    /// What became of it in the iterations that came to it.
    pub outcomes: Outcomes,
    /// Iterations that an earlier step ended, so that it was not sent.
    pub skipped: u64,
}

/// The search for the highest rate that is sustained, of which the measurement is the last step that
/// was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRecord {
    /// The rates in the order they were tried.
    pub steps: Vec<SearchStep>,
    /// Whether the highest rate of the search was sustained, so that there may be a higher one.
    pub is_at_top: bool,
}

/// One rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchStep {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Latency that 99 % of the answers did not exceed, in microseconds; absent without an answer.
    pub latency_us_p99: Option<f64>,
    /// Requests that were not answered as expected: mismatched, failed or missed.
    pub not_passed: u64,
    /// Whether it was sustained.
    pub is_sustained: bool,
    /// Whether it was not, while other guests of the host had so much of the processors that it says
    /// nothing: the rate was tried again.
    #[serde(default)]
    pub is_disturbed: bool,
}

/// Answers and errors counted in windows of equal width from the first send on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Windows {
    /// Width of a window in microseconds.
    pub width_us: u64,
    /// Complete answers in each window; the last window may be cut short.
    pub completed: Vec<u64>,
    /// Requests that ended mismatched or failed in each window; as long as `completed`.
    pub errors: Vec<u64>,
    /// Sum of the latencies of the complete answers of each window; as long as `completed`.
    pub latency_sum_ns: Vec<u64>,
}

/// What the whole machine did during one measurement, by the kernel's count in hundredths of a
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUse {
    /// Cores online.
    pub cores: u32,
    /// How long was looked, in microseconds: the measurement and a little around it.
    pub looked_us: u64,
    /// Time in which cores worked for any process, in microseconds, summed over cores.
    pub busy_us: u64,
    /// Time in which cores were wanted and the host gave them to other guests, in microseconds.
    pub steal_us: u64,
    /// How often a limit around `weigh` itself, such as a container's, stopped everything in it;
    /// absent without one.
    pub throttled: Option<Throttled>,
}

impl MachineUse {
    /// The time of all cores together, in microseconds.
    pub(crate) fn cores_us(&self) -> f64 {
        float(self.looked_us) * f64::from(self.cores)
    }

    /// The share of all cores' time that other guests of the host took.
    pub fn stolen_share(&self) -> f64 {
        float(self.steal_us) / self.cores_us().max(1.0)
    }
}

/// What one system cost during one measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemUsage {
    /// The system's name in the lab.
    pub name: String,
    /// Processor time of all its processes in microseconds, user and system; absent where it could
    /// not be read.
    pub cpu_us: Option<u64>,
    /// Peak memory in bytes since its start; absent where it could not be read.
    pub memory_peak_bytes: Option<u64>,
    /// How often its processor limit stopped it; absent without a limit.
    pub throttled: Option<Throttled>,
    /// Context switches of the threads that lived to the end, voluntary and not; absent where they
    /// could not be read.
    pub context_switches: Option<u64>,
    /// Context switches of these threads in which others took the core although the thread could have
    /// gone on; absent where they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switches_involuntary: Option<u64>,
    /// How long the threads that lived to the end were ready to run while others had the cores, in
    /// microseconds, summed over threads; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_for_cpu_us: Option<u64>,
    /// Where the numbers come from: `cgroup v2`, `cgroup v1` or `/proc`.
    pub source: String,
    /// Its instances, of which the figures above are the sums; empty for a system without a balancer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceUsage>,
}

/// What one instance behind a balancer did during one measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceUsage {
    /// Its name.
    pub name: String,
    /// Requests that it answered, as the balancer counted.
    pub answers: u64,
    /// Processor time in microseconds, user and system; absent where it could not be read.
    pub cpu_us: Option<u64>,
}

/// Latency by status over several measurements. Empty if only one status is right.
pub(crate) fn latency_by_status<'a>(
    rounds: impl IntoIterator<Item = &'a RoundRecord>,
) -> BTreeMap<u16, Histogram> {
    let mut all: BTreeMap<u16, Histogram> = BTreeMap::new();
    let each = rounds.into_iter();
    for (status, latency) in each.flat_map(|round| &round.latency_by_status_ns_hdr) {
        all.entry(*status).or_default().add(&latency.histogram());
    }
    all
}

impl RoundRecord {
    /// The typical latency, in nanoseconds ([`model::Metric::Typical`]). `None` without responses. `latency`
    /// is the decoded histogram of this measurement.
    ///
    /// If there are several requests, each has its own typical latency, weighted by its planned count.
    #[must_use]
    pub fn typical_ns(&self, latency: &Histogram) -> Option<f64> {
        if let Some(means) = self.latency_means {
            return Some(means.typical_ns);
        }
        let requests = self.requests.iter().map(|request| {
            let own = request.latency_ns_hdr.histogram();
            (float(request.planned), own)
        });
        Histogram::typical_of_mixture_ns(requests)
            .or_else(|| latency.trimmed_mean_ns(Histogram::TYPICAL_SHARE))
    }

    /// The mean latency, in nanoseconds. `None` without responses. `latency` is the decoded histogram of this
    /// measurement.
    #[must_use]
    pub fn mean_ns(&self, latency: &Histogram) -> Option<f64> {
        let exact = self.latency_means.map(|means| means.mean_ns);
        exact.or_else(|| latency.mean_ns())
    }

    /// The mean latency of the slowest quarter of the requests, in nanoseconds
    /// ([`model::Metric::SlowQuarter`]). `None` without responses. `latency` is the decoded histogram of this
    /// measurement.
    ///
    /// `(mean - 0.75 typical) / 0.25`.
    #[must_use]
    pub fn slow_quarter_ns(&self, latency: &Histogram) -> Option<f64> {
        let kept = Histogram::TYPICAL_SHARE;
        let (mean, typical) = (self.mean_ns(latency)?, self.typical_ns(latency)?);
        Some((mean - kept * typical) / (1.0 - kept))
    }

    /// The round and the group in it. Measurements of the same part were made at the same time and are
    /// paired.
    #[must_use]
    pub fn part(&self) -> RoundPart {
        RoundPart {
            round: self.round,
            // A round without groups is one group, so that its parts pair like rounds.
            group: self.group.unwrap_or(0),
        }
    }

    /// Duration of the load in microseconds, with the slices of other variants. The generator's cost is not
    /// separable by variant.
    pub(crate) fn loaded_us(&self) -> u64 {
        self.slices
            .map_or(self.elapsed_us, |slices| slices.took_us)
            // Responses to the last requests may arrive after the last slice.
            .max(self.elapsed_us)
    }

    /// Complete responses, including responses to discarded requests, which are in no other figure. The costs
    /// of systems and the received bytes cover all of them.
    pub(crate) fn answered(&self) -> u64 {
        let discarded = self.slices.map_or(0, |slices| slices.discarded.completed());
        self.outcomes.completed() + discarded
    }

    /// Requests that were sent, including discarded requests, which are in no other figure. The sent bytes
    /// cover all of them.
    pub(crate) fn sent(&self) -> u64 {
        let went_out =
            |outcomes: &Outcomes| outcomes.total() - outcomes.missed - outcomes.failed.connect;
        let discarded = self.slices.map_or(0, |slices| went_out(&slices.discarded));
        went_out(&self.outcomes) + discarded
    }

    /// The share of its threads' time that the generator was ready to run while other threads had the core.
    /// `None` if the kernel does not count it.
    pub fn starved_share(&self) -> Option<f64> {
        let threads_us = float(self.loaded_us()) * f64::from(self.generator.threads);
        let waited_us = float(micros(self.generator.waited_for_cpu?));
        (threads_us > 0.0).then(|| waited_us / threads_us)
    }

    /// The share of the measurement with real-time priority for the generator's threads, 0 to 1.
    pub fn realtime_share(&self) -> f64 {
        let loaded = Duration::from_micros(self.loaded_us());
        self.generator.realtime_share(loaded)
    }

    /// The share of the measurement that the generator did not run although work was due. It is 0 without a
    /// pause.
    pub fn paused_share(&self) -> f64 {
        let paused_us: u64 = self
            .generator
            .pauses
            .iter()
            .map(|pause| micros(pause.length))
            .sum();
        // A measurement that was stopped at once has no length.
        float(paused_us) / float(self.elapsed_us.max(1))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
