//! Text report of a single load, with the figures that users of wrk, bombardier and vegeta expect.

mod pictures;

use analysis::summary::{CheckState, Summary, VariantSummary};
use model::{Metric, Unit, micros};
use recording::{Recording, RoundRecord, describe, digits, float};

use crate::explain;
use crate::tables::load as tables;
use crate::terminal::{Terminal, printable};
use crate::text::{Place, aligned, all_folded, at, wrapped};
use crate::words::{check_text, verdict_text, why};

/// Place of the first column of each table.
const LABEL: Place = at(2, 13);
/// Distance of the text after a label from the start of the line, in columns.
const TEXT_AT: usize = 16;

/// Renders a single load for a terminal.
pub fn load_text(recording: &Recording, summary: &Summary, terminal: Terminal) -> String {
    let width = terminal.width;
    let mut rows = summary.variants.iter();
    let stopped = rows.find_map(VariantSummary::stopped_answering);
    let mut out = stopped.map_or_else(String::new, |check| {
        let sentence = format!("The target stopped answering: {}.", check_text(check));
        wrapped("", &sentence, width)
    });
    out += &format!("{}\n", summary.title);
    out += &wrapped("", &describe::load(recording), width);
    if let Some(interruption) = explain::interruption(summary) {
        out += &format!("{interruption}\n");
    }
    if let Some(lost) = describe::lost_rounds(recording) {
        out += &wrapped("", &format!("Lost: {lost}"), width);
    }
    // The run was stopped before a measurement.
    let (Some(row), Some(round)) = (summary.variants.first(), recording.rounds.first()) else {
        return printable(&(out + "no measurements\n"));
    };
    if row.verdict.is_invalid() {
        let heading = if summary.allows_failures() {
            "some requests did not pass, as a gate allows"
        } else {
            "NOT VALID"
        };
        let verdict = verdict_text(row).replacen("invalid", heading, 1);
        out += &format!("\n{}", wrapped("", &verdict, width));
    }
    // Lines up to the checks have their text below the text of the first column.
    let begins_at = out.len();
    out += &gates(summary);
    let times = summary.unit(Metric::Mean);
    let statistics = tables::statistics(row, summary);
    out += &format!(
        "\n{}",
        aligned(
            &statistics,
            &[LABEL, at(1, 12), at(1, 12), at(1, 12), at(3, 0)]
        )
    );
    if let Some(distribution) = &row.distribution {
        let percentiles = tables::percentiles(distribution, times);
        let rows = aligned(&percentiles, &[LABEL, at(1, 12)]);
        out += &format!("  Latency distribution\n{rows}\n");
        out += &pictures::histogram(&round.latency_ns_hdr.histogram(), times, width);
    }
    out += &pictures::rate(&round.windows, width);
    out += &steps(round, times);
    let facts = tables::facts(row, round, summary.is_open_loop);
    out += &aligned(&facts, &[LABEL, at(1, 0)]);
    let layout = out.split_off(begins_at);
    out += &all_folded(&layout, TEXT_AT, width);
    let troubles = row
        .checks
        .iter()
        .filter(|check| check.state != CheckState::Ok);
    for check in troubles {
        let state = format!("  {:<13} ", check.state.to_string());
        out += &wrapped(
            &state,
            &format!("{}: {}", check.name, check_text(check)),
            width,
        );
    }
    out += &all_folded(&samples(round), TEXT_AT, width);
    printable(&out)
}

/// A line for each gate. The variant is not named, because a single load has only one.
fn gates(summary: &Summary) -> String {
    let mut out = String::new();
    for judgement in &summary.gates {
        if out.is_empty() {
            out += "\n  Gates\n";
        }
        let (ruling, why) = (judgement.ruling, why(judgement));
        out += &format!("    {ruling}: {}: {why}\n", judgement.gate);
    }
    out
}

/// The steps of a scenario. Empty for a rotation.
fn steps(round: &RoundRecord, times: Unit) -> String {
    let table = tables::steps(round, times);
    if table.rows.is_empty() || round.iterations.is_none() {
        return String::new();
    }
    let names = table.rows.iter().map(|row| row[1].brief.chars().count());
    let longest = names.max().unwrap_or(0).max(5);
    let iterations = tables::iteration_counts(round);
    let figure = at(1, 10);
    let places = [LABEL, at(1, longest), figure, figure, figure, at(3, 0)];
    aligned(&table, &places) + &aligned(&iterations, &[LABEL, at(1, 0)])
}

fn samples(round: &RoundRecord) -> String {
    let mut out = String::new();
    // Three samples show the kind of failure. The recording contains more.
    for sample in round.failures.iter().take(3) {
        if out.is_empty() {
            out += "\n  First requests that did not pass\n";
        }
        let at = digits::duration_ns(float(micros(sample.at)) * 1e3);
        out += &format!("    after {at}: {}\n", sample.reason);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{FailureKind, FailureSample};
    use recording::sample::SampleRun;

    use super::*;
    use crate::tests::cluster_that_lost;

    fn text(recording: &Recording) -> String {
        load_text(recording, &Summary::of(recording), Terminal::plain(200))
    }

    #[test]
    fn a_closed_loop_reads_like_bombardier() {
        insta::assert_snapshot!(text(&SampleRun::load_alone(false)), @"
        http://127.0.0.1:8080/graphql
        closed loop, 100 connections, 100,000 requests, keep-alive, 1 generator thread, timeout 5 s

          Statistics             Avg        Stdev          Max
          Requests/s         135,900        1,900      139,000   (stdev and max over 100 ms windows)
          Latency             736 us       223 us     1,870 us   (min 275 us)
          Latency distribution
                   50 %       708 us
                   75 %       865 us
                   90 %     1,030 us
                   95 %     1,140 us
                   99 %     1,360 us
                 99.9 %     1,750 us
                99.99 %     1,870 us

          Requests by latency
              <= 350 us █                                                 900
              <= 445 us ███████                                         5,350
              <= 565 us ███████████████████████                        16,850
              <= 718 us ████████████████████████████████████████       29,000
              <= 913 us ███████████████████████████████████████        28,300
            <= 1,160 us █████████████████████                          14,950
            <= 1,470 us █████                                           3,950
            <= 1,870 us █                                                 700

                   Rate ███████   133,000 to 139,000/s, from 0 s to 700 ms

          Outcomes      passed 100,000; 2xx 100,000
          Throughput    21.7 MB/s in, 19.0 MB/s out
          Connections   100 opened, in 58.9 us (median)
          Bodies        30 bytes a response, plain
          Generator     5.15 us CPU a request, busy 70 % of 1 thread
          Time          736 ms
        ");
    }

    #[test]
    fn an_open_loop_shows_lateness_and_service_time() {
        insta::assert_snapshot!(text(&SampleRun::load_alone(true)), @"
        http://127.0.0.1:8080/graphql
        open loop, 4,000 requests/s, equal gaps, at most 1,000 connections, 25 s, keep-alive, 1 generator thread, timeout 5 s

          Statistics             Avg        Stdev          Max
          Requests/s           4,000         39.5        4,110   (stdev and max over 100 ms windows)
          Latency             744 us       224 us     2,200 us   (min 246 us)
          Latency distribution
                   50 %       717 us
                   75 %       865 us
                   90 %     1,030 us
                   95 %     1,140 us
                   99 %     1,440 us
                 99.9 %     1,860 us
                99.99 %     2,200 us

          Requests by latency
              <= 323 us ▏                                                 350
              <= 425 us ████                                            3,350
              <= 559 us █████████████████████                          17,400
              <= 735 us ████████████████████████████████████████       32,400
              <= 967 us ███████████████████████████████████████        31,500
            <= 1,270 us ███████████████                                12,550
            <= 1,670 us ███                                             2,200
            <= 2,200 us ▏                                                 250

                   Rate ███████████████████████████████████   3,980 to 4,020/s, from 0 s to 24.5 s

          Outcomes      passed 100,000; 2xx 100,000
          Throughput    0.640 MB/s in, 0.560 MB/s out
          Connections   100 opened, in 59.8 us (median)
          Bodies        30 bytes a response, plain
          Lateness      50 % 10.1 us, 99 % 19.8 us, max 20.0 us (actual send minus due, part of the latency)
          Service time  50 % 717 us, 99 % 1,440 us (from the actual send)
          Generator     175 us CPU a request, busy 70 % of 1 thread, real-time
          Time          25.0 s
        ");
    }

    #[test]
    fn repeats_and_idle_ends_are_shown_where_there_were_any() {
        let mut recording = SampleRun::load_alone(false);
        assert!(!text(&recording).contains("Sent again"));
        let round = &mut recording.rounds[0];
        round.sent_again = 38;
        round.outcomes.passed = 99_997;
        round.outcomes.failed.closed_idle = 3;
        let text = text(&recording);
        let line = "  Sent again    38 requests that the server declared unprocessed (GOAWAY, REFUSED_STREAM, rejected 0-RTT)\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("failed 3 (closed idle 3)"), "{text}");
    }

    #[test]
    fn a_lost_attempt_is_reported() {
        let mut recording = SampleRun::load_alone(false);
        assert!(!text(&recording).contains("Lost"));
        recording.cluster = Some(cluster_that_lost("generator 1 of 1, was evicted"));
        let text = text(&recording);
        assert!(
            text.contains("\nLost: the cluster took a pod away, or its result, in 1 attempt."),
            "{text}"
        );
    }

    #[test]
    fn packets_are_shown_where_the_generator_sent_them() {
        let mut recording = SampleRun::load_alone(false);
        assert!(!text(&recording).contains("Packets"));
        recording.rounds[0].packets = Some(model::Packets {
            sent: 200_000,
            lost: 250,
        });
        let text = text(&recording);
        let line = "  Packets       200,000 sent, 250 lost (0.125 %)\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn handshakes_are_shown_with_their_early_data() {
        let mut recording = SampleRun::load_alone(false);
        assert!(!text(&recording).contains("Handshakes"));
        let handshakes = model::Handshakes {
            full: 12,
            resumed: 1_088,
            ..model::Handshakes::default()
        };
        recording.rounds[0].handshakes = Some(handshakes);
        let shown = text(&recording);
        assert!(
            shown.contains("  Handshakes    12 full, 1,088 resumed\n"),
            "{shown}"
        );
        recording.rounds[0].handshakes = Some(model::Handshakes {
            early_accepted: 1_080,
            early_rejected: 8,
            ..handshakes
        });
        let shown = text(&recording);
        let line =
            "  Handshakes    12 full, 1,088 resumed, 0-RTT accepted in 1,080 and rejected in 8\n";
        assert!(shown.contains(line), "{shown}");
    }

    #[test]
    fn wrong_answers_are_said_before_any_figure() {
        let mut recording = SampleRun::load_alone(false);
        let round = &mut recording.rounds[0];
        round.outcomes.passed = 99_990;
        round.outcomes.mismatched.status = 10;
        round.statuses = [(200, 99_990), (404, 10)].into();
        round.failures.push(FailureSample {
            kind: FailureKind::Status,
            reason: "expected a status of 200 to 299, found 404".to_owned(),
            at: Duration::from_micros(1200),
            request: "GET / HTTP/1.1".to_owned(),
            answer: String::new(),
        });
        insta::assert_snapshot!(text(&recording), @"
        http://127.0.0.1:8080/graphql
        closed loop, 100 connections, 100,000 requests, keep-alive, 1 generator thread, timeout 5 s

        NOT VALID: 10 of 100,000 answers mismatched (status 10), first: expected a status of 200 to 299, found 404

          Statistics             Avg        Stdev          Max
          Requests/s         135,800        1,900      139,000   (stdev and max over 100 ms windows)
          Latency             736 us       223 us     1,870 us   (min 275 us)
          Latency distribution
                   50 %       708 us
                   75 %       865 us
                   90 %     1,030 us
                   95 %     1,140 us
                   99 %     1,360 us
                 99.9 %     1,750 us
                99.99 %     1,870 us

          Requests by latency
              <= 350 us █                                                 900
              <= 445 us ███████                                         5,350
              <= 565 us ███████████████████████                        16,850
              <= 718 us ████████████████████████████████████████       29,000
              <= 913 us ███████████████████████████████████████        28,300
            <= 1,160 us █████████████████████                          14,950
            <= 1,470 us █████                                           3,950
            <= 1,870 us █                                                 700

                   Rate ███████   133,000 to 139,000/s, from 0 s to 700 ms

          Outcomes      passed 99,990, mismatched 10 (status 10); 2xx 99,990, 4xx 10
          Throughput    21.7 MB/s in, 19.0 MB/s out
          Connections   100 opened, in 58.9 us (median)
          Bodies        30 bytes a response, plain
          Generator     5.15 us CPU a request, busy 70 % of 1 thread
          Time          736 ms

          First requests that did not pass
            after 1.20 ms: expected a status of 200 to 299, found 404
        ");
    }

    #[test]
    fn lines_of_checks_are_no_wider_than_the_terminal() {
        let mut recording = SampleRun::load_alone(false);
        let round = &mut recording.rounds[0];
        round.generator.pauses.push(model::Pause {
            at: Duration::ZERO,
            length: Duration::from_millis(100),
        });
        let text = load_text(&recording, &Summary::of(&recording), Terminal::plain(60));
        let mut lines = text.lines().skip(2).filter(|line| {
            line.contains("NOT VALID") || line.contains("failed") || line.contains("longest")
        });
        assert!(lines.clone().count() >= 3, "{text}");
        assert!(lines.all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn without_any_time_there_is_no_throughput() {
        let mut recording = SampleRun::load_alone(false);
        recording.rounds[0].elapsed_us = 0;
        let text = text(&recording);
        assert!(text.contains("– MB/s in, – MB/s out"), "{text}");
    }

    #[test]
    fn gates_come_before_the_figures() {
        let recording = SampleRun::load_alone(false);
        let gates = ["failures value < 1%", "max value < 1ms", "p99 value < 2ms"];
        let gates = gates.map(|gate| gate.parse().unwrap());
        let summary = Summary::of(&recording).judged(&gates, analysis::gate::Undecided::Fails);
        let text = load_text(&recording, &summary, Terminal::plain(200));
        let lines: Vec<&str> = text.lines().skip(3).take(4).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        Gates
          holds: failures value < 1%: 0 % (0 of 100,000)
          broken: max value < 1ms: 1.87 ms
          undecided: p99 value < 2ms: 1.36 ms without an interval: an older `weigh` recorded the load without blocks
        ");
    }
}
