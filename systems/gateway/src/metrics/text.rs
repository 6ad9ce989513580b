//! The counts as text.

use std::collections::BTreeMap;
use std::fmt::{Result, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{BUCKETS_US, Client, Histogram, Metrics, PlanCache, STAGES, Shard, lock, process};

impl Metrics {
    /// Everything counted so far, and what the process uses now.
    pub(crate) fn text(&self, plans: PlanCache) -> String {
        let shards = lock(&self.shards);
        let mut text = String::with_capacity(8192);
        requests(&mut text, &shards)
            .and_then(|()| subgraphs(&mut text, &shards))
            .and_then(|()| coprocessors(&mut text, &shards))
            .and_then(|()| clients(&mut text, &shards))
            .and_then(|()| plan_cache(&mut text, plans))
            .and_then(|()| process::write(&mut text))
            .expect("writing to a string cannot fail");
        text
    }
}

/// The two lines before the samples of a metric.
pub(super) fn describe(text: &mut String, name: &str, kind: &str, help: &str) -> Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn sum<'a>(counters: impl Iterator<Item = &'a AtomicU64>) -> u64 {
    counters
        .map(|counter| counter.load(Ordering::Relaxed))
        .sum()
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn requests(text: &mut String, shards: &[Arc<Shard>]) -> Result {
    let name = "http_server_requests_total";
    let help = "Answers to GraphQL requests by status; 499 when the client went away.";
    describe(text, name, "counter", help)?;
    for status in 100..600_usize {
        let count = sum(shards.iter().map(|shard| &shard.statuses[status - 100]));
        if count > 0 {
            writeln!(
                text,
                "{name}{{http_response_status_code=\"{status}\"}} {count}"
            )?;
        }
    }
    let name = "http_server_request_duration_seconds";
    describe(
        text,
        name,
        "histogram",
        "From the head of a GraphQL request to its answer.",
    )?;
    let histograms: Vec<&Histogram> = shards.iter().map(|shard| &shard.durations).collect();
    histogram(text, name, "", &histograms)?;
    let name = "graphql_responses_with_errors_total";
    describe(text, name, "counter", "Executed requests with errors.")?;
    let count = sum(shards.iter().map(|shard| &shard.with_errors));
    writeln!(text, "{name} {count}")
}

fn subgraphs(text: &mut String, shards: &[Arc<Shard>]) -> Result {
    let mut names: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for shard in shards {
        for (name, counts) in lock(&shard.subgraphs).iter() {
            names
                .entry(name.clone())
                .or_default()
                .push(Arc::clone(counts));
        }
    }
    let name = "http_client_requests_total";
    describe(text, name, "counter", "Requests to subgraphs.")?;
    for (subgraph, counts) in &names {
        let subgraph = escaped(subgraph);
        let succeeded = sum(counts.iter().map(|it| &it.succeeded));
        let failed = sum(counts.iter().map(|it| &it.failed));
        for (count, outcome) in [(succeeded, "true"), (failed, "false")] {
            writeln!(
                text,
                "{name}{{subgraph_name=\"{subgraph}\",succeeded=\"{outcome}\"}} {count}"
            )?;
        }
    }
    let name = "http_client_request_duration_seconds";
    describe(text, name, "histogram", "Requests to subgraphs.")?;
    for (subgraph, counts) in &names {
        let histograms: Vec<&Histogram> = counts.iter().map(|it| &it.durations).collect();
        let label = format!("subgraph_name=\"{}\"", escaped(subgraph));
        histogram(text, name, &label, &histograms)?;
    }
    Ok(())
}

fn coprocessors(text: &mut String, shards: &[Arc<Shard>]) -> Result {
    let name = "apollo_router_operations_coprocessor_total";
    describe(text, name, "counter", "Calls of the coprocessor.")?;
    for (place, stage) in STAGES.iter().enumerate() {
        let succeeded = sum(shards.iter().map(|shard| &shard.stages[place].succeeded));
        let failed = sum(shards.iter().map(|shard| &shard.stages[place].failed));
        for (count, outcome) in [(succeeded, "true"), (failed, "false")] {
            if count > 0 {
                let stage = stage.as_str();
                writeln!(
                    text,
                    "{name}{{coprocessor_stage=\"{stage}\",coprocessor_succeeded=\"{outcome}\"}} {count}"
                )?;
            }
        }
    }
    let name = "apollo_router_operations_coprocessor_duration_seconds";
    describe(text, name, "histogram", "Calls of the coprocessor.")?;
    for (place, stage) in STAGES.iter().enumerate() {
        let histograms: Vec<&Histogram> = shards
            .iter()
            .map(|shard| &shard.stages[place].durations)
            .collect();
        let calls = sum(histograms.iter().flat_map(|it| &it.buckets));
        if calls > 0 {
            let label = format!("coprocessor_stage=\"{}\"", stage.as_str());
            histogram(text, name, &label, &histograms)?;
        }
    }
    Ok(())
}

fn clients(text: &mut String, shards: &[Arc<Shard>]) -> Result {
    let mut counts: BTreeMap<Client, u64> = BTreeMap::new();
    for shard in shards {
        for (client, count) in lock(&shard.clients).iter() {
            *counts.entry(client.clone()).or_default() += count;
        }
    }
    let name = "graphql_client_requests_total";
    describe(
        text,
        name,
        "counter",
        "Requests of clients that said their name.",
    )?;
    for ((client, version), count) in counts {
        let (client, version) = (escaped(&client), escaped(&version));
        writeln!(
            text,
            "{name}{{client_name=\"{client}\",client_version=\"{version}\"}} {count}"
        )?;
    }
    Ok(())
}

fn plan_cache(text: &mut String, plans: PlanCache) -> Result {
    let kind = "kind=\"query planner\"";
    for (name, type_, help, value) in [
        (
            "apollo_router_cache_hit_count_total",
            "counter",
            "Requests whose plan was there.",
            plans.hits,
        ),
        (
            "apollo_router_cache_miss_count_total",
            "counter",
            "Requests whose plan had to be made.",
            plans.misses,
        ),
        (
            "apollo_router_cache_size",
            "gauge",
            "Plans that are kept.",
            plans.entries,
        ),
    ] {
        describe(text, name, type_, help)?;
        writeln!(text, "{name}{{{kind}}} {value}")?;
    }
    Ok(())
}

fn histogram(text: &mut String, name: &str, label: &str, shards: &[&Histogram]) -> Result {
    let comma = if label.is_empty() { "" } else { "," };
    let braces = if label.is_empty() {
        String::new()
    } else {
        format!("{{{label}}}")
    };
    let mut so_far = 0;
    for (place, bound_us) in BUCKETS_US.iter().enumerate() {
        so_far += sum(shards.iter().map(|it| &it.buckets[place]));
        let bound = Duration::from_micros(*bound_us).as_secs_f64();
        writeln!(
            text,
            "{name}_bucket{{{label}{comma}le=\"{bound}\"}} {so_far}"
        )?;
    }
    so_far += sum(shards.iter().map(|it| &it.buckets[BUCKETS_US.len()]));
    writeln!(text, "{name}_bucket{{{label}{comma}le=\"+Inf\"}} {so_far}")?;
    let seconds = Duration::from_nanos(sum(shards.iter().map(|it| &it.sum_ns))).as_secs_f64();
    writeln!(text, "{name}_sum{braces} {seconds}")?;
    writeln!(text, "{name}_count{braces} {so_far}")
}
