//! Record of one measurement: one variant in one round.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{
    CodedAnswers, FailureSample, GeneratorCost, Handshakes, Iterations, Outcomes, Packets,
    Throttled, micros,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Histogram;

use crate::float::float;
use crate::latency_means::LatencyMeans;
use crate::{EventsRecord, GeneratorRecord, Hdr, NetworkRecord, ProofSeen, TimesRecord};

/// One measurement: one variant in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundRecord {
    /// Index of the round, from 0.
    pub round: u32,
    /// Index of the variant within the round, from 0.
    pub position: u32,
    /// Index of the group of variants that ran together, from 0. Absent if the round has one group. A
    /// baseline has one measurement in each of its groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The core of each system that the run placed on one core, by the kernel's number. Empty if the
    /// scheduler placed all systems.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cores: BTreeMap<String, usize>,
    /// The name of the variant.
    pub variant: String,
    /// The search for the highest sustained rate. Absent if the lab does not search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// True if the measurement was cut short. Such a measurement is kept and never compared.
    pub interrupted: bool,
    /// True if the generator could not run for a large part of the measurement, so that it was repeated. Such
    /// a measurement is kept and never compared.
    #[serde(default)]
    pub disturbed: bool,
    /// Start of the measurement, in microseconds since the start of the run.
    pub started_offset_us: u64,
    /// The time of the load in microseconds, without the warm-up. It starts with the load. It ends at the
    /// planned end, or at the last outcome if that is later or a count ends the load. Older versions counted
    /// from the first send to the last response.
    pub elapsed_us: u64,
    /// Number of intended sends. In a closed loop, the number of sends.
    pub planned: u64,
    /// Number of sends that waited for a free connection (open loop). The target causes their lateness, not
    /// the generator.
    pub waited: u64,
    /// Number of repeated sends of requests that the target had declared unprocessed (HTTP/2).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_again: u64,
    /// Packets that the generator sent over HTTP/3. Absent over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
    /// Handshakes of TLS. Absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<Handshakes>,
    /// Outcomes of the intended sends. The sum is `planned`.
    pub outcomes: Outcomes,
    /// Complete responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes received: heads and bodies, without TCP.
    pub bytes_in: u64,
    /// Bytes of bodies received. Absent if they were not counted separately.
    pub bytes_in_bodies: Option<u64>,
    /// Complete responses by `Content-Encoding`, such as `gzip`. Responses without one are `identity`.
    /// Absent in recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encodings: Option<BTreeMap<String, u64>>,
    /// Counts of checked responses with a `Content-Encoding`, by the way they were checked. Absent without
    /// such responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded: Option<CodedAnswers>,
    /// Latency of complete responses by status, if several statuses are right. Otherwise empty. It includes
    /// the responses that were left out of `latency_ns_hdr`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_by_status_ns_hdr: BTreeMap<u16, Hdr>,
    /// Bytes sent: heads and bodies, without TCP.
    pub bytes_out: u64,
    /// Latency of complete responses, from due to the last byte.
    pub latency_ns_hdr: Hdr,
    /// The requests of a rotation, each separately and in the order of the rotation. Empty unless a round
    /// side by side has several requests and kept their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestRecord>,
    /// Latency in 24 parts of a single load, in order of time. Empty unless the user requested the parts
    /// (`--record`, `--gate`). Parts of a load that ends by time are equally long. Parts of a load that ends
    /// by number have equally many responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks_latency_ns_hdr: Vec<Hdr>,
    /// Service time of complete responses, from the actual send to the last byte.
    pub service_ns_hdr: Hdr,
    /// Lateness of sends: actual send minus due. Empty in a closed loop, which has no due times.
    pub lateness_ns_hdr: Hdr,
    /// Gaps between consecutive actual sends of a generator thread. Gaps caused by a pause or by a wait for a
    /// connection are excluded. Absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps_ns_hdr: Option<Hdr>,
    /// Time to open a connection, one value per connection opened.
    pub connect_ns_hdr: Hdr,
    /// Time from the actual send to the first byte of the response.
    pub first_byte_ns_hdr: Hdr,
    /// Time from due to the first byte of the response. Absent in recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<TimesRecord>,
    /// The events of streamed responses. Absent if responses are not streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsRecord>,
    /// Responses and errors over time.
    pub windows: Windows,
    /// Cost of the generator itself.
    pub generator: GeneratorCost,
    /// The steps of a scenario, each separately and in order. Empty for a rotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// Results of the iterations of a scenario. Absent for a rotation.
    #[serde(default, alias = "passes", skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Iterations>,
    /// The evidence for proofs that observe the load itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<ProofSeen>,
    /// The cycles of a round side by side that no latency contains. Absent if the round measured in turn, and
    /// if times were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Latency of all complete responses of the plan, including the cycles that were left out. Absent if no
    /// cycle was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_latency_ns_hdr: Option<Hdr>,
    /// Complete responses of the cycles that were left out, by cause. Absent if no cycle was left out, and in
    /// recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_answers: Option<LeftOutAnswers>,
    /// Means of the latencies that count, from the times of each request. Absent if these times were not
    /// kept. The buckets of `latency_ns_hdr` are up to 0.1 % of a latency wide. If all responses of a slow
    /// service fall into one bucket, a small difference would be the difference of two buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_means: Option<LatencyMeans>,
    /// The time slices with load for the variant. Present if a closed loop was measured side by
    /// side. All figures then come from the counted parts of the slices, put end to end: `elapsed_us` is
    /// their sum, and a window is a slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<SlicesRecord>,
    /// Use of the whole machine during the measurement. Absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// Cost of each system of the variant.
    pub systems: Vec<SystemUsage>,
    /// Cost of the systems that all running variants shared. The measurement of each of these variants
    /// repeats it, and no figure of a variant includes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SystemUsage>,
    /// The network to the target, if the target is on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRecord>,
    /// The generators that sent the load, if they were pods of a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorRecord>,
    /// The first few failures of each kind.
    pub failures: Vec<FailureSample>,
}

/// One request of a rotation in one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// Number of times that the plan sends the request. It is equal for all variants.
    pub planned: u64,
    /// Latency of the complete responses that count, from due to the last byte.
    pub latency_ns_hdr: Hdr,
}

/// A round, or one group of a round. Differences are taken within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoundPart {
    /// Index of the round, from 0.
    pub round: u32,
    /// Index of the group in the round, from 0.
    pub group: u32,
}

/// Cycles that no figure of latency or rate contains, because they show no property of the variants. In an
/// open loop, a cycle is a due time with one request to every variant. In a closed loop, it is one slice for
/// every variant. Clocks and counters decide, never a latency of the variant itself.
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
    pub fn total(&self) -> u64 {
        self.host + self.generator + self.neighbor + self.overrun.unwrap_or(0)
    }
}

/// Complete responses of cycles that were left out, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutAnswers {
    /// Left out because the host gave a core to other guests.
    pub host: Answers,
    /// Left out because the generator did not run although work was due.
    pub generator: Answers,
    /// Left out because the systems of another variant kept the cores busy.
    pub neighbor: Answers,
}

/// Count and latency of a set of complete responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// Number of complete responses.
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

/// The slices of a closed loop side by side. The load moves from variant to variant after each slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlicesRecord {
    /// Length of a slice in microseconds.
    pub length_us: u64,
    /// Time at the beginning of a slice that does not count, in microseconds.
    pub uncounted_us: u64,
    /// Time without sends after each slice, in microseconds.
    pub gap_us: u64,
    /// Time from the beginning of the load to its end, in microseconds, for all variants together.
    pub took_us: u64,
    /// Outcomes of the requests that no other figure contains. They belong to uncounted beginnings of slices,
    /// and to slices that were left out. The cost of systems includes these requests.
    pub discarded: Outcomes,
}

/// One step of a scenario in one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepRecord {
    /// The name of the step.
    pub name: String,
    /// Latency of complete responses, from the due time of the step to the last byte. The first step is due
    /// with its iteration. A later step is due when the response before it is complete and its pause is over.
    pub latency_ns_hdr: Hdr,
    /// Service time of complete responses, from the actual send to the last byte.
    pub service_ns_hdr: Hdr,
    /// Outcomes of the step in the iterations that reached it.
    pub outcomes: Outcomes,
    /// Number of iterations that an earlier step ended, so that this step was not sent.
    pub skipped: u64,
}

/// The search for the highest sustained rate. The measurement is the last sustained step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRecord {
    /// The rates in the order of their measurement.
    pub steps: Vec<SearchStep>,
    /// True if the highest rate of the search was sustained. A higher rate may then be possible.
    pub is_at_top: bool,
}

/// One measured rate of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchStep {
    /// The rate in requests per second.
    pub rate_per_s: f64,
    /// Latency that 99 % of the responses did not exceed, in microseconds. Absent without a response.
    pub latency_us_p99: Option<f64>,
    /// Number of requests that did not pass: mismatched, failed or missed.
    pub not_passed: u64,
    /// True if the target sustained the rate.
    pub is_sustained: bool,
    /// True if the rate was not sustained while other guests of the host took a large share of the
    /// processors. The result is then not used, and the rate is measured again.
    #[serde(default)]
    pub is_disturbed: bool,
}

/// Counts of responses and errors in windows of equal width, from the first send on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Windows {
    /// Width of a window in microseconds.
    pub width_us: u64,
    /// Complete responses in each window. The last window may be cut short.
    pub completed: Vec<u64>,
    /// Requests that ended mismatched or failed in each window. It has as many windows as `completed`.
    pub errors: Vec<u64>,
    /// Sum of the latencies of the complete responses of each window. It has as many windows as `completed`.
    pub latency_sum_ns: Vec<u64>,
}

/// Use of the whole machine during one measurement. The kernel counts it in hundredths of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUse {
    /// Number of cores online.
    pub cores: u32,
    /// Length of the observation in microseconds. It is a little longer than the measurement.
    pub looked_us: u64,
    /// Time of work for any process, in microseconds, summed over cores.
    pub busy_us: u64,
    /// Time during which cores had work but the host gave them to other guests, in microseconds.
    pub steal_us: u64,
    /// Stops by a processor limit around `weigh` itself, such as the limit of a container. Absent without
    /// such a limit.
    pub throttled: Option<Throttled>,
}

impl MachineUse {
    /// The time of all cores together, in microseconds.
    pub fn cores_us(&self) -> f64 {
        float(self.looked_us) * f64::from(self.cores)
    }

    /// The share of all cores' time that other guests of the host took.
    pub fn stolen_share(&self) -> f64 {
        float(self.steal_us) / self.cores_us().max(1.0)
    }
}

/// Cost of one system during one measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemUsage {
    /// The name of the system in the lab.
    pub name: String,
    /// Processor time of all processes of the system in microseconds, user and system. Absent if it could not
    /// be read.
    pub cpu_us: Option<u64>,
    /// The part of `cpu_us` in the kernel. The kernel divides the time by samples at its ticks, except in
    /// version 2 cgroups. Absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_kernel_us: Option<u64>,
    /// Peak memory since the start of the system, in bytes. Absent if it could not be read.
    pub memory_peak_bytes: Option<u64>,
    /// Stops by the processor limit of the system. Absent without a limit.
    pub throttled: Option<Throttled>,
    /// Context switches, voluntary and involuntary, of the threads that lived to the end of the measurement.
    /// Absent if they could not be read.
    pub context_switches: Option<u64>,
    /// Involuntary context switches of these threads: another thread took the core although this thread could
    /// have continued. Absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switches_involuntary: Option<u64>,
    /// Time during which the threads that lived to the end were ready to run while other threads had the
    /// cores. In microseconds, summed over threads. Absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_for_cpu_us: Option<u64>,
    /// The source of the numbers: `cgroup v2`, `cgroup v1` or `/proc`.
    pub source: String,
    /// The instances of the system. The figures above are the sums over them. Empty for a system without a
    /// balancer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceUsage>,
}

/// Responses and cost of one instance behind a balancer during one measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceUsage {
    /// The name of the instance.
    pub name: String,
    /// Number of responses of this instance, as the balancer counted them.
    pub answers: u64,
    /// Processor time in microseconds, user and system. Absent if it could not be read.
    pub cpu_us: Option<u64>,
}

/// Latency by status over several measurements. Empty if only one status is right.
pub fn latency_by_status<'a>(
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
    pub fn loaded_us(&self) -> u64 {
        self.slices
            .map_or(self.elapsed_us, |slices| slices.took_us)
            // Responses to the last requests may arrive after the last slice.
            .max(self.elapsed_us)
    }

    /// Complete responses, including responses to discarded requests, which are in no other figure. The costs
    /// of systems and the received bytes cover all of them.
    pub fn answered(&self) -> u64 {
        let discarded = self.slices.map_or(0, |slices| slices.discarded.completed());
        self.outcomes.completed() + discarded
    }

    /// Requests that were sent, including discarded requests, which are in no other figure. The sent bytes
    /// cover all of them.
    pub fn sent(&self) -> u64 {
        let went_out =
            |outcomes: &Outcomes| outcomes.total() - outcomes.missed - outcomes.failed.connect;
        let discarded = self.slices.map_or(0, |slices| went_out(&slices.discarded));
        went_out(&self.outcomes) + discarded
    }

    /// The share of its threads' time that the generator was ready to run while other threads had the core.
    /// `None` if the kernel does not count it.
    pub fn starved_share(&self) -> Option<f64> {
        let threads_us = self.counted_us();
        let waited_us = float(micros(self.generator.waited_for_cpu?));
        (threads_us > 0.0).then(|| waited_us / threads_us)
    }

    /// The time in microseconds over which the generator's processor time and its waits were counted, summed over
    /// its threads. A recording without this time has the duration of the load instead, which is shorter.
    pub fn counted_us(&self) -> f64 {
        self.generator.counted.map_or_else(
            || float(self.loaded_us()) * f64::from(self.generator.threads),
            |counted| float(micros(counted)),
        )
    }

    /// The share of the measurement with real-time priority for the generator's threads, 0 to 1.
    pub fn realtime_share(&self) -> f64 {
        let loaded = Duration::from_micros(self.loaded_us());
        self.generator.realtime_share(loaded)
    }

    /// The share of the measurement that the generator did not run although work was due. It is 0 without a
    /// pause.
    pub fn paused_share(&self) -> f64 {
        // A measurement that was stopped at once has no length.
        self.paused_us() / float(self.elapsed_us.max(1))
    }

    /// The time in microseconds that the generator did not run although work was due, as the mean over all
    /// threads of all generators. While one thread stands still, the others may continue. A pause that is only
    /// counted has the mean length of the listed pauses.
    pub fn paused_us(&self) -> f64 {
        let generator = &self.generator;
        let listed = generator.pauses.len() as u64;
        if listed == 0 {
            return 0.0;
        }
        let lengths = generator.pauses.iter().map(|pause| micros(pause.length));
        let mean_us = float(lengths.sum()) / float(listed);
        let count = float(listed + generator.pauses_dropped);
        mean_us * count / f64::from(generator.threads.max(1))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
