//! The gateway's configuration: Apollo Router's YAML keys and the keys of merged schemas. All mistakes of a
//! file are reported at once.
//!
//! Reading a file has five steps, one module each:
//!
//! 1. `yaml_with_places` parses the text into a tree, and every node has its place in the file.
//! 2. `expansion` expands `${env.X:-d}` and `${file.path}`, and determines the type of changed values again.
//! 3. `structure` checks the tree against the JSON Schema of [`Config`]. It collects every mistake with its
//!    line: unknown keys, wrong types, values with a wrong format.
//! 4. serde reads the structs.
//! 5. `agreement` checks keys that depend on each other, and `references` checks references to names.
//!
//! The modules with names of keys contain the structs. Each component of the gateway receives only the
//! structs that it needs.
//!
//! Absent on purpose: the file system and the environment. They are accessed through [`Surroundings`].

mod actions;
mod agreement;
mod apq;
mod attribute;
mod authentication;
mod authorization;
mod batching;
mod condition;
mod config;
mod coprocessor;
mod cors;
mod demand_control;
mod expansion;
mod fate;
mod graphql_text;
mod header_masking;
mod header_selection;
mod header_warnings;
mod headers;
mod input_defaults;
mod instrumentation;
mod instrumentation_check;
mod key_table;
mod log_export;
mod original;
mod persisted_queries;
mod query_planning;
mod read;
mod references;
mod relocation;
mod remote_schemas;
mod report;
mod resource_value;
mod response_cache;
mod response_headers;
mod rest_endpoints;
mod rhai_limits;
mod schema;
mod selector;
mod session_variables;
mod shaping;
mod sources;
mod standard_attributes;
mod structure;
mod subgraph_errors;
mod subscription;
mod surface;
mod survey;
mod telemetry;
mod tls;
mod trace_id;
mod unserved;
mod unserved_telemetry;
mod written;
mod written_as;

pub use actions::{
    Action, ActionArgument, ActionKind, ActionPermission, BodyAction, BodyTransform,
    HeaderTransform, QueryParameters, RequestTransform, ResponseTransform, TemplateEngine,
    TransformVersion,
};
pub use apq::{Apq, ApqCache, ApqInMemory, ApqRouter};
pub use attribute::{Attribute, Measured};
pub use authentication::{
    Algorithm, Authentication, Jwks, JwksHeader, Jwt, OnTokenError, RouterAuthentication,
};
pub use authorization::{
    Authorization, AuthorizationDirectives, AuthorizationErrors, AuthorizationResponse,
};
pub use batching::{Batching, BatchingMode};
pub use condition::{Condition, Operand};
pub use config::Config;
pub use coprocessor::{
    BodyParts, ContextParts, Coprocessor, CoprocessorClient, DnsStrategy, ExecutionStages,
    HttpVersions, RouterStages, Stage, SubgraphStages, SupergraphStages,
};
pub use cors::{Cors, CorsPolicy, PrivateNetworkAccess};
pub use demand_control::{DemandControl, DemandMode, DemandStrategy, StaticEstimated};
pub use expansion::{Surroundings, expand};
pub use graphql_text::{GraphqlName, StoredText, TypeDefinitions, TypeReference, inner_name};
pub use header_masking::HeaderMasking;
pub use header_selection::HeaderSelection;
pub use headers::{HeaderRule, HeaderRules, Headers, InsertedValue, RuleList};
pub use instrumentation::{
    Attributes, EventDefinition, EventInstrumentation, EventLevel, EventMoment, EventRule,
    Instrument, InstrumentDefinition, InstrumentType, Instrumentation, Instruments,
    RequirementLevel, SpanAttributes, SpanInstrumentation, SpanMode,
};
pub use key_table::key_table;
pub use log_export::{
    DisplayTraceId, JsonLogOptions, LogForm, LogFormat, LogOutput, LogRateLimit, LoggingCommon,
    LoggingExporters, TextLogOptions, WrittenLogFormat,
};
pub use persisted_queries::{PersistedQueries, Safelist};
pub use query_planning::{PlanCache, PlanCacheInMemory, QueryPlanning};
pub use read::{ReadConfig, read};
pub use remote_schemas::{
    ConfiguredHeader, Customization, FieldNameChange, NameChange, RemoteSchema,
};
pub use resource_value::{AttributeItem, AttributeValue};
pub use response_cache::{
    AnswersInRedis, CachedSubgraph, CachedSubgraphs, EffectiveCaching, InvalidationEndpoint,
    ResponseCache, ResponseCacheInMemory, SubgraphInvalidation,
};
pub use response_headers::{Merge, ResponseRule};
pub use rest_endpoints::{QueryCollection, RestEndpoint, RestMethod, StoredQuery, StoredQueryName};
pub use rhai_limits::RhaiLimits;
pub use schema::schema;
pub use selector::{CostValue, QuerySize, Redact, Selector, SelectorSource};
pub use session_variables::{MappedClaim, SessionName, SessionVariables};
pub use shaping::{
    Compression, CompressionAsked, EffectiveShaping, RateLimit, Retry, RouterShaping,
    SubgraphShaping, TrafficShaping,
};
pub use standard_attributes::{InstrumentedService, StandardAttribute};
pub use subgraph_errors::{ErrorPolicy, ExtensionKeys, IncludeSubgraphErrors};
pub use subscription::{
    Callback, EventSource, HeartbeatInterval, Passthrough, Subscription, SubscriptionMode,
    WebSocketMode, WebSocketProtocol,
};
pub use surface::{
    Csrf, HealthCheck, Homepage, HttpServer, Readiness, ReadinessInterval, RequestLimits,
    ResponseSize, Rhai, Sandbox, Server, SubgraphSizes, Supergraph, VariableValidation,
};
pub use survey::{Survey, SurveyedKey, survey};
pub use telemetry::{
    BatchProcessor, ClientNames, Datadog, Exporters, HeaderTexts, MetricsCommon, MetricsExporters,
    Otlp, OtlpGrpc, OtlpHttp, OtlpProtocol, Prometheus, Propagation, RequestTraceId,
    ResponseTraceId, Secret, Telemetry, Temporality, TracingCommon, TracingExporters, Zipkin,
};
pub use tls::{ClientAuthentication, ClientTls, Pem, ServerTls, SubgraphTls, Tls};
pub use trace_id::TraceIdFormat;
pub use written::{
    BodyPath, ByteSize, ClaimPath, DataPath, DataStep, GraphqlPath, KeySource, Listen, Method,
    OtlpEndpoint, PathStep, PlainPath, RedisAddress, RestPath, RestSegment, Sampler,
    ServiceAddress, TemplateJson, TemplateText, WebOrigin, Written,
};
pub use yaml_with_places::{Mistake, Mistakes};

#[cfg(test)]
mod tests;
