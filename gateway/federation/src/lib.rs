//! Federation 2: executes a client's query over the subgraphs of a supergraph.
//!
//! A request takes these steps, and each step has a file:
//!
//! 1. [`Operations`] finds the prepared operation or prepares it. `check` parses, measures (`limits`),
//!    validates and compiles the `projection`. `prepare` calls the planner's crate and compiles the `plan`.
//! 2. [`Prepared::coerce`] checks the variables.
//! 3. [`Prepared::execute`] executes the plan (`execute`, `entities`, `answer`). It merges responses in a
//!    `store`, which never unescapes or copies a value.
//! 4. `response` writes the client's data.
//!
//! Everything that does not depend on the variables is decided during preparation. Every value stays the text
//! that the subgraph wrote.
//!
//! [`check_operation`] is independent of federation. Gateways of merged schemas use it.
//!
//! The crate deliberately contains no sockets, HTTP, headers, configuration or clocks. Requests leave it
//! through [`Fetch`].

mod access_rules;
mod answer;
mod apart;
mod asked;
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
mod interface_objects;
mod key_order;
mod large_stack;
mod limits;
mod merged_conditions;
mod normalize;
mod numbers;
mod operation_head;
mod operation_text;
mod operations;
mod optional_fields;
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
mod provided_typename;
mod provides;
mod refusal;
mod required;
mod requiring;
mod reserved_alias;
mod response;
mod schema;
mod schema_description;
mod sdl;
mod signature;
mod store;
mod supergraph;
mod supergraph_error;
mod tokens;
mod told_types;
mod unselected;
mod unserved;
mod unstated;
mod variables;
mod weight;

pub use access_rules::{Demand, Grants};
pub use authorization::UNAUTHORIZED;
pub use bounds::ExecutionLimits;
pub use canonical::{Canonical, canonical};
pub use check::{SUBSCRIPTION_DISABLED, check_operation};
pub use checked::{AnswerMember, AnswerShape, Checked, MemberSource};
pub use cost::NoEstimate;
pub use effort::{Effort, Stop};
pub use error::{GraphqlError, Location, PathSegment, errors_body};
pub use execute::Executed;
pub use fetch::{Fetch, OperationKind, SubgraphAnswer, SubgraphRequest};
pub use limits::{Extent, Fragments, OperationLimits, fragments};
pub use operation_head::OperationHead;
pub use operations::Operations;
pub use options::{AuthorizationOptions, OperationOptions, ReportIn};
pub use override_labels::{OverrideLabels, Overrides};
pub use parts::{Open, PartsFormat, Piece};
pub use policy::{ErrorPolicies, ErrorPolicy, ExtensionFilter};
pub use prepare::OperationRequest;
pub use prepared::Prepared;
pub use refusal::Refusal;
pub use schema::{Schema, inner_name, type_name};
pub use supergraph::{Subgraph, Supergraph};
pub use supergraph_error::SupergraphError;
pub use variables::Variables;
