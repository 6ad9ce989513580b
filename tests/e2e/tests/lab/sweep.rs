//! A lab at several loads: a recording for each, and a curve over all.

use std::fs;
use std::path::{Path, PathBuf};

use e2e::{Run, World, weigh_command};
use serde_json::Value;

use crate::null_servers::NullServers;

fn world(sweep: &str, rounds: u32, keys: &str) -> World {
    NullServers::under(&format!("{{sweep: {sweep}, duration: 600ms, path: /}}"))
        .key("order: side-by-side")
        .rounds(rounds)
        .key(keys)
        .variants("  - {name: later, with: {server.flag: --delay=1ms}}\n")
        .world()
}

fn report(folder: &Path, flags: &[&str]) -> Run {
    let mut command = weigh_command();
    command.arg("report").arg(folder).args(flags);
    Run::of(command.output().expect("weigh starts"))
}

fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it is written")).expect("JSON")
}

#[test]
fn each_load_has_its_recording_and_all_are_one_curve() {
    let run = world(
        "[200/s, 50/s, 100/s]",
        6,
        "gates: [later typical overhead < 1s]",
    )
    // A level that the machine disturbed has no interval. This test does not check intervals.
    .run_with(&["--undecided", "pass"])
    .ran();
    let folder = run.recording_folder();
    let curve = json(folder.join("curve.json"));
    let levels = curve["levels"].as_array().expect("levels");
    let amounts: Vec<f64> = levels
        .iter()
        .filter_map(|it| it["amount"].as_f64())
        .collect();
    assert_eq!(amounts, [50.0, 100.0, 200.0]);
    for (level, per_s) in levels.iter().zip([50.0, 100.0, 200.0]) {
        let own = folder.join(level["folder"].as_str().expect("a folder"));
        let recording = json(own.join("recording.json"));
        let phase = &recording["load"]["model"]["phases"][0];
        assert_eq!(phase["rate_from_per_s"], per_s, "{phase}");
        assert_eq!(
            recording["order"].as_array().map(Vec::len),
            Some(6),
            "all rounds"
        );
        for name in ["report.html", "report.md"] {
            assert!(own.join(name).exists(), "{name}");
        }
        // Each level is an ordinary recording.
        report(&own, &["--full"]).ran().shows("side by side");
    }
    for words in ["50 requests/s", "100 requests/s", "200 requests/s", "later"] {
        run.shows(words);
    }
    // A second rendering gives the same text, with the gates of the run.
    let again = report(&folder, &[]).ran().answer();
    assert_eq!(run.answer().trim_end(), again.trim_end());
    let page = report(&folder, &["--format", "html"]).ran().answer();
    assert!(
        page.contains("<svg") && page.contains("at-50-per-s/report.html"),
        "{page}"
    );
    let broken = report(&folder, &["--gate", "typical overhead < 1ns"]);
    assert_ne!(broken.status().code(), Some(0));
    broken.shows("`typical overhead < 1ns` on `later at 50 requests/s`");
    let csv = report(&folder, &["--format", "csv"]).ran().answer();
    assert_eq!(csv.matches("lab,variant,verdict").count(), 1, "{csv}");
}

#[test]
fn connections_are_swept_as_well_and_a_commit_has_one_verdict() {
    let world = world("[4, 1]", 1, "seed: 7");
    let run = world.run_with(&["--format", "json"]).ran();
    let curve: Value = serde_json::from_str(&run.answer()).expect("JSON");
    assert_eq!(curve["levels"][0]["load"], "1 connection");
    assert_eq!(curve["levels"][1]["load"], "4 connections");
    assert_eq!(curve["metric"], "requests_per_s");
    // The lowest level is used for the proof.
    let mut check = world.command("check");
    Run::of(check.output().expect("weigh starts")).exits_with(0);
    let mut bisect = world.command("bisect");
    bisect.args(["--good", "HEAD", "--gate", "mean overhead < 1us"]);
    let refused = Run::of(bisect.output().expect("weigh starts")).exits_with(2);
    refused.says("found the sweep");
}
