//! Tests that a withheld verdict leaves an estimate with its cause, in every format.

use analysis::gate::Undecided;

use super::*;
use crate::Terminal;
use analysis::sample::{gates_on_the_mean, late_on_a_busy_machine, later, two};

#[test]
fn every_format_shows_the_estimate_its_cause_and_that_it_is_not_trusted() {
    let recording = late_on_a_busy_machine();
    let summary = Summary::of(&recording).judged(&gates_on_the_mean(), Undecided::Fails);
    let row = summary.variant("b").unwrap();
    assert!(!row.has_number() && row.metrics.is_empty());
    let figures = row.estimate.as_ref().unwrap();
    let overhead = figures.metrics[&Metric::Mean].overhead.as_ref().unwrap();
    let ends = overhead.difference_low.zip(overhead.difference_high);
    let (low, high) = ends.unwrap();
    assert!(low < 90.0 && 90.0 < high, "{low} to {high}");
    insta::assert_snapshot!(crate::answer::sentence(&recording, &summary), @"No verdict: other programs used 75 % of the cores (failed check: lateness). Estimate +88 us (85 to 95), not trusted. End what else runs, or use `--until 'mean ±20us'`.");
    insta::assert_snapshot!(crate::verdict_text(row), @"no verdict: other programs used 75 % of the cores; ~+88 us (85 to 95), not trusted");
    let terminal = Terminal::plain(100);
    let one = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (format, text) in renderings(&recording, &summary) {
        let text = one(text).replace("\\~", "~");
        for part in ["other programs used", "+88 us", "not trusted"] {
            assert!(text.contains(part), "no `{part}` in {format}:\n{text}");
        }
    }
    // The short table contains the estimate in the columns of the figure.
    let short = crate::text(&recording, &summary, terminal);
    let line = short.lines().find(|line| line.starts_with("b ")).unwrap();
    assert!(line.contains("~796") && line.contains("~+88 ±5"), "{short}");
    assert!(line.contains("not trusted: machine load"), "{short}");
    // The text appears once. It is not among the invalid variants, and each check is on one line.
    assert!(!short.contains("Invalid"), "{short}");
    assert_eq!(
        short.matches("99 % of the sends left").count(),
        1,
        "{short}"
    );
    let value: serde_json::Value =
        serde_json::from_str(&crate::json(&recording, &summary)).unwrap();
    let row = &value["summary"]["variants"][1];
    assert_eq!(row["verdict"]["state"], "withheld");
    assert_eq!(row["verdict"]["check"], "machine-load");
    assert_eq!(row["verdict"]["failed"][0], "lateness");
    assert_eq!(row["estimate"]["trusted"], false);
    assert_eq!(row["metrics"].as_object().unwrap().len(), 0);
    let csv = crate::csv(&recording, &summary);
    let doubtful = csv.lines().filter(|line| line.ends_with(",false")).count();
    let trusted = csv.lines().filter(|line| line.ends_with(",true")).count();
    assert!(doubtful > 10 && doubtful == trusted, "{csv}");
}

#[test]
fn a_closed_loop_is_told_to_go_on_by_its_own_figure() {
    let mut recording = two(SampleRun::closed());
    for round in &mut recording.rounds {
        let machine = round.machine.as_mut().unwrap();
        machine.busy_us += round.elapsed_us;
        round.generator.waited_for_cpu = Some(Duration::from_micros(round.elapsed_us * 6 / 10));
    }
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(crate::answer::sentence(&recording, &summary), @"No verdict: other programs used 51 % of the cores (failed check: generator starved). Estimate -11.2 ±0.5 % requests/s, not trusted. End what else runs, or use `--until 'requests ±2%'`.");
}

#[test]
fn without_a_trusted_baseline_there_are_values_and_an_estimate() {
    let mut recording = late_on_a_busy_machine();
    for round in &mut recording.rounds {
        round.variant = if round.variant == "a" { "b" } else { "a" }.to_owned();
    }
    let summary = Summary::of(&recording);
    let row = summary.variant("b").unwrap();
    assert_eq!(row.verdict, Verdict::NotCompared);
    // The variant's own figures are trusted, but a difference is not.
    assert!(row.metric(Metric::Mean).unwrap().overhead.is_none());
    insta::assert_snapshot!(crate::verdict_text(row), @"not compared: the verdict on the baseline is withheld; ~-88 us (-95 to -85), not trusted");
    insta::assert_snapshot!(crate::answer::sentence(&recording, &summary), @"No verdict: other programs used 75 % of the cores (failed check: lateness) while the baseline `a` was measured. Estimate -88 us (-95 to -85), not trusted. End what else runs, or use `--until 'mean ±20us'`.");
}

#[test]
fn what_did_no_work_has_no_estimate() {
    let mut recording = late_on_a_busy_machine();
    recording.variants[1].proof = Some(Proof::default());
    let summary = Summary::of(&recording);
    let row = summary.variant("b").unwrap();
    assert!(row.estimate.is_none());
    let out = crate::text(&recording, &summary, Terminal::plain(100));
    assert!(!out.contains('~'), "{out}");
}

#[test]
fn several_estimates_are_named_with_their_variants() {
    let mut recording = SampleRun::open()
        .rounds(12)
        .variant("a", 700.0)
        .variant("b", 790.0)
        .variant("c", 900.0)
        .build();
    for round in recording.rounds.iter_mut().filter(|it| it.variant != "a") {
        later(round, 2_240);
    }
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(crate::answer::sentence(&recording, &summary), @"No verdict: 1 % of the sends left more than 2.26 ms late. Estimates, not trusted: +89 us (84 to 95) with `b`, +198 us (188 to 206) with `c`. Give the generator a core: `pin` the systems, or run as root for real-time priority (`ulimit -r` grants it too).");
}
