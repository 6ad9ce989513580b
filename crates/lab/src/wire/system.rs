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
use crate::formats::{FileName, Name, Title, UrlPath, VariableName, Verbatim, Written};
use crate::quantities::{Bytes, Cores, Limit, LongerThanZero};
use crate::template::{Command, Template};

/// A program or a container that the lab builds, starts, watches and stops. `weigh` assigns the ports,
/// so `run` or `env` must contain `{{addr}}`, `{{port}}` or `{{url}}`. They can contain `{{socket}}`,
/// the path of a Unix socket, instead. `weigh` then finds the system at this socket.
///
/// Templates are allowed in `build`, `run`, `command`, `env`, `version` and in settings. `{{setting}}`
/// is a setting of the system or of the lab. `{{addr}}`, `{{port}}`, `{{url}}` and `{{socket}}` are the
/// address at which the system listens. `{{name}}` is the name of the variant. `{{other.setting}}`,
/// `{{other.addr}}`, `{{other.port}}`, `{{other.url}}` and `{{other.socket}}` are the values of another
/// system. If there are several instances, `{{instance}}` is the number of the instance, from 1.
/// Addresses and this number exist only while the system runs, so `build` and `version` cannot contain
/// them. Commands are split as a shell splits them, but no shell runs them. A value with spaces stays
/// one argument.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "system")]
pub(crate) struct SystemFile {
    /// Its own values for templates. A variant changes them with `with: {system.setting: value}`.
    #[serde(default)]
    #[schemars(with = "SettingsFile")]
    pub(crate) settings: Settings,
    /// The folder for its commands, relative to the file that contains this key. By default the folder
    /// of the file that contains `run`.
    pub(crate) folder: Option<At<String>>,
    /// Commands that build it, run in order before anything starts. A command can end with exit code
    /// 127, which a shell returns for a missing command. Each variant that needs this system then
    /// becomes a row with the last output of the command. With `image`, the last entry can define the
    /// build of the image: `{context: FOLDER}`.
    #[serde(default)]
    pub(crate) build: BuildFile,
    /// The command that runs it, in the foreground until it receives the signal to stop. Every system
    /// has a command, an `image`, a `compose` file, `manifests` or a `url`.
    pub(crate) run: Option<At<Written<Command>>>,
    /// The image of its container, instead of `run`. It is a name for a container engine (`nginx:1.29`,
    /// `registry.example.com/api@sha256:…`), or the name that `build` gives it. The engine is Docker or
    /// Podman, found by `DOCKER_HOST` or at its usual socket. Each start is a new container. The
    /// recorded version is the digest of the image.
    pub(crate) image: Option<At<Verbatim<Template>>>,
    /// The command within the container, instead of the image's own command. It requires `image`.
    pub(crate) command: Option<At<Written<Command>>>,
    /// The port at which it listens within its network of containers. It requires `image`. `weigh`
    /// publishes it at a free port of 127.0.0.1 for the load and for systems that are not containers.
    /// Without this key, the container is in the network of this machine and must receive `{{addr}}`,
    /// `{{port}}` or `{{url}}`.
    pub(crate) port: Option<At<Verbatim<Template>>>,
    /// The network of the container. It requires `image`. `host` is the network of this machine.
    /// `bridge` is a network of its own, which costs each request some microseconds. By default
    /// `bridge` if there is a `port`, or else `host`.
    pub(crate) network: Option<At<NetworkFile>>,
    /// The volumes of the container. They require `image`. `FOLDER:/path` mounts a folder or file of
    /// this machine, relative to the file that contains this key. `FOLDER:/path:ro` mounts it
    /// read-only. `/path` is an empty volume that is new at each start.
    #[serde(default)]
    pub(crate) volumes: OneOrMany<At<Verbatim<Template>>>,
    /// The user within the container: `USER`, or `USER:GROUP`. It requires `image`.
    pub(crate) user: Option<At<Verbatim<Template>>>,
    /// The condition for fetching the image from its registry. It requires `image`. `weigh` fetches the
    /// image if the engine does not have it (`missing`), before each run (`always`), or `never`.
    #[schemars(extend("default" = "missing"))]
    pub(crate) pull: Option<At<PullFile>>,
    /// The address of a system that already runs, instead of `run`: `http://host:port` or
    /// `https://host`. It has no path, because requests have paths. `weigh` does not build, start,
    /// limit or stop the system. Intervals therefore do not contain differences from start to start.
    /// The address can contain `{{setting}}`, but not before the host. Load to another machine requires
    /// `--yes-load HOST`.
    pub(crate) url: Option<At<Verbatim<Template>>>,
    /// The program at `url`, so that `weigh` can read its processor time and memory. Without this key,
    /// both are unknown.
    pub(crate) attach: Option<At<AttachFile>>,
    /// Services of a compose file, instead of `run`.
    pub(crate) compose: Option<At<ComposeFile>>,
    /// Manifests of a cluster, instead of `run`.
    pub(crate) manifests: Option<At<ManifestsFile>>,
    /// Its configuration files, by their names. Each start writes them into a folder of its own. `{{files}}`
    /// is the path of this folder, and `{{file.NAME}}` is the path of a file. Both work in `run`, `command`,
    /// `env`, and in the files themselves. A value is the path of a template, relative to the file that
    /// contains this key. The path can contain `{{setting}}`. It is `{text: …}` for a short file. A template can contain the names that `run`
    /// can contain. A container or pod finds the folder at `/weighbridge`. The recording contains the templates
    /// and their digests. The written files stay in its folder of logs.
    #[serde(default)]
    pub(crate) files: Table<FileName, At<TextOr<String, ConfigFileSource>>>,
    /// The condition that makes it ready. With `listening`, it must accept connections. With `healthy`,
    /// the health check of its image must pass. With a path, it must answer at this path.
    #[schemars(extend("default" = "listening"))]
    pub(crate) ready: Option<At<ReadyFile>>,
    /// Variables added to its environment. A process also has the variables of `weigh`, and a container
    /// also has the variables of its image. `build` and `version` also receive the variables without an
    /// address, and run once for each combination of their values. Write `{run: VALUE}` for a variable
    /// that only the running system receives: `LOG: {run: "{{log}}"}`. Variants with other values then
    /// share a build.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<TextOr<Verbatim<Template>, VariableFile>>>,
    /// The scheme of its address: `http` (in the clear), `https` (over TLS), or a template. A template
    /// can make it differ from variant to variant. `{{url}}` begins with the scheme. The probe of
    /// `ready`, the load and proofs use it.
    #[schemars(extend("default" = "http"))]
    pub(crate) scheme: Option<At<Verbatim<Template>>>,
    /// Its limits on this machine. The report shows if the limits could be enforced.
    #[serde(default)]
    pub(crate) limits: LimitsFile,
    /// The cores that it can run on, from 0. By default all cores.
    pub(crate) pin: Option<At<OneOrMany<At<u32>>>>,
    /// Programs that must be on PATH. If a program is missing, the rows of the variants that need this
    /// system report it.
    #[serde(default)]
    pub(crate) needs: OneOrMany<Written<Title>>,
    /// A command for its version. `weigh` records the first line of output as the version. The command
    /// has 60 s to end.
    pub(crate) version: Option<At<Written<Command>>>,
    /// The number of its instances, 1 to 64, or a template for this number. Each instance has a port of
    /// its own. A balancer, HAProxy, listens at the address that the load and other systems use. The
    /// balancer is a system of its own, `SYSTEM-balancer`, with the cores of `pin`. Each instance has
    /// the `limits`. The report contains the number of requests that each instance answered. Without
    /// this key, the system itself listens at its address.
    pub(crate) replicas: Option<At<Verbatim<Template>>>,
    /// The balancer's rule for the choice of an instance: `leastconn` (the default), `roundrobin`, or a
    /// template. With `none`, there is no balancer and at most one instance.
    pub(crate) balance: Option<At<Verbatim<Template>>>,
    /// True if one process of it serves all variants that are up together, as a database would.
    /// Otherwise each variant has a process of its own. It applies side by side and has no effect in
    /// turn. The value must be the same for all variants. A shared system cannot need a system that is
    /// not shared, and no proof can count requests on it. Its processor time and memory are in no
    /// variant's figures.
    #[schemars(extend("default" = false))]
    pub(crate) shared: Option<At<bool>>,
    /// Systems that must be ready before it starts. A template like `{{other.url}}` implies it.
    #[serde(default)]
    pub(crate) after: OneOrMany<At<Written<Name>>>,
}

/// A variable that `build` and `version` do not receive.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "variable")]
pub(crate) struct VariableFile {
    /// Its value for the running system.
    #[schemars(required)]
    pub(crate) run: Option<At<Verbatim<Template>>>,
}

/// The content of a configuration file. Give either `path` or `text`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "config-file")]
pub(crate) struct ConfigFileSource {
    /// The path of a template, relative to the file that contains this key. It can contain
    /// `{{setting}}`.
    pub(crate) path: Option<String>,
    /// The template itself.
    pub(crate) text: Option<String>,
    /// True if the file has no templates. Its braces then stay as they are.
    #[serde(default)]
    pub(crate) raw: bool,
}

/// The program at a `url`. Give exactly one of these keys. Their values can contain `{{setting}}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "attach")]
pub(crate) struct AttachFile {
    /// The number of its process on this machine. The processes that it has started count too.
    pub(crate) pid: Option<At<Verbatim<Template>>>,
    /// The folder of its control group, version 1 or 2, such as
    /// `/sys/fs/cgroup/system.slice/nginx.service`.
    pub(crate) cgroup: Option<At<Verbatim<Template>>>,
    /// The name or id of a container that already runs, as `docker ps` shows it.
    pub(crate) container: Option<At<Verbatim<Template>>>,
    /// A URL in the text format of Prometheus with `process_cpu_seconds_total`, and
    /// `process_resident_memory_bytes` if available. Most programs count in hundredths of a second
    /// there, which is coarse for a short load.
    pub(crate) metrics: Option<At<Verbatim<Template>>>,
    /// A label selector of the pods behind the `url`, such as `app=web`. The pods are in the namespace of
    /// the run. It requires `--on kubernetes`.
    pub(crate) pods: Option<At<Verbatim<Template>>>,
}

/// The condition that makes a system ready.
pub(crate) type ReadyFile = TextOr<ReadyState, ReadyProbe>;

/// A state of a ready system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum ReadyState {
    Listening,
    Healthy,
}

/// The condition that makes a system ready.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "ready")]
pub(crate) struct ReadyProbe {
    /// The path of a `GET` request that it must answer. Without this key, it only has to accept
    /// connections.
    pub(crate) path: Option<Written<UrlPath>>,
    /// A state instead of a path: `listening` or `healthy`. A container is healthy when the health
    /// check of its image passes. The check continues while the container is measured, and its
    /// processor time counts.
    pub(crate) state: Option<At<ReadyState>>,
    /// The status of the answer.
    #[schemars(range(min = 100, max = 599), extend("default" = default::READY_STATUS))]
    pub(crate) status: Option<At<u16>>,
    /// The longest time from its start until it is ready. After that time, the rows of the variants
    /// that need it report this.
    #[schemars(extend("default" = default::READY_WITHIN))]
    pub(crate) within: Option<Written<LongerThanZero>>,
}

/// The limits of a system on this machine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "limits")]
pub(crate) struct LimitsFile {
    /// Cores, also parts of a core: `0.25` is Kubernetes' `250m`. `none` is no limit. `{{setting}}`
    /// makes the limit differ from variant to variant.
    pub(crate) cpus: Option<At<Verbatim<Limit<Cores>>>>,
    /// Memory, or `none`, or `{{setting}}`.
    pub(crate) memory: Option<At<Verbatim<Limit<Bytes>>>>,
}
