//! Gates: passed, broken and undecided gates, and their output for CI.

use std::path::Path;

use e2e::{Run, World, weigh_command};

fn report(recording: &Path, flags: &[&str]) -> Run {
    let output = weigh_command()
        .arg("report")
        .arg(recording)
        .args(flags)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

#[test]
fn a_gate_is_held_broken_or_undecided_and_ci_is_told() {
    // 2 ms differ clearly from 1 us and from 1 s.
    let world = tempfile::tempdir().expect("a temporary folder");
    let folder = world.path().join("recording.json");
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/recording/samples/lab.json");
    std::fs::copy(lab, &folder).expect("a copy");
    let held = report(&folder, &["--gate", "slow mean overhead < 1s"]).exits_with(0);
    held.shows("`slow mean overhead < 1s`: holds: ");

    let flags = [
        "--gate",
        "slow mean overhead < 1us",
        "--gate",
        "p99 value > 1us",
    ];
    let broken = report(&folder, &flags).exits_with(4);
    broken.shows("`slow mean overhead < 1us`: broken: ");
    broken.shows("`p99 value > 1us` on `slow`: holds: ");
    let pasted = report(&folder, &[&flags[..], &["--format", "md"]].concat()).exits_with(4);
    pasted.shows("## Gates");
    pasted.shows("| **broken** |");
    let junit = report(&folder, &[&flags[..], &["--format", "junit"]].concat()).exits_with(4);
    junit.shows("tests=\"4\" failures=\"1\" errors=\"0\" time=");

    let undecided = ["--gate", "honest mean overhead < 1s"];
    let run = report(&folder, &undecided).exits_with(4);
    run.shows("undecided: `honest` is the baseline");
    let lenient = [&undecided[..], &["--undecided", "pass"]].concat();
    let _ = report(&folder, &lenient).exits_with(0);

    let both = ["#honest", "#slow"].map(|name| format!("{}{name}", folder.display()));
    let output = weigh_command()
        .arg("compare")
        .args(&both)
        .args(["--gate", "slow mean overhead < 1us"])
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(4);
    run.shows("broken: ");
}

#[test]
fn a_report_keeps_the_gates_of_its_run_and_fails_only_by_its_own() {
    let world = tempfile::tempdir().expect("a temporary folder");
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/recording/samples/lab.json");
    let text = std::fs::read_to_string(lab).expect("a sample");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    value["gates"] = serde_json::json!({
        "all": ["slow mean overhead < 1us"],
        "undecided_passes": false,
    });
    let recording = world.path().join("recording.json");
    std::fs::write(&recording, value.to_string()).expect("a file");
    let run = report(&recording, &[]).exits_with(0);
    run.shows("`slow mean overhead < 1us`: broken: ");
    let own = ["--gate", "slow mean overhead < 1s"];
    let run = report(&recording, &own).exits_with(0);
    run.shows("`slow mean overhead < 1us`: broken: ");
    run.shows("`slow mean overhead < 1s`: holds: ");
    let _ = report(&recording, &["--gate", "slow mean overhead < 1us"]).exits_with(4);
}

#[test]
fn a_lab_whose_gate_does_not_pass_exits_with_4_and_leaves_junit() {
    let world = World::new().variant("slow", "server.delay: 2000");
    // Broken, or undecided if the machine was too noisy. Neither passes.
    let run = world
        .run_with(&["--gate", "slow mean overhead < 1us"])
        .exits_with(4);
    run.shows("Gates - `slow mean overhead < 1us`: ");
    let folder = run.recording_folder();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    assert!(read("junit.xml").contains("name=\"slow mean overhead &lt; 1us\""));
    assert!(read("report.md").contains("## Gates"));
}

#[test]
fn a_gate_that_cannot_be_meant_stops_the_lab_before_it_starts() {
    let world = World::new().variant("slow", "server.delay: 2000");
    for (gate, words) in [
        ("nobody p99 overhead < 1ms", "The variants are honest, slow"),
        ("slow p98 overhead < 1ms", "`p98` is not a metric"),
        ("slow p99 overhead < 1", "expected a unit"),
    ] {
        let run = world.run_with(&["--gate", gate]).exits_with(2);
        run.says(words);
        assert!(
            !world.path().join("recordings").exists(),
            "nothing was started"
        );
    }
}

#[test]
fn a_variant_without_a_number_cannot_pass_a_gate() {
    let run = World::new()
        .variant("liar", "server.answer: errors")
        .run_with(&["--gate", "liar p99 overhead < 1s"])
        .exits_with(4);
    run.shows("undecided: `liar` has no number");
}
