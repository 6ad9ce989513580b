//! The checked experiment: what a lab file means, in types that cannot hold the mistakes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schedule::Load;

use crate::text::Text;

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
    /// What is sent, in rotation. At least one.
    pub requests: Vec<LabRequest>,
    /// How long a request may take before it counts as failed. Above 0.
    pub timeout: Duration,
    /// Whether a connection is used for more than one request.
    pub keep_alive: bool,
    /// Generator threads. At least 1, and in a closed loop at most one for each connection.
    pub threads: u32,
    /// Most connections open at once: the number of connections in a closed loop. At least 1.
    pub connections_max: u32,
    /// Load that is sent and thrown away before each measurement; 0 for none.
    pub warmup: Duration,
    /// How often every variant is measured. At least 1.
    pub rounds: u32,
    /// The seed of the order of variants, when the lab fixes it.
    pub seed: Option<u64>,
    /// The system that gets the load; a name in `systems`.
    pub target: String,
    /// Every system the lab declares, by name.
    pub systems: Vec<System>,
    /// Lab-wide settings with the values the lab file gives them.
    pub settings: BTreeMap<String, String>,
    /// The setup the others are compared with.
    pub baseline: Variant,
    /// The setups compared, in the order of the report. At least one.
    pub variants: Vec<Variant>,
    /// What every answer must look like.
    pub expect: Expect,
}

impl Lab {
    /// The systems a variant needs, each after those it depends on, with the variant's settings
    /// filled in. The target is last; systems that it does not need are left out.
    #[must_use]
    pub fn stack(&self, variant: &Variant) -> Vec<Setup> {
        variant.stack.clone()
    }

    /// The baseline, then the variants in the order of the report.
    pub fn all(&self) -> impl Iterator<Item = &Variant> {
        std::iter::once(&self.baseline).chain(&self.variants)
    }
}

/// One lab file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it was read from, as the caller or an `include` spelled it.
    pub path: PathBuf,
    /// Its whole text.
    pub text: String,
}

/// One request, complete but for the address of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabRequest {
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
    /// How often it is sent for each time a request of weight 1 is. At least 1.
    pub weight: u32,
}

/// What every answer must look like to count as passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The exact status (100 to 599); any 2xx when absent.
    pub status: Option<u16>,
    /// The body is a JSON object without a top-level `errors`.
    pub graphql_no_errors: bool,
    /// The body equals the one the baseline gave to the same request.
    pub same_as_baseline: bool,
    /// Headers the answer must carry with exactly these values.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Option<Vec<u8>>,
    /// JSON pointers to what the comparison of bodies leaves out; each begins with `/`.
    pub ignore: Vec<String>,
}

/// A setup: the settings in which it differs from what the lab declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its row in the report; unique within the lab.
    pub name: String,
    /// Values by setting: `system.setting`, or a lab-wide `setting`. `{{name}}` is filled in.
    pub with: BTreeMap<String, String>,
    /// Made by the checks; private, so that a variant always has one.
    pub(crate) stack: Vec<Setup>,
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
    /// The command that runs it, split into program and arguments. Never empty.
    pub run: Vec<Text>,
    /// The command whose first line of output is the version to record. It holds no addresses.
    pub version: Option<Vec<Text>>,
    /// Variables added to its environment; those that render without addresses are meant for
    /// building too.
    pub env: Vec<(String, Text)>,
    /// When it counts as ready.
    pub ready: Ready,
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
