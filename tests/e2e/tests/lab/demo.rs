//! `weigh demo`: the output for a new user.

use std::path::{Path, PathBuf};

use e2e::{ATTEMPTS, Run, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

use crate::null_servers::is_found;

/// Runs `weigh` with these arguments, in this folder.
fn weigh_in(folder: &Path, words: &[&str]) -> Run {
    let mut command = weigh_command();
    let output = command.current_dir(folder).args(words).output();
    Run::of(output.expect("weigh starts"))
}

/// The recording that the output names.
fn recording_of(folder: &Path, run: &Run) -> PathBuf {
    let answer = run.answer();
    let mut lines = answer.lines();
    let path = lines.find_map(|line| line.strip_prefix("Recorded in "));
    folder.join(path.expect("the answer names the recording"))
}

/// The end of its last load, in seconds from the start.
fn seconds(recording: &Path) -> f64 {
    let text = std::fs::read(recording.join("recording.json")).expect("a recording");
    let recording: Value = serde_json::from_slice(&text).expect("JSON");
    let rounds = recording["rounds"].as_array().expect("rounds");
    let end = |round: &Value| {
        let us = |key: &str| round[key].as_f64().expect("a number");
        us("started_offset_us") + us("elapsed_us")
    };
    rounds.iter().map(end).fold(0.0, f64::max) / 1e6
}

#[test]
fn the_demonstration_finds_what_it_planted_and_says_what_to_type_next() {
    let world = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let folder = world.path();
    for _ in 0..ATTEMPTS {
        let run = weigh_in(folder, &["demo"]).ran();
        let recording = recording_of(folder, &run);
        run.shows("Next commands");
        run.shows("weigh ab URL_A URL_B");
        run.shows("weigh init --command");
        run.shows("weigh lab recordings/demo-");
        // The suggested next commands work.
        let lab = recording.join("demo.yaml").display().to_string();
        let check = weigh_in(folder, &["check", &lab]).exits_with(0);
        check.shows("`waits 1200 us`: proven");
        if is_found(&recording, 150.0, 300.0) {
            run.shows("Planted 200 us, found ");
            run.shows("Four of five such runs would show one of");
            let seconds = seconds(&recording);
            assert!(seconds < 19.0, "its last load ended after {seconds} s");
            judged::ran();
            return;
        }
    }
    judged::not_run(e2e::MACHINE_UNFIT);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let world = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    std::fs::write(world.path().join("taken"), "").expect("a file");
    let run = weigh_in(world.path(), &["demo", "--out", "taken/here"]).exits_with(5);
    run.says("taken/here");
    run.says("Choose another folder with --out");
}
