//! The help of `weigh compare` and `weigh tare`, and the schemas of their machine-readable output.

use std::path::Path;

use e2e::{Run, weigh_command};
use serde_json::Value;

fn help(subcommand: &str) -> String {
    let output = weigh_command()
        .args([subcommand, "--help"])
        .env("COLUMNS", "100")
        .env_remove("NO_COLOR")
        .output()
        .expect("weigh starts");
    Run::of(output).exits_with(0).answer()
}

#[test]
fn the_help_of_compare_says_what_can_be_compared() {
    insta::assert_snapshot!(help("compare"));
}

#[test]
fn the_help_of_tare_says_what_is_weighed() {
    insta::assert_snapshot!(help("tare"));
}

/// Checks that the schema has every key of the output, and that the output has every required key of the
/// schema.
fn keeps(schema: &str, answer: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let text = std::fs::read_to_string(path.join(schema)).expect("a committed schema");
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    let answer: Value =
        serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let known = schema["properties"].as_object().expect("properties");
    let found = answer.as_object().expect("an object");
    for key in found.keys() {
        assert!(known.contains_key(key), "{key} is in no schema");
    }
    for key in schema["required"].as_array().expect("required keys") {
        let key = key.as_str().expect("a key");
        assert!(found.contains_key(key), "{key} is missing");
    }
}

#[test]
fn what_is_printed_for_programs_keeps_its_schema() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/recording/samples");
    let output = weigh_command()
        .arg("compare")
        .args([samples.join("wrk.txt"), samples.join("hey.txt")])
        .args(["--despite-differences", "--format", "json"])
        .output()
        .expect("weigh starts");
    keeps(
        "comparison.schema.json",
        &Run::of(output).exits_with(0).answer(),
    );
    let output = weigh_command()
        .args([
            "tare",
            "--no-keep",
            "--rounds",
            "6",
            "-z",
            "20ms",
            "-r",
            "200",
        ])
        .args(["--format", "json"])
        .output()
        .expect("weigh starts");
    // Exit code 7 on a machine that is not fit for measuring.
    keeps("tare.schema.json", &Run::of(output).ran().answer());
}
