//! What a lab shows of itself while it runs.

use std::process::Stdio;

use e2e::{PATIENCE, free_port, get, sample, wait_until};

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
    // What a system cost is known when its round is over.
    wait_until("a second round is measured", PATIENCE, || {
        seen = get(port, "/metrics").unwrap_or_default();
        let round = sample(&seen, "weighbridge_round");
        let cost = "weighbridge_system_cpu_seconds_total";
        round.is_some_and(|round| round >= 2.0) && seen.contains(cost)
    });
    assert_eq!(sample(&seen, "weighbridge_rounds_planned"), Some(3.0));
    for variant in ["plain", "again"] {
        let passed =
            format!("weighbridge_requests_total{{target=\"{variant}\",outcome=\"passed\"}}");
        // At least the first round; loads that warm up are not in it.
        let passed = sample(&seen, &passed).unwrap_or_default();
        assert!((50.0..=150.0).contains(&passed), "{variant}: {seen}");
        let labels = format!("target=\"{variant}\",system=");
        assert!(seen.contains(&labels), "{variant}: {seen}");
    }
    let _ = world.finish(child).ran();
}
