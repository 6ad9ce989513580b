//! The checked experiment: the meaning of a lab file, in types that cannot hold its mistakes.

mod compose;
mod container;
mod factors;
mod manifests;
mod pods;
mod protocol;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::{
    Capacity, Data, Expectation, Gate, Goal, GrpcCall, Load, Order, Resumption, Settle, Step,
    StreamRule, Until, Version, WebSocketCall,
};
use yaml_with_places::Source;

use crate::level::Level;
use crate::text::Text;

pub use compose::{Compose, ServiceChange};
pub use container::{Container, ImageBuild, Network, Pull, Volume};
pub use factors::{Factor, Factors};
pub use manifests::{Manifests, WorkloadChange};
pub use pods::Pods;
pub use protocol::{Certificates, ClientFiles, LabTrust, Protocol};

/// A checked lab. Names are unique, every reference resolves, and systems do not wait for each other in a
/// cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Lab {
    /// The stem of the file, or the name of the folder if the stem is `lab`.
    pub name: String,
    /// The question that the lab answers for its reader.
    pub question: String,
    /// Path of the lab file.
    pub path: PathBuf,
    /// Every lab file that was read, the lab itself first. A recording keeps them all.
    pub sources: Vec<Source>,
    /// The arrival of requests and the end of the load, per variant and round.
    ///
    /// The seed of Poisson arrivals is the lab's `seed`, or 0 if the run chooses it.
    pub load: Load,
    /// The parts of `load` that the run chooses itself, if the lab has `rate: auto`. `load` then has the
    /// highest rate that may be chosen.
    pub rate_choice: Option<RateChoice>,
    /// The search for the highest sustained rate, which every round repeats. `load` is then its first step.
    pub capacity: Option<Capacity>,
    /// The loads at which the lab is measured one after the other, the lowest first. Empty for one load. All
    /// loads are of one kind. `load` is the first of them, and [`Lab::at`] gives the lab for each.
    pub sweep: Vec<Level>,
    /// The approximate length of a closed loop's slice for one variant, before the next variant has its slice
    /// (side by side). At least 50 ms.
    pub slice: Duration,
    /// The requests to the baseline, in rotation or as the steps of a scenario. At least one. Another variant
    /// has its own [`Variant::requests`].
    pub requests: Vec<RequestTemplate>,
    /// The steps that turn the requests into a scenario: one for each request. Empty for a rotation.
    pub steps: Vec<Step>,
    /// Values for places that differ from request to request. The run chooses their seed.
    pub data: Option<Data>,
    /// The time after which a request counts as failed. Above 0.
    pub timeout: Duration,
    /// True if a connection is used for more than one request, unless a variant sets it.
    pub keep_alive: bool,
    /// The HTTP version, and the certificates that are trusted.
    pub protocol: Protocol,
    /// Open loop: the largest share of the time that a generator thread may spin, 0 to 100.
    pub spin_percent: u32,
    /// Open loop: true if generator threads request real-time priority.
    pub realtime: bool,
    /// True if the generator keeps idle cores awake.
    pub awake: bool,
    /// True if systems and generator have precedence over other programs on the same cores.
    pub precedence: bool,
    /// Generator threads. At least 1. A closed loop has at most one thread per connection.
    pub threads: u32,
    /// Duration of the load that is discarded before each measurement. 0 for no warm-up.
    pub warmup: Duration,
    /// The closed loop that runs after each start until it gets no faster. `None` without it.
    pub settle: Option<Settle>,
    /// The order of variants in a round, if the file or a flag sets it. [`Lab::order`] returns the order that
    /// the load allows.
    pub order_asked: Option<Order>,
    /// Side by side: the names of variants that run together. `None` if the run decides. Every variant is in
    /// one group, and its baselines run with it. Baselines are not listed.
    pub groups: Option<Vec<Vec<String>>>,
    /// Names of variants that build on each other. Empty, or at least two different names.
    pub ladder: Vec<String>,
    /// The factorial design of its variants. `None` if the variants are listed by hand.
    pub factors: Option<Factors>,
    /// Placement of systems that may use at most one core, if all variants have their load at once.
    pub placement: Placement,
    /// Rounds, and so measurements of every variant. At least 1.
    pub rounds: u32,
    /// Number of pods that send the load in a cluster. At least 1.
    pub generators: u32,
    /// The settings of the pods in a cluster.
    pub pods: Pods,
    /// The goal until which rounds continue. With a width, `rounds` is the pilot. With gates, `rounds` has no
    /// effect.
    pub until: Option<Goal>,
    /// The longest time to measure while `until` is not reached, from the first round on. Above 0.
    pub max_time: Duration,
    /// The seed of the order of variants, if the lab fixes it.
    pub seed: Option<u64>,
    /// The system that receives the load if a variant has no target of its own. A name in `systems`.
    pub target: String,
    /// Every system that the lab declares.
    pub systems: Vec<System>,
    /// Lab-wide settings, with their values from the lab file.
    pub settings: BTreeMap<String, String>,
    /// Settings of a quick run: by `NAME` for a lab-wide setting, by `SYSTEM.NAME` for a setting of a system.
    pub quick: Vec<(String, String)>,
    /// Settings that replaced the settings of the lab when it was read: see [`crate::parse_with`].
    pub asked: Vec<(String, String)>,
    /// The setup that variants are compared with. In a lab with several baselines, the first.
    pub baseline: Variant,
    /// The setups compared, in the order of the report. Further baselines are included, each before the
    /// variants that are compared with it. Empty if the lab can only be compared between two revisions of the
    /// repository.
    pub variants: Vec<Variant>,
    /// The checks of every response of the baseline.
    pub expect: Expect,
    /// Limits to keep. Each gate is about all variants, or about one variant of the lab.
    pub gates: Vec<Gate>,
}

/// The parts of a load that a run chooses before its first round, if its lab has `rate: auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChoice {
    /// True if the lab sets the length of a round, and the run only chooses the rate.
    pub keeps_duration: bool,
}

/// The placement of systems that may use at most one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// One core for each system, equal for all variants.
    #[default]
    OneCore,
    /// The choice of the scheduler.
    Free,
}

/// The shortest slice that hardly changes the effect of a processor limit. An idle system begins every slice
/// with the grant of a whole kernel period (100 ms), at any place in the period. In a slice of this length,
/// that extra grant hardly matters.
const SLICE_OF_LIMITED: Duration = Duration::from_secs(2);

impl Lab {
    /// Returns the order of variants in a round, if only the load decides. For a round in turn that the user
    /// did not request, also returns the reason. A run may find further reasons for measuring in turn.
    #[must_use]
    pub fn order(&self) -> (Order, Option<&'static str>) {
        let obstacle = match &self.load {
            // The user chose this order, so there is no reason to explain.
            _ if self.order_asked == Some(Order::InTurn) => None,
            _ if !self.steps.is_empty() => Some("the steps of a scenario have no shared due times"),
            Load::Closed { stop, .. } if stop.requests.is_some() => Some(
                "a closed loop takes turns by time, and a `count` ends at a different time for each variant",
            ),
            Load::Closed { .. } if self.slice < SLICE_OF_LIMITED && self.limits_cpus() => {
                Some("slices of a closed loop would cut the 100 ms periods of a processor limit")
            }
            _ => return (Order::SideBySide, None),
        };
        (Order::InTurn, obstacle)
    }

    /// True if a system of any variant has a limit of processor time.
    fn limits_cpus(&self) -> bool {
        let mut setups = self.all().flat_map(Variant::systems);
        setups.any(|setup| setup.limits.cpus.is_some())
    }

    /// True if all variants have their load at the same time, so that a round takes as long as one variant.
    /// Slices and searches side by side take turns.
    #[must_use]
    pub fn is_loaded_at_once(&self) -> bool {
        self.order().0 == Order::SideBySide && self.load.is_open() && self.capacity.is_none()
    }

    /// The width of the interval until which rounds continue. `None` without such a goal.
    #[must_use]
    pub fn until_width(&self) -> Option<&Until> {
        match &self.until {
            Some(Goal::Width(until)) => Some(until),
            Some(Goal::Gates) | None => None,
        }
    }

    /// Returns the names of all variants, baseline first.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.all().map(|variant| variant.name.as_str()).collect()
    }

    /// Makes this variant the baseline. The requests and checks of a lab belong to its baseline, so they
    /// change with it.
    pub fn set_baseline(&mut self, baseline: Variant) {
        self.requests.clone_from(&baseline.requests);
        self.expect = baseline.expect.clone();
        self.baseline = baseline;
    }

    /// Iterates over the baseline and then the variants, in the order of the report.
    pub fn all(&self) -> impl Iterator<Item = &Variant> {
        std::iter::once(&self.baseline).chain(&self.variants)
    }
}

/// Requests that follow one another, from a file of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The requests, in order. At least one.
    pub requests: Vec<RequestTemplate>,
    /// One step for each request.
    pub steps: Vec<Step>,
    /// Values that differ from iteration to iteration.
    pub data: Option<Data>,
    /// The checks of every response, unless its request has its own.
    pub expect: Expect,
}

/// One request, complete except for the address of the target. Values that differ between sendings remain as
/// templates, such as `{{column}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTemplate {
    /// The name in reports, unique within the lab.
    pub name: String,
    /// The method, in capitals.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Header lines in the order of sending, with the defaults of the lab. Names are unique.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// The names of its requests, if it is a batch. Its body is the array of their bodies. Empty for a single
    /// request.
    pub batch: Vec<String>,
    /// Number of times it is sent for each request of weight 1. At least 1.
    pub weight: u32,
    /// The checks of its responses, if they differ from the checks of the lab.
    pub expect: Option<Expect>,
    /// The rule of its responses, if they are streams.
    pub stream: Option<StreamRule>,
    /// The conversation that it opens. `None` for a request of HTTP.
    pub websocket: Option<WebSocketCall>,
    /// The gRPC call that it is. `None` if it is no such call.
    pub grpc: Option<GrpcCall>,
}

impl RequestTemplate {
    /// Returns the number of operations: the requests of a batch, otherwise 1.
    #[must_use]
    pub fn operations(&self) -> u32 {
        // A larger batch has no body that could be sent.
        u32::try_from(self.batch.len().max(1)).unwrap_or(u32::MAX)
    }
}

/// The checks that every response must pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The checks that do not need a response of the baseline.
    pub answer: Expectation,
    /// True if the body must equal the body that the baseline returned for the same request.
    pub same_as_baseline: bool,
    /// JSON pointers to the parts that the comparison of bodies ignores. Each begins with `/`.
    pub ignore: Vec<String>,
}

/// One thing that a variant must be seen to do, in addition to returning the expected responses.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// The name in reports.
    pub name: String,
    /// The source of the evidence.
    pub what: ProofWhat,
}

/// The source of the evidence of a proof.
#[derive(Clone, Debug, PartialEq)]
pub enum ProofWhat {
    /// A number that another system reports.
    Seen {
        /// The URL for a `GET` request. It contains the address of a system of the variant.
        url: Text,
        /// The place of the number in the response.
        number: SeenNumber,
        /// The rule that the number must meet.
        rule: SeenRule,
        /// The longest time after the load until the number meets the rule. Zero for one reading.
        within: Duration,
    },
    /// The response to a request of its own. Without a request, all responses of the load.
    Answer {
        /// The request to the target.
        request: Option<Box<RequestTemplate>>,
        /// Number of times the request is sent, each time over a new connection. At least 1.
        times: u32,
        /// The checks of the response.
        expect: Box<Expect>,
        /// Required numbers of header values.
        values: Vec<HeaderValues>,
        /// JSON pointers into the body, each with its required value as JSON text.
        members: Vec<(String, String)>,
        /// Required numbers of different values in all responses together.
        distinct: Vec<DistinctValues>,
    },
}

/// The place of a number in the report of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenNumber {
    /// A JSON pointer.
    Json(String),
    /// The sum of series in the text format of Prometheus: `name` or `name{label="value"}`.
    Metric(String),
}

/// The rule for a number that a system reports.
#[derive(Clone, Debug, PartialEq)]
pub enum SeenRule {
    /// The growth of the number, divided by the number of requests.
    PerRequest {
        /// The lower bound, per complete response.
        least: Option<f64>,
        /// The upper bound, per sent request.
        most: Option<f64>,
    },
    /// The value after the load, as JSON text.
    Equals(String),
}

/// The required number of values of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderValues {
    /// Name of the header. With `*` at the end, the beginning of its name.
    pub header: String,
    /// Required number of values. At least one if `None`.
    pub count: Option<u32>,
    /// Required number of different values.
    pub distinct: Option<u32>,
}

/// The required number of different values at one place of several responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctValues {
    /// A JSON pointer into the body.
    pub pointer: String,
    /// The lowest number of different values. Every response must have a value.
    pub least: u32,
    /// The highest number of different values.
    pub most: Option<u32>,
}

/// A setup: the settings that differ from the declarations of the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Name of its row in the report, unique within the lab.
    pub name: String,
    /// Values by setting: `system.setting`, or a lab-wide `setting`. `{{name}}` is replaced.
    pub with: BTreeMap<String, String>,
    /// Name of the variant that it is compared with: its baseline, or a variant before it with the same
    /// baseline. `None` for a baseline.
    pub against: Option<String>,
    /// The requests to it, at least one. A request that must have the baseline's response has a counterpart
    /// there. The counterpart has the same position. The counterparts of a batch are the requests of its
    /// names.
    pub requests: Vec<RequestTemplate>,
    /// Requests that are sent to it once after each start, before all other requests.
    pub prepare: Vec<RequestTemplate>,
    /// True if its connections are used for more than one request.
    pub keep_alive: bool,
    /// The checks of every response, unless its request has its own.
    pub expect: Expect,
    /// Proofs of the work that it must do.
    pub proofs: Vec<Proof>,
    /// True if a quick run measures it without a flag that names it.
    pub is_quick: bool,
    /// The reason it cannot be measured, if that is clear before any start: see [`Lab::of_revisions`].
    pub absent: Option<String>,
    /// Filled by the checks. Private, so that a variant always has a system.
    pub(crate) systems: Vec<Setup>,
}

impl Variant {
    /// Returns the systems it needs, each after its dependencies, with its settings filled in. The target is
    /// last. Systems that the variant does not need are left out.
    #[must_use]
    pub fn systems(&self) -> &[Setup] {
        &self.systems
    }
}

/// A system as the lab declares it. A [`Setup`] is the system as one variant needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The name in templates, reports and file names.
    pub name: String,
    /// Values of its own settings before a variant changes them.
    pub settings: BTreeMap<String, String>,
}

/// A system as one variant needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The name of the system.
    pub system: String,
    /// The folder of its commands.
    pub folder: PathBuf,
    /// Commands that build it, in order, each split into program and arguments. They contain no addresses, so
    /// they render without any.
    pub build: Vec<Vec<Text>>,
    /// The way to start it, or its address if it already runs.
    pub origin: Origin,
    /// The command that prints the version to record, in its first line of output. It contains no addresses.
    pub version: Option<Vec<Text>>,
    /// Variables added to its environment. Variables that render without addresses also apply to the build.
    pub env: Vec<(String, Text)>,
    /// The names of variables that the build and the version command do not receive.
    pub env_of_run: Vec<String>,
    /// Configuration files that are written before each start.
    pub files: Vec<ConfigFile>,
    /// The readiness check after its start.
    pub ready: Ready,
    /// True if it is reached over TLS.
    pub is_encrypted: bool,
    /// The HTTP version of the requests of `weigh` to it. HTTP/1.1, unless it receives the load.
    pub http: Version,
    /// The use of tickets of earlier connections. Off, unless it receives the load.
    pub resumption: Resumption,
    /// Limits of its processor time and memory.
    pub limits: Limits,
    /// The cores on which it may run. All cores if `None`.
    pub pin: Option<Vec<usize>>,
    /// Programs that must be in a folder of `PATH`.
    pub needs: Vec<String>,
    /// Systems that must be ready before it starts. Each is earlier in the stack.
    pub after: Vec<String>,
    /// The system's own settings and the lab-wide settings, with the values of this variant. Addresses remain
    /// open.
    pub settings: BTreeMap<String, Text>,
    /// Number of instances behind a balancer, at least 1. The balancer is the next setup of the stack, and
    /// has the address that other systems use. `None` for a system that listens there itself.
    pub replicas: Option<u32>,
    /// The system behind this balancer. `None` for other setups.
    pub balances: Option<Balances>,
    /// True if, side by side, one process of it serves all variants. It is then equal in all variants, and
    /// needs only shared systems.
    pub is_shared: bool,
}

/// A configuration file of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Path within the folder of the files. It is relative, without `..`.
    pub name: String,
    /// The content, with addresses and paths open.
    pub text: Text,
}

/// The system behind a balancer, and the choice of its instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balances {
    /// The balanced system, which is the setup before the balancer.
    pub system: String,
    /// The choice among the instances.
    pub balance: Balance,
}

/// The choice of an instance for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The instance with the fewest open connections.
    LeastConn,
    /// Each instance in turn.
    RoundRobin,
}

impl Balance {
    /// Returns its word in lab files and in HAProxy's configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Balance::LeastConn => "leastconn",
            Balance::RoundRobin => "roundrobin",
        }
    }
}

/// The start of a system, or its address if it already runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It starts with this command, split into program and arguments. Never empty.
    Run(Vec<Text>),
    /// It already runs. `weigh` neither starts nor stops it.
    Elsewhere(Elsewhere),
    /// It is a project of a compose file.
    Compose(Compose),
    /// It is a container, which a container engine starts.
    Container(Container),
    /// It is created in a cluster, from manifests of the user.
    Manifests(Manifests),
}

/// A system that already runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// A name, or an address. An IPv6 address has brackets.
    pub host: String,
    /// The port, 1 to 65535.
    pub port: u16,
    /// Host and port as in the URL: the value of the request header `Host`.
    pub authority: String,
    /// The process or metrics for its usage, if the lab names one.
    pub attach: Option<Attach>,
    /// Addresses at which each instance reports its counters, if the address of the system leads to any of
    /// several instances. Empty for one instance.
    pub instances: Vec<SocketAddr>,
}

/// The source of the processor time and memory of a system that already runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// A process of this machine, with its child processes.
    Pid(i32),
    /// The folder of a control group.
    Cgroup(PathBuf),
    /// A container of this name or id.
    Container(String),
    /// Metrics of the system, in the text format of Prometheus, at this URL.
    Metrics(String),
    /// Pods of a cluster with these labels, in the namespace of the run.
    Pods(String),
}

impl Setup {
    /// The command that starts it, or that replaces the command of a container image. Empty for other
    /// origins.
    #[must_use]
    pub fn command(&self) -> &[Text] {
        match &self.origin {
            Origin::Run(command) => command,
            Origin::Container(container) => &container.command,
            Origin::Elsewhere(_) | Origin::Compose(_) | Origin::Manifests(_) => &[],
        }
    }

    /// The container, or `None` for another origin.
    #[must_use]
    pub fn container(&self) -> Option<&Container> {
        match &self.origin {
            Origin::Container(container) => Some(container),
            _ => None,
        }
    }

    /// The address of a system that already runs. `None` for a system that `weigh` starts.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        match &self.origin {
            Origin::Elsewhere(elsewhere) => Some(elsewhere),
            _ => None,
        }
    }

    /// True if `weigh` starts it as a process, with its command.
    #[must_use]
    pub fn is_process(&self) -> bool {
        matches!(self.origin, Origin::Run(_))
    }

    /// The compose project, or `None` for another origin.
    #[must_use]
    pub fn compose(&self) -> Option<&Compose> {
        match &self.origin {
            Origin::Compose(compose) => Some(compose),
            _ => None,
        }
    }

    /// The manifests, or `None` for another origin.
    #[must_use]
    pub fn manifests(&self) -> Option<&Manifests> {
        match &self.origin {
            Origin::Manifests(manifests) => Some(manifests),
            _ => None,
        }
    }

    /// Iterates over all texts that it receives at its start: the words of its command, the values of its
    /// variables, and its configuration files.
    pub fn told(&self) -> impl Iterator<Item = &Text> {
        let variables = self.env.iter().map(|(_, text)| text);
        let files = self.files.iter().map(|file| &file.text);
        self.command().iter().chain(variables).chain(files)
    }

    /// True if it listens on a Unix socket: its command, environment or files contain the path of its own
    /// socket.
    #[must_use]
    pub fn is_on_socket(&self) -> bool {
        self.told().any(|text| text.has_socket_of(&self.system))
    }
}

/// The readiness check of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The check to repeat.
    pub probe: Probe,
    /// The time limit. Above 0.
    pub within: Duration,
}

/// A check of readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The system accepts connections.
    Listening,
    /// The health check of its image reports healthy. Only containers have a health check.
    Healthy,
    /// It responds to `GET path` with this status.
    Answers {
        /// Path and query, beginning with `/`.
        path: String,
        /// The expected status, 100 to 599.
        status: u16,
    },
}

/// Limits of the processor time and memory of a system.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Cores, with fractions. Above 0.
    pub cpus: Option<f64>,
    /// Memory in bytes. Above 0.
    pub memory: Option<u64>,
}
