//! Collects the values that are not in the shards: caches, connections, exports.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_config::{Instrument, RequirementLevel};
use telemetry::metrics;

use super::text::{Elsewhere, Replaced};
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
        instruments: generation.extensions.instruments().cloned().collect(),
        replaced: replaced(generation),
    };
    process.metrics.counts(caches, elsewhere)
}

/// The gateway's own metrics that the configuration replaces or turns off.
fn replaced(generation: &Generation) -> Replaced {
    let Some(instrumentation) = &generation.config.telemetry.instrumentation else {
        return Replaced::default();
    };
    let instruments = &instrumentation.instruments;
    let is_off = instruments.default_requirement_level == RequirementLevel::None;
    let is_written = |all: &BTreeMap<String, Instrument>, name: &str| all.contains_key(name);
    Replaced {
        server_durations: is_off || is_written(&instruments.router, "http.server.request.duration"),
        client_durations: is_off
            || is_written(&instruments.subgraph, "http.client.request.duration"),
        estimated_costs: is_written(&instruments.supergraph, "cost.estimated"),
        actual_costs: is_written(&instruments.supergraph, "cost.actual"),
    }
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
