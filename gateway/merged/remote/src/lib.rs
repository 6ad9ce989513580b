//! Merged schemas (GraphQL services and HTTP handlers behind one schema) and stored operations.
//!
//! From a configuration to a schema: `introspection` reads a service's schema, and `names` applies the
//! configured names. `merge` merges all schemas and records the source of each root field.
//!
//! From an operation to a response: `gateway-federation` checks the operation, and `route` plans the
//! requests. `outgoing` writes the operation for each service, and `execute` runs the plan. `action` handles
//! requests to handlers and their responses. `rest` maps REST endpoints to stored operations.
//!
//! The key idea: a value from a service is a slice of the service's response. If a single service answers the
//! whole operation, its response is passed on unchanged.
//!
//! Absent on purpose: sockets and clocks. Requests leave through [`Sources`].

mod action;
mod answer;
mod asking;
mod call;
mod coercion;
mod execute;
mod failure;
mod introspection;
mod literal;
mod merge;
mod merged;
mod names;
mod outgoing;
mod output;
mod rest;
mod route;
mod session;

pub use asking::Asking;
pub use call::{Call, CallAnswer, CallError, Sources};
pub use execute::Executed;
pub use introspection::{INTROSPECTION_BODIES, IntrospectionError, SourceSchema};
pub use merge::{Inconsistency, UnmergedFields, UnmergedReason};
pub use merged::{Merged, Outcome, Prepared};
pub use names::NamesError;
pub use rest::{REST_PREFIX, RestAnswer, RestEndpoints, RestError, RestRequest, unwrap_response};
pub use session::{Session, SessionError};
