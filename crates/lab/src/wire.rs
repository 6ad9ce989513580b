//! Lab files as a person may type them.
//!
//! The doc comments here are the manual: they become the descriptions of the JSON Schema and, from
//! there, `docs/labs.md`. A key is defined once, here; its form is a type of `formats`.
//!
//! Every field is optional for serde, because the structural check has cut out what was wrong and
//! reported it. `required` is for the schema, which is what that check reads.

use std::time::Duration;

use model::{Gate, Goal, Rate};
use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use crate::fields::Table;
use crate::formats::{Method, Name, RequestPath, Title, Verbatim, Written};
use crate::level::Level;
use crate::quantities::{LoadRate, LongerThanZero};

mod capacity;
mod compose;
mod container;
pub(crate) mod default;
mod manifests;
mod proof;
mod request;
mod scenario;
mod setting;
mod system;
mod variant;

pub(crate) use capacity::CapacityFile;
pub(crate) use compose::{ComposeFile, ServiceFile};
pub(crate) use container::{ImageBuildFile, NetworkFile, PullFile};
pub(crate) use manifests::{ManifestsFile, WorkloadFile};
pub(crate) use proof::{DistinctFile, HeaderValuesFile, OfFile, ProofExpectFile, ProofFile};
pub(crate) use request::{
    ExpectFile, GraphqlFile, Headers, RequestEntry, RequestFile, SameAsFile, Switch,
};
pub(crate) use scenario::{CaptureFile, DataEntry, DataFile, RowOrderFile, ScenarioFile, StepFile};
pub(crate) use setting::{Settings, SettingsFile};
pub(crate) use system::{AttachFile, LimitsFile, ReadyFile, ReadyState, SystemFile};
pub(crate) use variant::{BaselineFile, Factors, ForFile, SentFile, VariantFile, With};

/// Keys of a lab that an included file cannot have. The first two are required; without variants a lab is
/// one for two revisions.
pub(crate) const LAB_ONLY: [&str; 3] = ["question", "baseline", "variants"];

/// Names of variants, group by group.
pub(crate) type GroupsFile = Vec<At<Vec<At<Verbatim<Title>>>>>;

/// A lab asks one question of one target: what does each variant cost, compared with the baseline?
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "lab")]
pub(crate) struct LabFile {
    /// What a reader should learn, as one question. It heads the report.
    #[schemars(required)]
    pub(crate) question: Option<Written<Title>>,
    /// Files that this one builds on, relative to it. They may have every key but `question`,
    /// `baseline` and `variants`; where both say something, the including file wins, key by key,
    /// and a later include wins over an earlier one.
    #[serde(default)]
    #[expect(dead_code, reason = "files are merged before this struct is read")]
    pub(crate) include: OneOrMany<At<String>>,
    /// Lab-wide values for templates: `{{setting}}` in any system. Instead of a value there may be
    /// choices by name, `database: {sqlite: …, postgres: …}`, of which the first holds unless an
    /// including lab, a variant's `with` or `weigh lab --with database=postgres` names another.
    #[serde(default)]
    #[schemars(with = "SettingsFile")]
    pub(crate) settings: Settings,
    /// Settings of a quick run (`weigh lab --quick`), as a variant has them in `with`: `{profile: release}`,
    /// where the usual value takes minutes to build. `--with` and a variant's own `with` win over it.
    #[serde(default)]
    pub(crate) quick: With,
    /// How requests arrive, and what is sent. How they arrive is the same for every variant; what is
    /// sent may hold `{{setting}}`, and a variant's own `load` may say otherwise.
    #[schemars(with = "LoadFile")]
    pub(crate) load: Option<LoadFile>,
    /// Load that is sent and thrown away before each measurement, to fill caches and pools.
    #[schemars(extend("default" = default::WARMUP))]
    pub(crate) warmup: Option<Written<Duration>>,
    /// Load that is sent and thrown away after each start of the systems, before the first warm-up:
    /// as fast as a few connections allow, until the target gets no faster. For systems that compile
    /// themselves while they run.
    pub(crate) settle: Option<SettleFile>,
    /// How a round measures its variants. `side-by-side`: all are up at once, and every due time is
    /// one request to each, in an order drawn anew, so that what the machine does to one it does to
    /// all; differences are then far more precise, and absolute latencies are those of systems with
    /// neighbors. A closed loop moves from variant to variant in slices of time (`slice`), and the
    /// searches of a `capacity` advance rate by rate, in shuffled order. `in-turn`: one after the other,
    /// for absolute figures. A scenario, a closed loop that ends by `count`, and one of systems with a
    /// processor limit, are measured in turn whatever this says; so are variants that cannot be up together: their memory does not suffice,
    /// two listen on the same fixed port, they have more instances (`replicas`) than there are cores, or
    /// a variant and its baseline together use most of the cores. The report then says why.
    #[schemars(extend("default" = "side-by-side"))]
    pub(crate) order: Option<OrderFile>,
    /// Side by side: which variants are up together, each group with its baseline, as lists of names:
    /// `[[config, rhai], [java]]`. Every variant is in one of them. Without this key variants are
    /// together unless they use so much processor time that they would crowd each other, which the
    /// first round shows.
    #[schemars(length(min = 1))]
    pub(crate) groups: Option<At<GroupsFile>>,
    /// Side by side, in an open loop: where systems run that may use one core at most (`limits: {cpus: 1}`
    /// or less). `one-core`: each on one core, which is the same for all variants, unless the cores turn
    /// out too narrow for that; differences no longer contain where the scheduler happened to put a
    /// process. `free`: wherever the scheduler puts them.
    /// A system with `pin`, `replicas` or `shared` is left as it is.
    #[schemars(extend("default" = "one-core"))]
    pub(crate) placement: Option<PlacementFile>,
    /// How often every variant is measured, in shuffled order. Statistics are over rounds: fewer
    /// than 6 can show no difference with 95 % confidence.
    #[schemars(range(min = 1), extend("default" = default::ROUNDS))]
    pub(crate) rounds: Option<u32>,
    /// How many pods send the load where the lab is measured in a cluster (`--on kubernetes`): each its
    /// shard of the plan, all at the same time. Elsewhere `weigh` itself sends all of it.
    #[schemars(range(min = 1, max = 100), extend("default" = 1))]
    pub(crate) generators: Option<u32>,
    /// Go on after these rounds until the interval of the difference is so narrow: `p99 ±2%` of the
    /// baseline's own value, or an amount, `p99 ±0.1ms`. `rounds` are the pilot then, at least 8,
    /// which predicts how many it takes. `gates` goes on for 6 to 24 rounds, until every gate holds or
    /// one is broken, and `rounds` say nothing.
    pub(crate) until: Option<Written<Goal>>,
    /// Measure no longer than this, counted from the first round on, whether or not `until` is
    /// reached.
    #[schemars(extend("default" = default::MAX_TIME))]
    pub(crate) max_time: Option<Written<LongerThanZero>>,
    /// Limits to keep, as `--gate` has them: `rhai p99 overhead < 0.2ms`, or without a variant one that
    /// every variant has to keep. Each is judged on the whole interval, and one that does not pass is
    /// exit code 4. `--gate` adds to them.
    #[serde(default)]
    pub(crate) gates: OneOrMany<At<Written<Gate>>>,
    /// Fixes the order of variants and the gaps of Poisson arrivals. Without it each run draws
    /// and records its own.
    pub(crate) seed: Option<u64>,
    /// The system that gets the load.
    #[schemars(required)]
    pub(crate) target: Option<At<Written<Name>>>,
    /// The programs that are built, started, watched and stopped, by name.
    #[schemars(required)]
    pub(crate) systems: Option<Table<Name, SystemFile>>,
    /// The setup the variants are compared with.
    #[schemars(with = "BaselineFile")]
    pub(crate) baseline: Option<BaselineFile>,
    /// The setups compared, in the order of the report. A lab without this key is one for
    /// `weigh pr`, which compares two revisions of what the baseline runs.
    #[schemars(length(min = 1))]
    pub(crate) variants: Option<Vec<At<VariantFile>>>,
    /// What every answer must look like, in the proof before the load and during it. A variant
    /// with one wrong answer has no number.
    #[serde(default)]
    pub(crate) expect: ExpectFile,
    /// What a variant must be seen to do besides answering as `expect` says, after every start of its
    /// systems; what other systems saw of it, in every round. A variant that does not has no number,
    /// and its row says what was seen.
    #[serde(default)]
    pub(crate) proof: Vec<At<ProofFile>>,
}

/// How requests arrive: `connections` (closed loop: each connection sends its next request when its
/// last answer is complete), `rate` or `phases` (open loop: requests leave by plan, and latency
/// counts from the planned time), `capacity` (open loop at one rate after the other), or `sweep` (several
/// rates, or numbers of connections). Give exactly one of the five, and say when it ends with `duration`, `count` or both; phases have durations of
/// their own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "load")]
pub(crate) struct LoadFile {
    /// Closed loop with this many connections.
    #[schemars(range(min = 1))]
    pub(crate) connections: Option<At<u32>>,
    /// Open loop at this rate. With `auto` the run chooses it: two short loads before the first round show
    /// the latency and the processor time of each variant. The rate is then at most 100/s and keeps the
    /// systems below a fifth of the cores. Without `duration` the run chooses the length of a round too.
    /// The report prints the choice and its reason.
    pub(crate) rate: Option<At<Written<LoadRate>>>,
    /// Open loop in phases, one after the other.
    #[schemars(length(min = 1))]
    pub(crate) phases: Option<At<Vec<PhaseFile>>>,
    /// The highest rate that is sustained, looked for anew in every round. It decides the verdict,
    /// and all other figures are those of the load at that rate.
    pub(crate) capacity: Option<At<CapacityFile>>,
    /// Several loads, 2 to 16: rates of an open loop (`[100/s, 400/s]`) or connections of a closed one
    /// (`[1, 8, 64]`). The lab is measured at each, in an order drawn from the seed, and the answer is what
    /// a request pays by load. Each level has a recording of its own.
    // More make a run of hours and a picture that is hard to read.
    #[schemars(length(min = 2, max = 16))]
    pub(crate) sweep: Option<At<Vec<At<Verbatim<Level>>>>>,
    /// The gaps between requests of an open loop: equal, or random as independent users make them.
    #[schemars(extend("default" = "uniform"))]
    pub(crate) arrival: Option<At<ArrivalFile>>,
    /// Stop sending after this long, per variant and round.
    pub(crate) duration: Option<At<Written<LongerThanZero>>>,
    /// Stop sending after this many requests, per variant and round.
    #[schemars(range(min = 1))]
    pub(crate) count: Option<At<u64>>,
    /// Closed loop side by side: about how long one variant has the load before the next one has it, at
    /// least 50 ms. The first 30 ms, of a short slice its first third, do not count, so a shorter
    /// slice wastes more; but each slice has a luck of its own, however long it is, so many short ones
    /// say more than few long ones.
    #[schemars(extend("default" = default::SLICE))]
    pub(crate) slice: Option<At<Written<LongerThanZero>>>,
    /// What is sent, in rotation: files (`queries/*.json`; the `*` stands in the name of the file
    /// only), requests written here, or a list of both. A `.json` file is the body of a request, a
    /// `.graphql` file is its query. Without it, one request without a body goes to `path`.
    ///
    /// In paths, headers and bodies, `{{name}}` is the name of the variant, `{{setting}}` a lab-wide
    /// setting, `{{system.setting}}` that of a system, and `{{column}}` a value of `data`;
    /// `{{index}}` is the number of the request from 0, and `{{random:1..9}}` a number drawn for it.
    /// In `json` and `variables`, a text that is nothing but one of these becomes a number, `true` or
    /// `false` where all its values are such.
    #[serde(default)]
    pub(crate) requests: OneOrMany<At<RequestEntry>>,
    /// Sent once after each start of the systems, in order, before the proof and everything else: as an
    /// operation is registered that later requests only name. A wrong answer is a failed proof. These
    /// are in no figure, and no proof counts them. Behind a balancer each reaches one instance.
    #[serde(default)]
    pub(crate) prepare: OneOrMany<At<RequestEntry>>,
    /// Instead of `requests`: requests that follow one another, each after the answer to the one
    /// before. In a closed loop every connection takes one iteration after the other; in an open loop an
    /// iteration begins at each planned time. `count` counts iterations, and a rate is one of iterations.
    pub(crate) scenario: Option<At<Vec<At<StepFile>>>>,
    /// Values that differ from request to request, for `{{column}}` in what is sent: a file (CSV
    /// below a header row, or one JSON object a line), or a mapping that says more. All requests of
    /// one iteration of a scenario have the same.
    pub(crate) data: Option<At<DataEntry>>,
    /// The method of requests that name none: by default `POST` with a body and `GET` without.
    pub(crate) method: Option<Written<Method>>,
    /// The path of requests that name none.
    #[schemars(extend("default" = default::PATH))]
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// Headers of every request. A request's own header of the same name wins. JSON bodies have
    /// `Content-Type: application/json` unless told otherwise.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// How long a request may take before it counts as failed.
    #[schemars(extend("default" = default::TIMEOUT))]
    pub(crate) timeout: Option<Written<LongerThanZero>>,
    /// Whether connections are used again, or opened anew for every request.
    #[schemars(extend("default" = "on"))]
    pub(crate) keep_alive: Option<Switch>,
    /// Threads of the generator.
    #[schemars(range(min = 1), extend("default" = default::THREADS))]
    pub(crate) threads: Option<At<u32>>,
    /// Most connections of an open loop. A request that is due while all are busy waits, and the
    /// wait counts.
    #[schemars(range(min = 1), extend("default" = default::CONNECTIONS_MAX))]
    pub(crate) connections_max: Option<At<u32>>,
    /// Speak HTTP/2 with the target: with `scheme: https` it must offer that by ALPN, in the clear it
    /// must know it without asking. It is never negotiated down.
    #[schemars(extend("default" = "off"))]
    pub(crate) http2: Option<At<Switch>>,
    /// Requests under way at once on each HTTP/2 connection, fewer where the target allows fewer. A
    /// closed loop has `connections` times `streams` requests under way.
    #[schemars(range(min = 1, max = 1000), extend("default" = default::STREAMS))]
    pub(crate) streams: Option<At<u32>>,
    /// A PEM file of the authorities that may sign the target's certificate; no others are trusted. By
    /// default those that this machine trusts. The certificate is one for `127.0.0.1`.
    pub(crate) ca: Option<At<String>>,
    /// Accept any certificate of the target.
    #[schemars(extend("default" = "off"))]
    pub(crate) insecure: Option<At<Switch>>,
    /// Open loop: how much of the time a thread may spin so that requests leave on time, in percent.
    /// More is more punctual where cores are free, and less so where they are shared; 0 never spins.
    #[schemars(range(min = 0, max = 100), extend("default" = default::SPIN_PERCENT))]
    pub(crate) spin: Option<At<u32>>,
    /// Open loop: ask the system for real-time priority, so that no ordinary program delays a send.
    /// Unless systems are pinned to other cores, a thread has it only while it uses little of its own.
    /// Where it is refused (it wants root, `CAP_SYS_NICE` or `ulimit -r`), recordings say so.
    #[schemars(extend("default" = "on"))]
    pub(crate) realtime: Option<At<Switch>>,
    /// Ask the system to keep idle cores awake, so that waking up takes no part in a latency.
    /// Where it is refused (it wants root), recordings say so.
    #[schemars(extend("default" = "on"))]
    pub(crate) awake: Option<At<Switch>>,
    /// Ask the system to let all systems and the generator go before other programs on the same
    /// cores, such as a compiler in another terminal. What they have of the cores among each other
    /// stays as it is, so it is only asked for where all systems have a `run`. Where it is refused (it
    /// wants root or `CAP_SYS_NICE`) or the kernel does not weigh programs by session, recordings say so.
    #[schemars(extend("default" = "on"))]
    pub(crate) precedence: Option<At<Switch>>,
}

/// Load after a start, until a target gets no faster. It is sent in windows of a quarter of a second,
/// and judged in steps of at least 250 answers: when three in a row are on average at most 5 % faster
/// than the best before them, it ends; of a target that has become faster by half, six. A target with a
/// system that takes more than 100 ms of processor time to start, as one that compiles itself does, has
/// at least ten steps.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "settle")]
pub(crate) struct SettleFile {
    /// Connections, each of which sends its next request when its last answer is complete.
    #[schemars(range(min = 1), extend("default" = default::SETTLE_CONNECTIONS))]
    pub(crate) connections: Option<u32>,
    /// The longest that it takes.
    #[schemars(extend("default" = default::SETTLE_WITHIN))]
    pub(crate) within: Option<Written<LongerThanZero>>,
}

/// A stretch of an open loop.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "phase")]
pub(crate) struct PhaseFile {
    /// How long it takes.
    #[schemars(required)]
    pub(crate) duration: Option<Written<LongerThanZero>>,
    /// The rate at its start.
    #[schemars(required)]
    pub(crate) rate: Option<Written<Rate>>,
    /// The rate at its end, reached in a straight line. By default the same as at its start.
    pub(crate) to: Option<Written<Rate>>,
}

/// The law of the gaps between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum ArrivalFile {
    Uniform,
    Poisson,
}

/// Where systems run that may use one core at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum PlacementFile {
    OneCore,
    Free,
}

/// How a round measures its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum OrderFile {
    SideBySide,
    InTurn,
}
