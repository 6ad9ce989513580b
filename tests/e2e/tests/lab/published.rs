//! Metrics that a lab publishes while it runs.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use e2e::{PATIENCE, free_port, get, sample, wait_until};
use serde_json::Value;

use crate::null_servers::NullServers;

#[test]
fn prometheus_reads_rounds_variants_and_what_systems_cost() {
    let load = "{rate: 50/s, duration: 1s}";
    let world = NullServers::under(load)
        .key("order: side-by-side")
        .rounds(3)
        .world();
    let port = free_port();
    let child = world
        .command("lab")
        .args(["--prometheus", &format!("127.0.0.1:{port}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    // The cost of a system is published after its round.
    wait_until("a second round is measured", PATIENCE, || {
        seen = get(port, "/metrics").unwrap_or_default();
        let round = sample(&seen, "weighbridge_round");
        let cost = "weighbridge_system_cpu_seconds_total";
        let is_measuring = sample(&seen, "weighbridge_phase{phase=\"measuring\"}") == Some(1.0);
        round.is_some_and(|round| round >= 2.0) && seen.contains(cost) && is_measuring
    });
    assert_eq!(sample(&seen, "weighbridge_rounds_planned"), Some(3.0));
    for variant in ["plain", "again"] {
        let passed =
            format!("weighbridge_requests_total{{target=\"{variant}\",outcome=\"passed\"}}");
        // At least the first round. Warm-up loads do not count.
        let passed = sample(&seen, &passed).unwrap_or_default();
        assert!((50.0..=150.0).contains(&passed), "{variant}: {seen}");
        let labels = format!("target=\"{variant}\",system=");
        assert!(seen.contains(&labels), "{variant}: {seen}");
    }
    for name in names_in_the_dashboard() {
        assert!(seen.contains(&name), "{name} is in the dashboard: {seen}");
    }
    let _ = world.finish(child).ran();
}

#[test]
fn a_browser_sees_the_report_while_a_lab_is_measured_and_its_last_page() {
    let load = "{rate: 50/s, duration: 300ms}";
    let world = NullServers::under(load)
        .key("order: side-by-side")
        .rounds(3)
        .world();
    let child = world
        .command("lab")
        .args(["--serve", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the page of this run is at http://127.0.0.1:") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "no address");
    }
    let port = line.trim().trim_end_matches('/').rsplit(':').next();
    let port: u16 = port.unwrap().parse().unwrap();
    let reading = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap());
    let mut seen = Vec::new();
    let parts = [
        "No round has been measured yet",
        "This run is still measuring: ",
        "This run has ended",
    ];
    for part in parts {
        wait_until(part, PATIENCE, || {
            let page = get(port, "/").unwrap_or_default();
            seen.push(page.clone());
            page.contains(part)
        });
    }
    let last = seen.last().unwrap();
    assert!(last.contains("<section id=\"results\">") && !last.contains("http-equiv=\"refresh\""));
    let _ = world.finish(child).ran();
    assert_eq!(get(port, "/"), None, "the address ends with the run");
    let _ = reading.join();
}

#[test]
fn an_address_that_other_machines_reach_and_a_port_in_use_are_refused() {
    let world = NullServers::under("{rate: 50/s, duration: 300ms}").world();
    let ran = |address: &str| world.run_with(&["--serve", address]);
    let open = ran("0.0.0.0:8090").exits_with(2);
    open.says("expected an address of loopback");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    ran(&address)
        .exits_with(5)
        .says("Choose another port, or 0 for any free port");
}

/// Every metric that a panel of the dashboard queries.
fn names_in_the_dashboard() -> Vec<String> {
    let text = include_str!("../../../../deploy/grafana/weighbridge.json");
    let dashboard: Value = serde_json::from_str(text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("a list");
    let targets = panels
        .iter()
        .flat_map(|it| it["targets"].as_array().expect("a list"));
    let part = |character: char| character.is_ascii_lowercase() || character == '_';
    let names: Vec<String> = targets
        .map(|target| target["expr"].as_str().expect("a query"))
        .flat_map(|expression| expression.split(|character| !part(character)))
        .filter(|word| word.starts_with("weighbridge_"))
        .map(str::to_owned)
        .collect();
    assert!(names.len() >= panels.len(), "{names:?}");
    names
}
