//! Adds up the counts of all workers for a scrape.

use std::collections::BTreeMap;
use std::fmt::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chassis::ConnectionTable;
use gateway_extensions::cost;
use gateway_telemetry::{Destination, ExportCounts, InstrumentHead};
use gateway_upstream::Traffic;
use telemetry::metrics::{Buckets, Counts, Family, Scrape};

use crate::graphql::cost_limit::CostCounts;
use crate::stream::subscription::opened::SubscriptionCounts;

use super::{
    Answers, BUCKETS_US, Caches, CallCounts, Client, Histogram, Listed, Metrics, Planning, STAGES,
    Shard, lock,
};

impl Metrics {
    /// The sum of all counts.
    pub(super) fn counts(
        &self,
        caches: Caches,
        elsewhere: Elsewhere,
    ) -> (Arc<Snapshot>, Arc<ConnectionTable>) {
        // A copy of the list, so that no lock is held while the text is written.
        let shards = lock(&self.shards).clone();
        let series = shards.iter().flat_map(|shard| {
            let instruments = lock(&shard.instruments);
            let current = elsewhere.instruments.iter();
            let current = current.filter_map(|head| {
                let series = instruments.get(&head.name)?;
                (series.head() == head).then(|| Arc::clone(series))
            });
            current.collect::<Vec<_>>()
        });
        let series: Vec<_> = series.collect();
        let custom = gateway_telemetry::families(series.iter());
        let snapshot = Arc::new(Snapshot {
            shards,
            caches,
            planning: self.planning(),
            traffic: elsewhere.traffic,
            exported: elsewhere.exported,
            subscriptions: elsewhere.subscriptions,
            custom,
            replaced: elsewhere.replaced,
        });
        (snapshot, elsewhere.connections)
    }
}

/// Values that are not counted in the workers' shards.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// Client connections.
    pub(super) connections: Arc<ConnectionTable>,
    /// Connections to subgraphs and other services.
    pub(super) traffic: Arc<Traffic>,
    /// Spans and metrics for collectors.
    pub(super) exported: Arc<ExportCounts>,
    /// Subscriptions. `None` if they are off.
    pub(super) subscriptions: Option<SubscriptionCounts>,
    /// The instruments of `telemetry.instrumentation`.
    pub(super) instruments: Vec<Arc<InstrumentHead>>,
    pub(super) replaced: Replaced,
}

/// The gateway's own metrics that `telemetry.instrumentation` replaces or turns off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replaced {
    /// True for the durations of clients' requests.
    pub(super) server_durations: bool,
    /// True for the durations of requests to subgraphs.
    pub(super) client_durations: bool,
    /// True for the estimated costs of operations.
    pub(super) estimated_costs: bool,
    /// True for the actual costs of responses.
    pub(super) actual_costs: bool,
}

/// The values of one scrape.
#[derive(Debug)]
pub(super) struct Snapshot {
    shards: Vec<Arc<Shard>>,
    caches: Caches,
    planning: Arc<Planning>,
    traffic: Arc<Traffic>,
    exported: Arc<ExportCounts>,
    subscriptions: Option<SubscriptionCounts>,
    custom: Vec<Family>,
    replaced: Replaced,
}

impl Counts for Snapshot {
    fn tell(&self, scrape: &mut Scrape<'_>) -> Result {
        self.requests(scrape)?;
        self.subgraphs(scrape)?;
        upstream(scrape, &self.traffic)?;
        self.coprocessors(scrape)?;
        self.clients(scrape)?;
        caches(scrape, &self.caches, self.replaced)?;
        exported(scrape, &self.exported)?;
        if let Some(counts) = &self.subscriptions {
            subscriptions(scrape, counts)?;
        }
        planning(scrape, &self.planning, self.caches.plans.queued)?;
        self.custom.iter().try_for_each(|it| scrape.family(it))
    }
}

/// Writes the metrics of the clients' subscriptions.
fn subscriptions(scrape: &mut Scrape<'_>, counts: &SubscriptionCounts) -> Result {
    let help = "Subscriptions of clients that are open";
    scrape.gauge("graphql_subscriptions", help, (&[], counts.open))?;
    let help = "Bytes of the requests of subscriptions that are open";
    let bytes = (&[][..], counts.request_bytes);
    scrape.gauge("graphql_subscriptions_request_bytes", help, bytes)?;
    let help = "Subscriptions that were refused because too many are open";
    scrape.counter("graphql_subscriptions_refused", help, counts.refused)?;
    let help = "Responses to events of subscriptions";
    scrape.counter("graphql_subscriptions_events", help, counts.events)?;
    let help = "Events of subscriptions that gave way to newer ones";
    scrape.counter("graphql_subscriptions_events_skipped", help, counts.skipped)?;
    let help = "Subscriptions at subgraphs that are open";
    let upstream = (&[][..], counts.upstream);
    scrape.gauge("graphql_subscriptions_upstream", help, upstream)?;
    let help = "Subscriptions of clients that joined one at a subgraph";
    scrape.counter("graphql_subscriptions_joined", help, counts.joined)?;
    let help = "Attempts to subscribe again at a subgraph whose connection was lost";
    scrape.counter("graphql_subscriptions_reconnects", help, counts.reconnects)?;
    let help = "Attempts that wait because many are under way at the same address";
    let waiting = (&[][..], counts.reconnects_waiting);
    scrape.gauge("graphql_subscriptions_reconnects_waiting", help, waiting)?;
    let ended: Vec<_> = counts
        .ended
        .iter()
        .map(|(by, count)| ([("by", *by)], *count))
        .collect();
    scrape.counters(
        "graphql_subscriptions_ended",
        "Subscriptions that ended, by who ended them",
        ended.iter().map(|(labels, count)| (&labels[..], *count)),
    )
}

/// Writes the metrics of connections to services.
fn upstream(scrape: &mut Scrape<'_>, traffic: &Traffic) -> Result {
    let help = "Connections to subgraphs, coprocessors and other services that are open";
    scrape.gauge("http_client_connections", help, (&[], traffic.open()))?;
    let help = "Requests to services that wait for a connection";
    let waiting = traffic.waiting();
    scrape.gauge("http_client_requests_waiting", help, (&[], waiting))?;
    let help = "Requests to services that had to wait for a connection";
    scrape.counter("http_client_requests_waited", help, traffic.waited())?;
    let help = "Requests to services that failed because too many waited for a connection";
    scrape.counter("http_client_requests_refused", help, traffic.refused())
}

fn sum<'a>(counters: impl Iterator<Item = &'a AtomicU64>) -> u64 {
    counters
        .map(|counter| counter.load(Ordering::Relaxed))
        .sum()
}

impl Snapshot {
    fn requests(&self, scrape: &mut Scrape<'_>) -> Result {
        let shards = self.shards.iter();
        let statuses = (100..600_usize).filter_map(|status| {
            let count = sum(shards.clone().map(|shard| &shard.statuses[status - 100]));
            // 500 statuses are possible. Only statuses that occurred become lines.
            (count > 0).then(|| (status.to_string(), count))
        });
        let statuses: Vec<_> = statuses.collect();
        let samples: Vec<_> = statuses
            .iter()
            .map(|(status, count)| ([("http_response_status_code", status.as_str())], *count))
            .collect();
        scrape.counters(
            "http_server_requests",
            "Answers to GraphQL requests by status; 499 when the client went away",
            samples.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        if !self.replaced.server_durations {
            let durations = Added::of(shards.clone().map(|shard| &shard.durations));
            scrape.histograms(
                "http_server_request_duration_seconds",
                "From the head of a GraphQL request to its answer",
                [(&[][..], durations.buckets())],
            )?;
        }
        let count = sum(shards.clone().map(|shard| &shard.with_errors));
        let help = "Executed requests with errors";
        scrape.counter("graphql_responses_with_errors", help, count)?;
        let count = sum(shards.map(|shard| &shard.cut));
        let help = "Executed requests whose responses exceeded a limit";
        scrape.counter("graphql_responses_beyond_limits", help, count)
    }

    fn subgraphs(&self, scrape: &mut Scrape<'_>) -> Result {
        let mut names: BTreeMap<String, Vec<Arc<CallCounts>>> = BTreeMap::new();
        for shard in &self.shards {
            for (name, counts) in lock(&shard.subgraphs).iter() {
                let all = names.entry(name.clone()).or_default();
                all.push(Arc::clone(counts));
            }
        }
        let calls = names.iter().map(|(name, counts)| Calls {
            label: ("subgraph_name", name),
            succeeded: sum(counts.iter().map(|it| &it.succeeded)),
            failed: sum(counts.iter().map(|it| &it.failed)),
            durations: Added::of(counts.iter().map(|it| &it.durations)),
        });
        let calls: Vec<Calls<'_>> = calls.collect();
        let samples: Vec<_> = calls
            .iter()
            .flat_map(|it| it.samples("succeeded"))
            .collect();
        scrape.counters(
            "http_client_requests",
            "Requests to subgraphs",
            samples.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        if !self.replaced.client_durations {
            let name = "http_client_request_duration_seconds";
            durations(scrape, name, "Requests to subgraphs", &calls)?;
        }
        let retried = names.iter().map(|(name, counts)| {
            let count = sum(counts.iter().map(|it| &it.retried));
            ([("subgraph_name", name.as_str())], count)
        });
        // Written only for subgraphs with retried requests.
        let retried: Vec<_> = retried.filter(|(_, count)| *count > 0).collect();
        scrape.counters(
            "apollo_router_http_request_retry",
            "Failed requests to subgraphs that were sent again",
            retried.iter().map(|(labels, count)| (&labels[..], *count)),
        )
    }

    fn coprocessors(&self, scrape: &mut Scrape<'_>) -> Result {
        let calls = STAGES.iter().enumerate().map(|(place, stage)| {
            let counts = self.shards.iter().map(|shard| &shard.stages[place]);
            Calls {
                label: ("coprocessor_stage", stage.as_str()),
                succeeded: sum(counts.clone().map(|it| &it.succeeded)),
                failed: sum(counts.clone().map(|it| &it.failed)),
                durations: Added::of(counts.map(|it| &it.durations)),
            }
        });
        // A stage that is not configured has no calls and no lines.
        let calls = calls.filter(|it| it.succeeded + it.failed > 0);
        let calls: Vec<Calls<'_>> = calls.collect();
        let samples = calls
            .iter()
            .flat_map(|it| it.samples("coprocessor_succeeded"));
        let samples: Vec<_> = samples.filter(|(_, count)| *count > 0).collect();
        scrape.counters(
            "apollo_router_operations_coprocessor",
            "Calls of the coprocessor",
            samples.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        let name = "apollo_router_operations_coprocessor_duration_seconds";
        durations(scrape, name, "Calls of the coprocessor", &calls)
    }

    fn clients(&self, scrape: &mut Scrape<'_>) -> Result {
        let mut counts: BTreeMap<Client, u64> = BTreeMap::new();
        for shard in &self.shards {
            for (client, count) in lock(&shard.clients).iter() {
                *counts.entry(client.clone()).or_default() += count;
            }
        }
        let samples = counts.iter().map(|((name, version), count)| {
            let labels = [
                ("client_name", name.as_str()),
                ("client_version", version.as_str()),
            ];
            (labels, *count)
        });
        let samples: Vec<_> = samples.collect();
        scrape.counters(
            "graphql_client_requests",
            "Requests of clients that said their name",
            samples.iter().map(|(labels, count)| (&labels[..], *count)),
        )
    }
}

/// The calls to one subgraph or to one stage of the coprocessor.
struct Calls<'a> {
    label: (&'a str, &'a str),
    succeeded: u64,
    failed: u64,
    durations: Added,
}

impl<'a> Calls<'a> {
    fn samples(&self, outcome: &'a str) -> [([(&'a str, &'a str); 2], u64); 2] {
        [
            ([self.label, (outcome, "true")], self.succeeded),
            ([self.label, (outcome, "false")], self.failed),
        ]
    }
}

fn durations(scrape: &mut Scrape<'_>, name: &str, help: &str, calls: &[Calls<'_>]) -> Result {
    let labels: Vec<_> = calls.iter().map(|it| [it.label]).collect();
    let samples = labels.iter().zip(calls);
    let samples = samples.map(|(labels, it)| (&labels[..], it.durations.buckets()));
    scrape.histograms(name, help, samples)
}

fn caches(scrape: &mut Scrape<'_>, caches: &Caches, replaced: Replaced) -> Result {
    let Caches {
        plans,
        persisted,
        listed,
        cost_counts,
        answers,
    } = caches;
    if let Some(cost_counts) = cost_counts {
        costs(scrape, cost_counts, replaced)?;
    }
    if let Some(answers) = answers {
        kept_answers(scrape, answers)?;
    }
    if let Some(listed) = listed {
        list(scrape, *listed)?;
    }
    let mut kinds = vec![([("kind", "query planner")], plans.hits, plans.misses)];
    let mut kept = vec![([("kind", "query planner")], plans.entries, plans.bytes)];
    if let Some(stats) = persisted {
        let kind = [("kind", "APQ")];
        kinds.push((kind, stats.hits, stats.misses));
        kept.push((kind, stats.entries as u64, stats.bytes as u64));
    }
    if let Some(Answers { stats, .. }) = answers {
        kept.push((
            [("kind", "response")],
            stats.entries as u64,
            stats.bytes as u64,
        ));
    }
    scrape.counters(
        "apollo_router_cache_hit_count",
        "Requests whose plan, or whose text, was there",
        kinds.iter().map(|(kind, hits, _)| (&kind[..], *hits)),
    )?;
    scrape.counters(
        "apollo_router_cache_miss_count",
        "Requests whose plan had to be made, or whose text had to be sent",
        kinds.iter().map(|(kind, _, misses)| (&kind[..], *misses)),
    )?;
    scrape.gauges(
        "apollo_router_cache_size",
        "Plans, or texts, that are kept",
        kept.iter().map(|(kind, entries, _)| (&kind[..], *entries)),
    )?;
    scrape.gauges(
        "apollo_router_cache_bytes",
        "Bytes that they take, roughly",
        kept.iter().map(|(kind, _, bytes)| (&kind[..], *bytes)),
    )
}

/// Writes hits and misses of cached responses, by subgraph.
fn kept_answers(scrape: &mut Scrape<'_>, answers: &Answers) -> Result {
    let samples = answers.subgraphs.iter().flat_map(|(name, hits, misses)| {
        let labels = |hit| [("subgraph_name", name.as_str()), ("cache_hit", hit)];
        [(labels("true"), *hits), (labels("false"), *misses)]
    });
    let samples: Vec<_> = samples.collect();
    scrape.counters(
        "apollo_router_operations_response_cache_fetch",
        "Answers and entities that were kept, or had to be asked for",
        samples.iter().map(|(labels, count)| (&labels[..], *count)),
    )?;
    let help = "Lookups and answers that Redis was not asked for, or not given, in time";
    scrape.counter("response_cache_redis_failures", help, answers.failures)
}

/// Writes the estimated and the actual costs of operations.
fn costs(scrape: &mut Scrape<'_>, counts: &CostCounts, replaced: Replaced) -> Result {
    let results = [
        ([("cost_result", "COST_OK")], counts.ok),
        (
            [("cost_result", "COST_ESTIMATED_TOO_EXPENSIVE")],
            counts.too_expensive,
        ),
        (
            [("cost_result", "COST_QUERY_PARSE_FAILURE")],
            counts.without,
        ),
    ];
    scrape.counters(
        "apollo_router_operations_cost",
        "Operations whose cost was estimated, by what came of it",
        results
            .iter()
            .map(|(labels, count)| (&labels[..], *count))
            .filter(|(_, count)| *count > 0),
    )?;
    let estimated = "What operations were estimated to cost";
    let actual = "What responses have cost";
    for (name, help, costs, is_replaced) in [
        (
            "cost_estimated",
            estimated,
            &counts.estimated,
            replaced.estimated_costs,
        ),
        ("cost_actual", actual, &counts.actual, replaced.actual_costs),
    ] {
        if is_replaced {
            continue;
        }
        let buckets = Buckets {
            bounds: &cost::BUCKETS,
            counts: &costs.buckets,
            sum: costs.sum,
        };
        scrape.histograms(name, help, [(&[][..], buckets)])?;
    }
    Ok(())
}

/// Writes the metrics of the operation list.
fn list(scrape: &mut Scrape<'_>, listed: Listed) -> Result {
    let Listed {
        requests,
        not_found,
        rejected,
        unknown,
    } = listed;
    let help = "Requests while there is a list of operations";
    scrape.counter("apollo_router_operations_persisted_queries", help, requests)?;
    let help = "Requests for an id that is not in the list";
    let name = "apollo_router_operations_persisted_queries_not_found";
    scrape.counter(name, help, not_found)?;
    let help = "Texts that are not in the list";
    let name = "apollo_router_operations_persisted_queries_unknown";
    scrape.counter(name, help, unknown)?;
    let help = "Texts that were refused for it";
    let name = "apollo_router_operations_persisted_queries_rejected";
    scrape.counter(name, help, rejected)
}

/// Writes the metrics of exports to collectors. Writes no lines without exports.
fn exported(scrape: &mut Scrape<'_>, counts: &ExportCounts) -> Result {
    let of = Destination::ALL.map(|it| (it.as_str(), counts.spans(it)));
    let spans = of.iter().map(|(_, it)| ExportCounts::of(&it.exported));
    let spans: u64 = spans.sum();
    let lost = of.iter().flat_map(|(name, it)| {
        [
            (*name, "channel full", &it.overflown),
            (*name, "export failed", &it.failed),
        ]
    });
    let metrics = ("otlp-metrics", "export failed", &counts.failed_metrics);
    let lost = lost.chain([metrics]).map(|(name, error, counter)| {
        let labels = [("name", name), ("error", error)];
        (labels, ExportCounts::of(counter))
    });
    if spans > 0 {
        let help = "Spans that the collector took";
        scrape.counter("gateway_telemetry_spans_exported", help, spans)?;
    }
    let lost: Vec<_> = lost.filter(|(_, count)| *count > 0).collect();
    if lost.is_empty() {
        return Ok(());
    }
    scrape.counters(
        "apollo_router_telemetry_batch_processor_errors",
        "Spans, and pushes of metrics, that were dropped: no room for them, or not taken",
        lost.iter().map(|(labels, count)| (&labels[..], *count)),
    )
}

fn planning(scrape: &mut Scrape<'_>, planning: &Planning, queued: u64) -> Result {
    let help = "Operations that wait to be planned";
    scrape.gauge("apollo_router_compute_jobs_queued", help, (&[], queued))?;
    let help = "Operations that were not planned because too many waited, or for too long";
    let shed = planning.shed.load(Ordering::Relaxed);
    scrape.counter("apollo_router_compute_jobs_queue_is_full", help, shed)?;
    let durations = Added::of(std::iter::once(&planning.durations));
    scrape.histograms(
        "apollo_router_query_planning_plan_duration_seconds",
        "Parsing, validating and planning one operation, or the attempt",
        [(&[][..], durations.buckets())],
    )
}

/// The added histograms of all workers.
struct Added {
    bounds: Vec<f64>,
    counts: Vec<u64>,
    sum: f64,
}

impl Added {
    fn of<'a>(histograms: impl Iterator<Item = &'a Histogram> + Clone) -> Self {
        // Prometheus requires seconds. The counters use whole microseconds, which compare exactly.
        let bounds = BUCKETS_US.iter().copied().map(Duration::from_micros);
        let counts = (0..=BUCKETS_US.len())
            .map(|place| sum(histograms.clone().map(|it| &it.buckets[place])));
        let ns = sum(histograms.clone().map(|it| &it.sum_ns));
        Self {
            bounds: bounds.map(|bound| bound.as_secs_f64()).collect(),
            counts: counts.collect(),
            sum: Duration::from_nanos(ns).as_secs_f64(),
        }
    }

    fn buckets(&self) -> Buckets<'_> {
        Buckets {
            bounds: &self.bounds,
            counts: &self.counts,
            sum: self.sum,
        }
    }
}
