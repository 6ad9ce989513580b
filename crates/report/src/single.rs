//! Text report of a single load, with the figures that users of wrk, bombardier and vegeta expect.

mod pictures;

use analysis::summary::{CheckState, Distribution, Summary, VariantSummary, tail};
use model::{Metric, Unit, micros};
use recording::{Recording, RoundRecord, describe, digits, float};

use crate::bodies;
use crate::cell;
use crate::explain;
use crate::step;
use crate::tables::traffic::counts;
use crate::terminal::{Terminal, printable};
use crate::text::wrapped;
use crate::words::{check_text, verdict_text, why};

/// Renders a single load for a terminal.
pub fn load_text(recording: &Recording, summary: &Summary, terminal: Terminal) -> String {
    let width = terminal.width;
    let mut rows = summary.variants.iter();
    let stopped = rows.find_map(VariantSummary::stopped_answering);
    let mut out = stopped.map_or_else(String::new, |check| {
        let sentence = format!("The target stopped answering: {}.", check_text(check));
        wrapped("", &sentence, width)
    });
    out += &format!("{}\n{}\n", summary.title, describe::load(recording));
    if let Some(interruption) = explain::interruption(summary) {
        out += &format!("{interruption}\n");
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
    out += &gates(summary);
    out += &statistics(row, summary);
    if let Some(distribution) = &row.distribution {
        out += &percentiles(distribution);
        out += &pictures::histogram(&round.latency_ns_hdr.histogram());
    }
    out += &pictures::rate(&round.windows);
    out += &steps(round);
    out += &facts(row, round, summary.is_open_loop);
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
    out += &samples(round);
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

fn statistics(row: &VariantSummary, summary: &Summary) -> String {
    let rates = row.rate_windows.as_ref();
    let of_windows = |value: Option<f64>| {
        value.map_or_else(
            || cell::NOTHING.to_owned(),
            |value| digits::value(value, None),
        )
    };
    let mut out = format!(
        "\n  {:<13} {:>12} {:>12} {:>12}\n",
        "Statistics", "Avg", "Stdev", "Max"
    );
    let requests = row.metric(Metric::Requests).map(|requests| requests.value);
    // There are four digits, because there is no interval that would limit the precision.
    let requests = requests.map_or_else(
        || cell::NOTHING.to_owned(),
        |value| digits::value(value, Some(value * 0.0005)),
    );
    let windows = explain::windows(summary).unwrap_or_else(|| "no whole window".to_owned());
    out += &format!(
        "  {:<13} {requests:>12} {:>12} {:>12}   (stdev and max {windows})\n",
        "Requests/s",
        of_windows(rates.and_then(|rates| rates.requests_per_s_stdev)),
        of_windows(rates.map(|rates| rates.requests_per_s_max)),
    );
    let latency = |us: fn(&Distribution) -> f64| {
        let us = row.distribution.as_ref().map(us);
        us.map_or_else(
            || cell::NOTHING.to_owned(),
            |us| digits::duration_ns(us * 1e3),
        )
    };
    out += &format!(
        "  {:<13} {:>12} {:>12} {:>12}   (min {})\n",
        "Latency",
        latency(|distribution| distribution.latency_us_mean),
        latency(|distribution| distribution.latency_us_stdev),
        latency(|distribution| distribution.latency_us_max),
        latency(|distribution| distribution.latency_us_min),
    );
    out
}

fn percentiles(distribution: &Distribution) -> String {
    let of = |metric| distribution.percentile_us(metric);
    // This percentile is not a metric of labs, because a round has too few requests beyond it.
    let has_last = tail::has_enough(distribution.requests, 0.9999);
    let ladder = [
        ("50 %", of(Metric::P50)),
        ("75 %", of(Metric::P75)),
        ("90 %", of(Metric::P90)),
        ("95 %", of(Metric::P95)),
        ("99 %", of(Metric::P99)),
        ("99.9 %", of(Metric::P999)),
        ("99.99 %", has_last.then_some(distribution.latency_us_p9999)),
    ];
    let line = |(label, us): (&str, Option<f64>)| {
        let shown = us.map_or_else(
            || format!("{}   (fewer than ten requests beyond)", cell::NOTHING),
            |us| digits::duration_ns(us * 1e3),
        );
        format!("  {label:>13} {shown:>12}\n")
    };
    format!("  Latency distribution\n{}\n", ladder.map(line).concat())
}

/// The steps of a scenario. Empty for a rotation.
fn steps(round: &RoundRecord) -> String {
    let steps = step::all(&[round]);
    let Some(iterations) = round.iterations.filter(|_| !steps.is_empty()) else {
        return String::new();
    };
    let longest = steps.iter().map(|step| step.name.chars().count()).max();
    let width = longest.unwrap_or(0).max(5);
    let mut out = format!(
        "  {:<13} {:<width$} {:>10} {:>10} {:>10}   Outcomes\n",
        "Steps", "", "50 %", "99 %", "Max"
    );
    for step in &steps {
        let [p50, p99, max] = step.quantiles_us().map(|us| {
            us.map_or_else(
                || cell::NOTHING.to_owned(),
                |us| digits::duration_ns(us * 1e3),
            )
        });
        out += &format!(
            "  {:<13} {:<width$} {p50:>10} {p99:>10} {max:>10}   {}\n",
            "",
            step.name,
            step.outcomes()
        );
    }
    let mut counts = vec![format!("{} complete", digits::count(iterations.completed))];
    if iterations.broken > 0 {
        counts.push(format!(
            "{} ended by a step that did not pass",
            digits::count(iterations.broken)
        ));
    }
    if iterations.cut > 0 {
        counts.push(format!("{} cut by the end", digits::count(iterations.cut)));
    }
    out + &format!("  {:<13} {}\n", "Iterations", counts.join(", "))
}

fn connections(round: &RoundRecord) -> String {
    let connections = round.connect_ns_hdr.histogram();
    match connections.quantile_ns(0.5) {
        None => "none opened".to_owned(),
        Some(p50) => format!(
            "{} opened, in {} (median)",
            digits::count(connections.len()),
            digits::duration_ns(float(p50))
        ),
    }
}

fn facts(row: &VariantSummary, round: &RoundRecord, is_open_loop: bool) -> String {
    let elapsed_us = round.elapsed_us;
    // Bytes per microsecond are 10^6 bytes per second.
    let per_s = |bytes: u64| match elapsed_us {
        0 => cell::NOTHING.to_owned(),
        us => digits::value(float(bytes) / float(us), None),
    };
    let mut facts = vec![
        ("Outcomes", counts(row)),
        (
            "Throughput",
            format!(
                "{} MB/s in, {} MB/s out",
                per_s(round.bytes_in),
                per_s(round.bytes_out)
            ),
        ),
        ("Connections", connections(round)),
    ];
    if round.sent_again > 0 {
        facts.push(("Sent again", sent_again(round.sent_again)));
    }
    if let Some(statuses) = bodies::statuses(row) {
        facts.push(("Statuses", statuses));
    }
    if row.bodies.bytes_mean.is_some() {
        facts.push(("Bodies", bodies_of(row)));
    }
    if is_open_loop {
        facts.push(("Lateness", lateness(round)));
        let service = round.service_ns_hdr.histogram();
        if let Some((p50, p99)) = service.quantile_ns(0.5).zip(service.quantile_ns(0.99)) {
            let (p50, p99) = (
                digits::duration_ns(float(p50)),
                digits::duration_ns(float(p99)),
            );
            facts.push((
                "Service time",
                format!("50 % {p50}, 99 % {p99} (from the actual send)"),
            ));
        }
    }
    // A load that was stopped at once has no duration, so there are no shares of it.
    if elapsed_us == 0 {
        return listed(&facts);
    }
    let available_us = float(elapsed_us) * f64::from(round.generator.threads);
    let cpu = row.metric(Metric::GeneratorCpu).map(|cpu| cpu.value);
    facts.push((
        "Generator",
        format!(
            "{} us CPU a request, busy {} of {}{}",
            cell::single(cpu, Unit::Microseconds),
            digits::percent(float(micros(round.generator.cpu)) / available_us.max(1.0)),
            describe::plural(u64::from(round.generator.threads), "thread"),
            // Above 90 %, the exact share is not useful.
            match round.realtime_share() {
                all if all > 0.9 => ", real-time".to_owned(),
                0.0 => String::new(),
                part => format!(", real-time for {}", digits::percent(part)),
            },
        ),
    ));
    facts.push(("Time", digits::duration_ns(float(elapsed_us) * 1e3)));
    listed(&facts)
}

fn sent_again(times: u64) -> String {
    let times = describe::plural(times, "request");
    format!("{times} that the server declared unprocessed (GOAWAY, REFUSED_STREAM)")
}

/// The bodies in words: `1,234 bytes a response, gzip. Encoded bodies checked: 100 by equal bytes`.
fn bodies_of(row: &VariantSummary) -> String {
    let own = &row.bodies;
    let encoding = match own.responses_by_encoding.is_empty() {
        // The recording is from a version that did not count encodings.
        true => String::new(),
        false => format!(", {}", bodies::encoding(own)),
    };
    let bytes = format!(
        "{} bytes a response{encoding}",
        bodies::bytes(own.bytes_mean)
    );
    match bodies::checks(own).as_str() {
        "" => bytes,
        checks => format!("{bytes}. Encoded bodies checked: {checks}"),
    }
}

fn listed(facts: &[(&str, String)]) -> String {
    facts
        .iter()
        .map(|(label, fact)| format!("  {label:<13} {fact}\n"))
        .collect()
}

fn lateness(round: &RoundRecord) -> String {
    let lateness = round.lateness_ns_hdr.histogram();
    let (Some(p50), Some(p99), Some(max)) = (
        lateness.quantile_ns(0.5),
        lateness.quantile_ns(0.99),
        lateness.max_ns(),
    ) else {
        return "nothing was sent".to_owned();
    };
    let [p50, p99, max] = [p50, p99, max].map(|ns| digits::duration_ns(float(ns)));
    format!("50 % {p50}, 99 % {p99}, max {max} (actual send minus due, part of the latency)")
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
          Latency             736 us       223 us      1.87 ms   (min 275 us)
          Latency distribution
                   50 %       708 us
                   75 %       865 us
                   90 %      1.03 ms
                   95 %      1.14 ms
                   99 %      1.36 ms
                 99.9 %      1.75 ms
                99.99 %      1.87 ms

          Requests by latency
              <= 350 us █                                                 900
              <= 445 us ███████                                         5,350
              <= 565 us ███████████████████████                        16,850
              <= 718 us ████████████████████████████████████████       29,000
              <= 913 us ███████████████████████████████████████        28,300
             <= 1.16 ms █████████████████████                          14,950
             <= 1.47 ms █████                                           3,950
             <= 1.87 ms █                                                 700

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
          Latency             744 us       224 us      2.20 ms   (min 246 us)
          Latency distribution
                   50 %       717 us
                   75 %       865 us
                   90 %      1.03 ms
                   95 %      1.14 ms
                   99 %      1.44 ms
                 99.9 %      1.86 ms
                99.99 %      2.20 ms

          Requests by latency
              <= 323 us ▏                                                 350
              <= 425 us ████                                            3,350
              <= 559 us █████████████████████                          17,400
              <= 735 us ████████████████████████████████████████       32,400
              <= 967 us ███████████████████████████████████████        31,500
             <= 1.27 ms ███████████████                                12,550
             <= 1.67 ms ███                                             2,200
             <= 2.20 ms ▏                                                 250

                   Rate ███████████████████████████████████   3,980 to 4,020/s, from 0 s to 24.5 s

          Outcomes      passed 100,000; 2xx 100,000
          Throughput    0.640 MB/s in, 0.560 MB/s out
          Connections   100 opened, in 59.8 us (median)
          Bodies        30 bytes a response, plain
          Lateness      50 % 10.1 us, 99 % 19.8 us, max 20.0 us (actual send minus due, part of the latency)
          Service time  50 % 717 us, 99 % 1.44 ms (from the actual send)
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
        let line = "  Sent again    38 requests that the server declared unprocessed (GOAWAY, REFUSED_STREAM)\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("failed 3 (closed idle 3)"), "{text}");
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
          Latency             736 us       223 us      1.87 ms   (min 275 us)
          Latency distribution
                   50 %       708 us
                   75 %       865 us
                   90 %      1.03 ms
                   95 %      1.14 ms
                   99 %      1.36 ms
                 99.9 %      1.75 ms
                99.99 %      1.87 ms

          Requests by latency
              <= 350 us █                                                 900
              <= 445 us ███████                                         5,350
              <= 565 us ███████████████████████                        16,850
              <= 718 us ████████████████████████████████████████       29,000
              <= 913 us ███████████████████████████████████████        28,300
             <= 1.16 ms █████████████████████                          14,950
             <= 1.47 ms █████                                           3,950
             <= 1.87 ms █                                                 700

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
