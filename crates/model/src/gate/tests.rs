//! Tests of the written form of gates.

use super::*;

fn gate(text: &str) -> Gate {
    text.parse().unwrap()
}

#[test]
fn a_gate_reads_as_it_is_said() {
    let found = gate("rhai p99 overhead < 0.2ms");
    assert_eq!(found.variant.as_deref(), Some("rhai"));
    assert_eq!(found.metric, Metric::P99);
    assert_eq!(found.subject, Subject::Overhead);
    assert_eq!(found.relation, Relation::Below);
    assert!((found.limit - 200.0).abs() < 1e-9, "microseconds");
}

#[test]
fn names_of_variants_may_hold_spaces_and_signs() {
    for (text, name) in [
        (
            "juniper-ntex tuned mean ratio <= 1.05",
            Some("juniper-ntex tuned"),
        ),
        ("'a < b' p50 value < 3ms", Some("a < b")),
        ("p99 overhead < 5%", None),
        ("* p99 overhead < 5%", None),
        ("p99 p99 overhead<1us", Some("p99")),
    ] {
        assert_eq!(gate(text).variant.as_deref(), name, "{text}");
    }
}

#[test]
fn quantities_have_the_units_of_their_figures() {
    for (text, metric, limit) in [
        ("x mean value < 1s", Metric::Mean, 1e6),
        ("x latency_us_p99 overhead < 150us", Metric::P99, 150.0),
        ("x requests/s value >= 5000/s", Metric::Requests, 5000.0),
        ("x rps value > 5k/s", Metric::Requests, 5000.0),
        (
            "x memory overhead <= 64MiB",
            Metric::Memory,
            64.0 * 1_048_576.0,
        ),
        ("x cpu overhead < 0.1ms", Metric::Cpu, 100.0),
        ("x P99.9 overhead < -1ms", Metric::P999, -1000.0),
        ("x throughput value > 3MB/s", Metric::Throughput, 3.0),
        ("x mean ratio < 1.05", Metric::Mean, 1.05),
        ("x mean overhead < 5%", Metric::Mean, 1.05),
        ("x requests/s overhead > -3%", Metric::Requests, 0.97),
        ("x failures value < 1%", Metric::Failures, 0.01),
        ("x failures overhead < 1%", Metric::Failures, 0.01),
    ] {
        let found = gate(text);
        assert_eq!(found.metric, metric, "{text}");
        assert!(
            (found.limit - limit).abs() < 1e-9,
            "{text}: {}",
            found.limit
        );
    }
    assert_eq!(gate("x mean overhead < 5%").subject, Subject::Ratio);
}

#[test]
fn every_metric_can_be_named_and_the_grammar_names_them_all() {
    let grammar = gate_grammar();
    for metric in Metric::ALL {
        assert!(grammar.contains(metric.name()), "{metric:?}");
        for word in metric.names().iter().chain([&metric.key()]) {
            let (unit, size) = metric.unit().written()[0];
            let found = gate(&format!("x {word} value < 3{unit}"));
            assert_eq!((found.metric, found.limit), (metric, 3.0 * size), "{word}");
        }
    }
}

#[test]
fn a_text_that_is_no_gate_says_what_was_expected() {
    for (text, what) in [
        ("rhai is fast", "expected `<`, `<=`, `>` or `>=`"),
        (
            "rhai p99 < 1ms",
            "expected `overhead`, `ratio` or `value` before `<`, found `p99`",
        ),
        ("overhead < 1ms", "expected a metric before `overhead`"),
        (
            "rhai p98 overhead < 1ms",
            "`p98` is not a metric. The metrics are requests/s, min",
        ),
        (
            "rhai p99 overhead < 1",
            "expected a unit of `ns`, `us`, `µs`, `ms`, `s` after 1, found none",
        ),
        ("rhai p99 overhead < 1MiB", "found MiB"),
        (
            "rhai p99 overhead < fast",
            "expected a quantity after the comparison, found `fast`",
        ),
        ("rhai p99 ratio < 5%", "Write `ratio < 1.05`"),
        ("rhai p99 ratio < 5ms", "a ratio has no unit"),
        ("rhai p99 value < 5%", "found %"),
        ("rhai p99 overhead < ", "found ``"),
    ] {
        let message = text.parse::<Gate>().unwrap_err().to_string();
        assert!(message.contains(what), "{text}: {message}");
        assert!(message.contains("`rhai p99 overhead < 0.2ms`"), "{message}");
    }
}
