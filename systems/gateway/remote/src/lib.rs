//! Merged schemas: GraphQL services and HTTP handlers behind one schema, and stored operations.
//!
//! The way from a configuration to an answer: `introspection` reads what a service says of itself,
//! `names` gives it the names that the configuration wishes, `merge` makes one schema of all and
//! notes who answers each root field. An operation is checked (by `gateway-federation`), then
//! `route` decides who is asked for what, with `outgoing` writing what a service is asked, and
//! `execute` carries that out. `action` is the way to a handler and back, `rest` the way of a
//! stored operation.
//!
//! The one idea: a value of a service is a slice of the text it sent. When the whole operation is
//! one service's, its answer is the answer.
//!
//! Absent on purpose: sockets and clocks. Requests leave through [`Sources`].

mod action;
mod answer;
mod asking;
mod call;
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
pub use introspection::{INTROSPECTION_BODY, IntrospectionError, SourceSchema};
pub use merge::Inconsistency;
pub use merged::{Merged, Outcome, Prepared};
pub use names::NamesError;
pub use rest::{REST_PREFIX, RestAnswer, RestEndpoints, RestError, RestRequest, unwrap_response};
pub use session::{Session, SessionError};
