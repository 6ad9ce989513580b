//! The reported cost of a system is its real usage.

use std::fs;

use e2e::{Run, World};
use serde_json::Value;

/// The overhead in processor time of a variant, in microseconds per request.
fn burned(run: &Run, variant: usize) -> f64 {
    let summary = run.json();
    let metric = &summary["variants"][variant]["metrics"]["cpu_us_per_request"];
    let difference = metric["overhead"]["difference"].as_f64();
    difference.unwrap_or_else(|| panic!("{metric:#}"))
}

/// The source of the first system's processor time.
fn source(run: &Run) -> String {
    let recording = run.recording();
    let source = recording["rounds"][0]["systems"][0]["source"].as_str();
    source.expect("a source").to_owned()
}

#[test]
fn burned_processor_time_is_reported_within_five_percent() {
    // The cost of the load itself differs in a server that burns. So the smallest burn is compared with a
    // server that burns as well.
    let believed = World::new()
        .baseline("server.burn: 1000")
        .variant("tenth", "server.burn: 1100")
        .variant("double", "server.burn: 2000")
        .variant("five", "server.burn: 6000")
        .arrivals("connections: 1")
        .duration("700ms")
        .believed();
    let Some(run) = believed else { return };
    // Without control groups the kernel counts in hundredths of a second.
    let slack = if source(&run) == "/proc" { 0.15 } else { 0.05 };
    for (variant, expected_us) in [(2, 1000.0), (3, 5000.0)] {
        let found_us = burned(&run, variant);
        let off = (found_us / expected_us - 1.0).abs();
        assert!(off < slack, "{found_us} us instead of {expected_us}");
    }
    let found_us = burned(&run, 1);
    // A busy machine cannot resolve 5 us of 1,100.
    assert!(
        (80.0..120.0).contains(&found_us),
        "{found_us} us instead of 100"
    );
}

/// The cells of the system's line in the table of `report.md`.
fn line_of_system(run: &Run) -> String {
    let markdown = fs::read_to_string(run.recording_folder().join("report.md")).expect("a report");
    let (_, table) = markdown.split_once("## Cost by system").expect("a table");
    let line = table.lines().find(|line| line.starts_with("| honest"));
    line.unwrap_or_else(|| panic!("{markdown}")).to_owned()
}

#[test]
fn context_switches_are_counted_for_each_request() {
    let believed = World::new()
        .variant("slow", "server.delay: 1000")
        .duration("300ms")
        .believed();
    let Some(run) = believed else { return };
    let summary = run.json();
    let of = |variant: usize| {
        let metrics = &summary["variants"][variant]["metrics"];
        metrics["context_switches_per_request"]["value"]
            .as_f64()
            .expect("a figure")
    };
    // A request with a sleep makes its thread leave the core twice: for the sleep and for the wait for the
    // next request.
    assert!(of(1) > 1.5, "{}", of(1));
    let waited = &summary["variants"][1]["metrics"]["waited_for_cpu_us_per_request"];
    if fs::exists("/proc/self/schedstat").expect("the kernel's own files") {
        assert!(waited["value"].as_f64() > Some(0.0), "{waited:#}");
    }
    let involuntary =
        &summary["variants"][1]["metrics"]["context_switches_involuntary_per_request"];
    assert!(
        involuntary["value"].as_f64() < Some(of(1)),
        "{involuntary:#}"
    );
    let line = line_of_system(&run);
    assert!(line.contains("no limit"), "{line}");
}

#[test]
fn a_limit_is_in_the_table_whether_or_not_it_is_in_force() {
    let believed = World::new()
        .variant("twin", "server.answer: ok")
        .limits("cpus: 0.5, memory: 200MiB")
        .duration("300ms")
        .believed();
    let Some(run) = believed else { return };
    let recording = run.recording();
    let enforced = &recording["variants"][0]["systems"][0]["limits_enforced"];
    let is_in_force = |name: &str| !matches!(enforced[name], Value::Null);
    let line = line_of_system(&run);
    let expected = if is_in_force("cpus") && is_in_force("memory_bytes") {
        "limited to 0.5 CPU and 200 MiB (cgroup v"
    } else {
        "LIMITS NOT"
    };
    assert!(line.contains(expected), "{line}");
    run.shows_in_full(&expected[..10]);
}
