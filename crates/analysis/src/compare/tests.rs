//! Tests of comparisons.

use model::InvalidKind;
use recording::sample::SampleRun;
use recording::{METHOD, VariantStatus};

use super::*;
use crate::gate::Ruling;
use crate::sample::{MONDAY, TUESDAY, foreign, lab, recorded};
use crate::summary::Reason;

fn of(a: &Operand, b: &Operand) -> Comparison {
    Comparison::of(a, b, false).unwrap()
}

#[test]
fn two_variants_of_one_run_are_paired_and_say_what_the_lab_said() {
    let recording = lab([680.0, 750.0], MONDAY);
    let found = of(
        &recorded("one", Some("baseline"), &recording),
        &recorded("copy", Some("rhai"), &recording),
    );
    assert_eq!(found.pairing, Pairing::Paired);
    let summary = crate::Summary::of(&recording);
    let own = summary.variant("rhai").unwrap();
    assert_eq!(found.rows[0].verdict.as_ref(), Some(&own.verdict));
    let overhead = found.rows[0].metrics[&Metric::P99].b.overhead.as_ref();
    assert_eq!(overhead, own.metric(Metric::P99).unwrap().overhead.as_ref());
}

#[test]
fn two_runs_are_unpaired_wider_and_say_so() {
    let (monday, tuesday) = (lab([680.0, 750.0], MONDAY), lab([680.0, 750.0], TUESDAY));
    let paired = of(
        &recorded("a", Some("baseline"), &monday),
        &recorded("a", Some("rhai"), &monday),
    );
    let unpaired = of(
        &recorded("a", Some("baseline"), &monday),
        &recorded("b", Some("rhai"), &tuesday),
    );
    assert_eq!(unpaired.pairing, Pairing::Unpaired);
    let width = |found: &Comparison| {
        let overhead = found.rows[0].metrics[&Metric::Mean].b.overhead.as_ref();
        overhead.unwrap().half_width().unwrap()
    };
    assert!(width(&unpaired) > 1.5 * width(&paired));
}

#[test]
fn labs_are_compared_by_name_with_the_overhead_then_and_now() {
    // The machine is a tenth slower on Tuesday. In addition, the overhead has grown from 70 to 140 us.
    let (monday, tuesday) = (lab([680.0, 750.0], MONDAY), lab([748.0, 888.0], TUESDAY));
    let found = of(
        &recorded("a", None, &monday),
        &recorded("b", None, &tuesday),
    );
    let names: Vec<&str> = found.rows.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["baseline", "rhai"]);
    assert!(
        (found.confidence_each - 0.975).abs() < 1e-9,
        "two comparisons"
    );
    assert!(
        found.rows[0].overheads.is_empty(),
        "a baseline has no overhead"
    );
    let change = &found.rows[1].overheads[&Metric::Mean].b;
    let change = change.overhead.as_ref().unwrap();
    let (low, high) = (
        change.difference_low.unwrap(),
        change.difference_high.unwrap(),
    );
    assert!(
        low > 40.0 && low < 70.0 && 70.0 < high && high < 100.0,
        "{low} to {high}"
    );
    assert_eq!(change.ratio, None);
}

#[test]
fn a_variant_that_was_sent_other_requests_is_not_compared() {
    let monday = lab([680.0, 750.0], MONDAY);
    let mut tuesday = lab([680.0, 750.0], TUESDAY);
    let mut batch = tuesday.load.requests[0].clone();
    batch.operations = 5;
    batch.body_sha256 = Some("0".repeat(64));
    tuesday.variants[1].requests = vec![batch];
    let found = of(
        &recorded("a", None, &monday),
        &recorded("b", None, &tuesday),
    );
    let obstacles = found.obstacles.join("\n");
    let words = "rhai: requests: the requests of the load in A, test: POST /graphql";
    assert!(
        obstacles.contains(words) && obstacles.contains("5 operations in B"),
        "{obstacles}"
    );
    assert!(!obstacles.contains("baseline: requests"), "{obstacles}");
    // This also applies if the shown parts of a request are equal.
    let mut wednesday = tuesday.clone();
    wednesday.started_at = "2026-02-04T10:00:00Z".to_owned();
    wednesday.variants[1].requests[0].body_sha256 = Some("1".repeat(64));
    let found = of(
        &recorded("b", None, &tuesday),
        &recorded("c", None, &wednesday),
    );
    let words = "rhai: requests: equal names, but different contents";
    assert!(
        found.obstacles.iter().any(|it| it == words),
        "{:?}",
        found.obstacles
    );
}

#[test]
fn another_load_or_machine_withholds_the_verdict_unless_asked() {
    let monday = lab([680.0, 750.0], MONDAY);
    let mut tuesday = lab([680.0, 750.0], TUESDAY);
    tuesday.environment.cpu_model = Some("Example CPU 9000".to_owned());
    tuesday.environment.kernel = Some("Linux 6.2.0".to_owned());
    tuesday.load.requests[0].body_sha256 = None;
    tuesday.variants[1].systems[0].version = Some("2.0".to_owned());
    let (a, b) = (recorded("a", None, &monday), recorded("b", None, &tuesday));
    let found = of(&a, &b);
    assert_eq!(
        found.obstacles,
        [
            "processor: Example CPU 3000 in A, Example CPU 9000 in B",
            "requests: equal names, but different contents or weights",
        ]
    );
    let notes = found.notes.join("\n");
    assert!(
        notes.contains("kernel: Linux 6.1.0 in A, Linux 6.2.0 in B"),
        "{notes}"
    );
    assert!(notes.contains("rhai: version of server: "), "{notes}");
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.verdict.is_none() && !row.metrics.is_empty())
    );
    let gates = ["rhai p99 overhead < 1s".parse().unwrap()];
    let judged = found.judged(&gates, Undecided::Fails);
    assert_eq!(judged.gates[0].ruling, Ruling::Undecided);
    let Grounds::Figure(reason) = &judged.gates[0].grounds else {
        panic!("{:?}", judged.gates);
    };
    assert!(reason.contains("processor"), "{reason}");
    let all_the_same = Comparison::of(&a, &b, true).unwrap();
    assert!(all_the_same.obstacles.is_empty());
    assert!(all_the_same.notes[0].starts_with("compared in spite of this: processor"));
    assert!(all_the_same.rows.iter().all(|row| row.verdict.is_some()));
}

#[test]
fn another_method_is_refused() {
    let monday = lab([680.0, 750.0], MONDAY);
    let mut older = lab([680.0, 750.0], TUESDAY);
    older.method = 0;
    let error = Comparison::of(
        &recorded("a", None, &monday),
        &recorded("b", None, &older),
        true,
    );
    let message = error.unwrap_err().to_string();
    assert!(
        message.contains(&format!("method {METHOD} in `a` and method 0 in `b`")),
        "{message}"
    );
    assert!(message.contains("CHANGELOG.md"), "{message}");
}

#[test]
fn names_that_lead_nowhere_are_told_what_there_is() {
    let monday = lab([680.0, 750.0], MONDAY);
    let mut other = lab([680.0, 750.0], TUESDAY);
    let error = |a: &Operand, b: &Operand| Comparison::of(a, b, false).unwrap_err().to_string();
    let same = error(&recorded("a", None, &monday), &recorded("a", None, &monday));
    assert!(
        same.contains("as in `FILE#baseline` and `FILE#rhai`"),
        "{same}"
    );
    let unknown = error(
        &recorded("a", Some("go"), &monday),
        &recorded("b", None, &other),
    );
    assert!(
        unknown.contains("found `go`. The variants are `baseline`, `rhai`"),
        "{unknown}"
    );
    for (variant, name) in other.variants.iter_mut().zip(["x", "y"]) {
        variant.name = name.to_owned();
    }
    let nothing = error(&recorded("a", None, &monday), &recorded("b", None, &other));
    assert!(
        nothing.contains("found `baseline`, `rhai` in `a` and `x`, `y` in `b`"),
        "{nothing}"
    );
}

#[test]
fn a_variant_without_a_number_is_a_row_that_says_why() {
    let monday = lab([680.0, 750.0], MONDAY);
    let mut tuesday = lab([680.0, 750.0], TUESDAY);
    tuesday.variants[1].status = VariantStatus::Invalid {
        kind: InvalidKind::Crashed,
        reason: "it exited with 1".to_owned(),
    };
    let found = of(
        &recorded("a", None, &monday),
        &recorded("b", None, &tuesday),
    );
    let row = &found.rows[1];
    assert_eq!(row.no_verdict, Some(NoVerdict::NoNumber));
    let verdict = Verdict::Invalid {
        kind: InvalidKind::Crashed.into(),
        reason: Reason::Recorded("it exited with 1".to_owned()),
    };
    assert_eq!(row.no_number, Some(NoNumber { side: "B", verdict }));
    assert!(found.rows[1].metrics.is_empty());
    assert!(
        (found.confidence_each - 0.95).abs() < 1e-9,
        "one row is compared"
    );
}

const WRK: &str = include_str!("../../../recording/samples/wrk.txt");
const AB: &str = include_str!("../../../recording/samples/ab.txt");
const HYPERFINE: &str = include_str!("../../../recording/samples/hyperfine.json");

#[test]
fn single_runs_of_other_tools_have_differences_and_no_verdict() {
    let faster = WRK
        .replace("9013 requests", "9915 requests")
        .replace("8.71ms", "9.58ms");
    let found = of(&foreign("old.txt", &[WRK]), &foreign("new.txt", &[&faster]));
    assert_eq!(found.pairing, Pairing::Single);
    assert_eq!(found.headline, Metric::Requests);
    assert_eq!(found.rows[0].verdict, None);
    let gates = ["p99 overhead < 1s".parse().unwrap()];
    let found = found.judged(&gates, Undecided::Fails);
    assert_eq!(found.gates[0].ruling, Ruling::Undecided);
}

#[test]
fn folders_of_runs_have_an_interval() {
    let runs = |rates: [u32; 6]| -> Vec<String> {
        let with = |rate: &u32| WRK.replace("9013 requests", &format!("{rate} requests"));
        rates.iter().map(with).collect()
    };
    let (slow, fast) = (
        runs([9000, 9010, 9020, 9030, 9040, 9050]),
        runs([9100, 9110, 9120, 9130, 9140, 9150]),
    );
    let texts = |runs: &'static [String]| runs.iter().map(String::as_str).collect::<Vec<_>>();
    let found = of(
        &foreign("slow", &texts(slow.leak())),
        &foreign("fast", &texts(fast.leak())),
    );
    assert_eq!(found.pairing, Pairing::Unpaired);
    assert!(
        matches!(found.rows[0].verdict, Some(Verdict::Faster { .. })),
        "{:?}",
        found.rows[0].verdict
    );
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(
        json["rows"][0]["metrics"]["requests_per_s"]["b"]["overhead"]["claim"],
        "higher"
    );
}

#[test]
fn a_folder_of_two_tools_is_refused() {
    let files = [
        ("a".to_owned(), WRK.to_owned()),
        ("b".to_owned(), AB.to_owned()),
    ];
    let message = OperandSource::read(&files).unwrap_err().to_string();
    assert!(message.contains("found ab in `b`"), "{message}");
    let files = [
        ("a".to_owned(), WRK.to_owned()),
        ("b".to_owned(), "?".to_owned()),
    ];
    let message = OperandSource::read(&files).unwrap_err().to_string();
    assert!(
        message.starts_with("`b`: expected") && message.contains("found text that begins with `?`"),
        "{message}"
    );
}

#[test]
fn commands_of_one_hyperfine_file_are_named_or_numbered() {
    let with = |variant: &str| Operand {
        variant: Some(variant.to_owned()),
        ..foreign("bench.json", &[HYPERFINE])
    };
    let found = of(&with("sleep 0.01"), &with("2"));
    assert_eq!(found.rows[0].name_b, "sleep 0.012");
    assert_eq!(found.pairing, Pairing::Unpaired);
    assert_eq!(found.headline, Metric::Mean);
    assert!(found.rows[0].verdict.is_some(), "12 runs each");
}

#[test]
fn runs_with_errors_and_of_two_tools_are_not_taken_at_face_value() {
    let bad = include_str!("../../../recording/samples/wrk-bad.txt");
    let found = of(&foreign("ok", &[AB]), &foreign("bad", &[bad]));
    assert_eq!(
        found.obstacles,
        ["120 of the requests of bad did not succeed"]
    );
    assert!(found.notes[0].contains("two tools"), "{:?}", found.notes);
    assert_eq!(found.rows[0].no_verdict, Some(NoVerdict::NotComparable));
}

/// The end-to-end tests of `weigh report` and `weigh compare` use this recording, so that they do not depend
/// on a noisy machine.
#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that writes the file")]
fn the_committed_lab_is_read_and_has_a_slow_variant() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/samples/lab.json");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        let recording = SampleRun::closed()
            .variant("honest", 700.0)
            .variant("slow", 2700.0)
            .build();
        std::fs::write(path, recording.to_json()).unwrap();
    }
    let recording = Recording::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    let summary = crate::Summary::of(&recording);
    let slow = summary.variant("slow").unwrap();
    assert!(matches!(slow.verdict, Verdict::Slower { .. }), "{slow:#?}");
}

const LOCUST: &str = "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,\
    Min Response Time,Max Response Time,Average Content Size,Requests/s,Failures/s\n\
    GET,/a,100,0,12,15,5,200,120,10,0\nGET,/b,100,10,22,25,6,300,120,10,1\n\
    ,Aggregated,200,10,17,20,5,300,120,20,1\n";

#[test]
fn named_requests_are_rows_if_both_files_have_them() {
    let other = LOCUST.replace("GET,/a,100,0,12,15", "GET,/c,100,0,12,15");
    let found = of(&foreign("old", &[LOCUST]), &foreign("new", &[&other]));
    let names: Vec<[&str; 2]> = found
        .rows
        .iter()
        .map(|row| [&*row.name_a, &*row.name_b])
        .collect();
    assert_eq!(names, [["old", "new"], ["GET /b", "GET /b"]]);
    assert_eq!(found.rows[1].metrics[&Metric::Mean].b.value, 25_000.0);
    // The failures of a name are failures of the file too.
    assert_eq!(found.obstacles.len(), 2, "{:?}", found.obstacles);
    let chosen = Operand {
        variant: Some("GET /a".to_owned()),
        ..foreign("old", &[LOCUST])
    };
    let also = Operand {
        variant: Some("GET /c".to_owned()),
        ..foreign("new", &[&other])
    };
    let found = of(&chosen, &also);
    assert_eq!(found.rows[0].name, "GET /c");
    assert!(found.obstacles.is_empty(), "{:?}", found.obstacles);
    // A file without names is compared as a whole.
    let found = of(&foreign("old", &[LOCUST]), &foreign("wrk", &[WRK]));
    assert_eq!((found.rows.len(), &*found.rows[0].name), (1, "wrk"));
}

#[test]
fn failures_of_other_tools_are_judged_and_unknown_ones_are_said() {
    let table = include_str!("../../../recording/samples/ab.csv");
    let other = table.replace("12.53", "12.54");
    let gates = ["failures value < 1%".parse().unwrap()];
    let found = of(&foreign("a", &[table]), &foreign("b", &[&other]));
    assert_eq!(
        found.rows[0].failures,
        Some(FailuresOf { a: None, b: None })
    );
    let notes = found.notes.join("\n");
    assert!(notes.contains("the failures of b are unknown"), "{notes}");
    let found = found.judged(&gates, Undecided::Fails);
    assert_eq!(found.gates[0].ruling, Ruling::Undecided);
    let Grounds::Figure(reason) = &found.gates[0].grounds else {
        panic!("{:?}", found.gates);
    };
    assert_eq!(reason, "failures of `b` are unknown");
    let known = of(&foreign("a", &[AB]), &foreign("b", &[WRK])).judged(&gates, Undecided::Fails);
    assert_eq!(known.gates[0].ruling, Ruling::Holds, "{:?}", known.gates);
    let bad = include_str!("../../../recording/samples/wrk-bad.txt");
    let broken = of(&foreign("a", &[WRK]), &foreign("b", &[bad])).judged(&gates, Undecided::Fails);
    assert_eq!(broken.gates[0].ruling, Ruling::Broken, "{:?}", broken.gates);
}
