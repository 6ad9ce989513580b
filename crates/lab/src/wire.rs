//! Lab files as a person may type them.
//!
//! The doc comments here are the manual: they become the descriptions of the JSON Schema and, from
//! there, `docs/labs.md`. A key is defined once, here; its form is a type of `formats`.
//!
//! Every field is optional for serde, because the structural check has cut out what was wrong and
//! reported it. `required` is for the schema, which is what that check reads.

use std::time::Duration;

use model::{Rate, Until};
use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, Json, OneOrMany};

use crate::fields::{Table, TextOr};
use crate::formats::{
    HeaderName, HeaderValue, Method, Name, Pointer, RequestPath, Title, UrlPath, VariableName,
    Verbatim, Written,
};
use crate::quantities::{Bytes, Cores, Limit, LongerThanZero, PositiveRate};
use crate::template::{Command, Template};

mod capacity;
mod proof;
mod scenario;
mod setting;
mod variant;

pub(crate) use capacity::CapacityFile;
pub(crate) use proof::{DistinctFile, HeaderValuesFile, OfFile, ProofExpectFile, ProofFile};
pub(crate) use scenario::{CaptureFile, DataEntry, DataFile, RowOrderFile, ScenarioFile, StepFile};
pub(crate) use setting::SettingFile;
pub(crate) use variant::{BaselineFile, Factors, ForFile, SentFile, VariantFile, With};

/// Keys of a lab that an included file cannot have. All of them are required.
pub(crate) const LAB_ONLY: [&str; 3] = ["question", "baseline", "variants"];

/// What a lab says by leaving a key out.
pub(crate) mod default {
    pub(crate) const TIMEOUT: &str = "5s";
    pub(crate) const SLICE: &str = "100ms";
    pub(crate) const THREADS: u32 = 1;
    pub(crate) const CONNECTIONS_MAX: u32 = 1000;
    pub(crate) const PATH: &str = "/";
    pub(crate) const WARMUP: &str = "1s";
    pub(crate) const SETTLE_CONNECTIONS: u32 = 4;
    pub(crate) const SETTLE_WITHIN: &str = "10s";
    pub(crate) const ROUNDS: u32 = 10;
    pub(crate) const MAX_TIME: &str = "1h";
    pub(crate) const READY_WITHIN: &str = "10s";
    pub(crate) const READY_STATUS: u16 = 200;
    pub(crate) const WEIGHT: u32 = 1;
    pub(crate) const STREAMS: u32 = 1;
    pub(crate) const SPIN_PERCENT: u32 = 25;
    pub(crate) const STEP_PERCENT: f64 = 10.0;
    pub(crate) const TIMES: u32 = 1;
}

/// Settings by name, each one value once choices are made ([`crate::choices`]).
pub(crate) type Settings = Table<Name, At<Verbatim<Template>>>;
/// Settings as they are written.
type SettingsFile = Table<Name, SettingFile>;
/// Headers by name.
pub(crate) type Headers = Table<HeaderName, At<Verbatim<HeaderValue>>>;

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
    /// How often every variant is measured, in shuffled order. Statistics are over rounds: fewer
    /// than 6 can show no difference with 95 % confidence.
    #[schemars(range(min = 1), extend("default" = default::ROUNDS))]
    pub(crate) rounds: Option<u32>,
    /// Go on after these rounds until the interval of the difference is so narrow: `p99 ±2%` of the
    /// baseline's own value, or an amount, `p99 ±0.1ms`. `rounds` are the pilot then, at least 8,
    /// which predicts how many it takes.
    pub(crate) until: Option<Written<Until>>,
    /// Measure no longer than this, counted from the first round on, whether or not `until` is
    /// reached.
    #[schemars(extend("default" = default::MAX_TIME))]
    pub(crate) max_time: Option<Written<LongerThanZero>>,
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
    /// The setups compared, in the order of the report.
    #[schemars(required, length(min = 1))]
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
/// counts from the planned time), or `capacity` (open loop at one rate after the other). Give exactly
/// one of the four, and say when it ends with `duration`, `count` or both; phases have durations of
/// their own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "load")]
pub(crate) struct LoadFile {
    /// Closed loop with this many connections.
    #[schemars(range(min = 1))]
    pub(crate) connections: Option<At<u32>>,
    /// Open loop at this rate.
    pub(crate) rate: Option<At<Written<PositiveRate>>>,
    /// Open loop in phases, one after the other.
    #[schemars(length(min = 1))]
    pub(crate) phases: Option<At<Vec<PhaseFile>>>,
    /// The highest rate that is sustained, looked for anew in every round. It decides the verdict,
    /// and all other figures are those of the load at that rate.
    pub(crate) capacity: Option<At<CapacityFile>>,
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
    /// Instead of `requests`: requests that follow one another, each after the answer to the one
    /// before. In a closed loop every connection takes one pass after the other; in an open loop a
    /// pass begins at each planned time. `count` counts passes, and a rate is one of passes.
    pub(crate) scenario: Option<At<Vec<At<StepFile>>>>,
    /// Values that differ from request to request, for `{{column}}` in what is sent: a file (CSV
    /// below a header row, or one JSON object a line), or a mapping that says more. All requests of
    /// one pass through a scenario have the same.
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
}

/// Load after a start, until a target gets no faster. It is sent in windows of half a second; when
/// three in a row have answered at most 2 % more requests than the best before them, it ends.
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

/// How a round measures its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum OrderFile {
    SideBySide,
    InTurn,
}

/// A choice between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum Switch {
    On,
    Off,
}

/// The pattern of files of requests, or a request written out.
pub(crate) type RequestEntry = TextOr<String, RequestFile>;

/// A request written out in the lab. It has at most one of `body`, `json` and `query`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "request")]
pub(crate) struct RequestFile {
    /// How reports call it. By default its path.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// Its method. By default `load.method`, else `POST` with a body and `GET` without.
    pub(crate) method: Option<Written<Method>>,
    /// Its path and query. By default `load.path`.
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// Its headers, besides those of `load.headers`.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// A file whose bytes are the body.
    pub(crate) body: Option<At<String>>,
    /// A body in JSON, written as YAML.
    pub(crate) json: Option<At<Json>>,
    /// A GraphQL query; the body becomes `{"query": …, "variables": …}`.
    pub(crate) query: Option<At<String>>,
    /// The variables of `query`.
    pub(crate) variables: Option<At<Json>>,
    /// What its answers must look like, instead of the lab's `expect`.
    pub(crate) expect: Option<ExpectFile>,
    /// How often it is sent for each time a request of weight 1 is.
    #[schemars(range(min = 1, max = 1000), extend("default" = default::WEIGHT))]
    pub(crate) weight: Option<u32>,
}

/// A program that the lab builds, starts, watches and stops. Ports are given out by `weigh`, so
/// `run` or `env` must hand it `{{addr}}`, `{{port}}` or `{{url}}`; or `{{socket}}`, the path of a
/// Unix socket, and then it is found there.
///
/// In `build`, `run`, `env`, `version` and in settings, `{{setting}}` is a setting of the system or
/// of the lab, `{{addr}}`, `{{port}}`, `{{url}}` and `{{socket}}` are where it listens, `{{name}}` is
/// the name of the variant, and `{{other.setting}}`, `{{other.addr}}`, `{{other.port}}`,
/// `{{other.url}}` and `{{other.socket}}` are those of another system. Of several instances,
/// `{{instance}}` is the number, from 1. Addresses and this number are known only while the system
/// runs, so `build` and `version` cannot have them. Commands are split as a shell would, but no shell runs them; a value
/// with spaces stays one argument.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "system")]
pub(crate) struct SystemFile {
    /// Its own values for templates. A variant changes them `with: {system.setting: value}`.
    #[serde(default)]
    #[schemars(with = "SettingsFile")]
    pub(crate) settings: Settings,
    /// The folder its commands run in, relative to the file that says so. By default the folder of
    /// the file that says `run`.
    pub(crate) folder: Option<At<String>>,
    /// Commands that build it, run in order before anything starts. Where one ends with exit code
    /// 127, as a shell does when a command is not there, the variants that need this system become
    /// rows with its last words.
    #[serde(default)]
    pub(crate) build: OneOrMany<At<Written<Command>>>,
    /// The command that runs it, in the foreground until it is told to stop. Every system has one.
    pub(crate) run: Option<At<Written<Command>>>,
    /// When it is ready: `listening` (it accepts connections), or a path that must answer.
    #[schemars(extend("default" = "listening"))]
    pub(crate) ready: Option<At<ReadyFile>>,
    /// Variables added to its environment; it has those of `weigh` besides. Those without an address
    /// are there for `build` and `version` too.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// How it is spoken to: in the clear, or over TLS. `{{url}}` begins with it, and the probe of
    /// `ready`, the load and proofs keep to it.
    #[schemars(extend("default" = "http"))]
    pub(crate) scheme: Option<SchemeFile>,
    /// What it may use of the machine. The report says whether the limits could be enforced.
    #[serde(default)]
    pub(crate) limits: LimitsFile,
    /// The cores it may run on, from 0. It may use all of them by default.
    pub(crate) pin: Option<At<OneOrMany<At<u32>>>>,
    /// Programs that must be on PATH. Where one is missing, the variants that need this system
    /// become rows that say so.
    #[serde(default)]
    pub(crate) needs: OneOrMany<Written<Title>>,
    /// A command whose first line of output is recorded as its version.
    pub(crate) version: Option<At<Written<Command>>>,
    /// How many instances of it run, 1 to 64, or a template that says so. Each has a port of its own,
    /// and before them stands a balancer, HAProxy, at the address that the load and other systems
    /// know. The balancer is a system of its own, `SYSTEM-balancer`, with the cores of `pin`; each
    /// instance has the `limits`. How many requests each answered is in the report. Without this key
    /// the system listens at its address itself.
    pub(crate) replicas: Option<At<Verbatim<Template>>>,
    /// How the balancer chooses an instance: `leastconn` (the default), `roundrobin`, or a template
    /// that says so. With `none` there is no balancer, and no more than one instance.
    pub(crate) balance: Option<At<Verbatim<Template>>>,
    /// Side by side: whether one process of it serves all variants that are up together, as a database
    /// would, instead of one for each. It must be the same for all variants, may need no system that is
    /// not shared, and no proof may count requests on it. Its processor time and memory are in no
    /// variant's figures. In turn it makes no difference.
    #[schemars(extend("default" = false))]
    pub(crate) shared: Option<At<bool>>,
    /// Systems that must be ready before it starts. A template like `{{other.url}}` implies it.
    #[serde(default)]
    pub(crate) after: OneOrMany<At<Written<Name>>>,
}

/// How a system is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum SchemeFile {
    Http,
    Https,
}

/// When a system is ready.
pub(crate) type ReadyFile = TextOr<Listening, ReadyProbe>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum Listening {
    Listening,
}

/// When a system is ready.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "ready")]
pub(crate) struct ReadyProbe {
    /// It answers a `GET` of this path. Without it, it only has to accept connections.
    pub(crate) path: Option<Written<UrlPath>>,
    /// With this status.
    #[schemars(range(min = 100, max = 599), extend("default" = default::READY_STATUS))]
    pub(crate) status: Option<At<u16>>,
    /// How long that may take from its start. After that the variants that need it become rows
    /// that say so.
    #[schemars(extend("default" = default::READY_WITHIN))]
    pub(crate) within: Option<Written<LongerThanZero>>,
}

/// What a system may use of the machine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "limits")]
pub(crate) struct LimitsFile {
    /// Cores, also parts of one: `0.25` is Kubernetes' `250m`. `none` is no limit, and `{{setting}}`
    /// makes it differ from variant to variant.
    pub(crate) cpus: Option<At<Verbatim<Limit<Cores>>>>,
    /// Memory, or `none`, or `{{setting}}`.
    pub(crate) memory: Option<At<Verbatim<Limit<Bytes>>>>,
}

/// What every answer must look like to count as passed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "expect")]
pub(crate) struct ExpectFile {
    /// Exactly this status. By default any from 200 to 299.
    #[schemars(range(min = 100, max = 599))]
    pub(crate) status: Option<u16>,
    /// The body is a JSON object without a top-level `errors`.
    pub(crate) graphql: Option<GraphqlFile>,
    /// The body equals, byte for byte, the one that the baseline gave to the same request in its
    /// proof.
    pub(crate) same_as: Option<SameAsFile>,
    /// Headers that the answer must carry with exactly these values, in which `{{setting}}` and
    /// `{{name}}` are filled in.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// A file with the body, byte for byte.
    pub(crate) body: Option<At<String>>,
    /// What comparisons of bodies leave out, as JSON pointers: members that differ by nature, such
    /// as timings. Bodies are then right when they are the same bytes, or the same JSON without
    /// these members.
    #[serde(default)]
    pub(crate) ignore: OneOrMany<Written<Pointer>>,
}

/// What is asked of a GraphQL answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum GraphqlFile {
    NoErrors,
}

/// Whose answers are the measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum SameAsFile {
    Baseline,
}
