//! Parts of the difference in mean latency.

use analysis::summary::{Activity, BreakdownSummary};

use super::*;

/// Two variants with known processor times: `proxy` has a second system.
fn recording() -> Recording {
    let mut recording = SampleRun::side_by_side()
        .variant("direct", 700.0)
        .variant("proxy", 840.0)
        .build();
    for round in &mut recording.rounds {
        let answered = round.outcomes.passed;
        let server = &mut round.systems[0];
        server.cpu_us = Some(answered * 40);
        server.cpu_kernel_us = Some(answered * 30);
        server.waited_for_cpu_us = Some(answered * 2);
        if round.variant == "proxy" {
            let mut proxy = server.clone();
            proxy.name = "envoy".to_owned();
            proxy.cpu_us = Some(answered * 100);
            proxy.cpu_kernel_us = Some(answered * 20);
            proxy.waited_for_cpu_us = Some(answered * 5);
            round.systems.push(proxy);
        }
    }
    recording
}

fn breakdown(summary: &Summary) -> &BreakdownSummary {
    let row = summary.variant("proxy").unwrap();
    row.breakdown.as_ref().unwrap()
}

fn found(breakdown: &BreakdownSummary) -> Vec<(Option<&str>, Activity, f64)> {
    let parts = breakdown.parts.iter();
    parts
        .map(|part| (part.system.as_deref(), part.activity, part.difference_us))
        .collect()
}

#[test]
fn the_parts_and_the_remainder_add_up_to_the_latency() {
    let recording = recording();
    let summary = Summary::of(&recording);
    let breakdown = breakdown(&summary);
    assert_eq!(
        found(breakdown),
        [
            (Some("server"), Activity::Program, 0.0),
            (Some("server"), Activity::Kernel, 0.0),
            (Some("envoy"), Activity::Program, 80.0),
            (Some("envoy"), Activity::Kernel, 20.0),
            (None, Activity::Waiting, 5.0),
        ]
    );
    let row = summary.variant("proxy").unwrap();
    let latency = row.metric(Metric::Mean).unwrap().overhead.as_ref().unwrap();
    assert_eq!(breakdown.latency_us, latency.difference);
    assert!((breakdown.remainder_us - (latency.difference - 105.0)).abs() < 1e-9);
    assert_eq!(summary.variant("direct").unwrap().breakdown, None);
    let read_by_people = ["full", "markdown", "html"];
    let renderings = renderings(&recording, &summary);
    for (format, text) in renderings
        .iter()
        .filter(|(it, _)| read_by_people.contains(it))
    {
        assert!(text.contains("envoy, program"), "{format}: {text}");
        assert!(text.contains("remainder"), "{format}: {text}");
    }
}

#[test]
fn a_time_that_is_not_divided_stays_whole_and_an_unknown_time_is_in_the_remainder() {
    let mut recording = recording();
    for round in &mut recording.rounds {
        round.systems[0].cpu_kernel_us = None;
        for usage in &mut round.systems {
            usage.waited_for_cpu_us = None;
        }
    }
    let summary = Summary::of(&recording);
    assert_eq!(
        found(breakdown(&summary)),
        [
            (Some("server"), Activity::Processor, 0.0),
            (Some("envoy"), Activity::Program, 80.0),
            (Some("envoy"), Activity::Kernel, 20.0),
        ]
    );
    for round in &mut recording.rounds {
        for usage in &mut round.systems {
            usage.cpu_us = None;
        }
    }
    let summary = Summary::of(&recording);
    assert_eq!(summary.variant("proxy").unwrap().breakdown, None);
}

#[test]
fn counts_that_changed_are_listed() {
    let mut recording = recording();
    for round in &mut recording.rounds {
        let answered = round.outcomes.passed;
        let extra = u64::from(round.variant == "proxy");
        round.bytes_in = answered * (500 + 20 * extra);
        round.bytes_out = answered * 100;
        for usage in &mut round.systems {
            usage.context_switches = Some(answered * 2);
        }
    }
    let summary = Summary::of(&recording);
    let table = crate::tables::breakdown::counts(&summary);
    let rows: Vec<String> = table
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|cell| cell.brief.as_str())
                .collect::<Vec<_>>()
                .join("|")
        })
        .collect();
    assert!(
        rows.iter()
            .any(|row| row.starts_with("proxy|context switches|+2")),
        "{rows:?}"
    );
    assert!(
        rows.iter()
            .any(|row| row.starts_with("proxy|bytes received|+20")),
        "{rows:?}"
    );
    assert!(
        !rows.iter().any(|row| row.contains("bytes sent")),
        "{rows:?}"
    );
}
