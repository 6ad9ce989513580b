//! Prepared operations by text: a bounded cache in front of the work.
//!
//! Refusals are kept, too, so that a client in a loop cannot buy a validation with every request.

use std::sync::Arc;

use operation_cache::{CacheStats, OperationCache};

use crate::bounds::Bounds;
use crate::error::{GraphqlError, errors_body};
use crate::limits::Limits;
use crate::prepare;
use crate::prepared::Prepared;
use crate::supergraph::Supergraph;

/// How operations are checked and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationOptions {
    /// Whether `__schema` and `__type` are answered (`supergraph.introspection`).
    pub introspection: bool,
    /// Whether introspection that nests lists of fields is refused
    /// (`limits.introspection_max_depth`).
    pub introspection_max_depth: bool,
    /// Bounds on what is asked for.
    pub limits: Limits,
    /// Bounds on what is answered.
    pub bounds: Bounds,
    /// How many operations are kept ready; at least one.
    pub cached_plans: usize,
}

impl Default for OperationOptions {
    fn default() -> Self {
        OperationOptions {
            introspection: false,
            introspection_max_depth: true,
            limits: Limits::default(),
            bounds: Bounds::default(),
            cached_plans: 512,
        }
    }
}

/// Why an operation is not executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// One or more; codes are in their extensions.
    pub errors: Vec<GraphqlError>,
    /// Whether the fault is the gateway's (status 500), not the client's (status 400).
    pub internal: bool,
}

impl Refusal {
    pub(crate) fn from_errors(errors: Vec<GraphqlError>) -> Refusal {
        Refusal {
            errors,
            internal: false,
        }
    }

    pub(crate) fn from_error(error: GraphqlError) -> Refusal {
        Refusal::from_errors(vec![error])
    }

    pub(crate) fn invalid(message: &str) -> Refusal {
        Refusal::from_error(GraphqlError::new(message, "GRAPHQL_VALIDATION_FAILED"))
    }

    pub(crate) fn internal(message: &str) -> Refusal {
        Refusal {
            errors: vec![GraphqlError::new(message, "QUERY_PLANNING_FAILED")],
            internal: true,
        }
    }

    /// The response: `{"errors":[…]}`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        errors_body(&self.errors)
    }
}

type Outcome = Result<Arc<Prepared>, Arc<Refusal>>;

/// The operations of one supergraph under one configuration.
#[derive(Debug)]
pub struct Operations {
    supergraph: Arc<Supergraph>,
    options: OperationOptions,
    cache: OperationCache<Outcome>,
}

impl Operations {
    /// No operation is ready at first.
    #[must_use]
    pub fn new(supergraph: Arc<Supergraph>, options: OperationOptions) -> Operations {
        Operations {
            supergraph,
            cache: OperationCache::new(options.cached_plans),
            options,
        }
    }

    /// The supergraph that operations are prepared for.
    #[must_use]
    pub fn supergraph(&self) -> &Arc<Supergraph> {
        &self.supergraph
    }

    /// The operation if it is ready, or its refusal. Never parses.
    pub fn cached(&self, query: &str, operation_name: Option<&str>) -> Option<Outcome> {
        self.cache.get(query, operation_name)
    }

    /// The operation, made ready if it is not yet. May take milliseconds then, on a thread
    /// of its own that the caller waits for.
    ///
    /// # Errors
    /// With what the client is told, when the text is not an operation that can be
    /// executed.
    pub fn prepare(&self, query: &str, operation_name: Option<&str>) -> Outcome {
        // Not under a lock: two requests that bring one new text at once may both prepare it, but
        // no request waits for another's text.
        self.cache.get_or_make(query, operation_name, || {
            let outcome = prepare::prepare(&self.supergraph, query, operation_name, &self.options);
            let outcome = outcome.map(Arc::new).map_err(Arc::new);
            // An internal failure may be one of the moment, such as the deadline.
            let lasting = outcome.as_ref().err().is_none_or(|it| !it.internal);
            (outcome, lasting)
        })
    }

    /// What the cache has done so far.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }
}
