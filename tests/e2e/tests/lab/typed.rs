//! Commands as a person types them first: names instead of paths, and words instead of pages.

use std::fs;
use std::path::Path;

use e2e::{Run, Server, weigh, weigh_command};
use serde_json::Value;

use crate::null_servers;

fn typed(folder: &Path, words: &[&str]) -> Run {
    let output = weigh_command().current_dir(folder).args(words).output();
    Run::of(output.expect("weigh starts"))
}

#[test]
fn a_command_becomes_a_lab_that_is_found_by_its_name() {
    let here = tempfile::tempdir().expect("a temporary folder");
    let command = null_servers::command();
    typed(here.path(), &["init", &command])
        .exits_with(0)
        .shows("Wrote labs/first/first.yaml");
    // A file and a folder of the same name are no lab.
    fs::write(here.path().join("first"), "a program").expect("a file");
    typed(here.path(), &["check", "first"])
        .exits_with(0)
        .shows("`as it is`: proven");
    typed(here.path(), &["check", "labs"])
        .exits_with(0)
        .shows("`the same again`: proven");
    // An editor checks the lab by the schema beside it, without a network.
    let lab = fs::read_to_string(here.path().join("labs/first/first.yaml")).expect("a lab");
    let first = lab.lines().next().unwrap_or_default();
    let schema = first
        .strip_prefix("# yaml-language-server: $schema=")
        .expect("the first line names the schema");
    let schema = fs::read_to_string(here.path().join("labs/first").join(schema)).expect("a schema");
    assert_eq!(
        schema,
        typed(here.path(), &["schema"]).exits_with(0).answer()
    );
}

#[test]
fn two_addresses_need_no_protocol_and_a_report_no_name() {
    let here = tempfile::tempdir().expect("a temporary folder");
    let servers = [0, 1].map(|_| Server::of(&weigh(), &["null-server"]));
    let ports = servers.each_ref().map(|server| {
        let (_, port) = server.address().rsplit_once(':').expect("a port");
        format!("localhost:{port}")
    });
    let rate = ["--rate", "50/s", "--duration", "100ms", "--rounds", "1"];
    let run = typed(
        here.path(),
        &[&["ab", &ports[0], &ports[1]][..], &rate].concat(),
    )
    .ran();
    run.shows(&ports[1]);
    let report = typed(here.path(), &["report"]).ran();
    report.shows(&ports[1]);
    report.says("the newest recording is recordings/ab-");
}

#[test]
fn words_are_explained_and_schemas_are_printed() {
    let here = Path::new(".");
    for (words, meaning) in [
        (&["lateness"][..], "a check"),
        (&["load.capacity"], "highest sustained rate"),
        (&["cycles", "left", "out"], "a check"),
        (&["p99"], "99 of 100 requests"),
        (&["gates"], "Limits to keep"),
        (&["exit", "codes"], "0 success"),
        (&["exit", "code", "7"], "--max-time"),
        (&["overhead"], "minus the figure of its baseline"),
    ] {
        let run = typed(here, &[&["explain"], words].concat()).exits_with(0);
        run.shows(meaning);
    }
    let unknown = typed(here, &["explain", "latenes"]).exits_with(2);
    unknown.says("Did you mean `lateness`");
    for kind in [
        "lab",
        "scenario",
        "recording",
        "comparison",
        "history",
        "tare",
    ] {
        let schema = typed(here, &["schema", kind]).exits_with(0).answer();
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        assert!(schema["$schema"].is_string(), "{kind}");
    }
    typed(here, &["schema", "gateway"]).exits_with(2);
}
