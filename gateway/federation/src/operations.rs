//! Prepared operations by text, in a bounded cache.
//!
//! The cache also stores refusals. So a client cannot cause a new validation with every repeated request.

use std::sync::Arc;

use operation_cache::{CacheStats, Keep, Key, OperationCache};

use crate::effort::{Effort, Stop};
use crate::options::OperationOptions;
use crate::override_labels::{OverrideLabels, Overrides};
use crate::prepare::{OperationRequest, prepare};
use crate::prepared::Prepared;
use crate::refusal::Refusal;
use crate::supergraph::Supergraph;

fn add_grants(requested: &OperationRequest<'_>, variant: &mut String) {
    if let Some(grants) = requested.grants {
        // Labels contain no control characters, so this separator is unique.
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
    /// The labels that each operation depends on. `None` if the supergraph has no labels, so that its
    /// requests pay one comparison.
    labels: Option<OperationCache<Arc<OverrideLabels>>>,
}

impl Operations {
    /// Creates an empty cache of operations.
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

    /// True if parts of the supergraph have access rules.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.options.authorization.enabled && self.supergraph.rules.is_some()
    }

    /// The supergraph of the operations.
    #[must_use]
    pub fn supergraph(&self) -> &Arc<Supergraph> {
        &self.supergraph
    }

    /// The labels of `@override` in the supergraph. `None` if it has no labels.
    #[must_use]
    pub fn override_labels(&self) -> Option<&OverrideLabels> {
        self.supergraph.labelled.as_ref().map(|it| &it.all)
    }

    /// Returns the operation or its refusal from the cache. Never parses.
    pub fn cached(&self, query: &str, operation_name: Option<&str>) -> Option<Outcome> {
        self.find(&OperationRequest {
            query,
            operation_name,
            overrides: &Overrides::default(),
            grants: None,
        })
    }

    /// Returns the operation. Prepares it if necessary, for any time within the limits.
    ///
    /// # Errors
    /// The errors for the client, if the text is not an executable operation.
    pub fn prepare(&self, query: &str, operation_name: Option<&str>) -> Outcome {
        let requested = OperationRequest {
            query,
            operation_name,
            overrides: &Overrides::default(),
            grants: None,
        };
        let effort = Effort::full(self.options.planning_time, Stop::default());
        self.make(&requested, &effort)
    }

    /// Returns the operation or its refusal from the cache, for a request with chosen labels. Never parses.
    pub fn find(&self, requested: &OperationRequest<'_>) -> Option<Outcome> {
        let key = Key::new(requested.query, requested.operation_name);
        if self.labels.is_none() && requested.grants.is_none() {
            return self.cache.get(key);
        }
        // Without the operation's labels there is no variant, so the operation counts as absent.
        let mut variant = match &self.labels {
            None => String::new(),
            Some(labels) => labels.get(key)?.variant(requested.overrides),
        };
        add_grants(requested, &mut variant);
        self.cache.get(Key {
            variant: &variant,
            ..key
        })
    }

    /// Returns the operation. Prepares it if necessary, which may take milliseconds on a new thread. The
    /// caller waits for it.
    ///
    /// # Errors
    /// The errors for the client, if the text is not an executable operation. An error with
    /// [`Refusal::wants_more`] if it needs more than a quick effort.
    pub fn make(&self, requested: &OperationRequest<'_>, effort: &Effort) -> Outcome {
        // Another request may have prepared it while the caller waited for a thread.
        if let Some(outcome) = self.find(requested) {
            return outcome;
        }
        // Not under a lock. Two concurrent requests with one new text may both prepare it. But a request
        // never waits for the text of another request.
        let outcome = prepare(&self.supergraph, requested, &self.options, effort);
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
        let mut variant = self.variant(requested, &outcome);
        add_grants(requested, &mut variant);
        let key = Key {
            variant: &variant,
            ..Key::new(requested.query, requested.operation_name)
        };
        // If another request was faster, both use the outcome in the cache.
        self.cache.get_or_make(key, || (outcome, keep))
    }

    /// Returns the part of the cache key in addition to the text. Stores the operation's labels for the next
    /// request.
    fn variant(&self, requested: &OperationRequest<'_>, outcome: &Outcome) -> String {
        let (Some(known), Some(all)) = (&self.labels, self.override_labels()) else {
            return String::new();
        };
        let labels = match outcome {
            Ok(prepared) => Arc::clone(&prepared.labels),
            // The planner can fail with some active labels and succeed with others.
            Err(refusal) if refusal.internal => Arc::new(all.clone()),
            // Other grants can allow more fields, and these fields can have labels.
            Err(_) if requested.grants.is_some() => Arc::new(all.clone()),
            Err(_) => Arc::default(),
        };
        let bytes = labels.weight();
        let key = Key::new(requested.query, requested.operation_name);
        let labels = known.get_or_make(key, || (labels, Keep::Yes { bytes }));
        labels.variant(requested.overrides)
    }

    /// The statistics of the cache.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }
}
