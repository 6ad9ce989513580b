//! Metrics that a load publishes while it runs.

use std::net::TcpListener;
use std::process::Stdio;

use e2e::{Collector, PATIENCE, Run, Server, free_port, get, sample, wait_until, weigh_command};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use prost::Message as _;
use serde_json::Value;

#[test]
fn prometheus_reads_a_load_while_it_runs() {
    let server = Server::start(&[]);
    let port = free_port();
    let load = server.start_load(&["-r", "50", "-z", "3s", "--prometheus", &port.to_string()]);
    let target = server.address();
    let passed = format!("weighbridge_requests_total{{target=\"{target}\",outcome=\"passed\"}}");
    let mut seen = String::new();
    wait_until("answers are counted", PATIENCE, || {
        seen = get(port, "/metrics").unwrap_or_default();
        sample(&seen, &passed).is_some_and(|count| count > 0.0)
    });
    let of = |series: &str| sample(&seen, &format!("{series}{{target=\"{target}\"}}"));
    assert!(seen.contains("application/openmetrics-text"), "{seen}");
    assert!(seen.ends_with("# EOF\n"), "{seen}");
    assert_eq!(of("weighbridge_planned_requests_per_second"), Some(50.0));
    let measuring = sample(&seen, "weighbridge_phase{phase=\"measuring\"}");
    assert_eq!(measuring, Some(1.0));
    // Count, buckets and sum come from one reading of the cells, so they must match.
    let count = of("weighbridge_request_duration_seconds_count").unwrap();
    let all =
        format!("weighbridge_request_duration_seconds_bucket{{le=\"+Inf\",target=\"{target}\"}}");
    assert_eq!(sample(&seen, &all), Some(count), "{seen}");
    assert!(of("weighbridge_request_duration_seconds_sum").unwrap() > 0.0);
    assert_eq!(of("weighbridge_send_lateness_seconds_count"), Some(count));
    // Slots begin before they end, and there are 150 in all.
    assert!(
        of("weighbridge_requests_in_flight").unwrap() <= 150.0,
        "{seen}"
    );
    let elsewhere = get(port, "/").unwrap();
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
    let run = Run::of(load.wait_with_output().unwrap()).ran();
    let answer: Value = serde_json::from_str(&run.answer()).unwrap();
    assert_eq!(answer["summary"]["variants"][0]["outcomes"]["passed"], 150);
    assert!(
        get(port, "/metrics").is_none(),
        "nobody listens after the run"
    );
}

#[test]
fn a_port_that_is_taken_is_said_before_anything_is_sent() {
    let server = Server::start(&[]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = server.load(&["-n", "10", "--prometheus", &address]);
    run.says(&format!("--prometheus: cannot listen on {address}"));
    run.says("Choose another port, or 0 for any free port");
    let _ = run.exits_with(5);
}

/// The metric of this name in the last push.
fn pushed(collector: &Collector, name: &str) -> Metric {
    let bodies = collector.bodies();
    let last = bodies.last().expect("something was pushed");
    let request = ExportMetricsServiceRequest::decode(last.as_slice()).expect("it is OTLP");
    let scopes = request.resource_metrics.into_iter();
    let mut metrics = scopes
        .flat_map(|it| it.scope_metrics)
        .flat_map(|it| it.metrics);
    metrics
        .find(|metric| metric.name == name)
        .expect("the metric was pushed")
}

#[test]
fn a_collector_gets_all_that_was_counted() {
    let server = Server::start(&[]);
    let collector = Collector::start();
    let flags = ["-n", "200", "-c", "2", "--otlp", &collector.url()];
    let _ = server.load(&flags).ran();
    // The last push comes after the load, so it contains every request.
    let requests = pushed(&collector, "weighbridge_requests").data;
    let Some(metric::Data::Sum(sum)) = requests else {
        panic!("a counter is a sum: {requests:?}");
    };
    assert!(sum.is_monotonic);
    let passed = sum.data_points.iter().find(|point| {
        let labels = format!("{:?}", point.attributes);
        labels.contains("passed") && labels.contains(server.address())
    });
    let value = passed.and_then(|point| point.value);
    assert_eq!(value, Some(number_data_point::Value::AsDouble(200.0)));
    let latency = pushed(&collector, "weighbridge_request_duration_seconds");
    let Some(metric::Data::Histogram(histogram)) = latency.data else {
        panic!("durations are a histogram: {latency:?}");
    };
    let point = &histogram.data_points[0];
    assert_eq!((latency.unit.as_str(), point.count), ("s", 200));
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), 200);
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
}

#[test]
fn a_collector_that_is_not_there_is_said_once_and_stops_nothing() {
    let server = Server::start(&[]);
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let run = server.load(&["-r", "20", "-z", "2500ms", "--otlp", &nobody]);
    let run = run.ran();
    // The push was tried more than once: at the begin, and after each of two seconds.
    let said = run.talk().matches("does not accept the metrics").count();
    assert_eq!(said, 1, "{}", run.talk());
}

#[test]
fn a_collector_that_never_answers_does_not_keep_the_run_from_ending() {
    let server = Server::start(&[]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let child = weigh_command()
        .args(["load", &format!("http://{}/graphql", server.address())])
        .args(["-n", "5", "-c", "1", "--otlp", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = Run::of(child.wait_with_output().unwrap()).ran();
    run.says("does not accept the metrics");
}
