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
use crate::surface::{
    Csrf, HealthCheck, Homepage, RequestLimits, Rhai, Sandbox, Server, Supergraph,
};
use crate::telemetry::Telemetry;
use crate::tls::Tls;
use crate::written::{ServiceAddress, Written};

/// The configuration of the gateway. It has the supported keys of Apollo Router, and keys for remote schemas,
/// actions and REST endpoints.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The GraphQL endpoint for clients.
    pub supergraph: Supergraph,
    /// The errors of subgraphs that clients receive. The default is that clients receive no details.
    pub include_subgraph_errors: IncludeSubgraphErrors,
    /// Rules for the headers of subgraph requests.
    pub headers: Headers,
    /// The pages of other origins that may read responses.
    pub cors: Cors,
    /// Protection against requests that a foreign page makes a browser send.
    pub csrf: Csrf,
    /// Scripts that run at stages of each request.
    pub rhai: Option<Rhai>,
    /// An external process that the gateway calls at stages of each request.
    pub coprocessor: Option<Coprocessor>,
    /// URLs of subgraphs by name. They replace the URLs in the supergraph.
    pub override_subgraph_url: BTreeMap<String, Written<ServiceAddress>>,
    /// Timeouts, rate limits, compression and retries.
    pub traffic_shaping: TrafficShaping,
    /// Limits of requests, responses and connections.
    pub limits: RequestLimits,
    /// The health check for load balancers and operators.
    pub health_check: HealthCheck,
    /// The page for browsers that open the endpoint.
    pub homepage: Homepage,
    /// The page on which a person can send queries.
    pub sandbox: Sandbox,
    /// Settings of the HTTP server.
    pub server: Server,
    /// The check of clients' credentials.
    pub authentication: Authentication,
    /// The rules for access to fields.
    pub authorization: Authorization,
    /// Logs, traces and metrics of requests, and their names.
    pub telemetry: Telemetry,
    /// Automatic persisted queries. Clients send hashes instead of texts.
    pub apq: Apq,
    /// Operations of a local list. Clients request them by their ids.
    pub persisted_queries: PersistedQueries,
    /// Several operations in one request.
    pub batching: Batching,
    /// Certificates of the gateway, and certificates that it trusts.
    pub tls: Tls,
    /// The estimated cost of an operation for its subgraphs.
    pub demand_control: DemandControl,
    /// The cache of subgraph responses.
    pub response_cache: ResponseCache,
    /// Operations with a stream of responses. Without this key, the gateway refuses them.
    pub subscription: Option<Subscription>,
    /// True if the gateway refuses mutations.
    pub forbid_mutations: bool,
    /// GraphQL services instead of a supergraph. The gateway merges their schemas into one. Not in Apollo
    /// Router.
    pub remote_schemas: Vec<RemoteSchema>,
    /// The types of actions, in GraphQL's schema language. `${file.types.graphql}` reads them from a file.
    /// Not in Apollo Router.
    pub types: Written<TypeDefinitions>,
    /// Root fields with HTTP handlers. Not in Apollo Router.
    pub actions: Vec<Action>,
    /// Operations for REST endpoints. Not in Apollo Router.
    pub query_collections: Vec<QueryCollection>,
    /// Stored operations at paths below `/api/rest/`. Not in Apollo Router.
    pub rest_endpoints: Vec<RestEndpoint>,
    /// The source of the `x-hasura-*` headers for remote schemas and actions. Not in Apollo Router.
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
