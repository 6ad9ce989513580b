//! Prepared operations by text: a bounded cache in front of the work.
//!
//! Refusals are kept, too, so that a client in a loop cannot buy a validation with every request.

use std::sync::Arc;

use operation_cache::{CacheStats, Keep, Key, OperationCache};

use crate::effort::{Effort, Stop};
use crate::options::OperationOptions;
use crate::override_labels::{OverrideLabels, Overrides};
use crate::prepare::{Asked, prepare};
use crate::prepared::Prepared;
use crate::refusal::Refusal;
use crate::supergraph::Supergraph;

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
        let outcome = prepare(&self.supergraph, asked, &self.options, effort);
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
