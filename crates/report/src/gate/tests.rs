//! Claims about gates: how they are written, and what they are judged on.

use model::InvalidKind;

use super::*;
use crate::Summary;
use crate::recording::VariantStatus;
use crate::sample::Sample;

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
    let grammar = grammar();
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
            "`p98` is not a metric; they are requests/s, min",
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
        ("rhai p99 ratio < 5%", "write `ratio < 1.05`"),
        ("rhai p99 ratio < 5ms", "a ratio has no unit"),
        ("rhai p99 value < 5%", "found %"),
        ("rhai p99 overhead < ", "found ``"),
    ] {
        let message = text.parse::<Gate>().unwrap_err().to_string();
        assert!(message.contains(what), "{text}: {message}");
        assert!(message.contains("`rhai p99 overhead < 0.2ms`"), "{message}");
    }
}

/// Mean latencies of 680, 680 and about 750 us at 8 rounds.
fn lab() -> crate::Recording {
    Sample::open()
        .variant("baseline", 680.0)
        .variant("same", 680.0)
        .variant("rhai", 750.0)
        .build()
}

fn ruled(recording: &crate::Recording, text: &str) -> (Ruling, String) {
    let summary = Summary::of(recording).judged(&[gate(text)], Undecided::Fails);
    assert_eq!(summary.gates.len(), 1, "{text}");
    (summary.gates[0].ruling, summary.gates[0].reason.clone())
}

#[test]
fn a_gate_is_judged_on_the_whole_interval() {
    let recording = lab();
    let summary = Summary::of(&recording);
    let overhead = summary
        .variant("rhai")
        .unwrap()
        .metric(Metric::Mean)
        .unwrap();
    let overhead = overhead.overhead.as_ref().unwrap();
    let (low, high) = (
        overhead.difference_low.unwrap(),
        overhead.difference_high.unwrap(),
    );
    let middle = f64::midpoint(low, high);
    for (limit, ruling) in [
        (high + 1.0, Ruling::Holds),
        (middle, Ruling::Undecided),
        (low - 1.0, Ruling::Broken),
    ] {
        let (found, reason) = ruled(&recording, &format!("rhai mean overhead < {limit:.3}us"));
        assert_eq!(found, ruling, "{limit}: {reason}");
        assert_eq!(
            reason.starts_with("undecided: "),
            ruling == Ruling::Undecided
        );
        assert!(reason.contains(" ms"), "{reason}");
    }
    let (found, _) = ruled(
        &recording,
        &format!("rhai mean overhead > {:.3}us", low - 1.0),
    );
    assert_eq!(found, Ruling::Holds);
    // An end on the limit is within `<=`, and not within `<`.
    let mut exact = gate("rhai mean overhead <= 1ms");
    exact.limit = high;
    assert_eq!(
        Summary::of(&recording)
            .judged(&[exact.clone()], Undecided::Fails)
            .gates[0]
            .ruling,
        Ruling::Holds
    );
    exact.relation = Relation::Below;
    assert_eq!(
        Summary::of(&recording)
            .judged(&[exact], Undecided::Fails)
            .gates[0]
            .ruling,
        Ruling::Undecided
    );
}

#[test]
fn ratios_values_and_shares_are_judged_too() {
    let recording = lab();
    for (text, ruling) in [
        ("rhai mean ratio < 1.5", Ruling::Holds),
        ("rhai mean overhead < 5%", Ruling::Broken),
        ("same mean overhead < 5%", Ruling::Holds),
        ("rhai p99 value < 1s", Ruling::Holds),
        ("baseline p99 value < 1s", Ruling::Holds),
        ("baseline p99 overhead < 1s", Ruling::Undecided),
        ("rhai throughput value > 100MB/s", Ruling::Broken),
    ] {
        let (found, reason) = ruled(&recording, text);
        assert_eq!(found, ruling, "{text}: {reason}");
    }
    let summary = Summary::of(&recording).judged(&[gate("mean overhead < 5%")], Undecided::Fails);
    let names: Vec<&str> = summary.gates.iter().map(|gate| &*gate.variant).collect();
    assert_eq!(names, ["same", "rhai"], "every variant but the baseline");
}

#[test]
fn without_an_interval_or_a_number_nothing_is_decided() {
    let few = Sample::open()
        .rounds(4)
        .variant("a", 680.0)
        .variant("b", 800.0)
        .build();
    let (ruling, reason) = ruled(&few, "b mean overhead < 10ms");
    assert_eq!(ruling, Ruling::Undecided);
    assert!(reason.contains("needs 6 rounds; 4 measured"), "{reason}");
    let mut broken = lab();
    broken.variants[2].status = VariantStatus::Invalid {
        kind: InvalidKind::ProgramMissing,
        reason: "`dotnet` is not installed".to_owned(),
    };
    let (ruling, reason) = ruled(&broken, "rhai mean overhead < 10ms");
    assert_eq!(ruling, Ruling::Undecided);
    assert!(
        reason.contains("`rhai` has no number: `dotnet` is not"),
        "{reason}"
    );
}

#[test]
fn a_gate_on_nobody_is_no_gate_that_holds() {
    let (ruling, reason) = ruled(&lab(), "nobody mean overhead < 10ms");
    assert_eq!(ruling, Ruling::Undecided);
    assert!(reason.contains("no variant `nobody`"), "{reason}");
}

#[test]
fn an_undecided_gate_fails_unless_it_was_to_pass() {
    let gates = [
        gate("rhai mean overhead < 1ms"),
        gate("nobody mean overhead < 1ms"),
    ];
    for (undecided, passed) in [
        (Undecided::Fails, [true, false]),
        (Undecided::Passes, [true, true]),
    ] {
        let summary = Summary::of(&lab()).judged(&gates, undecided);
        let found: Vec<bool> = summary.gates.iter().map(|gate| gate.is_passed).collect();
        assert_eq!(found, passed, "{undecided:?}");
    }
    let broken = [gate("rhai mean overhead < 1us")];
    let summary = Summary::of(&lab()).judged(&broken, Undecided::Passes);
    assert!(!summary.gates[0].is_passed, "broken is broken");
}

#[test]
fn a_ratio_is_shown_as_a_ratio_and_a_share_as_a_share() {
    for (text, words) in [
        ("rhai mean ratio < 2", " times the baseline"),
        ("rhai mean overhead < 50%", " % of the baseline"),
        ("rhai mean overhead < 50ms", " ms"),
    ] {
        let (ruling, reason) = ruled(&lab(), text);
        assert_eq!(ruling, Ruling::Holds, "{text}: {reason}");
        assert!(reason.ends_with(words), "{text}: {reason}");
    }
}
