//! Causes of a difference, from the sampled rounds of `--why`.

use std::collections::BTreeMap;

use recording::{SampledSystem, WaitKind, WhyLoad, WhyPair, WhyRecord, WhyUse};

use super::*;

const ANSWERED: u64 = 100;

fn load(sleep_us: u64, round: u32) -> WhyLoad {
    WhyLoad {
        answered: ANSWERED,
        elapsed_us: 1_000_000,
        latency_us_mean: 700.0 + f64::from(round),
        connections: 1,
        connections_of_systems: None,
        systems: vec![WhyUse {
            name: "server".to_owned(),
            cpu_us: Some(40 * ANSWERED),
            waits_us: BTreeMap::from([(WaitKind::Timer, sleep_us * ANSWERED + u64::from(round))]),
        }],
    }
}

fn system(variant: &str, evil: &str) -> SampledSystem {
    SampledSystem {
        variant: variant.to_owned(),
        system: "server".to_owned(),
        cpu_us_per_request: Some(if variant == "slow" { 80.0 } else { 40.0 }),
        stacks: BTreeMap::from([(format!("main;{evil}"), 30), ("main;write".to_owned(), 10)]),
        waits: BTreeMap::new(),
        blocked: BTreeMap::new(),
        runtime: BTreeMap::from([("go_collections".to_owned(), 0.25)]),
        missing: None,
    }
}

/// A run whose variant sleeps. A function has the name `evil`.
fn recording(evil: &str) -> Recording {
    let mut recording = SampleRun::side_by_side()
        .variant("plain", 700.0)
        .variant("slow", 2700.0)
        .build();
    let mut why = WhyRecord {
        sources: vec!["A source of samples.".to_owned()],
        pairs: Vec::new(),
        systems: vec![system("plain", "work"), system("slow", evil)],
    };
    for (variant, sleep_us) in [("plain", 0), ("slow", 2000)] {
        why.pairs.extend((0..6).map(|round| WhyPair {
            variant: variant.to_owned(),
            round,
            sampled_first: false,
            plain: load(sleep_us, round),
            sampled: load(sleep_us, round),
        }));
    }
    recording.why = Some(why);
    recording
}

#[test]
fn the_cause_its_functions_and_the_cost_reach_every_reader() {
    let recording = recording("work");
    let summary = Summary::of(&recording);
    for (format, text) in renderings(&recording, &summary) {
        if ["text", "full", "markdown", "html"].contains(&format) {
            for words in ["sleep in server", "Cost of", "write"] {
                assert!(text.contains(words), "{words} in {format}: {text}");
            }
        }
        if ["full", "markdown", "html"].contains(&format) {
            for words in ["A source of samples.", "collections of Go"] {
                assert!(text.contains(words), "{words} in {format}: {text}");
            }
        }
    }
    let json: serde_json::Value = serde_json::from_str(&crate::json(&recording, &summary)).unwrap();
    let variant = &json["summary"]["why"]["variants"][0];
    assert_eq!(variant["causes"], serde_json::json!(["sleep"]));
}

#[test]
fn a_graph_on_the_page_has_no_script_whatever_its_functions_are_called() {
    let recording = recording("</svg><script>alert(1)</script>");
    let page = crate::html(&recording, &Summary::of(&recording));
    assert!(page.contains("server of slow against plain"));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains("<script"));
}

#[test]
fn a_recording_without_samples_has_no_section() {
    let mut recording = recording("work");
    recording.why = None;
    let summary = Summary::of(&recording);
    for (format, text) in renderings(&recording, &summary) {
        assert!(!text.contains("Why they differ"), "{format}");
    }
}

#[test]
fn a_recording_keeps_its_samples() {
    let recording = recording("work");
    let read = Recording::from_json(&recording.to_json()).unwrap();
    assert_eq!(read.why, recording.why);
}
