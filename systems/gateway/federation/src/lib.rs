//! Federation 2: from a client's query and a supergraph to one response.
//!
//! The way of a request, each step a file: [`Operations`] finds the operation ready or has
//! it prepared (`check`: parse, measure in `limits`, validate, compile the `projection`;
//! `prepare`: plan with the planner's crate, compile the `plan`); [`Prepared::coerce`] checks
//! the variables; [`Prepared::execute`] carries the plan out (`execute`, `entities`, `answer`),
//! merging answers in a `store` that never unescapes or copies a value, and writes the
//! client's data (`response`).
//!
//! The one idea: everything that can be decided before the variables are known is decided
//! when the operation is prepared, and every value stays the text that the subgraph wrote.
//!
//! [`check_operation`] is the part of this that knows nothing of federation; gateways of merged
//! schemas use it.
//!
//! Absent on purpose: sockets, HTTP, headers, configuration and clocks. Requests leave
//! through [`Fetch`].

mod access_rules;
mod answer;
mod authorization;
mod bounds;
mod by_type;
mod canonical;
mod check;
mod checked;
mod composition;
mod cost;
mod defer;
mod deferral;
mod divide;
mod effort;
mod entities;
mod error;
mod execute;
mod execution_state;
mod features;
mod fetch;
mod key_order;
mod large_stack;
mod leaving;
mod limits;
mod normalize;
mod operation_text;
mod operations;
mod options;
mod override_labels;
mod parts;
mod plan;
mod plan_compiler;
mod planning;
mod policy;
mod prepare;
mod prepared;
mod projection;
mod projection_compiler;
mod proof;
mod provides;
mod refusal;
mod required;
mod requiring;
mod response;
mod schema;
mod sdl;
mod store;
mod supergraph;
mod supergraph_error;
mod unselected;
mod unserved;
mod variables;
mod weight;

pub use access_rules::{Demand, Grants};
pub use authorization::UNAUTHORIZED;
pub use bounds::Bounds;
pub use canonical::{Canonical, canonical};
pub use check::{SUBSCRIPTION_DISABLED, check_operation};
pub use checked::{AnswerMember, AnswerShape, Checked, MemberSource};
pub use cost::NoEstimate;
pub use effort::{Effort, Stop};
pub use error::{GraphqlError, Location, PathSegment, errors_body};
pub use execute::Executed;
pub use fetch::{Fetch, OperationKind, SubgraphAnswer, SubgraphRequest};
pub use limits::Limits;
pub use operations::Operations;
pub use options::{AuthorizationOptions, OperationOptions, ToldIn};
pub use override_labels::{OverrideLabels, Overrides};
pub use parts::{Open, PartsFormat, Piece};
pub use policy::{ErrorPolicies, ErrorPolicy, ExtensionFilter};
pub use prepare::Asked;
pub use prepared::Prepared;
pub use refusal::Refusal;
pub use schema::{Schema, type_name};
pub use supergraph::{Subgraph, Supergraph};
pub use supergraph_error::SupergraphError;
pub use variables::Variables;
