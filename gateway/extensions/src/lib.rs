//! The extension points of the gateway: header rules, Rhai scripts, coprocessors, tokens.
//!
//! The four services of a gateway (router, supergraph, execution, subgraph) have one shape: a [`StageRequest`] on
//! the way in and a [`Response`] on the way out. Both have bytes as bodies. A [`Service`] is the list of
//! stages that are configured for one of them. If no stage is configured, there is no service, and the
//! gateway copies, parses and allocates no data.
//!
//! [`Extensions`] belongs to a configuration, and all workers share it. [`ExtensionsWorker`] belongs to one thread and
//! contains its compiled scripts and its connections. Requests pass through a [`ExtensionsWorker`].
//!
//! Absent on purpose: the HTTP server, GraphQL and its plans.

mod address;
mod answer_cache;
mod build;
mod condition;
mod context;
mod coprocessor;
pub mod cost;
mod encoding;
mod environment;
mod event_request;
mod exchange;
mod failure;
mod header_rules;
mod identifier;
mod instrumentation;
mod json;
mod masked_headers;
mod observer;
mod relay;
mod request_coalescing;
mod request_key;
mod response_headers;
mod retry;
mod script;
mod service;
mod subgraph;
mod token;

pub use answer_cache::AnswerCache;
pub use build::{BuildError, Extensions, ExtensionsWorker, subgraph_endpoint};
pub use context::{
    AUTHENTICATION_REQUIRED, CLIENT_NAME, CLIENT_VERSION, Context, JWT_CLAIMS, LABELS_TO_OVERRIDE,
    OPERATION_ID, OPERATION_KIND, OPERATION_NAME, REQUIRED_POLICIES, REQUIRED_SCOPES,
    UNRESOLVED_LABELS,
};
pub use coprocessor::{CoprocessorError, CoprocessorStage};
pub use encoding::{ExpandError, expand};
pub use event_request::EventRequest;
pub use exchange::{
    ClientHead, Exchange, OperationSize, PartOf, QueryPlan, Response, StageRequest, Step,
};
pub use failure::FetchProblem;
pub use header_rules::{ClientBody, Rules};
pub use identifier::random;
pub use instrumentation::{
    ClientConnection, Facts, Instrumentation, LogIds, ServiceInstrumentation,
};
pub use observer::{NoObserver, Observer, StageKind};
pub use relay::{RelayCall, RelayError};
pub use request_key::RequestKey;
pub use service::Service;
pub use subgraph::{SubgraphCall, SubgraphOutcome};
pub use token::{KeyStore, TokenKeys, seconds_until_expiry};
