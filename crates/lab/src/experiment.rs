//! The checked experiment: what a lab file means, in types that cannot hold the mistakes.

mod compose;
mod container;
mod manifests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::{
    Capacity, Data, Expectation, Gate, Goal, Load, Order, Settle, Step, Trust, Until, Version,
};
use yaml_with_places::Source;

use crate::level::Level;
use crate::text::Text;

pub use compose::{Compose, ServiceChange};
pub use container::{Container, ImageBuild, Network, Pull, Volume};
pub use manifests::{Manifests, WorkloadChange};

/// A checked lab. Names are unique, every reference resolves, and no systems wait for each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Lab {
    /// The file's stem; the folder's name when the stem equals it or is `lab`.
    pub name: String,
    /// What a reader should learn, as one question.
    pub question: String,
    /// The lab file.
    pub path: PathBuf,
    /// Every lab file read, the lab itself first: what a recording keeps.
    pub sources: Vec<Source>,
    /// How requests arrive and when the load ends, per variant and round.
    ///
    /// The seed of Poisson arrivals is the lab's `seed`, or 0 when the lab leaves it to the run.
    pub load: Load,
    /// The parts of `load` that the run chooses itself, if the lab says `rate: auto`. `load` then has the
    /// highest rate that may be chosen.
    pub rate_choice: Option<RateChoice>,
    /// The search for the highest rate that is sustained, which every round makes anew; `load` is
    /// then its first step.
    pub capacity: Option<Capacity>,
    /// The loads at which the lab is measured one after the other, the lowest first, which `load` then is;
    /// empty for one load. All are of one kind, and [`Lab::at`] gives the lab of each.
    pub sweep: Vec<Level>,
    /// About how long one variant has a closed loop side by side before the next one has it. At least
    /// 50 ms.
    pub slice: Duration,
    /// What is sent to the baseline, in rotation or as the steps of a scenario. At least one. What
    /// is sent to another variant is its own [`Variant::requests`].
    pub requests: Vec<RequestTemplate>,
    /// Makes the requests a scenario: one for each. Empty for a rotation.
    pub steps: Vec<Step>,
    /// Values for places that differ from request to request. Its seed is for the run to choose.
    pub data: Option<Data>,
    /// How long a request may take before it counts as failed. Above 0.
    pub timeout: Duration,
    /// Whether a connection is used for more than one request, unless a variant says otherwise.
    pub keep_alive: bool,
    /// How it is spoken with the target.
    pub protocol: Protocol,
    /// Open loop: the most of the time that a generator thread may spin, 0 to 100.
    pub spin_percent: u32,
    /// Open loop: whether generator threads ask for real-time priority.
    pub realtime: bool,
    /// Whether idle cores are asked to stay awake.
    pub awake: bool,
    /// Whether systems and generator are to go before other programs on the same cores.
    pub precedence: bool,
    /// Generator threads. At least 1, and in a closed loop at most one for each connection.
    pub threads: u32,
    /// Load that is sent and thrown away before each measurement; 0 for none.
    pub warmup: Duration,
    /// Load in a closed loop after each start, until it gets no faster; none where absent.
    pub settle: Option<Settle>,
    /// How a round is to measure its variants, where the file or a flag says so: [`Lab::order`] says what the
    /// load allows.
    pub order_asked: Option<Order>,
    /// Side by side: the variants that are up together, by name, each group with its baselines; absent
    /// where the lab leaves that to the run. Every variant is in one of them, and no baseline is.
    pub groups: Option<Vec<Vec<String>>>,
    /// Where systems run that may use one core at most, where all variants have their load at once.
    pub placement: Placement,
    /// How often every variant is measured. At least 1.
    pub rounds: u32,
    /// How many pods of a cluster send the load, where it is measured in one. At least 1.
    pub generators: u32,
    /// The goal that rounds go on for. With a width, `rounds` are the pilot. With gates, they do not count.
    pub until: Option<Goal>,
    /// The longest time to measure while `until` is not reached, from the first round on. Above 0.
    pub max_time: Duration,
    /// The seed of the order of variants, when the lab fixes it.
    pub seed: Option<u64>,
    /// The system that gets the load where a variant has no target of its own; a name in `systems`.
    pub target: String,
    /// Every system the lab declares, by name.
    pub systems: Vec<System>,
    /// Lab-wide settings with the values the lab file gives them.
    pub settings: BTreeMap<String, String>,
    /// Settings of a quick run: by `NAME` for a lab-wide one, by `SYSTEM.NAME` for a system's.
    pub quick: Vec<(String, String)>,
    /// Settings with which the lab was read, instead of its own: see [`crate::parse_with`].
    pub asked: Vec<(String, String)>,
    /// The setup the others are compared with; the first of them in a lab with several.
    pub baseline: Variant,
    /// The setups compared, in the order of the report, and further baselines, each before the
    /// variants that are compared with it. None in a lab that only two revisions of the repository can be
    /// compared with.
    pub variants: Vec<Variant>,
    /// What every answer of the baseline must look like.
    pub expect: Expect,
    /// Limits to keep; each is about all variants, or about one that there is.
    pub gates: Vec<Gate>,
}

/// The parts of a load that a run chooses before its first round, if its lab says `rate: auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChoice {
    /// True if the length of a round is the lab's, and only the rate is chosen.
    pub keeps_duration: bool,
}

/// Where systems run that may use one core at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Each on one core, the same for all variants.
    #[default]
    OneCore,
    /// Wherever the scheduler puts them.
    Free,
}

/// Slices from this length on hold so many of the kernel's periods (100 ms) that a system with a
/// processor limit has hardly more of it than without breaks: an idle system begins a slice with a
/// whole period's grant, wherever in the period that is.
const SLICE_OF_LIMITED: Duration = Duration::from_secs(2);

impl Lab {
    /// How a round measures its variants as far as the load decides, and where that is in turn without
    /// having been asked for, why. A run may find further reasons for measuring in turn.
    #[must_use]
    pub fn order(&self) -> (Order, Option<&'static str>) {
        let obstacle = match &self.load {
            // In turn is what was asked for, so there is nothing to explain.
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

    /// Whether a system of any variant has a limit of processor time.
    fn limits_cpus(&self) -> bool {
        let mut setups = self.all().flat_map(Variant::systems);
        setups.any(|setup| setup.limits.cpus.is_some())
    }

    /// Whether all variants have their load at the same time, so that a round takes as long as one of
    /// them. Slices and searches side by side take turns.
    #[must_use]
    pub fn is_loaded_at_once(&self) -> bool {
        self.order().0 == Order::SideBySide && self.load.is_open() && self.capacity.is_none()
    }

    /// The width of an interval that rounds go on for; none where they do not.
    #[must_use]
    pub fn until_width(&self) -> Option<&Until> {
        match &self.until {
            Some(Goal::Width(until)) => Some(until),
            Some(Goal::Gates) | None => None,
        }
    }

    /// The names of all variants, baseline first.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.all().map(|variant| variant.name.as_str()).collect()
    }

    /// The baseline, then the variants in the order of the report.
    pub fn all(&self) -> impl Iterator<Item = &Variant> {
        std::iter::once(&self.baseline).chain(&self.variants)
    }
}

/// How it is spoken with a target, beside the encryption that [`Setup::is_encrypted`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Which HTTP.
    pub version: Version,
    /// Which certificates are accepted where it is encrypted.
    pub trust: Trust,
}

impl Protocol {
    /// How it is spoken with a target over TLS, or with one in the clear.
    #[must_use]
    pub fn with(&self, is_encrypted: bool) -> model::Protocol {
        model::Protocol {
            version: self.version,
            tls: is_encrypted.then(|| self.trust.clone()),
        }
    }
}

/// Requests that follow one another, from a file of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// What is sent, in order. At least one.
    pub requests: Vec<RequestTemplate>,
    /// One for each request.
    pub steps: Vec<Step>,
    /// Values that differ from iteration to iteration.
    pub data: Option<Data>,
    /// What every answer must look like, unless its request says otherwise.
    pub expect: Expect,
}

/// One request, complete but for the address of the target and for what differs from one sending to
/// the next: `{{column}}` and the like remain in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTemplate {
    /// How reports call it; unique within the lab.
    pub name: String,
    /// The method in capitals.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Header lines in the order they are sent, the lab's defaults included; names are unique.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// The requests that go out in it, by name, where it is a batch: its body is the array of their
    /// bodies. Empty for a request that is one.
    pub batch: Vec<String>,
    /// How often it is sent for each time a request of weight 1 is. At least 1.
    pub weight: u32,
    /// What its answers must look like, where that is not what the lab says of all.
    pub expect: Option<Expect>,
}

impl RequestTemplate {
    /// How many operations it carries: those of a batch, else 1.
    #[must_use]
    pub fn operations(&self) -> u32 {
        // A batch of more operations than that has no body that could be sent.
        u32::try_from(self.batch.len().max(1)).unwrap_or(u32::MAX)
    }
}

/// What every answer must look like to count as passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// What is known before the first answer.
    pub answer: Expectation,
    /// The body equals the one the baseline gave to the same request.
    pub same_as_baseline: bool,
    /// JSON pointers to what the comparison of bodies leaves out; each begins with `/`.
    pub ignore: Vec<String>,
}

/// One thing that a variant must be seen to do, besides giving the answers that are expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// How reports call it.
    pub name: String,
    /// What is looked at.
    pub what: ProofWhat,
}

/// What a proof looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum ProofWhat {
    /// What another system says it saw.
    Seen {
        /// Where to ask, with `GET`. It holds the address of a system of the variant.
        url: Text,
        /// Where the number stands in its answer.
        number: SeenNumber,
        /// What it must be.
        rule: SeenRule,
    },
    /// An answer to a request of its own, or without one all answers to those of the load.
    Answer {
        /// The request, sent to the target.
        request: Option<Box<RequestTemplate>>,
        /// How often it is sent, each time over a connection of its own. At least 1.
        times: u32,
        /// What the answer must look like.
        expect: Box<Expect>,
        /// How many values headers must have.
        values: Vec<HeaderValues>,
        /// JSON pointers into the body, with what must stand there as JSON text.
        members: Vec<(String, String)>,
        /// How many different values all the answers together must have.
        distinct: Vec<DistinctValues>,
    },
}

/// Where a number stands in what a system says it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenNumber {
    /// At a JSON pointer.
    Json(String),
    /// The sum of series in the text format of Prometheus: `name` or `name{label="value"}`.
    Metric(String),
}

/// What a number must be that a system says it saw.
#[derive(Clone, Debug, PartialEq)]
pub enum SeenRule {
    /// By how much it grew, divided by the number of requests.
    PerRequest {
        /// At least this, for every complete answer.
        least: Option<f64>,
        /// At most this, for every request sent.
        most: Option<f64>,
    },
    /// This value after the load, as JSON text.
    Equals(String),
}

/// The values that a header must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderValues {
    /// Its name; with `*` at the end the beginning of its name.
    pub header: String,
    /// How many there must be; at least one where nothing is said.
    pub count: Option<u32>,
    /// How many different ones there must be.
    pub distinct: Option<u32>,
}

/// How many different values must stand at one place of several answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctValues {
    /// A JSON pointer into the body.
    pub pointer: String,
    /// At least so many; every answer has one.
    pub least: u32,
    /// At most so many.
    pub most: Option<u32>,
}

/// A setup: the settings in which it differs from what the lab declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its row in the report; unique within the lab.
    pub name: String,
    /// Values by setting: `system.setting`, or a lab-wide `setting`. `{{name}}` is filled in.
    pub with: BTreeMap<String, String>,
    /// The name of the baseline that it is compared with; none for a baseline.
    pub against: Option<String>,
    /// What is sent to it, at least one. Each that is to be answered as the baseline's has its
    /// counterpart there: at the same place, or of a batch those of its names.
    pub requests: Vec<RequestTemplate>,
    /// What is sent to it once after each start, before everything else.
    pub prepare: Vec<RequestTemplate>,
    /// Whether its connections are used for more than one request.
    pub keep_alive: bool,
    /// What every answer must look like, unless its request says otherwise.
    pub expect: Expect,
    /// What it must be seen to do besides.
    pub proofs: Vec<Proof>,
    /// True if a quick run measures it without being asked for it by name.
    pub is_quick: bool,
    /// Why it cannot be measured, where that is known before anything is started: see
    /// [`Lab::of_revisions`].
    pub absent: Option<String>,
    /// Made by the checks; private, so that a variant always has one.
    pub(crate) systems: Vec<Setup>,
}

impl Variant {
    /// The systems it needs, each after those it depends on, with its settings filled in. The target
    /// is last; systems that it does not need are left out.
    #[must_use]
    pub fn systems(&self) -> &[Setup] {
        &self.systems
    }
}

/// A system as the lab declares it. What a variant makes of it is its [`Setup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Its name in templates, reports and file names.
    pub name: String,
    /// The values of its own settings before a variant changes them.
    pub settings: BTreeMap<String, String>,
}

/// One system as one variant needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The system's name.
    pub system: String,
    /// The folder its commands run in.
    pub folder: PathBuf,
    /// Commands that build it, in order, each split into program and arguments. They hold no
    /// addresses, so they render without any.
    pub build: Vec<Vec<Text>>,
    /// Where it comes from.
    pub origin: Origin,
    /// The command whose first line of output is the version to record. It holds no addresses.
    pub version: Option<Vec<Text>>,
    /// Variables added to its environment; those that render without addresses are meant for
    /// building too.
    pub env: Vec<(String, Text)>,
    /// When it counts as ready.
    pub ready: Ready,
    /// Whether it is spoken to over TLS.
    pub is_encrypted: bool,
    /// What it may use of the machine.
    pub limits: Limits,
    /// The cores it may run on; all when absent.
    pub pin: Option<Vec<usize>>,
    /// Programs that must be found on PATH.
    pub needs: Vec<String>,
    /// Systems that must be ready before it starts; each is earlier in the stack.
    pub after: Vec<String>,
    /// Its own settings and the lab-wide ones as this variant has them; addresses remain open.
    pub settings: BTreeMap<String, Text>,
    /// How many instances of it run behind a balancer, which is the next setup of the stack and has
    /// the address that others know; at least 1. Absent for one that listens there itself.
    pub replicas: Option<u32>,
    /// What it balances, for the setup of a balancer.
    pub balances: Option<Balances>,
    /// Whether, side by side, one process of it serves all variants. Then it is equal in all variants,
    /// and needs only such systems.
    pub is_shared: bool,
}

/// What a balancer stands in front of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balances {
    /// The system, which is the setup before it.
    pub system: String,
    /// How it chooses among the instances.
    pub balance: Balance,
}

/// How a balancer chooses an instance for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The one with the fewest connections under way.
    LeastConn,
    /// One after the other.
    RoundRobin,
}

impl Balance {
    /// Its word in lab files and in HAProxy's configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Balance::LeastConn => "leastconn",
            Balance::RoundRobin => "roundrobin",
        }
    }
}

/// Where a system comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is started by this command, split into program and arguments. Never empty.
    Run(Vec<Text>),
    /// It runs already, and is neither started nor stopped.
    Elsewhere(Elsewhere),
    /// It is a project of a compose file.
    Compose(Compose),
    /// It is a container, which a container engine starts.
    Container(Container),
    /// It is made in a cluster, of manifests of the user.
    Manifests(Manifests),
}

/// A system that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// A name, or an address; one of IPv6 has brackets.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
    /// As the URL names host and port: what requests say in `Host`.
    pub authority: String,
    /// What runs there, where that was said.
    pub attach: Option<Attach>,
    /// Where each instance of it is asked what it saw, where the address leads to any of several; empty
    /// for one.
    pub instances: Vec<SocketAddr>,
}

/// Where the processor time and memory of a system can be read that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// A process of this machine, with those that it has started.
    Pid(i32),
    /// The folder of a control group.
    Cgroup(PathBuf),
    /// A container of this name or id.
    Container(String),
    /// Its own metrics, in the text format of Prometheus, at this URL.
    Metrics(String),
}

impl Setup {
    /// The command that starts it, or that a container is given instead of its image's own; empty
    /// where there is none.
    #[must_use]
    pub fn command(&self) -> &[Text] {
        match &self.origin {
            Origin::Run(command) => command,
            Origin::Container(container) => &container.command,
            Origin::Elsewhere(_) | Origin::Compose(_) | Origin::Manifests(_) => &[],
        }
    }

    /// The container that it is; none for another origin.
    #[must_use]
    pub fn container(&self) -> Option<&Container> {
        match &self.origin {
            Origin::Container(container) => Some(container),
            _ => None,
        }
    }

    /// Where it runs already; none for a system that is started.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        match &self.origin {
            Origin::Elsewhere(elsewhere) => Some(elsewhere),
            _ => None,
        }
    }

    /// Whether it is a process that is started here, by its command.
    #[must_use]
    pub fn is_process(&self) -> bool {
        matches!(self.origin, Origin::Run(_))
    }

    /// The project that it is; none for a system of another origin.
    #[must_use]
    pub fn compose(&self) -> Option<&Compose> {
        match &self.origin {
            Origin::Compose(compose) => Some(compose),
            _ => None,
        }
    }

    /// The manifests that it is made of; none for a system of another origin.
    #[must_use]
    pub fn manifests(&self) -> Option<&Manifests> {
        match &self.origin {
            Origin::Manifests(manifests) => Some(manifests),
            _ => None,
        }
    }

    /// All that it is told when it starts: the words of its command and the values of its variables.
    pub fn told(&self) -> impl Iterator<Item = &Text> {
        let variables = self.env.iter().map(|(_, text)| text);
        self.command().iter().chain(variables)
    }

    /// Whether it listens on a Unix socket: it is told the path of one that is its own.
    #[must_use]
    pub fn is_on_socket(&self) -> bool {
        self.told().any(|text| text.has_socket_of(&self.system))
    }
}

/// When a system counts as ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// What to try.
    pub probe: Probe,
    /// How long it may take. Above 0.
    pub within: Duration,
}

/// How readiness is tried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It accepts connections.
    Listening,
    /// The health check of its image says that it is healthy. Only containers have that.
    Healthy,
    /// It answers `GET path` with this status.
    Answers {
        /// Path and query, beginning with `/`.
        path: String,
        /// 100 to 599.
        status: u16,
    },
}

/// What a system may use of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Cores, also parts of one. Above 0.
    pub cpus: Option<f64>,
    /// Bytes. Above 0.
    pub memory: Option<u64>,
}
