//! The cost of variants over time, from recordings to a page.

use std::fs;
use std::path::{Path, PathBuf};

use e2e::{Browser, Run, weigh_command};
use tempfile::TempDir;

use crate::page::{has_no_barrier, look};

/// The recordings of this repository.
fn committed() -> Vec<PathBuf> {
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    let folders = fs::read_dir(labs).expect("labs").flatten();
    let records = folders.filter_map(|lab| fs::read_dir(lab.path().join("records")).ok());
    let mut found: Vec<PathBuf> = records
        .flat_map(|records| records.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect();
    found.sort();
    found
}

fn weigh(folder: &TempDir, words: &[&str]) -> Run {
    let mut command = weigh_command();
    command
        .current_dir(folder.path())
        .arg("history")
        .args(words);
    for variable in ["GITHUB_SHA", "CI_COMMIT_SHA"] {
        command.env_remove(variable);
    }
    Run::of(command.output().expect("weigh starts"))
}

#[test]
fn the_recordings_of_this_repository_make_a_page_that_reads_on_every_screen() {
    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let recordings = committed();
    assert!(recordings.len() > 10, "{recordings:?}");
    let mut words = vec![
        "add".to_owned(),
        "--commit".to_owned(),
        "0123456789abcdef".to_owned(),
    ];
    words.extend(recordings.iter().map(|path| path.display().to_string()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    weigh(&folder, &words)
        .exits_with(0)
        .says("entries added to weighbridge-history.jsonl");
    let lines =
        fs::read_to_string(folder.path().join("weighbridge-history.jsonl")).expect("a history");
    assert!(lines.lines().count() > 20, "{lines}");
    // A history contains a run only once.
    weigh(&folder, &words)
        .exits_with(0)
        .says("is in the history already");
    let again =
        fs::read_to_string(folder.path().join("weighbridge-history.jsonl")).expect("a history");
    assert_eq!(again, lines);
    let run = weigh(&folder, &[]).exits_with(0);
    run.shows("static-subgraph: `rhai` against `baseline`");
    run.shows("012345678");
    let run = weigh(&folder, &["--lab", "headers", "--format", "html"]).exits_with(0);
    assert!(!run.answer().contains("static-subgraph"));
    let page = folder.path().join("history.html");
    fs::write(
        &page,
        weigh(&folder, &["--format", "html"]).exits_with(0).answer(),
    )
    .expect("the page");
    let mut browser = Browser::start();
    look(&mut browser, &page);
    has_no_barrier(&mut browser, &page);
}

#[test]
fn what_is_no_history_and_what_is_no_recording_is_refused_and_nothing_is_written() {
    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    weigh(&folder, &[])
        .exits_with(2)
        .says("Create it with `weigh history add");
    let good = committed()[0].display().to_string();
    weigh(&folder, &["add", &good, "nowhere"])
        .exits_with(2)
        .says("`nowhere` cannot be read");
    assert!(!folder.path().join("weighbridge-history.jsonl").exists());
    fs::write(folder.path().join("other.jsonl"), "{}\n").expect("a file");
    let run = weigh(&folder, &["add", &good, "--file", "other.jsonl"]).exits_with(2);
    run.says("line 1: expected an entry of a history");
    weigh(&folder, &["add", &good]).exits_with(0);
    let run = weigh(&folder, &["--lab", "another"]).exits_with(2);
    run.says("expected a lab of the history, found `another`");
}
