//! `coprocessor`: the stages that are sent to an external process, and the parts that each message contains.
//!
//! In the file, each stage has only the switches that apply to it. After reading, all stages have one type,
//! [`Stage`], so that the code that calls coprocessors needs only one path.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::condition::Condition;
use crate::written::{Endpoint, Written};
use crate::written_as::written_as;

written_as! {
    RouterStages => RouterFile,
    SupergraphStages => SupergraphFile,
    ExecutionStages => ExecutionFile,
    SubgraphStages => SubgraphFile,
}

/// An external process that is asked at stages of each request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coprocessor {
    /// Where it is: `http://…`, `https://…` or `unix:///path/to/socket?path=/p`.
    pub url: Written<Endpoint>,
    /// The longest time of one call, from the connection to the end of its answer.
    #[serde(default = "default_timeout")]
    pub timeout: Written<Duration>,
    /// Whether GraphQL responses that it returns are checked.
    #[serde(default = "yes")]
    pub response_validation: bool,
    /// How it is connected to.
    #[serde(default)]
    pub client: CoprocessorClient,
    /// The HTTP request of the client and the HTTP response to it.
    #[serde(default)]
    pub router: RouterStages,
    /// The GraphQL request and response.
    #[serde(default)]
    pub supergraph: SupergraphStages,
    /// The GraphQL request and response around execution, when the plan is known.
    #[serde(default)]
    pub execution: ExecutionStages,
    /// Requests to subgraphs and their responses.
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

/// Which HTTP a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpVersions {
    /// HTTP/1.1, and HTTP/2 where TLS agrees on it.
    #[default]
    Enable,
    /// HTTP/1.1 only.
    Disable,
    /// HTTP/2 only, with prior knowledge where there is no TLS.
    Http2Only,
}

/// How host names are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DnsStrategy {
    /// IPv4 addresses only.
    Ipv4Only,
    /// IPv6 addresses only.
    Ipv6Only,
    /// Both at once.
    Ipv4AndIpv6,
    /// IPv6 first, IPv4 when the name has no IPv6 address.
    Ipv6ThenIpv4,
    /// IPv4 first, IPv6 when the name has no IPv4 address.
    Ipv4ThenIpv6,
}

/// How a coprocessor is connected to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoprocessorClient {
    /// Which HTTP is spoken.
    pub experimental_http2: HttpVersions,
    /// Accepted; the system's resolver decides.
    pub dns_resolution_strategy: Option<DnsStrategy>,
    /// How long a connection may be idle before it is closed; `null` keeps it open.
    pub pool_idle_timeout: Option<Written<Duration>>,
    /// Time between pings of an HTTP/2 connection.
    pub experimental_http2_keep_alive_interval: Option<Written<Duration>>,
    /// Time that the answer to such a ping may take.
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
    pub url: Option<Endpoint>,
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
    /// No body.
    #[default]
    Nothing,
    /// The whole body.
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
    /// No entries.
    #[default]
    Nothing,
    /// All entries.
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
    /// All of it, or nothing.
    Switch(bool),
    /// Some members.
    Members(MembersFile),
}

/// Members of a GraphQL response.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct MembersFile {
    /// Whether `data` is sent.
    data: bool,
    /// Whether `errors` is sent.
    errors: bool,
    /// Whether `extensions` is sent.
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

/// `context`: `true`, `false`, a word, or the keys that are sent.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ContextFile {
    /// `true` is an old name of `deprecated`.
    Switch(bool),
    /// Which names the keys have.
    Word(ContextWord),
    /// Some keys.
    Keys(ContextKeys),
}

/// Which names the keys of the context have.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ContextWord {
    /// Those of version 2.
    All,
    /// Those of version 1.
    Deprecated,
}

/// The keys of the context that are sent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContextKeys {
    /// The keys.
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
            /// Where to send this stage instead of `coprocessor.url`.
            url: Option<Written<Endpoint>>,
            /// When to send it; always when absent.
            condition: Option<Condition>,
            /// Whether the headers are sent.
            headers: bool,
            /// Whether the body is sent.
            body: $body,
            /// Which entries of the context are sent.
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
    /// The client's HTTP request.
    RouterRequestFile, bool, whole, [
    /// Whether the schema is sent.
    sdl,
    /// Whether path and query of the URL are sent.
    path,
    /// Whether the method is sent; it always is.
    method
]);
stage!(
    /// The HTTP response to the client.
    RouterResponseFile, bool, whole, [
    /// Whether the schema is sent.
    sdl,
    /// Whether the status is sent.
    status_code
]);
stage!(
    /// The GraphQL request.
    SupergraphRequestFile, bool, whole, [
    /// Whether the schema is sent.
    sdl,
    /// Whether the method is sent.
    method
]);
stage!(
    /// The GraphQL response.
    SupergraphResponseFile, Option<BodyFile>, parts, [
    /// Whether the schema is sent.
    sdl,
    /// Whether the status is sent.
    status_code
]);
stage!(
    /// The GraphQL request when its plan is known.
    ExecutionRequestFile, bool, whole, [
    /// Whether the schema is sent.
    sdl,
    /// Whether the method is sent.
    method,
    /// Whether the plan is sent.
    query_plan
]);
stage!(
    /// The GraphQL response as executed.
    ExecutionResponseFile, Option<BodyFile>, parts, [
    /// Whether the schema is sent.
    sdl,
    /// Whether the status is sent.
    status_code
]);
stage!(
    /// A request to a subgraph.
    SubgraphRequestFile, bool, whole, [
    /// Whether the method is sent; it always is.
    method,
    /// Whether the URL of the subgraph is sent.
    uri,
    /// Whether the name of the subgraph is sent.
    service_name,
    /// Whether the number of the subgraph request is sent.
    subgraph_request_id
]);
stage!(
    /// The response of a subgraph.
    SubgraphResponseFile, Option<BodyFile>, parts, [
    /// Whether the name of the subgraph is sent.
    service_name,
    /// Whether the status is sent.
    status_code,
    /// Whether the number of the subgraph request is sent.
    subgraph_request_id
]);

/// The stages around HTTP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "RouterFile")]
pub struct RouterStages {
    /// Before.
    pub request: Option<Stage>,
    /// After.
    pub response: Option<Stage>,
}

/// The stages around HTTP.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RouterFile {
    /// What is sent of requests.
    request: RouterRequestFile,
    /// What is sent of responses.
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

/// The stages around GraphQL.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "SupergraphFile")]
pub struct SupergraphStages {
    /// Before.
    pub request: Option<Stage>,
    /// After.
    pub response: Option<Stage>,
}

/// The stages around GraphQL.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SupergraphFile {
    /// What is sent of requests.
    request: SupergraphRequestFile,
    /// What is sent of responses.
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

/// The stages around execution.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "ExecutionFile")]
pub struct ExecutionStages {
    /// Before.
    pub request: Option<Stage>,
    /// After.
    pub response: Option<Stage>,
}

/// The stages around execution.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ExecutionFile {
    /// What is sent of requests.
    request: ExecutionRequestFile,
    /// What is sent of responses.
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

/// The stages around subgraphs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "SubgraphFile")]
pub struct SubgraphStages {
    /// Before.
    pub request: Option<Stage>,
    /// After.
    pub response: Option<Stage>,
}

/// The stages around subgraphs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SubgraphFile {
    /// What is sent, whatever the subgraph.
    all: SubgraphAllFile,
}

/// The stages around each subgraph.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SubgraphAllFile {
    /// What is sent of requests.
    request: SubgraphRequestFile,
    /// What is sent of responses.
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
