//! Collects the values that are not in the shards: caches, connections, exports.

use std::sync::Arc;

use telemetry::metrics;

use super::text::Elsewhere;
use super::{Answers, Caches, PlanCache};
use crate::process::generation::Generation;
use crate::process::process_state::ProcessState;

/// All current values as text.
pub(crate) fn text(process: &ProcessState, generation: &Generation) -> String {
    metrics::text(Arc::new(counts(process, generation)))
}

/// All current values as metric families.
pub(crate) fn families(process: &ProcessState, generation: &Generation) -> Vec<metrics::Family> {
    metrics::families(&counts(process, generation))
}

fn counts(process: &ProcessState, generation: &Generation) -> impl metrics::Counts + use<> {
    let stats = generation.engine.cache_stats();
    let plans = PlanCache {
        hits: stats.hits,
        misses: stats.misses,
        entries: stats.entries as u64,
        bytes: stats.bytes as u64,
        queued: process.planning.queued() as u64,
    };
    let caches = Caches {
        plans,
        persisted: generation.persisted.as_ref().map(|it| it.stats()),
        listed: generation.list.as_ref().map(|it| it.counts()),
        answers: answers(generation),
        cost_counts: generation.cost_limit.as_ref().map(|it| it.counts()),
    };
    let elsewhere = Elsewhere {
        connections: Arc::clone(&process.connections),
        traffic: Arc::clone(&process.traffic),
        exported: Arc::clone(&process.exported),
        // No values if subscriptions are off.
        subscriptions: generation
            .config
            .subscriptions()
            .map(|_| process.subscriptions.snapshot()),
    };
    process.metrics.counts(caches, elsewhere)
}

/// The values of the cache of subgraph responses. `None` if it is off.
fn answers(generation: &Generation) -> Option<Answers> {
    let answers = generation.extensions.answers()?;
    let counts = answers.counts();
    Some(Answers {
        stats: answers.stats(),
        subgraphs: counts
            .map(|(name, hits, misses)| (name.to_owned(), hits, misses))
            .collect(),
        failures: answers.failures(),
    })
}
