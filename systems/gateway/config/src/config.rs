//! The root of the file, with one field per top-level key.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::actions::Action;
use crate::apq::Apq;
use crate::authentication::Authentication;
use crate::authorization::Authorization;
use crate::batching::Batching;
use crate::coprocessor::Coprocessor;
use crate::cors::Cors;
use crate::demand_control::DemandControl;
use crate::graphql_text::TypeDefinitions;
use crate::headers::Headers;
use crate::persisted_queries::PersistedQueries;
use crate::remote_schemas::RemoteSchema;
use crate::response_cache::ResponseCache;
use crate::rest_endpoints::{QueryCollection, RestEndpoint};
use crate::session_variables::SessionVariables;
use crate::shaping::TrafficShaping;
use crate::subgraph_errors::IncludeSubgraphErrors;
use crate::subscription::Subscription;
use crate::surface::{Csrf, HealthCheck, Homepage, Limits, Rhai, Sandbox, Server, Supergraph};
use crate::telemetry::Telemetry;
use crate::tls::Tls;
use crate::written::{Endpoint, Written};

/// The gateway's configuration: the keys of Apollo Router that this gateway knows, and those of
/// remote schemas, actions and REST endpoints.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The GraphQL endpoint.
    pub supergraph: Supergraph,
    /// The errors of subgraphs that clients receive. By default they receive none.
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
    /// Logs, traces and metrics of requests, and their names.
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
    /// The subscription settings, or `None` if subscriptions are off.
    #[must_use]
    pub fn subscriptions(&self) -> Option<&Subscription> {
        self.subscription.as_ref().filter(|it| it.enabled)
    }

    /// Applies `--dev`. It enables introspection, the sandbox instead of the homepage, and unchanged errors of
    /// subgraphs.
    pub fn for_development(&mut self) {
        self.supergraph.introspection = true;
        self.sandbox.enabled = true;
        // Both use one path, and development needs the sandbox.
        self.homepage.enabled = false;
        self.include_subgraph_errors = IncludeSubgraphErrors::everything();
    }
}
