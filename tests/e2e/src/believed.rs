//! Claims about numbers on a machine that other programs use as well.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Run, weigh_command};

/// The summary of a recording, from `weigh report --format json`.
///
/// # Panics
///
/// If it cannot be created.
#[must_use]
pub fn summary_of(recording: &Path) -> Value {
    let output = weigh_command()
        .arg("report")
        .arg(recording)
        .args(["--format", "json"])
        .output()
        .expect("weigh starts");
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    document["summary"].clone()
}

/// The measurements of a variant that count, one for each round and group. Disturbed measurements were
/// repeated and do not count.
#[must_use]
pub fn rounds_of<'a>(recording: &'a Value, variant: &str) -> Vec<&'a Value> {
    let rounds = recording["rounds"].as_array().into_iter().flatten();
    rounds
        .filter(|round| round["variant"] == variant && round["disturbed"] != true)
        .collect()
}

/// Number of measurements on a machine that may be disturbed.
pub const ATTEMPTS: usize = 4;

/// The checks that fail if the machine gave its processors to other programs. A claim cannot be judged then.
pub const MACHINE_CHECKS: [&str; 3] = ["generator-pauses", "generator-starved", "steal"];

/// Reason for skipping a claim if other programs used the processors.
pub const MACHINE_UNFIT: &str = "others had the processors in every attempt";

/// Measures until no check withholds a verdict, at most [`ATTEMPTS`] times. `measure` returns the run and its
/// recording, a folder or a file. `None`, with a note, if other programs used the processors, because a test
/// cannot claim anything then.
///
/// # Panics
///
/// If a run fails for another reason, or no run has a verdict although the machine was fit each time.
#[must_use]
#[track_caller]
pub fn believed(measure: impl Fn(usize) -> (Run, PathBuf)) -> Option<Run> {
    judged::expect_alone();
    let mut is_machine_fit = true;
    for attempt in 0..ATTEMPTS {
        let (run, recording) = measure(attempt);
        let run = run.ran();
        // A single load has no verdict, and succeeds even if its numbers are withheld.
        let is_unfit = is_machine_unfit(&summary_of(&recording));
        if run.status().success() && !is_unfit {
            judged::ran();
            return Some(run);
        }
        is_machine_fit &= !is_unfit;
        assert!(
            !is_machine_fit || attempt + 1 < ATTEMPTS,
            "no run was believed; the last:\n{}",
            run.answer()
        );
    }
    judged::not_run(MACHINE_UNFIT);
    None
}

/// True if a check of the machine failed for any variant.
pub(crate) fn is_machine_unfit(summary: &Value) -> bool {
    let variants = summary["variants"].as_array().into_iter().flatten();
    let mut checks = variants.flat_map(|row| row["checks"].as_array().into_iter().flatten());
    checks.any(|check| {
        check["state"] == "failed" && MACHINE_CHECKS.iter().any(|name| check["name"] == *name)
    })
}
