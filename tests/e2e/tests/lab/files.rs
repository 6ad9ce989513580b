//! Mistakes in lab files, and the files that a run leaves on the disk.

use std::fs;

use e2e::{Run, World, weigh_command};
use serde_json::Value;

fn check(world: &World, text: &str) -> Run {
    let path = world.path().join("mistakes.yaml");
    fs::write(&path, text).expect("the lab file can be written");
    let output = weigh_command()
        .arg("lab")
        .arg("mistakes.yaml")
        .current_dir(world.path())
        .output()
        .expect("weigh starts");
    Run::of(output)
}

#[test]
fn five_mistakes_are_five_reports_each_with_its_line() {
    let world = World::new();
    let run = check(
        &world,
        "question: is anything wrong here?\n\
         include: not-there.yaml\n\
         load:\n  rate: -5/s\n  duration: 1s\n  path: /graphql\n  requests: [{query: \"{ a }\"}]\n\
         rouns: 10\n\
         target: server\n\
         systems:\n  server: {run: \"true {{addr}}\", ready: {status: 99}}\n\
         baseline: {name: one}\n\
         variants:\n  - {name: two}\n  - {name: two}\n",
    )
    .exits_with(2);
    for (line, word) in [
        (2, "not-there.yaml"),
        (4, "-5/s"),
        (8, "rouns"),
        (11, "99"),
        (15, "two"),
    ] {
        run.says(&format!("mistakes.yaml:{line}:"));
        run.says(word);
    }
    run.says("5 mistakes. Nothing was started");
    assert_eq!(run.answer(), "");
}

#[test]
fn a_lab_that_does_not_exist_is_bad_input() {
    let output = weigh_command()
        .args(["lab", "no-such-lab"])
        .current_dir(World::new().path())
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(2);
    run.says("no-such-lab");
}

#[test]
fn a_recording_holds_everything_and_renders_again_to_the_same_table() {
    let run = World::new()
        .variant("twin", "server.answer: ok")
        .run()
        .ran();
    let folder = run.recording_folder();
    for file in ["recording.json", "report.md", "report.html"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let recording = run.recording();
    assert_eq!(recording["order"].as_array().map(Vec::len), Some(6));
    // A round that the machine disturbed is kept, marked, and repeated.
    let rounds: Vec<&Value> = recording["rounds"]
        .as_array()
        .expect("rounds")
        .iter()
        .filter(|round| round["disturbed"] != true)
        .collect();
    assert_eq!(rounds.len(), 12);
    assert!(recording["seed"].is_u64());
    let lab = recording["lab"]["files"][0]["text"]
        .as_str()
        .expect("the lab's text");
    assert!(lab.contains("does the instrument tell the truth?"));
    for round in rounds {
        let passed = round["outcomes"]["passed"].as_u64().expect("a count");
        assert_eq!(round["planned"].as_u64(), Some(passed), "{round:#}");
        assert!(round["systems"][0]["cpu_us"].as_u64().expect("cpu time") > 0);
        assert!(
            round["systems"][0]["memory_peak_bytes"]
                .as_u64()
                .expect("memory")
                > 0
        );
    }
    for (format, file) in [("md", "report.md"), ("html", "report.html")] {
        let again = weigh_command()
            .args(["report", "--format", format])
            .arg(&folder)
            .output()
            .expect("weigh starts");
        let first = fs::read_to_string(folder.join(file)).expect("a report");
        assert_eq!(String::from_utf8_lossy(&again.stdout), first, "{format}");
    }
    let again = weigh_command()
        .arg("report")
        .arg(&folder)
        .output()
        .expect("weigh starts");
    assert_eq!(String::from_utf8_lossy(&again.stdout), run.answer());
}

#[test]
fn a_seed_repeats_the_order() {
    let order = |seed: &str| {
        World::new()
            .variant("twin", "server.answer: ok")
            .variant("triplet", "server.answer: ok")
            .run_with(&["--seed", seed])
            .ran()
            .recording()["order"]
            .clone()
    };
    assert_eq!(order("7"), order("7"));
    assert_ne!(order("7"), order("8"));
}

#[test]
fn check_proves_without_measuring() {
    let world = World::new()
        .variant("twin", "server.answer: ok")
        .variant("liar", "server.answer: errors");
    let output = world.command("check").output().expect("weigh starts");
    let run = Run::of(output)
        .exits_with(3)
        .row("honest", &["proven"])
        .row("twin", &["proven"])
        .row("liar", &["errors"]);
    assert!(!world.path().join("recordings").exists(), "{}", run.talk());
}

#[test]
fn a_file_that_is_no_recording_is_refused_with_a_reason() {
    let world = World::new();
    let path = world.path().join("other.json");
    fs::write(&path, "{\"summary\": {}}").expect("the file can be written");
    let output = weigh_command()
        .arg("report")
        .arg(&path)
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(2);
    run.says("weighbridge-recording");
}

#[test]
fn the_lab_in_the_readme_has_no_mistakes() {
    let readme = include_str!("../../../../README.md");
    let lab = readme
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("the README shows a lab");
    let world = World::new();
    fs::write(world.path().join("my-lab.yaml"), lab).expect("the lab file can be written");
    let output = weigh_command()
        .args(["check", "--files-only", "my-lab.yaml"])
        .current_dir(world.path())
        .output()
        .expect("weigh starts");
    Run::of(output).exits_with(0);
}

#[test]
fn the_table_in_the_readme_is_what_its_recording_says() {
    let readme = include_str!("../../../../README.md");
    let (command, shown) = readme
        .split("```console\n$ ")
        .nth(1)
        .and_then(|rest| rest.split("\n```").next())
        .and_then(|block| block.split_once('\n'))
        .expect("the README shows a command and what it prints");
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("weigh"));
    let output = weigh_command()
        .args(words)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("weigh starts");
    let answer = Run::of(output).exits_with(0).answer();
    let beginning = shown.trim_end_matches("…").trim_end();
    assert!(
        answer.starts_with(beginning),
        "the README shows\n{beginning}\nand the recording says\n{answer}"
    );
}
