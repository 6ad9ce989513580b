//! The gateway's configuration: Apollo Router's YAML keys and those of merged schemas, read with all
//! mistakes at once.
//!
//! A file goes through five steps, one module each:
//!
//! 1. `yaml_with_places` turns the text into a tree whose every node knows its place;
//! 2. `expansion` fills in `${env.X:-d}` and `${file.path}`, and determines anew the type of what
//!    it changed;
//! 3. `structure` checks the tree against the JSON Schema made from the structs below (unknown
//!    keys, wrong types, values of a wrong form) and collects every mistake with its line;
//! 4. serde reads the structs;
//! 5. `agreement` checks keys that depend on each other, `references` what names refer to.
//!
//! The modules named after keys hold the structs; each component of the gateway receives only the
//! structs it needs.
//!
//! Absent on purpose: the file system and the environment, which are accessed through
//! [`Surroundings`].

mod actions;
mod agreement;
mod apq;
mod authentication;
mod authorization;
mod batching;
mod condition;
mod coprocessor;
mod cors;
mod demand_control;
mod expansion;
mod graphql_text;
mod headers;
mod import;
mod key_table;
mod original;
mod persisted_queries;
mod query_planning;
mod references;
mod relocation;
mod remote_schemas;
mod response_cache;
mod response_headers;
mod rest_endpoints;
mod rhai_limits;
mod schema;
mod session_variables;
mod shaping;
mod structure;
mod subgraph_errors;
mod subscription;
mod surface;
mod survey;
mod telemetry;
mod tls;
mod written;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{Document, Finding, Findings, Node, Place, Value};

pub use actions::{
    Action, ActionArgument, ActionKind, BodyAction, BodyTransform, HeaderTransform,
    RequestTransform, ResponseTransform, TemplateEngine, TransformVersion,
};
pub use apq::{Apq, ApqCache, ApqInMemory, ApqRouter};
pub use authentication::{
    Algorithm, Authentication, Jwks, JwksHeader, Jwt, OnTokenError, RouterAuthentication,
};
pub use authorization::{
    Authorization, AuthorizationDirectives, AuthorizationErrors, AuthorizationResponse,
};
pub use batching::{Batching, BatchingMode};
pub use condition::{Condition, Operand, Selector, Source};
pub use coprocessor::{
    BodyParts, ContextParts, Coprocessor, CoprocessorClient, DnsStrategy, ExecutionStages,
    HttpVersions, RouterStages, Stage, SubgraphStages, SupergraphStages,
};
pub use cors::{Cors, CorsPolicy, PrivateNetworkAccess};
pub use demand_control::{DemandControl, DemandMode, DemandStrategy, StaticEstimated};
pub use expansion::Surroundings;
pub use graphql_text::{GraphqlName, StoredText, TypeDefinitions, TypeReference};
pub use headers::{HeaderRule, HeaderRules, HeaderSelection, Headers, InsertedValue};
pub use import::{Import, import};
pub use key_table::key_table;
pub use persisted_queries::{PersistedQueries, Safelist};
pub use query_planning::{PlanCache, PlanCacheInMemory, QueryPlanning};
pub use remote_schemas::{
    ConfiguredHeader, Customization, FieldNameChange, NameChange, RemoteSchema,
};
pub use response_cache::{
    AnswersInRedis, CachedSubgraph, CachedSubgraphs, EffectiveCaching, InvalidationEndpoint,
    ResponseCache, ResponseCacheInMemory, SubgraphInvalidation,
};
pub use response_headers::{Merge, ResponseRule};
pub use rest_endpoints::{QueryCollection, RestEndpoint, RestMethod, StoredQuery, StoredQueryName};
pub use rhai_limits::RhaiLimits;
pub use schema::schema;
pub use session_variables::{MappedClaim, SessionName, SessionVariables};
pub use shaping::{
    Compression, CompressionAsked, EffectiveShaping, RateLimit, Retry, RouterShaping,
    SubgraphShaping, TrafficShaping,
};
pub use subgraph_errors::{ErrorPolicy, ExtensionKeys, IncludeSubgraphErrors};
pub use subscription::{
    Callback, EventSource, HeartbeatInterval, Passthrough, Subscription, SubscriptionMode,
    WebSocketMode, WebSocketProtocol,
};
pub use surface::{
    Csrf, HealthCheck, Homepage, HttpServer, Limits, Readiness, ReadinessInterval, ResponseSize,
    Rhai, Sandbox, Server, SubgraphSizes, Supergraph, VariableValidation,
};
pub use survey::{Survey, Told, survey};
pub use telemetry::{
    AttributeItem, AttributeValue, BatchProcessor, ClientNames, Exporters, HeaderTexts,
    MetricsCommon, MetricsExporters, Otlp, OtlpGrpc, OtlpHttp, OtlpProtocol, Prometheus,
    Propagation, ResponseTraceId, Secret, Telemetry, Temporality, TraceIdFormat, TracingCommon,
    TracingExporters,
};
pub use tls::{ClientAuthentication, ClientTls, Pem, ServerTls, SubgraphTls, Tls};
pub use written::{
    BodyPath, ByteSize, ClaimPath, Endpoint, GraphqlPath, KeySource, Listen, Method, Origin,
    OtlpEndpoint, PathStep, PlainPath, RedisAddress, RestPath, RestSegment, Sampler, TemplateJson,
    TemplateText, Written,
};
pub use yaml_with_places::{Mistake, Mistakes};

/// The gateway's configuration: the keys of Apollo Router that this gateway knows, and those of
/// remote schemas, actions and REST endpoints.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The GraphQL endpoint.
    pub supergraph: Supergraph,
    /// What clients learn about errors of subgraphs: nothing by default.
    pub include_subgraph_errors: IncludeSubgraphErrors,
    /// Rules for the headers of subgraph requests.
    pub headers: Headers,
    /// Which pages of other origins may read answers.
    pub cors: Cors,
    /// Protection against requests that a foreign page makes a browser send.
    pub csrf: Csrf,
    /// Scripts that run at stages of each request.
    pub rhai: Option<Rhai>,
    /// An external process that is asked at stages of each request.
    pub coprocessor: Option<Coprocessor>,
    /// URLs of subgraphs, by name, in place of those in the supergraph.
    pub override_subgraph_url: BTreeMap<String, Written<Endpoint>>,
    /// Timeouts and limits.
    pub traffic_shaping: TrafficShaping,
    /// Sizes beyond which requests are refused.
    pub limits: Limits,
    /// The health check for load balancers and operators.
    pub health_check: HealthCheck,
    /// The page for browsers that ask the endpoint with GET.
    pub homepage: Homepage,
    /// The page on which a person can send queries.
    pub sandbox: Sandbox,
    /// How HTTP is served.
    pub server: Server,
    /// Who may send requests.
    pub authentication: Authentication,
    /// What requests may see.
    pub authorization: Authorization,
    /// What is told about requests, and under which names.
    pub telemetry: Telemetry,
    /// Hashes that clients send in place of texts.
    pub apq: Apq,
    /// Operations of a local list, which clients ask for by their ids.
    pub persisted_queries: PersistedQueries,
    /// Several operations in one request.
    pub batching: Batching,
    /// Certificates of the gateway, and whom it trusts.
    pub tls: Tls,
    /// What an operation is estimated to cost its subgraphs.
    pub demand_control: DemandControl,
    /// Answers of subgraphs that are kept.
    pub response_cache: ResponseCache,
    /// Operations whose answers go on. None are served when it is left out.
    pub subscription: Option<Subscription>,
    /// Whether mutations are refused.
    pub forbid_mutations: bool,
    /// GraphQL services whose schemas are merged into one and served here, in place of a
    /// supergraph. Not known to the original.
    pub remote_schemas: Vec<RemoteSchema>,
    /// The types that actions use, in GraphQL's schema language; `${file.types.graphql}` takes
    /// them from a file. Not known to the original.
    pub types: Written<TypeDefinitions>,
    /// Root fields that HTTP handlers answer. Not known to the original.
    pub actions: Vec<Action>,
    /// Operations that REST endpoints carry out. Not known to the original.
    pub query_collections: Vec<QueryCollection>,
    /// Stored operations served below `/api/rest/`. Not known to the original.
    pub rest_endpoints: Vec<RestEndpoint>,
    /// Who decides about the `x-hasura-*` headers of remote schemas and actions. Not known to the
    /// original.
    pub session_variables: SessionVariables,
}

impl Config {
    /// How subscriptions are served, where they are.
    #[must_use]
    pub fn subscriptions(&self) -> Option<&Subscription> {
        self.subscription.as_ref().filter(|it| it.enabled)
    }

    /// What `--dev` changes: introspection, the sandbox in place of the homepage, and errors of
    /// subgraphs as they are.
    pub fn for_development(&mut self) {
        self.supergraph.introspection = true;
        self.sandbox.enabled = true;
        // Both want the same path; the sandbox is what development needs.
        self.homepage.enabled = false;
        self.include_subgraph_errors = IncludeSubgraphErrors::everything();
    }
}

/// A configuration with its warnings.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The configuration.
    pub config: Config,
    /// Keys that are accepted and have no effect here, and what is probably not meant, as sentences with
    /// their lines.
    pub warnings: Vec<String>,
}

/// Reads a file's text; `path` is only shown in mistakes. With `is_development` the keys that
/// `--dev` sets are set before the check of keys that depend on each other.
///
/// # Errors
/// Every mistake found.
pub fn read(
    path: &Path,
    text: &str,
    surroundings: &dyn Surroundings,
    is_development: bool,
) -> Result<Reading, Mistakes> {
    let sources = sources(path, text);
    let mut findings = Findings::default();
    let mut surveyed = Survey::default();
    let tree = match yaml_with_places::read(0, text, ONE_DOCUMENT, &mut findings) {
        Document::Tree(tree) => {
            let mut tree = expansion::expand(tree, surroundings, &mut findings);
            relocation::relocate(&mut tree, &mut findings);
            surveyed = survey::take(&mut tree, text, &mut findings);
            Some(structure::check(tree, &mut findings))
        }
        // An empty file is a configuration with all defaults.
        Document::Empty => Some(Node {
            place: Place::default(),
            value: Value::Map(Vec::new()),
        }),
        Document::Unreadable => None,
    };
    // Ends here with every mistake of the text: serde would report only the first one, and without
    // a place.
    let sources = findings.settle(sources)?;
    let tree = tree.expect("what makes a file unreadable is reported");
    let mut findings = Findings::default();
    let mut config = match Config::deserialize(tree.json()) {
        Ok(config) => config,
        Err(error) => {
            // The check of the structure finds what serde would. If it missed a mistake, the
            // mistake is reported at least, at the top of the file.
            findings.add(Finding::new(tree.place, error.to_string()));
            return Err(findings.settle(sources).expect_err("a mistake was added"));
        }
    };
    if is_development {
        config.for_development();
    }
    // The tree goes along for the places: the structs no longer know their lines.
    agreement::check(&config, &tree, &mut findings);
    references::check(&config, &tree, &mut findings);
    findings.settle(sources)?;
    let mut warnings = surveyed.warnings();
    warnings.extend(references::warnings(&config, &tree, text));
    warnings.extend(cors::warnings(&tree, text));
    Ok(Reading { config, warnings })
}

/// What to do about a second document in a file.
const ONE_DOCUMENT: &str = "remove the `---`";

/// The file as the only source of its mistakes.
fn sources(path: &Path, text: &str) -> Vec<yaml_with_places::Source> {
    vec![yaml_with_places::Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }]
}

#[cfg(test)]
mod tests;
