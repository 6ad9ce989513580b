//! `weigh tare`: the noise floor of a machine, and its defects.

use std::path::Path;

use e2e::{Run, World, unwrapped, weigh_command};
use serde_json::Value;

/// Runs a short tare that stores its result below `state`.
fn tare(state: &Path, flags: &[&str]) -> Run {
    let output = weigh_command()
        .args(["tare", "--rounds", "6", "-z", "50ms", "-r", "400"])
        .args(flags)
        .env("XDG_STATE_HOME", state)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

/// The JSON output. The exit code must be 0, or 7 on a machine that is not fit for measuring.
fn json_of(run: &Run) -> Value {
    let answer: Value = serde_json::from_str(&run.answer()).expect("the answer is JSON");
    let states = answer["findings"].as_array().expect("findings").iter();
    let is_failed = states
        .map(|finding| &finding["state"])
        .any(|state| state == "failed");
    assert_eq!(run.status().code(), Some(if is_failed { 7 } else { 0 }));
    answer
}

#[test]
fn equal_halves_give_a_floor_for_every_figure_and_a_judged_machine() {
    let state = tempfile::tempdir().expect("a temporary folder");
    let answer = json_of(&tare(state.path(), &["--format", "json"]));
    for name in [
        "latency mean",
        "latency p99",
        "service time p50",
        "lateness p99",
    ] {
        let floor = &answer["floors"][name];
        let figure = |name: &str| floor[name].as_f64().expect("a figure");
        let (low, high) = (figure("difference_us_low"), figure("difference_us_high"));
        assert!(low <= high, "{floor}");
        assert_eq!(figure("floor_us"), low.abs().max(high.abs()));
    }
    for name in [
        "cores",
        "load",
        "steal",
        "lateness",
        "timer slack",
        "governor",
        "boost",
        "swap",
        "huge pages",
        "cgroups",
        "perf",
    ] {
        let findings = answer["findings"].as_array().expect("findings");
        assert!(
            findings.iter().any(|finding| finding["name"] == name),
            "{name}: {findings:?}"
        );
    }
}

#[test]
fn the_result_is_kept_unless_that_is_not_wanted() {
    let state = tempfile::tempdir().expect("a temporary folder");
    let kept = state.path().join("weighbridge/tare.json");
    let shown = tare(state.path(), &["--no-keep"]);
    shown.shows("noise floor");
    assert!(!kept.exists());
    let answer = json_of(&tare(state.path(), &["--format", "json"]));
    let text = std::fs::read_to_string(kept).expect("the tare was kept");
    assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(answer));
}

#[test]
fn a_lab_shows_the_tare_of_its_machine_and_of_no_other() {
    let state = tempfile::tempdir().expect("a temporary folder");
    let _ = tare(state.path(), &[]);
    let kept = state.path().join("weighbridge/tare.json");
    let world = World::new().variant("twin", "server.answer: ok");
    let lab = || {
        let child = world
            .command("lab")
            .env("XDG_STATE_HOME", state.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("weigh starts");
        world.finish(child)
    };
    lab().shows_in_full("noise floor: mean ");
    let text = std::fs::read_to_string(&kept).expect("the tare was kept");
    let mut other: Value = serde_json::from_str(&text).expect("a tare is JSON");
    other["machine"]["cores"] = 4096.into();
    std::fs::write(&kept, other.to_string()).expect("the tare can be replaced");
    let run = lab();
    for text in [run.text(), unwrapped(&run.talk())] {
        assert!(!text.contains("noise floor: "), "{text}");
    }
}

#[test]
fn an_overhead_below_the_floor_is_marked_in_the_table_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/recording/samples/lab.json");
    let text = std::fs::read_to_string(lab).expect("a recording");
    let mut recording: Value = serde_json::from_str(&text).expect("JSON");
    let report = |recording: &Value, format: &str| {
        let path = folder.path().join("recording.json");
        std::fs::write(&path, recording.to_string()).expect("a file");
        let output = weigh_command()
            .arg("report")
            .arg(&path)
            .args(["--format", format])
            .env("COLUMNS", "160")
            .output()
            .expect("weigh starts");
        Run::of(output).exits_with(0).text()
    };
    assert!(!report(&recording, "text").contains("below the noise floor"));
    recording["environment"]["noise_floor"] = serde_json::json!({
        "made_at": "2026-02-01T09:00:00Z", "requests_per_s": 1000.0, "rounds": 10,
        "latency_us_mean": 9000.0, "latency_us_p50": 9000.0, "latency_us_p99": 9000.0,
    });
    for format in ["text", "md", "html"] {
        let answer = report(&recording, format);
        assert!(
            answer.contains("below the noise floor"),
            "{format}: {answer}"
        );
        assert!(
            answer.contains("this difference shows nothing"),
            "{format}: {answer}"
        );
    }
}

#[test]
fn fewer_rounds_than_carry_an_interval_are_refused() {
    let output = weigh_command()
        .args(["tare", "--rounds", "5"])
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(2);
    run.says("5 is not in 6..=1000");
}
