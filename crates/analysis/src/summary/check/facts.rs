//! The facts behind the figure of a check, for the sentence of a report.

use serde::Serialize;

/// Facts of one check. The shares and times that its figure contains are not repeated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckFacts {
    /// The figure says everything.
    Figure,
    /// Failed requests.
    Failures {
        /// Number of failed requests of each kind.
        kinds: Vec<(&'static str, u64)>,
    },
    /// The time after the last response.
    Silence {
        /// The round, counted from 0. Absent if there is only one.
        round: Option<u32>,
        /// Time of the last response since the start of the round, in microseconds.
        from_us: u64,
        /// Time from the last response to the end of the load, in microseconds.
        length_us: u64,
        /// Number of requests that failed in it.
        failed: u64,
    },
    /// Requests that were never sent.
    Missed {
        /// Number of these requests.
        requests: u64,
    },
    /// Little's law.
    Connections {
        /// Throughput times mean latency, at least.
        low: f64,
        /// Throughput times mean latency, at most.
        high: f64,
        /// Number of connections.
        connections: u32,
    },
    /// Cycles that were left out, by their cause.
    LeftOut {
        /// Number of all these cycles.
        cycles: u64,
        /// The host took a core.
        host: u64,
        /// The generator stood still.
        generator: u64,
        /// Another variant kept the cores busy.
        neighbor: u64,
        /// Another variant overran.
        overrun: u64,
        /// True if the cycles are slices of a closed loop.
        is_sliced: bool,
    },
    /// The rate of an open loop.
    Rate {
        /// Requests per second that were sent.
        achieved_per_s: f64,
        /// Requests per second of the plan.
        planned_per_s: f64,
    },
    /// Lateness of sends.
    Lateness {
        /// Number of other sends, which waited for a free connection.
        waited: u64,
    },
    /// Lateness of a variant compared with its baseline.
    LatenessApart {
        /// Mean difference in microseconds.
        mean_us: f64,
        /// Lower end of its interval.
        low_us: f64,
        /// Upper end of its interval.
        high_us: f64,
    },
    /// Gaps between sends that should be equal.
    EqualGaps {
        /// Smallest deviation that counts, in seconds.
        slack_s: f64,
        /// The planned gap in seconds.
        gap_s: f64,
    },
    /// Gaps between Poisson arrivals.
    PoissonGaps {
        /// The planned rate.
        rate_per_s: f64,
    },
    /// Pauses of the generator.
    Pauses {
        /// Number of pauses.
        count: u64,
        /// The longest pause in microseconds.
        longest_us: u64,
    },
    /// Time that systems waited for a core.
    SystemsWaited {
        /// Mean waiting time of a request, in microseconds.
        each_us: f64,
    },
    /// Stalls of the target.
    Stalls {
        /// Number of stalls.
        count: u64,
        /// The longest of them. Absent without a stall.
        longest: Option<LongestStall>,
    },
    /// Latency in the last third of a round.
    LastThird {
        /// The mean latency, divided by the mean latency of the first third.
        factor: f64,
        /// True if the latency certainly rises.
        is_rising: bool,
    },
    /// Trend of the latency over the rounds.
    Trend {
        /// The variant that the latency is relative to. Absent for a baseline.
        relative_to: Option<String>,
        /// True if the latency rises.
        is_rising: bool,
    },
    /// A processor limit around the whole run.
    LimitAround,
    /// The processor limit of a system.
    LimitOfSystem {
        /// Name of the system that was stopped most.
        system: String,
    },
    /// Processor time that other guests of the host took.
    Steal {
        /// Its share of all processor time.
        of_all: f64,
    },
    /// An overhead next to the noise floor of the machine.
    NoiseFloor {
        /// The size of the mean overhead in microseconds.
        overhead_us: f64,
        /// The noise floor in microseconds.
        floor_us: f64,
        /// The time of its measurement.
        made_at: String,
    },
    /// Busy cores of the machine.
    BusyCores {
        /// Busy share of the cores before the run.
        before: Option<f64>,
        /// Share of the cores that other programs used during the measurements.
        meanwhile: Option<f64>,
    },
    /// The starts of several generators.
    Starts {
        /// The generator that is furthest from the plan.
        worst: GeneratorName,
        /// Distance of its clock in microseconds.
        clock_ahead_us: f64,
    },
    /// The latest of several generators.
    Latest {
        /// The generator.
        generator: GeneratorName,
    },
    /// TCP segments.
    Segments {
        /// Number of segments that were sent again.
        again: u64,
        /// Number of all sent segments.
        sent: u64,
    },
    /// Round trips to the target.
    RoundTrips {
        /// The median in microseconds.
        p50_us: f64,
        /// The 95th percentile in microseconds.
        p95_us: f64,
        /// Number of handshakes without an answer.
        unanswered: u64,
    },
}

/// The longest stall of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LongestStall {
    /// Its length in microseconds.
    pub length_us: u64,
    /// Its round, counted from 0.
    pub round: u32,
    /// Its start since the start of the round, in microseconds.
    pub at_us: u64,
}

/// Names of one of several generators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GeneratorName {
    /// Its shard: `2/3`.
    pub shard: String,
    /// Its pod.
    pub pod: String,
    /// The node of the pod.
    pub node: String,
}

/// A circumstance of a check that is not in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckNote {
    /// The generator had no real-time priority.
    NoRealtime,
    /// The generator used too much of a shared core for real-time priority.
    RealtimeLost,
    /// Generator and systems use up the machine together, so the rate is valid for this machine with the
    /// generator on it.
    WithGenerator,
    /// The baseline had the same, so the intervals are wider and not biased.
    SameAsBaseline,
    /// Other programs kept the cores busy.
    BusyCores,
}
