use super::text::{Elsewhere, Replaced};
use super::*;

fn sample(text: &str, name: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

fn connections() -> Arc<chassis::ConnectionTable> {
    chassis::ConnectionTable::new(chassis::Most {
        total: 1,
        per_address: 1,
    })
}

fn text_of(metrics: &Metrics, caches: Caches) -> String {
    let elsewhere = Elsewhere {
        connections: connections(),
        traffic: Arc::default(),
        exported: Arc::default(),
        subscriptions: None,
        instruments: Vec::new(),
        replaced: Replaced::default(),
    };
    telemetry::metrics::text(Arc::new(metrics.counts(caches, elsewhere)))
}

#[test]
fn a_scrape_adds_up_all_workers() {
    let metrics = Metrics::default();
    for shard in [metrics.shard(), metrics.shard()] {
        shard.answered(200, Duration::from_micros(100));
        shard.answered(499, Duration::from_secs(20));
        shard.executed_with_errors();
        shard.cut();
        shard.client(Some("a\"b".to_owned()), None);
        let observer = shard.observer(["planets"].into_iter());
        observer.subgraph(0, Some(200), Duration::from_millis(1));
        observer.subgraph(0, None, Duration::from_millis(1));
        observer.coprocessor(StageKind::RouterRequest, false, Duration::ZERO);
    }
    let plans = PlanCache {
        hits: 3,
        ..PlanCache::default()
    };
    let caches = Caches {
        plans,
        ..Caches::default()
    };
    let text = text_of(&metrics, caches);
    for (name, expected) in [
        (
            "http_server_requests_total{http_response_status_code=\"200\"}",
            2.0,
        ),
        (
            "http_server_requests_total{http_response_status_code=\"499\"}",
            2.0,
        ),
        (
            "http_server_request_duration_seconds_bucket{le=\"0.0001\"}",
            2.0,
        ),
        (
            "http_server_request_duration_seconds_bucket{le=\"10.0\"}",
            2.0,
        ),
        (
            "http_server_request_duration_seconds_bucket{le=\"+Inf\"}",
            4.0,
        ),
        ("http_server_request_duration_seconds_count", 4.0),
        ("graphql_responses_with_errors_total", 2.0),
        ("graphql_responses_beyond_limits_total", 2.0),
        (
            "graphql_client_requests_total{client_name=\"a\\\"b\",client_version=\"\"}",
            2.0,
        ),
        (
            "http_client_requests_total{subgraph_name=\"planets\",succeeded=\"true\"}",
            2.0,
        ),
        (
            "http_client_requests_total{subgraph_name=\"planets\",succeeded=\"false\"}",
            2.0,
        ),
        (
            "apollo_router_operations_coprocessor_total{coprocessor_stage=\"RouterRequest\",coprocessor_succeeded=\"false\"}",
            2.0,
        ),
        (
            "apollo_router_cache_hit_count_total{kind=\"query planner\"}",
            3.0,
        ),
    ] {
        assert_eq!(sample(&text, name), Some(expected), "{name} in\n{text}");
    }
}

#[test]
fn clients_beyond_the_limit_are_counted_together() {
    let metrics = Metrics::default();
    // The known clients are shared, so a client of one worker counts as known in all workers.
    let shards = [metrics.shard(), metrics.shard()];
    for number in 0..CLIENTS_MAX + 7 {
        shards[number % 2].client(Some(number.to_string()), None);
    }
    shards[1].client(Some("0".to_owned()), None);
    let text = text_of(&metrics, Caches::default());
    let name = "graphql_client_requests_total{client_name=\"(other)\",client_version=\"\"}";
    assert_eq!(sample(&text, name), Some(7.0));
    let name = "graphql_client_requests_total{client_name=\"0\",client_version=\"\"}";
    assert_eq!(sample(&text, name), Some(2.0));
    let is_client = |line: &&str| line.starts_with("graphql_client_requests_total{");
    assert_eq!(text.lines().filter(is_client).count(), CLIENTS_MAX + 1);
}
