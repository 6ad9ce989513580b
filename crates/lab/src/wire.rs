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
use crate::formats::{Method, Name, RequestPath, SettingPath, Title, Verbatim, Written};
use crate::fraction::Fraction;
use crate::level::Level;
use crate::quantities::{LoadRate, LongerThanZero};

mod capacity;
mod client;
mod compose;
mod container;
pub(crate) mod default;
mod grpc;
mod manifests;
mod parts;
mod pods;
mod proof;
mod request;
mod scenario;
mod setting;
mod stream;
mod system;
mod variant;
mod websocket;

pub(crate) use capacity::CapacityFile;
pub(crate) use client::ClientFile;
pub(crate) use compose::{ComposeFile, ServiceFile};
pub(crate) use container::{ImageBuildFile, NetworkFile, PullFile};
pub(crate) use grpc::{CompressionFile, GrpcFile, GrpcSendFile, RpcProtocolFile};
pub(crate) use manifests::{ManifestsFile, WorkloadFile};
pub(crate) use parts::{Headers, ResumptionEntry, Switch};
pub(crate) use pods::{PodFile, PodsFile};
pub(crate) use proof::{
    DistinctFile, HeaderValuesFile, OfName, OfValues, ProofExpectFile, ProofFile,
};
pub(crate) use request::{ExpectFile, GraphqlFile, RequestEntry, RequestFile, SameAsFile};
pub(crate) use scenario::{CaptureFile, DataEntry, DataFile, RowOrderFile, ScenarioFile, StepFile};
pub(crate) use setting::{Settings, SettingsFile};
pub(crate) use stream::{EachFile, FramingFile, StreamEndsFile, StreamEntry, StreamFile};
pub(crate) use system::{
    AttachFile, ConfigFileSource, LimitsFile, ReadyFile, ReadyState, SystemFile,
};
pub(crate) use variant::{BaselineFile, Factors, ForFile, SentFile, VariantFile, With};
pub(crate) use websocket::{MessageFile, SubscribeFile, WebSocketFile};

/// Keys of a lab that an included file cannot have. The first two are required, but `factors` make a
/// baseline. A lab without variants compares two revisions.
pub(crate) const LAB_ONLY: [&str; 5] = ["question", "baseline", "variants", "factors", "fraction"];

/// Levels by setting.
pub(crate) type LevelsFile = Table<SettingPath, Vec<At<Verbatim<Title>>>>;

/// Names of variants, group by group.
pub(crate) type GroupsFile = Vec<At<Vec<At<Verbatim<Title>>>>>;

/// A lab asks one question of one target: what does each variant cost, compared with the baseline?
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "lab")]
pub(crate) struct LabFile {
    /// The question that the lab answers. It is the heading of the report.
    #[schemars(required)]
    pub(crate) question: Option<Written<Title>>,
    /// Files that this file builds on, relative to it. They can contain every key except `question`,
    /// `baseline`, `variants`, `factors` and `fraction`. The files are merged key by key. If several
    /// files contain a key, the including file wins. A later include wins over an earlier include.
    #[serde(default)]
    #[expect(dead_code, reason = "files are merged before this struct is read")]
    pub(crate) include: OneOrMany<At<String>>,
    /// Lab-wide values for templates: `{{setting}}` in any system. A value can also be a mapping of
    /// named choices: `database: {sqlite: …, postgres: …}`. The first choice is the default. An
    /// including lab, the `with` of a variant or `weigh lab --with database=postgres` selects another
    /// choice.
    #[serde(default)]
    #[schemars(with = "SettingsFile")]
    pub(crate) settings: Settings,
    /// The settings of a quick run (`weigh lab --quick`), in the form of a variant's `with`. An example
    /// is `{profile: release}`, if the usual value takes minutes to build. `--with` and a variant's own
    /// `with` win over this key.
    #[serde(default)]
    pub(crate) quick: With,
    /// The arrival of requests, and their content. All variants have the same arrival. The content can
    /// contain `{{setting}}`, and a variant's own `load` can change it.
    #[schemars(with = "LoadFile")]
    pub(crate) load: Option<LoadFile>,
    /// The duration of the load before each measurement. This load fills caches and pools. Its results
    /// are discarded.
    #[schemars(extend("default" = default::WARMUP))]
    pub(crate) warmup: Option<Written<Duration>>,
    /// Load after each start of the systems, before the first warm-up. Its results are discarded. It is
    /// as fast as a few connections allow and lasts until the target gets no faster. Use it for systems
    /// that compile themselves while they run.
    pub(crate) settle: Option<SettleFile>,
    /// The order in which a round measures its variants. With `side-by-side`, all variants are up at
    /// once. At every due time, each variant receives one request, in a random order. A disturbance of
    /// the machine therefore affects all variants equally, and differences are far more precise.
    /// Absolute latencies are the latencies of systems with neighbors. A closed loop moves from variant
    /// to variant in slices of time (`slice`). The searches of a `capacity` advance rate by rate, in
    /// shuffled order. With `in-turn`, `weigh` measures one variant after another, for absolute
    /// figures. A scenario and a closed loop that ends by `count` are always measured in turn. A closed
    /// loop of systems with a processor limit is also measured in turn, unless its `slice` is at least
    /// 2 s. Variants that cannot be up together are measured in turn for one of four reasons. The
    /// machine has too little memory, two variants listen on the same fixed port, or there are more
    /// instances (`replicas`) than cores. The fourth reason is that a variant and its baseline together
    /// use most of the cores. The report then contains the reason.
    #[schemars(extend("default" = "side-by-side"))]
    pub(crate) order: Option<OrderFile>,
    /// Groups of variants that are up together, for measurements side by side. Each group is a list of
    /// names: `[[config, rhai], [java]]`. `weigh` adds the baseline to each group. Every variant
    /// belongs to one group. Without this key, variants are together unless their processor time shows
    /// that they would crowd each other. The first round measures it.
    #[schemars(length(min = 1))]
    pub(crate) groups: Option<At<GroupsFile>>,
    /// Variants that build on each other, in order: `[direct, envoy, "+access log", "+mTLS"]`. The first can
    /// be the baseline. The report then has a table with the cost of each step, and of all steps together.
    /// The intervals of this table hold together.
    #[schemars(length(min = 2))]
    pub(crate) ladder: Option<At<Vec<At<Verbatim<Title>>>>>,
    /// Settings that the variants combine, each with two levels: `{log: [off, on], server.tls: [off,
    /// on]}`. The lab has one variant for each combination, 32 at most. A variant is named by its
    /// factors at the second level: `log on, tls on`. The factor `target` chooses the system that
    /// receives the load: `target: [service, proxy]`. The baseline has all first levels, and
    /// `baseline: {name: …}` can name it. The report has the effect of each factor and the interactions
    /// of factors. Each of these figures uses the requests of all variants. `variants` can add setups
    /// outside of the design.
    pub(crate) factors: Option<At<LevelsFile>>,
    /// The share of the combinations of `factors` that the lab measures: `1/2`, `1/4` and so on. Some
    /// effects then cannot be told apart. `weigh check` and the report name them.
    pub(crate) fraction: Option<At<Written<Fraction>>>,
    /// The placement of systems that can use one core at most (`limits: {cpus: 1}` or less). It applies
    /// to an open loop, side by side. With `one-core`, each system runs on one core, which is the same
    /// for all variants. Differences then no longer contain the scheduler's choice of a core. If the
    /// cores turn out too narrow, the scheduler places the systems. With `free`, the scheduler always
    /// places the systems. A system with `pin`, `replicas` or `shared` keeps its own placement.
    #[schemars(extend("default" = "one-core"))]
    pub(crate) placement: Option<PlacementFile>,
    /// The number of measurements of every variant, in shuffled order. Rounds are the unit of
    /// statistics. Fewer than 6 rounds can show no difference with 95 % confidence.
    #[schemars(range(min = 1), extend("default" = default::ROUNDS))]
    pub(crate) rounds: Option<u32>,
    /// The number of pods that send the load if the lab is measured in a cluster (`--on kubernetes`).
    /// Each pod sends its shard of the plan, all at the same time. Elsewhere `weigh` itself sends the
    /// whole load.
    #[schemars(range(min = 1, max = 100), extend("default" = 1))]
    pub(crate) generators: Option<u32>,
    /// The settings of the pods that `weigh` creates in a cluster (`--on kubernetes`). Elsewhere they have no
    /// effect.
    #[serde(default)]
    pub(crate) pods: PodsFile,
    /// Keep measuring until the interval of the difference is at most this wide. The width is a share
    /// of the baseline's own value, `p99 ±2%`, or an amount, `p99 ±0.1ms`. `rounds` is then the length
    /// of the pilot, at least 8, which predicts the required number of rounds. With `gates`, the run
    /// continues for 6 to 24 rounds, until every gate holds or one gate is broken. `rounds` then has no
    /// effect.
    pub(crate) until: Option<Written<Goal>>,
    /// The longest time of the measurement, counted from the start of the first round. It applies even
    /// if `until` is not reached.
    #[schemars(extend("default" = default::MAX_TIME))]
    pub(crate) max_time: Option<Written<LongerThanZero>>,
    /// Limits to keep, in the form of `--gate`: `rhai p99 overhead < 0.2ms`. A limit without a variant
    /// applies to every variant. `weigh` judges each limit on the whole interval. If a limit does not
    /// pass, the exit code is 4. `--gate` adds limits to this list.
    #[serde(default)]
    pub(crate) gates: OneOrMany<At<Written<Gate>>>,
    /// The seed for the order of variants and the gaps of Poisson arrivals. Without this key, each run
    /// draws and records its own seed.
    pub(crate) seed: Option<u64>,
    /// The system that receives the load.
    #[schemars(required)]
    pub(crate) target: Option<At<Written<Name>>>,
    /// The programs that `weigh` builds, starts, watches and stops, by name.
    #[schemars(required)]
    pub(crate) systems: Option<Table<Name, SystemFile>>,
    /// The setup that the variants are compared with. A lab with `factors` needs no baseline.
    #[schemars(with = "BaselineFile")]
    pub(crate) baseline: Option<BaselineFile>,
    /// The setups to compare, in the order of the report. A lab without this key is a lab for
    /// `weigh pr`, which compares two revisions of the baseline's programs.
    #[schemars(length(min = 1))]
    pub(crate) variants: Option<Vec<At<VariantFile>>>,
    /// The requirements on every answer, in the proof before the load and during the load. A variant
    /// with one wrong answer has no number.
    #[serde(default)]
    pub(crate) expect: ExpectFile,
    /// Evidence that a variant does its work, in addition to the answers that `expect` requires.
    /// `weigh` checks the evidence after every start of the systems. It checks the observations of
    /// other systems in every round. A variant without the evidence has no number, and its row shows
    /// the observations.
    #[serde(default)]
    pub(crate) proof: Vec<At<ProofFile>>,
}

/// The arrival of requests, and their content. `connections` makes a closed loop. Each connection then
/// sends its next request when its last answer is complete. `rate` or `phases` makes an open loop.
/// Requests then leave by plan, and latency counts from the planned time. `capacity` makes an open loop
/// at one rate after another. `sweep` uses several rates, or several numbers of connections. Give
/// exactly one of these five keys. Define the end of the load with `duration`, `count` or both. Phases
/// have durations of their own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "load")]
pub(crate) struct LoadFile {
    /// The number of connections of a closed loop.
    #[schemars(range(min = 1))]
    pub(crate) connections: Option<At<u32>>,
    /// The rate of an open loop. With `auto`, the run chooses the rate. Two short loads before the
    /// first round show the latency and the processor time of each variant. The rate is then at most
    /// 100/s and keeps the systems below a fifth of the cores. Without `duration`, the run also chooses
    /// the length of a round. The report prints the choice and its reason.
    pub(crate) rate: Option<At<Written<LoadRate>>>,
    /// The phases of an open loop, one after another.
    #[schemars(length(min = 1))]
    pub(crate) phases: Option<At<Vec<PhaseFile>>>,
    /// A search for the highest sustained rate, repeated in every round. This rate decides the verdict.
    /// All other figures describe the load at this rate.
    pub(crate) capacity: Option<At<CapacityFile>>,
    /// Several loads, 2 to 16. They are rates of an open loop (`[100/s, 400/s]`) or connections of a
    /// closed loop (`[1, 8, 64]`). The lab is measured at each load, in an order drawn from the seed.
    /// The result is the cost of a request at each load. Each level has a recording of its own.
    // More make a run of hours and a picture that is hard to read.
    #[schemars(length(min = 2, max = 16))]
    pub(crate) sweep: Option<At<Vec<At<Verbatim<Level>>>>>,
    /// The gaps between requests of an open loop. They are equal, or random like the gaps of
    /// independent users.
    #[schemars(extend("default" = "uniform"))]
    pub(crate) arrival: Option<At<ArrivalFile>>,
    /// The time after which sending stops, per variant and round.
    pub(crate) duration: Option<At<Written<LongerThanZero>>>,
    /// The number of requests after which sending stops, per variant and round.
    #[schemars(range(min = 1))]
    pub(crate) count: Option<At<u64>>,
    /// The approximate time that one variant has the load before the next variant, in a closed loop
    /// side by side. It is at least 50 ms. The first 30 ms of a slice do not count. In a short slice,
    /// its first third does not count. If answers take long, the uncounted part is at least two
    /// latencies, and slices become longer. A shorter slice therefore wastes more time. But each slice
    /// has random luck of its own, regardless of its length. Many short slices therefore give more
    /// information than a few long slices.
    #[schemars(extend("default" = default::SLICE))]
    pub(crate) slice: Option<At<Written<LongerThanZero>>>,
    /// The requests, in rotation. They are files, requests written here, or a list of both. In a
    /// pattern such as `queries/*.json`, the `*` is allowed in the name of the file only. A `.json`
    /// file is the body of a request. A `.graphql` file is its query. Without this key, one request
    /// without a body goes to `path`.
    ///
    /// Paths, headers and bodies can contain templates. `{{name}}` is the name of the variant.
    /// `{{setting}}` is a lab-wide setting, and `{{system.setting}}` is a setting of a system.
    /// `{{column}}` is a value of `data`. `{{index}}` is the number of the request from 0, and
    /// `{{random:1..9}}` is a number drawn for it. A text in `json` or `variables` can consist of
    /// exactly one template. It then becomes a number, `true` or `false` if all values of the template
    /// have this form.
    ///
    /// A value of `data` or of an answer can have a notation before its name. `{{escaped:column}}` is
    /// the value within the quotes of a JSON text. Templates in `json`, `variables` and queries have
    /// this notation without the word. `{{encoded:column}}` is the value percent-encoded, which every
    /// value in a path is. `{{raw:id}}` is the value unchanged in a path, for a value that is a part of a
    /// URL already, such as a `Location`. At the begin of a path, the value begins with `/`. A value with
    /// a space, a control character or another character that no path can contain makes the request
    /// wrong. `{{json:id}}` is a captured value as JSON. A number of the answer stays a number, and a text
    /// gets quotes.
    #[serde(default)]
    pub(crate) requests: OneOrMany<At<RequestEntry>>,
    /// Requests that are sent once after each start of the systems, in order, before the proof and
    /// everything else. They can register an operation that later requests only name. A wrong answer is
    /// a failed proof. These requests are in no figure, and no proof counts them. Behind a balancer,
    /// each request reaches one instance.
    #[serde(default)]
    pub(crate) prepare: OneOrMany<At<RequestEntry>>,
    /// Requests that follow one another, instead of `requests`. Each request starts after the answer to
    /// the previous request. In a closed loop, every connection runs one iteration after another. In an
    /// open loop, an iteration begins at each planned time. `count` counts iterations, and a rate is a
    /// rate of iterations.
    pub(crate) scenario: Option<At<Vec<At<StepFile>>>>,
    /// Values that differ from request to request, for `{{column}}` in requests. They are a file (CSV
    /// below a header row, or one JSON object per line) or a mapping with more keys. All requests of
    /// one iteration of a scenario have the same values.
    pub(crate) data: Option<At<DataEntry>>,
    /// The method of requests without a method. By default `POST` with a body and `GET` without a body.
    pub(crate) method: Option<Written<Method>>,
    /// The path of requests without a path.
    #[schemars(extend("default" = default::PATH))]
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// The headers of every request. A request's own header with the same name wins. JSON bodies have
    /// `Content-Type: application/json` by default.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// Answers are streams of events: `sse`, `lines`, `chunks` or `multipart`, or a mapping with more keys.
    /// The report then contains the time to the first event and the gaps between events.
    pub(crate) stream: Option<At<StreamEntry>>,
    /// The longest time of a request. A request that takes longer counts as failed.
    #[schemars(extend("default" = default::TIMEOUT))]
    pub(crate) timeout: Option<Written<LongerThanZero>>,
    /// The reuse of connections. With `off`, every request opens a new connection.
    #[schemars(extend("default" = "on"))]
    pub(crate) keep_alive: Option<Switch>,
    /// The number of threads of the generator.
    #[schemars(range(min = 1), extend("default" = default::THREADS))]
    pub(crate) threads: Option<At<u32>>,
    /// The largest number of connections of an open loop. A request that is due while all connections
    /// are busy waits, and the wait counts.
    #[schemars(range(min = 1), extend("default" = default::CONNECTIONS_MAX))]
    pub(crate) connections_max: Option<At<u32>>,
    /// Use HTTP/2 with the target. With `scheme: https`, the target must offer it by ALPN. In the
    /// clear, the target must support it without negotiation (prior knowledge). `weigh` never
    /// negotiates the version down. A variant can set it in its own `load`.
    #[schemars(extend("default" = "off"))]
    pub(crate) http2: Option<At<Switch>>,
    /// Use HTTP/3 with the target, over QUIC. It needs `scheme: https`. The target must listen for it on
    /// the UDP port with the number of its port. `weigh` never changes to another version. A variant can
    /// set it in its own `load`.
    #[schemars(extend("default" = "off"))]
    pub(crate) http3: Option<At<Switch>>,
    /// Handshakes of TLS with tickets of earlier connections. With `off`, every handshake is a full handshake. With
    /// `on`, a new connection uses a ticket of its predecessor, if the target sent one. With `0-rtt`, requests
    /// with a safe method, such as GET, also leave before the handshake is complete. It needs `http3: on`. It
    /// matters to new connections, such as with `keep-alive: off`. A variant can set it in its own `load`.
    #[schemars(extend("default" = "off"))]
    pub(crate) resumption: Option<At<ResumptionEntry>>,
    /// The number of requests under way at once on each HTTP/2 or HTTP/3 connection. It is lower if the target
    /// allows fewer. A closed loop has `connections` times `streams` requests under way.
    #[schemars(range(min = 1, max = 1000), extend("default" = default::STREAMS))]
    pub(crate) streams: Option<At<u32>>,
    /// A PEM file of the authorities that can sign the target's certificate. No other authorities are
    /// trusted. The default is the set of authorities that this machine trusts. The certificate must be
    /// valid for `127.0.0.1`, or for the host of a system's `url`. A build of a system can make the file.
    pub(crate) ca: Option<At<String>>,
    /// The certificate of the load. The load and all proofs send it to a target that requests one (mTLS).
    pub(crate) tls: Option<At<ClientFile>>,
    /// Accept any certificate of the target.
    #[schemars(extend("default" = "off"))]
    pub(crate) insecure: Option<At<Switch>>,
    /// The share of the time, in percent, that a thread can spin so that requests leave on time. It
    /// applies to an open loop. A larger share is more punctual if cores are free, and less punctual if
    /// cores are shared. With 0, a thread never spins.
    #[schemars(range(min = 0, max = 100), extend("default" = default::SPIN_PERCENT))]
    pub(crate) spin: Option<At<u32>>,
    /// Request real-time priority from the operating system, so that no ordinary program delays a send.
    /// It applies to an open loop. Unless systems are pinned to other cores, a thread has the priority
    /// only while it uses little of its own core. The priority requires root, `CAP_SYS_NICE` or
    /// `ulimit -r`. If the operating system refuses it, recordings contain the refusal.
    #[schemars(extend("default" = "on"))]
    pub(crate) realtime: Option<At<Switch>>,
    /// Request that the operating system keeps idle cores awake, so that no latency contains the time
    /// to wake up. The request requires root. If the operating system refuses it, recordings contain
    /// the refusal.
    #[schemars(extend("default" = "on"))]
    pub(crate) awake: Option<At<Switch>>,
    /// Request that the operating system prefers all systems and the generator to other programs on the
    /// same cores. An example of another program is a compiler in another terminal. The shares of the
    /// systems and the generator among each other do not change. `weigh` therefore sends this request
    /// only if all systems have a `run`. The request requires root or `CAP_SYS_NICE`. If it is refused,
    /// or the kernel does not weigh programs by session, recordings contain that.
    #[schemars(extend("default" = "on"))]
    pub(crate) precedence: Option<At<Switch>>,
}

/// Load after a start, until a target gets no faster. `weigh` sends it in windows of a quarter of a
/// second and judges it in steps of at least 250 answers. The load ends when three steps in a row are
/// on average at most 5 % faster than the best step before them. A target that has become faster by
/// half requires six such steps. A target has at least ten steps if one of its systems takes more than
/// 100 ms of processor time to start. Systems that compile themselves usually take that long.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "settle")]
pub(crate) struct SettleFile {
    /// The number of connections. Each connection sends its next request when its last answer is
    /// complete.
    #[schemars(range(min = 1), extend("default" = default::SETTLE_CONNECTIONS))]
    pub(crate) connections: Option<u32>,
    /// The longest time of this load.
    #[schemars(extend("default" = default::SETTLE_WITHIN))]
    pub(crate) within: Option<Written<LongerThanZero>>,
}

/// A phase of an open loop.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "phase")]
pub(crate) struct PhaseFile {
    /// The length of the phase.
    #[schemars(required)]
    pub(crate) duration: Option<Written<LongerThanZero>>,
    /// The rate at the start of the phase.
    #[schemars(required)]
    pub(crate) rate: Option<Written<Rate>>,
    /// The rate at the end of the phase, reached in a straight line. By default the rate at the start.
    pub(crate) to: Option<Written<Rate>>,
}

/// The distribution of the gaps between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum ArrivalFile {
    Uniform,
    Poisson,
}

/// The placement of systems that can use one core at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum PlacementFile {
    OneCore,
    Free,
}

/// The order in which a round measures its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum OrderFile {
    SideBySide,
    InTurn,
}
