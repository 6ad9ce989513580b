//! Executes operations on a federated supergraph or on a schema merged from services and handlers.

use std::sync::Arc;

use gateway_extensions::QueryPlan;
use gateway_federation::{
    ErrorPolicies, GraphqlError, OperationKind, Operations, Refusal, Variables,
};
use gateway_remote::Merged;
use operation_cache::CacheStats;
use serde_json::json;

/// Executes operations. Clones share everything.
#[derive(Clone)]
pub(crate) enum Engine {
    Federated {
        operations: Arc<Operations>,
        policies: Arc<ErrorPolicies>,
    },
    Merged(Arc<Merged>),
}

/// An operation that has been parsed, validated and planned.
#[derive(Clone)]
pub(crate) enum Operation {
    Federated(Arc<gateway_federation::Prepared>),
    Merged(Arc<gateway_remote::Prepared>),
}

type Outcome = Result<Operation, Arc<Refusal>>;

impl Engine {
    /// The operation, or its refusal, if it is in the cache. Never parses.
    pub(crate) fn cached(&self, query: &str, operation_name: Option<&str>) -> Option<Outcome> {
        match self {
            Self::Federated { operations, .. } => {
                let outcome = operations.cached(query, operation_name)?;
                Some(outcome.map(Operation::Federated))
            }
            Self::Merged(merged) => {
                let outcome = merged.cached(query, operation_name)?;
                Some(outcome.map(Operation::Merged))
            }
        }
    }

    /// The operation, prepared if it is not in the cache.
    pub(crate) fn prepare(&self, query: &str, operation_name: Option<&str>) -> Outcome {
        match self {
            Self::Federated { operations, .. } => operations
                .prepare(query, operation_name)
                .map(Operation::Federated),
            Self::Merged(merged) => merged.prepare(query, operation_name).map(Operation::Merged),
        }
    }

    /// Hits, misses and entries of the operation cache.
    pub(crate) fn cache_stats(&self) -> CacheStats {
        match self {
            Self::Federated { operations, .. } => operations.cache_stats(),
            Self::Merged(merged) => merged.cache_stats(),
        }
    }
}

impl Operation {
    pub(crate) fn kind(&self) -> OperationKind {
        match self {
            Self::Federated(prepared) => prepared.kind(),
            Self::Merged(prepared) => prepared.kind(),
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Federated(prepared) => prepared.operation_name(),
            Self::Merged(prepared) => prepared.operation_name(),
        }
    }

    /// The limits that it exceeds while `warn_only` lets it pass.
    pub(crate) fn exceeded(&self) -> &[GraphqlError] {
        match self {
            Self::Federated(prepared) => prepared.exceeded(),
            Self::Merged(prepared) => prepared.exceeded(),
        }
    }

    /// The plan, as stages see it.
    pub(crate) fn query_plan(&self) -> QueryPlan {
        match self {
            Self::Federated(prepared) => QueryPlan {
                text: prepared.plan_text(),
                json: prepared.plan_json(),
            },
            Self::Merged(prepared) => {
                let text = prepared.plan_text();
                let json = json!({ "kind": "QueryPlan", "formatted": text });
                QueryPlan {
                    json: json.to_string().into(),
                    text: text.into(),
                }
            }
        }
    }

    /// Checks the variables of a request.
    pub(crate) fn coerce(&self, raw: Option<&[u8]>) -> Result<Variables, Vec<GraphqlError>> {
        match self {
            Self::Federated(prepared) => prepared.coerce(raw),
            Self::Merged(prepared) => prepared.coerce(raw),
        }
    }
}
