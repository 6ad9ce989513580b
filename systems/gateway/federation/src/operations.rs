//! Prepared operations by text: a bounded cache in front of the work.
//!
//! Refusals are kept, too, so that a client in a loop cannot buy a validation with every request.

use std::sync::Arc;
use std::time::Duration;

use operation_cache::{Bounds as CacheBounds, CacheStats, Keep, Key, OperationCache};

use crate::access_rules::Grants;
use crate::authorization::AuthorizationOptions;
use crate::bounds::Bounds;
use crate::effort::{Effort, Stop};
use crate::error::{GraphqlError, errors_body};
use crate::limits::Limits;
use crate::override_labels::{OverrideLabels, Overrides};
use crate::prepare;
use crate::prepared::Prepared;
use crate::supergraph::Supergraph;

/// How long a refusal is kept that may have been the machine's fault and not the operation's.
const DOUBTFUL_KEPT: Duration = Duration::from_secs(60);

/// How operations are checked and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationOptions {
    /// Whether `__schema` and `__type` are answered (`supergraph.introspection`).
    pub introspection: bool,
    /// Whether introspection that nests lists of fields is refused
    /// (`limits.introspection_max_depth`).
    pub introspection_max_depth: bool,
    /// Whether subscriptions are served (`subscription.enabled`).
    pub subscriptions: bool,
    /// Bounds on what is asked for.
    pub limits: Limits,
    /// How what a request may not see is treated.
    pub authorization: AuthorizationOptions,
    /// Bounds on what is answered.
    pub bounds: Bounds,
    /// How many operations are kept ready; at least one.
    pub cached_plans: usize,
    /// How many bytes they may take, refusals included.
    pub cached_bytes: usize,
    /// Longest that one operation is planned.
    pub planning_time: Duration,
    /// The size of lists about which the supergraph says nothing, where costs are estimated
    /// (`demand_control`).
    pub demand_list_size: Option<u32>,
    /// Whether deferred fragments may come in parts of their own (`supergraph.defer_support`).
    pub defer: bool,
}

impl Default for OperationOptions {
    fn default() -> Self {
        OperationOptions {
            introspection: false,
            introspection_max_depth: true,
            subscriptions: false,
            limits: Limits::default(),
            authorization: AuthorizationOptions::default(),
            bounds: Bounds::default(),
            cached_plans: 512,
            cached_bytes: 64 << 20,
            planning_time: Duration::from_secs(5),
            demand_list_size: None,
            defer: true,
        }
    }
}

impl OperationOptions {
    /// What the cache of operations may hold.
    #[must_use]
    pub fn cache_bounds(&self) -> CacheBounds {
        CacheBounds {
            entries: self.cached_plans,
            bytes: self.cached_bytes,
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The text of the document.
    pub query: &'a str,
    /// Which of its operations.
    pub operation_name: Option<&'a str>,
    /// The labels that the request drew; read only when the supergraph has labels.
    pub overrides: &'a Overrides,
    /// What the request may see; everything without it. From [`Prepared::grants`] of the operation
    /// for requests that may.
    pub grants: Option<&'a Grants>,
}

/// Why an operation is not executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// One or more; codes are in their extensions.
    pub errors: Vec<GraphqlError>,
    /// Whether the fault is the gateway's (status 500), not the client's (status 400).
    pub internal: bool,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The text, which will not change.
    Text,
    /// The planner failed, or ran out of time; on another day it might not.
    Doubtful,
    /// More effort than was allowed for now.
    Effort,
    /// No client waited any more.
    Stopped,
}

impl Refusal {
    pub(crate) fn from_errors(errors: Vec<GraphqlError>) -> Refusal {
        Refusal {
            errors,
            internal: false,
            cause: Cause::Text,
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
            cause: Cause::Doubtful,
        }
    }

    pub(crate) fn out_of_time(limit: Duration) -> Refusal {
        Refusal::internal(&format!(
            "the operation could not be planned within {limit:?}; ask for less at once"
        ))
    }

    /// Never reaches a client: who allows less than the full effort asks again.
    pub(crate) fn more() -> Refusal {
        Refusal {
            cause: Cause::Effort,
            ..Refusal::internal("the operation takes more effort than was allowed")
        }
    }

    /// Never reaches a client, because it has left.
    pub(crate) fn stopped() -> Refusal {
        Refusal {
            cause: Cause::Stopped,
            ..Refusal::internal("no client waits for the operation any more")
        }
    }

    /// Whether the operation was only tried with [`Effort::quick`] and needs [`Effort::full`].
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.cause == Cause::Effort
    }

    /// The same refusal in other words.
    #[must_use]
    pub fn with_errors(self, errors: Vec<GraphqlError>) -> Refusal {
        Refusal { errors, ..self }
    }

    /// Whether it may be kept for the next request with the same text.
    #[must_use]
    pub fn keep(&self) -> Keep {
        let errors = self.errors.iter();
        let errors = errors.map(|it| it.weight() + size_of::<GraphqlError>() + 128);
        let bytes = size_of::<Self>() + errors.sum::<usize>();
        match self.cause {
            Cause::Text => Keep::Yes { bytes },
            Cause::Doubtful => Keep::For {
                bytes,
                time: DOUBTFUL_KEPT,
            },
            Cause::Effort | Cause::Stopped => Keep::No,
        }
    }

    /// The response: `{"errors":[…]}`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        errors_body(&self.errors)
    }
}

fn add_grants(asked: &Asked<'_>, variant: &mut String) {
    if let Some(grants) = asked.grants {
        // No label has a control character.
        variant.push('\t');
        variant.push_str(grants.text());
    }
}

type Outcome = Result<Arc<Prepared>, Arc<Refusal>>;

/// The operations of one supergraph under one configuration.
#[derive(Debug)]
pub struct Operations {
    supergraph: Arc<Supergraph>,
    options: OperationOptions,
    cache: OperationCache<Outcome>,
    /// Which labels an operation depends on. Absent when the supergraph has none, so that others
    /// pay one comparison.
    labels: Option<OperationCache<Arc<OverrideLabels>>>,
}

impl Operations {
    /// No operation is ready at first.
    #[must_use]
    pub fn new(supergraph: Arc<Supergraph>, options: OperationOptions) -> Operations {
        let bounds = options.cache_bounds();
        let labels = supergraph.labelled.as_ref();
        Operations {
            labels: labels.map(|_| OperationCache::new(bounds)),
            cache: OperationCache::new(bounds),
            supergraph,
            options,
        }
    }

    /// Whether parts of the supergraph may not be seen by everybody.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.options.authorization.enabled && self.supergraph.rules.is_some()
    }

    /// The supergraph that operations are prepared for.
    #[must_use]
    pub fn supergraph(&self) -> &Arc<Supergraph> {
        &self.supergraph
    }

    /// The labels of the supergraph's `@override`s; nothing when it has none.
    #[must_use]
    pub fn override_labels(&self) -> Option<&OverrideLabels> {
        self.supergraph.labelled.as_ref().map(|it| &it.all)
    }

    /// The operation if it is ready, or its refusal. Never parses.
    pub fn cached(&self, query: &str, operation_name: Option<&str>) -> Option<Outcome> {
        self.find(&Asked {
            query,
            operation_name,
            overrides: &Overrides::default(),
            grants: None,
        })
    }

    /// The operation, made ready if it is not yet, however long that takes within the limits.
    ///
    /// # Errors
    /// With what the client is told, when the text is not an operation that can be
    /// executed.
    pub fn prepare(&self, query: &str, operation_name: Option<&str>) -> Outcome {
        let asked = Asked {
            query,
            operation_name,
            overrides: &Overrides::default(),
            grants: None,
        };
        let effort = Effort::full(self.options.planning_time, Stop::default());
        self.make(&asked, &effort)
    }

    /// The operation for a request that drew labels, if it is ready, or its refusal. Never parses.
    pub fn find(&self, asked: &Asked<'_>) -> Option<Outcome> {
        let key = Key::new(asked.query, asked.operation_name);
        if self.labels.is_none() && asked.grants.is_none() {
            return self.cache.get(key);
        }
        // Without known labels the variant has no name, so the operation counts as not ready.
        let mut variant = match &self.labels {
            None => String::new(),
            Some(labels) => labels.get(key)?.variant(asked.overrides),
        };
        add_grants(asked, &mut variant);
        self.cache.get(Key {
            variant: &variant,
            ..key
        })
    }

    /// The operation, made ready if it is not yet. May take milliseconds then, on a thread
    /// of its own that the caller waits for.
    ///
    /// # Errors
    /// With what the client is told, when the text is not an operation that can be executed; with
    /// [`Refusal::wants_more`] when it takes more than a quick effort.
    pub fn make(&self, asked: &Asked<'_>, effort: &Effort) -> Outcome {
        // While the caller waited for a thread, another request may have made it.
        if let Some(outcome) = self.find(asked) {
            return outcome;
        }
        // Not under a lock: two requests that bring one new text at once may both prepare it, but
        // no request waits for another's text.
        let outcome = prepare::prepare(&self.supergraph, asked, &self.options, effort);
        let outcome = outcome.map(Arc::new).map_err(Arc::new);
        let keep = match &outcome {
            Ok(prepared) => Keep::Yes {
                bytes: prepared.weight(),
            },
            Err(refusal) => refusal.keep(),
        };
        if keep == Keep::No {
            return outcome;
        }
        let mut variant = self.variant(asked, &outcome);
        add_grants(asked, &mut variant);
        let key = Key {
            variant: &variant,
            ..Key::new(asked.query, asked.operation_name)
        };
        // Where another request was faster, both use the outcome that is kept already.
        self.cache.get_or_make(key, || (outcome, keep))
    }

    /// What an outcome is kept under beside its text; tells the next request of it.
    fn variant(&self, asked: &Asked<'_>, outcome: &Outcome) -> String {
        let (Some(known), Some(all)) = (&self.labels, self.override_labels()) else {
            return String::new();
        };
        let labels = match outcome {
            Ok(prepared) => Arc::clone(&prepared.labels),
            // The planner may fail for one of the ways to plan and not for another.
            Err(refusal) if refusal.internal => Arc::new(all.clone()),
            // Nor is what a request may not see all that others may.
            Err(_) if asked.grants.is_some() => Arc::new(all.clone()),
            Err(_) => Arc::default(),
        };
        let bytes = labels.weight();
        let key = Key::new(asked.query, asked.operation_name);
        let labels = known.get_or_make(key, || (labels, Keep::Yes { bytes }));
        labels.variant(asked.overrides)
    }

    /// What the cache has done so far.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }
}
