//! GraphQL operations, from the text of a request to the response of its plan.

pub(crate) mod apq;
mod authorization;
mod batch;
pub(crate) mod demand;
pub(crate) mod engine;
mod execution;
pub(crate) mod operation_list;
pub(crate) mod pipeline;
pub(crate) mod planning;
mod progressive_override;
mod query_planning;
mod sources;
pub(crate) mod subgraphs;
mod understood;
