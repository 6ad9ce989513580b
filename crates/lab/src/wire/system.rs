//! Systems, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use super::compose::ComposeFile;
use super::container::{BuildFile, NetworkFile, PullFile};
use super::default;
use super::manifests::ManifestsFile;
use super::setting::{Settings, SettingsFile};
use crate::fields::{Table, TextOr};
use crate::formats::{Name, Title, UrlPath, VariableName, Verbatim, Written};
use crate::quantities::{Bytes, Cores, Limit, LongerThanZero};
use crate::template::{Command, Template};

/// A program or a container that the lab builds, starts, watches and stops. Ports are given out by `weigh`, so
/// `run` or `env` must hand it `{{addr}}`, `{{port}}` or `{{url}}`; or `{{socket}}`, the path of a
/// Unix socket, and then it is found there.
///
/// In `build`, `run`, `command`, `env`, `version` and in settings, `{{setting}}` is a setting of the system or
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
    /// rows with its last words. Beside `image`, the last may say how the image is built:
    /// `{context: FOLDER}`.
    #[serde(default)]
    pub(crate) build: BuildFile,
    /// The command that runs it, in the foreground until it is told to stop. Every system has one, or
    /// an `image`, a `compose` file, `manifests` or a `url`.
    pub(crate) run: Option<At<Written<Command>>>,
    /// The image of the container that it is, instead of `run`: as a container engine names it
    /// (`nginx:1.29`, `registry.example.com/api@sha256:…`), or the name that `build` gives it. The
    /// engine is Docker or Podman, found by `DOCKER_HOST` or at its usual socket. Each start is a new
    /// container, and its digest is the version that is recorded.
    pub(crate) image: Option<At<Verbatim<Template>>>,
    /// Beside `image`: the command within the container, instead of the image's own.
    pub(crate) command: Option<At<Written<Command>>>,
    /// Beside `image`: the port at which it listens within its network of containers. It is published
    /// at a free port of 127.0.0.1, where the load and systems that are no containers find it. Without
    /// it the container is in the network of this machine, and must be told `{{addr}}`, `{{port}}` or
    /// `{{url}}`.
    pub(crate) port: Option<At<Verbatim<Template>>>,
    /// Beside `image`: `host`, the network of this machine, or `bridge`, one of its own, which costs
    /// each request some microseconds. By default `bridge` where there is a `port`, else `host`.
    pub(crate) network: Option<At<NetworkFile>>,
    /// Beside `image`: `FOLDER:/path` shows a folder or file of this machine, relative to the file that
    /// says so, and `FOLDER:/path:ro` one that cannot be changed; `/path` is an empty volume of each
    /// start's own.
    #[serde(default)]
    pub(crate) volumes: OneOrMany<At<Verbatim<Template>>>,
    /// Beside `image`: the user that it runs as within the container: `USER`, or `USER:GROUP`.
    pub(crate) user: Option<At<Verbatim<Template>>>,
    /// Beside `image`: whether the image is fetched from its registry: where the engine does not have
    /// it (`missing`), before each run (`always`), or `never`.
    #[schemars(extend("default" = "missing"))]
    pub(crate) pull: Option<At<PullFile>>,
    /// Where a system is that runs already, instead of `run`: `http://host:port` or `https://host`,
    /// without a path, which requests have. It is not built, started, limited or stopped, so intervals
    /// do not hold what differs from start to start. `{{setting}}` may stand in it, but not before the
    /// host. Load to another machine needs `--yes-load HOST`.
    pub(crate) url: Option<At<Verbatim<Template>>>,
    /// What runs at `url`, so that its processor time and memory can be read. Without it they are
    /// unknown.
    pub(crate) attach: Option<At<AttachFile>>,
    /// Services of a compose file, instead of `run`.
    pub(crate) compose: Option<At<ComposeFile>>,
    /// Manifests of a cluster, instead of `run`.
    pub(crate) manifests: Option<At<ManifestsFile>>,
    /// When it is ready: `listening` (it accepts connections), `healthy` (so says the health check of
    /// its image), or a path that must answer.
    #[schemars(extend("default" = "listening"))]
    pub(crate) ready: Option<At<ReadyFile>>,
    /// Variables added to its environment; a process has those of `weigh` besides, a container those
    /// of its image. Those without an address
    /// are there for `build` and `version` too.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// How it is spoken to: in the clear, or over TLS. `{{url}}` begins with it, and the probe of
    /// `ready`, the load and proofs keep to it: `http`, `https`, or a template that says so, which
    /// makes it differ from variant to variant.
    #[schemars(extend("default" = "http"))]
    pub(crate) scheme: Option<At<Verbatim<Template>>>,
    /// What it may use of the machine. The report says whether the limits could be enforced.
    #[serde(default)]
    pub(crate) limits: LimitsFile,
    /// The cores it may run on, from 0. It may use all of them by default.
    pub(crate) pin: Option<At<OneOrMany<At<u32>>>>,
    /// Programs that must be on PATH. Where one is missing, the variants that need this system
    /// become rows that say so.
    #[serde(default)]
    pub(crate) needs: OneOrMany<Written<Title>>,
    /// A command whose first line of output is recorded as its version. It has 60 s to end.
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

/// What runs at a `url`; one of these. `{{setting}}` may stand in them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "attach")]
pub(crate) struct AttachFile {
    /// The number of its process on this machine; the processes that it has started count too.
    pub(crate) pid: Option<At<Verbatim<Template>>>,
    /// The folder of its control group, version 1 or 2, such as
    /// `/sys/fs/cgroup/system.slice/nginx.service`.
    pub(crate) cgroup: Option<At<Verbatim<Template>>>,
    /// The name or id of a container that runs already, as `docker ps` shows it.
    pub(crate) container: Option<At<Verbatim<Template>>>,
    /// A URL in the text format of Prometheus with `process_cpu_seconds_total`, and
    /// `process_resident_memory_bytes` where it has that. Most programs count in hundredths of a second
    /// there, which is coarse for a short load.
    pub(crate) metrics: Option<At<Verbatim<Template>>>,
}

/// When a system is ready.
pub(crate) type ReadyFile = TextOr<ReadyState, ReadyProbe>;

/// A state in which a system is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum ReadyState {
    Listening,
    Healthy,
}

/// When a system is ready.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "ready")]
pub(crate) struct ReadyProbe {
    /// It answers a `GET` of this path. Without it, it only has to accept connections.
    pub(crate) path: Option<Written<UrlPath>>,
    /// Instead of a path: `listening`, or `healthy`, which a container is when the health check of its
    /// image says so. The check goes on while the container is measured, and its processor time counts.
    pub(crate) state: Option<At<ReadyState>>,
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
