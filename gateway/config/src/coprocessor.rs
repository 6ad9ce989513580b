//! `coprocessor`: the stages that are sent to an external process, and the parts that each message contains.
//!
//! In the file, each stage has only the switches that apply to it. After reading, all stages have one type,
//! [`Stage`], so that the code that calls coprocessors needs only one path.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::condition::Condition;
use crate::written::{ServiceAddress, Written};
use crate::written_as::written_as;

written_as! {
    RouterStages => RouterFile,
    SupergraphStages => SupergraphFile,
    ExecutionStages => ExecutionFile,
    SubgraphStages => SubgraphFile,
}

/// An external process that the gateway calls at stages of each request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coprocessor {
    /// The address, `http://…`, `https://…` or `unix:///path/to/socket?path=/p`.
    pub url: Written<ServiceAddress>,
    /// Maximum time of one call, from the connection to the end of the response.
    #[serde(default = "default_timeout")]
    pub timeout: Written<Duration>,
    /// True if the gateway checks GraphQL responses from the coprocessor.
    #[serde(default = "yes")]
    pub response_validation: bool,
    /// Settings of the connections to the coprocessor.
    #[serde(default)]
    pub client: CoprocessorClient,
    /// The client's HTTP request and the HTTP response to it.
    #[serde(default)]
    pub router: RouterStages,
    /// The GraphQL request and response.
    #[serde(default)]
    pub supergraph: SupergraphStages,
    /// The GraphQL request and response around execution, after planning.
    #[serde(default)]
    pub execution: ExecutionStages,
    /// Subgraph requests and their responses.
    #[serde(default)]
    pub subgraph: SubgraphStages,
}

/// Default time limit of a call: one second.
fn default_timeout() -> Written<Duration> {
    // As in the original.
    Written(Duration::from_secs(1))
}

fn yes() -> bool {
    true
}

/// The HTTP versions of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpVersions {
    /// HTTP/1.1, and HTTP/2 if TLS negotiates it.
    #[default]
    Enable,
    /// Only HTTP/1.1, even with TLS.
    Disable,
    /// Only HTTP/2. Without TLS, the gateway uses it with prior knowledge.
    Http2Only,
}

/// The order of address families in DNS lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DnsStrategy {
    /// Only IPv4 addresses are used.
    Ipv4Only,
    /// Only IPv6 addresses are used.
    Ipv6Only,
    /// Both families are used at once.
    Ipv4AndIpv6,
    /// IPv6 first, or IPv4 if the name has no IPv6 address.
    Ipv6ThenIpv4,
    /// IPv4 first, or IPv6 if the name has no IPv4 address.
    Ipv4ThenIpv6,
}

/// Settings of the connections to a coprocessor.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoprocessorClient {
    /// The HTTP versions of these connections.
    pub experimental_http2: HttpVersions,
    /// Accepted without effect. The operating system's resolver decides.
    pub dns_resolution_strategy: Option<DnsStrategy>,
    /// Maximum idle time before the gateway closes a connection. `null` keeps it open.
    pub pool_idle_timeout: Option<Written<Duration>>,
    /// Time between pings of an HTTP/2 connection.
    pub experimental_http2_keep_alive_interval: Option<Written<Duration>>,
    /// Maximum time until the response to a ping arrives.
    pub experimental_http2_keep_alive_timeout: Option<Written<Duration>>,
}

impl Default for CoprocessorClient {
    fn default() -> Self {
        Self {
            experimental_http2: HttpVersions::default(),
            dns_resolution_strategy: None,
            // As in the original, where other clients have different times.
            pool_idle_timeout: Some(Written(Duration::from_secs(15))),
            experimental_http2_keep_alive_interval: None,
            experimental_http2_keep_alive_timeout: None,
        }
    }
}

/// A stage that is sent to the coprocessor, with the parts of its message.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Address for this stage. `None` means `coprocessor.url`.
    pub url: Option<ServiceAddress>,
    /// Condition for sending the stage. `None` means always.
    pub condition: Option<Condition>,
    /// True if the message contains `headers`.
    pub headers: bool,
    /// Parts of `body` in the message.
    pub body: BodyParts,
    /// Entries of `context` in the message.
    pub context: ContextParts,
    /// True if the message contains `sdl`, the schema.
    pub sdl: bool,
    /// True if the message contains `path`, with the query.
    pub path: bool,
    /// True if the message contains `method`.
    pub method: bool,
    /// True if the message contains `uri`.
    pub uri: bool,
    /// True if the message contains `serviceName`.
    pub service_name: bool,
    /// True if the message contains `statusCode`.
    pub status_code: bool,
    /// True if the message contains `subgraphRequestId`.
    pub subgraph_request_id: bool,
    /// True if the message contains `queryPlan`.
    pub query_plan: bool,
}

/// The parts of a body in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyParts {
    /// The message has no body.
    #[default]
    Nothing,
    /// The message has the whole body.
    Everything,
    /// Some members of a GraphQL response.
    Selected {
        /// True if `data` is sent.
        data: bool,
        /// True if `errors` is sent.
        errors: bool,
        /// True if `extensions` is sent.
        extensions: bool,
    },
}

/// The context entries in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContextParts {
    /// The message has no entries.
    #[default]
    Nothing,
    /// The message has all entries.
    All,
    /// All entries, under the key names of version 1.
    Deprecated,
    /// The entries under these keys.
    Selective(Vec<String>),
}

/// `body`: `true`, `false`, or the members of a response.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum BodyFile {
    /// `true` sends the whole body, and `false` sends no body.
    Switch(bool),
    /// The members to send.
    Members(MembersFile),
}

/// Members of a GraphQL response.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct MembersFile {
    /// True if the message contains `data`.
    data: bool,
    /// True if the message contains `errors`.
    errors: bool,
    /// True if the message contains `extensions`.
    extensions: bool,
}

impl From<BodyFile> for BodyParts {
    fn from(file: BodyFile) -> Self {
        match file {
            BodyFile::Switch(false) => Self::Nothing,
            BodyFile::Switch(true) => Self::Everything,
            // If all members are off, no body is sent. It is not an empty body.
            BodyFile::Members(MembersFile {
                data: false,
                errors: false,
                extensions: false,
            }) => Self::Nothing,
            BodyFile::Members(members) => Self::Selected {
                data: members.data,
                errors: members.errors,
                extensions: members.extensions,
            },
        }
    }
}

/// `context`, which is `true`, `false`, a word, or a list of keys.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ContextFile {
    /// `true` is an old name of `deprecated`.
    Switch(bool),
    /// All entries. The word selects the names of the keys.
    Word(ContextWord),
    /// The entries under some keys.
    Keys(ContextKeys),
}

/// The names of the context keys.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ContextWord {
    /// The names of version 2.
    All,
    /// The names of version 1.
    Deprecated,
}

/// The context keys in the message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContextKeys {
    /// The list of keys.
    selective: Vec<String>,
}

impl From<ContextFile> for ContextParts {
    fn from(file: ContextFile) -> Self {
        match file {
            ContextFile::Switch(false) => Self::Nothing,
            // Version 1 of the router had only the switch, and its users rely on the old names.
            ContextFile::Switch(true) | ContextFile::Word(ContextWord::Deprecated) => {
                Self::Deprecated
            }
            ContextFile::Word(ContextWord::All) => Self::All,
            ContextFile::Keys(keys) => Self::Selective(keys.selective),
        }
    }
}

/// Defines the file type of one stage, and its conversion. A stage is on if at least one of its keys differs
/// from the default.
macro_rules! stage {
    ($(#[$about:meta])* $file:ident, $body:ty, $read_body:expr, [$($(#[$meaning:meta])* $switch:ident),*]) => {
        $(#[$about])*
        #[derive(Default, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        struct $file {
            /// The address for this stage. The default is `coprocessor.url`.
            url: Option<Written<ServiceAddress>>,
            /// The condition for this stage. Without it, the stage always runs.
            condition: Option<Condition>,
            /// True if the message contains the headers.
            headers: bool,
            /// True if the message contains the body.
            body: $body,
            /// The context entries in the message.
            context: Option<ContextFile>,
            $($(#[$meaning])* $switch: bool,)*
        }

        impl From<$file> for Option<Stage> {
            fn from(file: $file) -> Self {
                let stage = Stage {
                    headers: file.headers,
                    body: $read_body(file.body),
                    context: file.context.map(ContextParts::from).unwrap_or_default(),
                    url: file.url.map(|url| url.0),
                    condition: file.condition,
                    $($switch: file.$switch,)*
                    // A switch that this stage lacks is off.
                    ..Stage::default()
                };
                // A stage without any key is not called. An empty call would cost a round trip for each
                // request.
                stage.is_on().then_some(stage)
            }
        }
    };
}

impl Stage {
    fn is_on(&self) -> bool {
        // Any key counts, even a URL. A file with a URL requires the call, even if the message is empty.
        self.url.is_some()
            || self.condition.is_some()
            || self.headers
            || self.body != BodyParts::Nothing
            || self.context != ContextParts::Nothing
            || self.sdl
            || self.path
            || self.method
            || self.uri
            || self.service_name
            || self.status_code
            || self.subgraph_request_id
            || self.query_plan
    }
}

fn whole(is_sent: bool) -> BodyParts {
    BodyFile::Switch(is_sent).into()
}

fn parts(file: Option<BodyFile>) -> BodyParts {
    file.map(BodyParts::from).unwrap_or_default()
}

stage!(
    /// The message about the client's HTTP request.
    RouterRequestFile, bool, whole, [
    /// True if the message contains the schema.
    sdl,
    /// True if the message contains the path and the query of the URL.
    path,
    /// The message always contains the method, even with `false`.
    method
]);
stage!(
    /// The message about the HTTP response to the client.
    RouterResponseFile, bool, whole, [
    /// True if the message contains the schema.
    sdl,
    /// True if the message contains the status.
    status_code
]);
stage!(
    /// The message about the GraphQL request.
    SupergraphRequestFile, bool, whole, [
    /// True if the message contains the schema.
    sdl,
    /// True if the message contains the method.
    method
]);
stage!(
    /// The message about the GraphQL response.
    SupergraphResponseFile, Option<BodyFile>, parts, [
    /// True if the message contains the schema.
    sdl,
    /// True if the message contains the status.
    status_code
]);
stage!(
    /// The message about the GraphQL request after planning.
    ExecutionRequestFile, bool, whole, [
    /// True if the message contains the schema.
    sdl,
    /// True if the message contains the method.
    method,
    /// True if the message contains the query plan.
    query_plan
]);
stage!(
    /// The message about the GraphQL response after execution.
    ExecutionResponseFile, Option<BodyFile>, parts, [
    /// True if the message contains the schema.
    sdl,
    /// True if the message contains the status.
    status_code
]);
stage!(
    /// The message about a request to a subgraph.
    SubgraphRequestFile, bool, whole, [
    /// The message always contains the method, even with `false`.
    method,
    /// True if the message contains the URL of the subgraph.
    uri,
    /// True if the message contains the name of the subgraph.
    service_name,
    /// True if the message contains the number of the subgraph request.
    subgraph_request_id
]);
stage!(
    /// The message about the response of a subgraph.
    SubgraphResponseFile, Option<BodyFile>, parts, [
    /// True if the message contains the name of the subgraph.
    service_name,
    /// True if the message contains the status.
    status_code,
    /// True if the message contains the number of the subgraph request.
    subgraph_request_id
]);

/// The stages of the client's HTTP request and response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "RouterFile")]
pub struct RouterStages {
    /// The stage before the request.
    pub request: Option<Stage>,
    /// The stage after the response.
    pub response: Option<Stage>,
}

/// The stages of the client's HTTP request and response.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RouterFile {
    /// The message about a request.
    request: RouterRequestFile,
    /// The message about a response.
    response: RouterResponseFile,
}

impl From<RouterFile> for RouterStages {
    fn from(file: RouterFile) -> Self {
        Self {
            request: file.request.into(),
            response: file.response.into(),
        }
    }
}

/// The stages of the GraphQL request and response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "SupergraphFile")]
pub struct SupergraphStages {
    /// The stage before the request.
    pub request: Option<Stage>,
    /// The stage after the response.
    pub response: Option<Stage>,
}

/// The stages of the GraphQL request and response.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SupergraphFile {
    /// The message about a request.
    request: SupergraphRequestFile,
    /// The message about a response.
    response: SupergraphResponseFile,
}

impl From<SupergraphFile> for SupergraphStages {
    fn from(file: SupergraphFile) -> Self {
        Self {
            request: file.request.into(),
            response: file.response.into(),
        }
    }
}

/// The stages before and after execution.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "ExecutionFile")]
pub struct ExecutionStages {
    /// The stage before execution.
    pub request: Option<Stage>,
    /// The stage after execution.
    pub response: Option<Stage>,
}

/// The stages before and after execution.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ExecutionFile {
    /// The message about a request.
    request: ExecutionRequestFile,
    /// The message about a response.
    response: ExecutionResponseFile,
}

impl From<ExecutionFile> for ExecutionStages {
    fn from(file: ExecutionFile) -> Self {
        Self {
            request: file.request.into(),
            response: file.response.into(),
        }
    }
}

/// The stages of subgraph requests and responses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "SubgraphFile")]
pub struct SubgraphStages {
    /// The stage before a subgraph request.
    pub request: Option<Stage>,
    /// The stage after a subgraph response.
    pub response: Option<Stage>,
}

/// The stages of subgraph requests and responses.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SubgraphFile {
    /// The messages for all subgraphs.
    all: SubgraphAllFile,
}

/// The stages of every subgraph.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SubgraphAllFile {
    /// The message about a request.
    request: SubgraphRequestFile,
    /// The message about a response.
    response: SubgraphResponseFile,
}

impl From<SubgraphFile> for SubgraphStages {
    fn from(file: SubgraphFile) -> Self {
        Self {
            // `all` is the only key there. The original has no key for single subgraphs either.
            request: file.all.request.into(),
            response: file.all.response.into(),
        }
    }
}
