//! The extension points of the gateway: header rules, Rhai scripts, coprocessors, tokens.
//!
//! The one idea: the four services of a gateway (router, supergraph, execution,
//! subgraph) have the same shape, a [`Request`] on the way in and a [`Response`]
//! on the way out, whose bodies are bytes. A [`Service`] is the list of what is
//! configured for one of them; where nothing is configured there is no service
//! to call, and nothing is copied, parsed or allocated.
//!
//! [`Extensions`] belongs to a configuration and is shared by all workers;
//! [`Worker`] belongs to one thread, holds its compiled scripts and its
//! connections, and is where requests go.
//!
//! Absent on purpose: the HTTP server, GraphQL and its plans.

mod address;
mod answer_cache;
mod build;
mod condition;
mod context;
mod coprocessor;
mod encoding;
mod environment;
mod event_request;
mod exchange;
mod failure;
mod flights;
mod header_rules;
mod identifier;
mod json;
mod observer;
mod relay;
mod request_key;
mod response_headers;
mod retry;
mod script;
mod service;
mod subgraph;
mod token;

pub use answer_cache::AnswerCache;
pub use build::{BuildError, Extensions, Worker, subgraph_endpoint};
pub use context::{
    AUTHENTICATION_REQUIRED, CLIENT_NAME, CLIENT_VERSION, Context, JWT_CLAIMS, LABELS_TO_OVERRIDE,
    REQUIRED_POLICIES, REQUIRED_SCOPES, UNRESOLVED_LABELS,
};
pub use coprocessor::{CoprocessorError, CoprocessorStage};
pub use event_request::EventRequest;
pub use exchange::{ClientHead, Exchange, PartOf, QueryPlan, Request, Response, Step};
pub use failure::FetchProblem;
pub use header_rules::{ClientBody, Rules};
pub use identifier::random;
pub use observer::{NoObserver, Observer, StageKind};
pub use relay::{RelayCall, RelayError};
pub use request_key::RequestKey;
pub use service::Service;
pub use subgraph::{SubgraphCall, SubgraphOutcome};
pub use token::{KeyStore, TokenKeys, seconds_until_expiry};
