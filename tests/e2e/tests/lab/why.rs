//! `--why` names a planted burn, sleep, lock and extra connection.

use std::fs;
use std::process::Stdio;

use e2e::{Run, Server, World, unwrapped, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

use crate::null_servers::NullServers;

/// The variants, each with one planted cause.
const PLANTED: [&str; 4] = [
    "  - {name: burn, with: {server.flag: --burn=2ms}}\n",
    "  - {name: sleep, with: {server.flag: --sleep=3ms}}\n",
    "  - {name: lock, with: {server.flag: --lock=3ms}}\n",
    "  - {name: connection, with: {server.flag: --extra-connection}}\n",
];

/// The part of the summary about one variant.
#[track_caller]
fn of<'a>(why: &'a Value, variant: &str) -> &'a Value {
    let variants = why["variants"].as_array().expect("the variants");
    let found = variants.iter().find(|one| one["variant"] == variant);
    found.unwrap_or_else(|| panic!("no {variant} in {why:#}"))
}

/// The variants under a rate that each of them can keep: a request each 20 ms.
fn world(variants: &[&str]) -> World {
    NullServers::under("{rate: 50/s, duration: 400ms, path: /}")
        .key("order: side-by-side")
        .variants(&variants.concat())
        .world()
}

#[test]
fn each_planted_cause_is_named_first() {
    let causes = [
        ("burn", "burn"),
        ("sleep", "sleep"),
        ("lock", "lock"),
        ("connection", "connections"),
    ];
    let mut run = world(&PLANTED).run_with(&["--why"]);
    let names_all = |summary: &Value| {
        let mut each = causes.iter();
        each.all(|(variant, cause)| of(&summary["why"], variant)["causes"][0] == *cause)
    };
    // Other programs can keep both cores busy during a whole run, and no cause is named then.
    if !names_all(&run.json()) {
        run = world(&PLANTED).run_with(&["--why"]);
    }
    let summary = run.json();
    let why = &summary["why"];
    for (variant, cause) in causes {
        let found = of(why, variant);
        assert_eq!(found["causes"][0], cause, "{variant}: {found:#}");
    }
    let sleep = of(why, "sleep");
    assert_eq!(sleep["parts"][0]["place"], "nanosleep", "{sleep:#}");
    let cost = &why["cost"];
    assert_eq!(cost["pairs"], 30, "{cost}");
    assert!(cost["low"].as_f64() <= cost["high"].as_f64(), "{cost}");
    run.shows("burn in server");
    run.shows("Cost of `--why`");
    run.shows_in_full("about 100 times a second");
    let recording = run.recording();
    let systems = recording["why"]["systems"].as_array().expect("samples");
    assert_eq!(systems.len(), 5);
    let page = fs::read_to_string(run.recording_folder().join("report.html"));
    let page = page.expect("a page");
    assert!(page.contains("Why they differ"));
    has_functions(&run, of(why, "burn"), &page);
    assert!(!run.recording_folder().join("why").exists());
}

/// Checks functions and graphs, if this machine can sample them.
fn has_functions(run: &Run, burn: &Value, page: &str) {
    let full = unwrapped(&run.full());
    if full.contains("There are no stacks of functions") {
        judged::not_run("`perf` does not sample on this machine");
        return;
    }
    judged::ran();
    let functions = burn["functions"].as_array().expect("functions");
    assert!((1..=5).contains(&functions.len()), "{burn:#}");
    assert!(
        functions[0]["difference_us"].as_f64() > Some(100.0),
        "{burn:#}"
    );
    assert!(page.contains("server of burn against plain"), "a graph");
}

#[test]
fn without_perf_a_sleep_and_a_lock_are_still_told_apart() {
    let world = world(&PLANTED[1..3]);
    let empty = world.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let child = world
        .command("lab")
        .arg("--why")
        .env("PATH", &empty)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weigh starts");
    let run = world.finish(child);
    let why = &run.json()["why"];
    for cause in ["sleep", "lock"] {
        let found = of(why, cause);
        assert_eq!(found["causes"][0], cause, "{found:#}");
        assert_eq!(found["functions"], serde_json::json!([]), "{found:#}");
    }
    run.shows_in_full("There are no stacks of functions: `perf` does not start");
}

#[test]
fn two_servers_that_run_already_have_causes_too() {
    let plain = Server::of(&weigh(), &["null-server"]);
    let burning = Server::of(&weigh(), &["null-server", "--burn", "2ms"]);
    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let run = || {
        let output = weigh_command()
            .current_dir(folder.path())
            .arg("ab")
            .args([&plain, &burning].map(|server| format!("http://{}/", server.address())))
            .args(["--attach-a", &plain.process().id().to_string()])
            .args(["--attach-b", &burning.process().id().to_string()])
            .args(["-z", "1s", "--why", "--format", "json"])
            .output()
            .expect("weigh starts");
        let report = serde_json::from_slice::<Value>(&output.stdout);
        let mut report = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
        report["summary"].take()
    };
    let name = burning.address();
    let names_burn = |summary: &Value| of(&summary["why"], name)["causes"][0] == "burn";
    let mut summary = run();
    // As above, other programs can hide each cause during a whole run.
    if !names_burn(&summary) {
        summary = run();
    }
    let found = of(&summary["why"], name);
    assert_eq!(found["causes"][0], "burn", "{found:#}");
    let part = found["parts"][0]["difference_us"].as_f64();
    assert!(part > Some(1_500.0) && part < Some(3_000.0), "{found:#}");
}
