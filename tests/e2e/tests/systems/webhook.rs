//! Tests of `labs/webhook`. Its systems start under the pod's limits, prove their work and are shown in the
//! layout of ApacheBench.

use std::path::{Path, PathBuf};

use e2e::{Run, World, rounds_of, weigh, weigh_command};
use serde_json::Value;

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.ancestors().nth(2).expect("tests/e2e").to_path_buf()
}

/// The target folder of these tests.
fn target() -> PathBuf {
    let weigh = weigh();
    let target = weigh.ancestors().nth(2);
    target.expect("weigh lies in target/PROFILE").to_path_buf()
}

/// A lab of few requests with the systems of `labs/webhook`, built without optimization.
fn lab(rest: &str) -> World {
    let systems = root().join("labs/webhook/systems.yaml");
    World::of_lab(&format!(
        "question: does the webhook do its work?\ninclude: {}\n\
         systems: {{webhook: {{settings: {{profile: dev, into: {}}}}}}}\n\
         rounds: 1\nwarmup: 0s\nseed: 7\n{rest}",
        systems.display(),
        target().display(),
    ))
}

fn variant(run: &Run, name: &str) -> Value {
    let recording = run.recording();
    let variants = recording["variants"].as_array().expect("variants");
    let found = variants.iter().find(|variant| variant["name"] == name);
    found.expect("it is in the recording").clone()
}

#[test]
fn the_lab_measures_both_languages_within_the_pods_limits() {
    if !judged::is_installed("python3") {
        return;
    }
    let run = lab(
        "load: {count: 40}\nbaseline: {name: python, with: {webhook.language: python}}\n\
         variants: [{name: rust}, {name: free, with: {webhook.cpus: none, webhook.memory: none}}]\n",
    )
    .run()
    .ran();
    let recording = run.recording();
    for name in ["python", "rust", "free"] {
        let rounds = rounds_of(&recording, name);
        assert_eq!(rounds[0]["outcomes"]["passed"], 40, "{name}: {rounds:#?}");
    }
    for name in ["python", "rust"] {
        let system = variant(&run, name)["systems"][0].clone();
        let asked = serde_json::json!({"cpus": 0.25, "memory_bytes": 134_217_728});
        assert_eq!(system["limits_asked"], asked);
        // If a limit cannot be enforced, the recording contains the reason.
        if system["limits_enforced"].is_null() {
            assert!(system["limits_by"].is_string(), "{system:#}");
            continue;
        }
        assert_eq!(system["limits_enforced"], asked);
        let throttled = &rounds_of(&recording, name)[0]["systems"][0]["throttled"];
        assert!(throttled["throttled_periods"].is_u64(), "{throttled}");
    }
    let free = variant(&run, "free")["systems"][0].clone();
    assert!(free["limits_asked"]["cpus"].is_null(), "{free:#}");
}

#[test]
fn the_lab_is_printed_as_apachebench_would() {
    let lab = lab("load: {count: 50}\nbaseline: {name: rust}\n\
         variants: [{name: kept, load: {keep-alive: on}}]\n");
    let Some(run) = lab.believed() else { return };
    let folder = run.recording_folder();
    let shown = |variant: &str| {
        let mut command = weigh_command();
        command.arg("report").arg(&folder);
        command.args(["--format", "ab", "--variant", variant]);
        Run::of(command.output().expect("weigh starts"))
            .exits_with(0)
            .answer()
    };
    let text = shown("rust");
    for line in [
        "Server Software:        route-webhook\n",
        "Document Path:          /webhook/sync\n",
        "Document Length:        4153 bytes\n",
        "Concurrency Level:      10\n",
        "Complete requests:      50\n",
        "Failed requests:        0\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("Keep-Alive"), "{text}");
    assert!(shown("kept").contains("Keep-Alive requests:    50\n"));
    assert_eq!(variant(&run, "kept")["with"]["keep-alive"], "on");
}

#[test]
fn a_wrong_answer_of_the_webhook_has_no_number() {
    let run = lab("load: {count: 10}\nbaseline: {name: rust}\n\
         variants: [{name: seed, with: {webhook.compat: seed}}]\n")
    .run()
    .exits_with(3);
    run.row("seed", &["body"]);
}
