//! The labs of `labs/outside`: costs of nginx, uvicorn and `compression` with known causes.

use std::fs;
use std::path::{Path, PathBuf};

use e2e::{Run, believed, summary_of, weigh_command};
use judged::is_installed;
use serde_json::Value;
use tempfile::TempDir;

/// Half of the 40 ms that Linux delays an acknowledgment. Some connections are young, and their
/// acknowledgments are not delayed.
const HELD_BACK_US: f64 = 20_000.0;
/// More than the cost of any of these layers without delayed acknowledgments, even on a busy machine.
const NOT_HELD_BACK_US: f64 = 10_000.0;

fn lab(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("labs/outside").join(name).with_extension("yaml");
    path.canonicalize().expect("the lab is there")
}

/// The summary of the first valid quick run of a lab. `None` on a machine that other programs keep busy. The
/// variants run in turn, because each delayed response takes several gaps between requests.
fn summary(lab: &Path) -> Option<Value> {
    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let recording = std::cell::RefCell::new(PathBuf::new());
    believed(|attempt| {
        let out = folder.path().join(attempt.to_string());
        let mut command = weigh_command();
        command
            .args(["lab", "--quick", "--order", "in-turn", "--out"])
            .arg(&out)
            .arg(lab);
        let run = Run::of(command.output().expect("weigh starts"));
        let mut folders = fs::read_dir(&out)
            .expect("a folder of recordings")
            .flatten();
        let written = folders.next().expect("a recording").path();
        recording.replace(written.clone());
        (run, written)
    })?;
    Some(summary_of(&recording.borrow()))
}

/// The interval of a figure's difference to the baseline: its low and its high end.
fn overhead(summary: &Value, variant: &str, metric: &str) -> (f64, f64) {
    let mut rows = summary["variants"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["name"] == variant).expect("the row");
    let interval = &row["metrics"][metric]["overhead"];
    let end = |name: &str| {
        let end = interval[name].as_f64();
        end.unwrap_or_else(|| panic!("no interval of {metric}: {row:#}"))
    };
    (end("difference_low"), end("difference_high"))
}

#[test]
fn nginx_costs_40_ms_where_it_keeps_connections_to_a_server_that_writes_twice() {
    if !(is_installed("nginx") && is_installed("python3")) {
        return;
    }
    let Some(summary) = summary(&lab("nginx")) else {
        return;
    };
    let median = |variant| overhead(&summary, variant, "latency_us_p50");
    let (low, high) = median("nginx, connections kept");
    assert!(low > HELD_BACK_US && high < 60_000.0, "{low} to {high} us");
    for fast in ["nginx", "nginx, connections kept, one write"] {
        let (_, high) = median(fast);
        assert!(high < NOT_HELD_BACK_US, "{fast}: up to {high} us");
    }
}

#[test]
fn a_second_worker_of_uvicorn_costs_40_ms_and_nothing_without_nagle() {
    if !is_installed("python3") {
        return;
    }
    let Some(summary) = summary(&lab("uvicorn")) else {
        return;
    };
    let median = |variant| overhead(&summary, variant, "latency_us_p50");
    let (low, high) = median("two workers");
    assert!(low > HELD_BACK_US && high < 60_000.0, "{low} to {high} us");
    let (_, high) = median("two workers without Nagle");
    assert!(high < NOT_HELD_BACK_US, "up to {high} us");
}

#[test]
fn compression_costs_express_processor_time() {
    if !(is_installed("node") && is_installed("npm")) {
        return;
    }
    // The proof of the lab compares decoded bodies. This test judges the load, by status.
    let text = fs::read_to_string(lab("compression")).expect("the lab is there");
    let expected = "expect: {status: 200, same-as: baseline}";
    assert!(text.contains(expected), "the lab lost `{expected}`");
    let beside = lab("compression").with_file_name("express");
    let text = text
        .replace(expected, "expect: {status: 200}")
        .replace("folder: express", &format!("folder: {}", beside.display()));
    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let by_status = folder.path().join("compression.yaml");
    fs::write(&by_status, text).expect("the file can be written");
    let Some(summary) = summary(&by_status) else {
        return;
    };
    let (low, high) = overhead(&summary, "with compression", "cpu_us_per_request");
    assert!(low > 20.0 && high < 5_000.0, "{low} to {high} us");
}
