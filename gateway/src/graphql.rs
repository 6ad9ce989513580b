//! GraphQL operations, from the text of a request to the response of its plan.

pub(crate) mod apq;
mod authorization;
mod batch;
pub(crate) mod cost_limit;
pub(crate) mod engine;
mod execution;
mod operation_head;
pub(crate) mod operation_list;
pub(crate) mod pipeline;
pub(crate) mod planning;
mod progressive_override;
mod query_planning;
mod request_body;
pub(crate) mod subgraphs;
