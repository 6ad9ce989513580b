//! Executes operations on a federated supergraph or on a schema merged from services and handlers.

use std::sync::Arc;

use gateway_extensions::{OperationSize, QueryPlan};
use gateway_federation::{
    Effort, ErrorPolicies, GraphqlError, OperationKind, OperationRequest, Operations,
    OverrideLabels, Refusal, Variables,
};
use gateway_remote::Merged;
use operation_cache::CacheStats;
use serde_json::json;

/// The execution engine. Clones share all data.
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

pub(crate) type Outcome = Result<Operation, Arc<Refusal>>;

impl Engine {
    /// The operation, or its rejection, if it is in the cache. Never parses.
    pub(crate) fn find(&self, requested: &OperationRequest<'_>) -> Option<Outcome> {
        match self {
            Self::Federated { operations, .. } => {
                let outcome = operations.find(requested)?;
                Some(outcome.map(Operation::Federated))
            }
            Self::Merged(merged) => {
                let outcome = merged.cached(requested.query, requested.operation_name)?;
                Some(outcome.map(Operation::Merged))
            }
        }
    }

    /// The operation. Prepares it if it is not in the cache.
    pub(crate) fn make(&self, requested: &OperationRequest<'_>, effort: &Effort) -> Outcome {
        match self {
            Self::Federated { operations, .. } => {
                operations.make(requested, effort).map(Operation::Federated)
            }
            Self::Merged(merged) => merged
                .make(requested.query, requested.operation_name, effort)
                .map(Operation::Merged),
        }
    }

    /// The labels of the supergraph's `@override` directives. `None` if there are no labels.
    pub(crate) fn override_labels(&self) -> Option<&OverrideLabels> {
        match self {
            Self::Federated { operations, .. } => operations.override_labels(),
            Self::Merged(_) => None,
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

    /// The digest of the operation's signature.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Federated(prepared) => prepared.operation_id(),
            Self::Merged(prepared) => prepared.operation_id(),
        }
    }

    /// The limits that the operation exceeds. With `warn_only` it runs even so.
    pub(crate) fn exceeded(&self) -> &[GraphqlError] {
        match self {
            Self::Federated(prepared) => prepared.exceeded(),
            Self::Merged(prepared) => prepared.exceeded(),
        }
    }

    /// The measured size of the operation.
    pub(crate) fn size(&self) -> OperationSize {
        let extent = match self {
            Self::Federated(prepared) => prepared.extent(),
            Self::Merged(prepared) => prepared.extent(),
        };
        OperationSize {
            aliases: extent.aliases,
            depth: extent.depth,
            height: extent.height,
            root_fields: extent.root_fields,
        }
    }

    /// The plan in the form for stages.
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
