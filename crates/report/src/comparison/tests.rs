//! Tests of the renderings of comparisons.

use analysis::Summary;
use analysis::compare::{Operand, OperandSource};
use analysis::gate::Undecided;
use model::InvalidKind;
use recording::VariantStatus;

use super::*;
use analysis::sample::{MONDAY, TUESDAY, foreign, lab, recorded};

fn of(a: &Operand, b: &Operand) -> Comparison {
    Comparison::of(a, b, false).unwrap()
}

#[test]
fn the_text_says_that_two_runs_are_unpaired() {
    let (monday, tuesday) = (lab([680.0, 750.0], MONDAY), lab([680.0, 750.0], TUESDAY));
    let unpaired = of(
        &recorded("a", Some("baseline"), &monday),
        &recorded("b", Some("rhai"), &tuesday),
    );
    let text = comparison_text(&unpaired, 100);
    assert!(
        text.contains("UNPAIRED: measured in different runs"),
        "{text}"
    );
    assert!(text.contains("Mann-Whitney"), "{text}");
}

#[test]
fn a_variant_without_a_number_is_an_error_of_junit() {
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
    assert!(comparison_junit(&found).contains("errors=\"1\""));
}

const WRK: &str = include_str!("../../../recording/samples/wrk.txt");

#[test]
fn single_runs_of_other_tools_have_differences_and_no_verdict() {
    let faster = WRK
        .replace("9013 requests", "9915 requests")
        .replace("8.71ms", "9.58ms");
    let found = of(&foreign("old.txt", &[WRK]), &foreign("new.txt", &[&faster]));
    let gates = ["p99 overhead < 1s".parse().unwrap()];
    let found = found.judged(&gates, Undecided::Fails);
    insta::assert_snapshot!(comparison_text(&found, 100));
}

#[test]
fn a_comparison_is_pasted_as_markdown() {
    let (monday, tuesday) = (lab([680.0, 750.0], MONDAY), lab([748.0, 888.0], TUESDAY));
    let found = of(
        &recorded("monday", None, &monday),
        &recorded("tuesday", None, &tuesday),
    );
    let gates = ["rhai p99 overhead < 0.1ms".parse().unwrap()];
    insta::assert_snapshot!(comparison_markdown(&found.judged(&gates, Undecided::Fails)));
}

#[test]
fn our_own_printed_json_is_no_recording() {
    let recording = lab([680.0, 750.0], MONDAY);
    let printed = crate::json(&recording, &Summary::of(&recording));
    let message = OperandSource::read(&[("x".to_owned(), printed)])
        .unwrap_err()
        .to_string();
    assert!(message.contains("recording.json"), "{message}");
}

#[test]
fn the_committed_schema_is_that_of_the_answer() {
    let schema = crate::comparison_schema();
    generated::assert_schema("comparison", &schema);
    let found = crate::comparison_json(&of(
        &recorded("a", None, &lab([680.0, 750.0], MONDAY)),
        &recorded("b", None, &lab([680.0, 750.0], TUESDAY)),
    ));
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let known = schema["properties"].as_object().unwrap();
    for key in found.as_object().unwrap().keys() {
        assert!(known.contains_key(key), "{key} is in no schema");
    }
    for key in schema["required"].as_array().unwrap() {
        assert!(
            found.get(key.as_str().unwrap()).is_some(),
            "{key} is missing"
        );
    }
}
