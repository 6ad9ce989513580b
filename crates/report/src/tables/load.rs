//! Tables of a single load.

use analysis::summary::{Distribution, Summary, VariantSummary, tail};
use model::{Metric, Unit, micros};
use recording::{Hdr, RoundRecord, describe, digits, float};
use stats::Histogram;

use super::streams::EARLY_SHARE;
use super::traffic::counts;
use super::{handshakes, packets};
use crate::bodies;
use crate::cell;
use crate::explain;
use crate::step;
use crate::table::{Column, Table, row as cells};

/// A row for the rate and a row for the latency.
pub(crate) fn statistics(row: &VariantSummary, summary: &Summary) -> Table {
    let rates = row.rate_windows.as_ref();
    let of_windows =
        |value: Option<f64>| value.map_or_else(cell::nothing, |value| digits::value(value, None));
    let requests = row.metric(Metric::Requests).map(|requests| requests.value);
    // There are four digits, because there is no interval that would limit the precision.
    let requests = requests.map_or_else(cell::nothing, |value| {
        digits::value(value, Some(value * 0.0005))
    });
    let windows = explain::windows(summary).unwrap_or_else(|| "no whole window".to_owned());
    let times = row.unit(Metric::Mean);
    let latency =
        |us: fn(&Distribution) -> f64| cell::latency(row.distribution.as_ref().map(us), times);
    let rows = [
        [
            "Requests/s".to_owned(),
            requests,
            of_windows(rates.and_then(|rates| rates.requests_per_s_stdev)),
            of_windows(rates.map(|rates| rates.requests_per_s_max)),
            format!("(stdev and max {windows})"),
        ],
        [
            "Latency".to_owned(),
            latency(|distribution| distribution.latency_us_mean),
            latency(|distribution| distribution.latency_us_stdev),
            latency(|distribution| distribution.latency_us_max),
            format!(
                "(min {})",
                latency(|distribution| distribution.latency_us_min)
            ),
        ],
    ];
    Table::new(
        "statistics",
        [
            Column::words("Statistics"),
            Column::figure("Avg", ""),
            Column::figure("Stdev", ""),
            Column::figure("Max", ""),
            Column::words(""),
        ],
        rows.map(cells),
    )
}

/// A latency in nanoseconds with its unit: `736 us`
fn latency_ns(ns: u64, times: Unit) -> String {
    cell::latency(Some(float(ns) / 1e3), times)
}

/// A row for each percentile.
pub(crate) fn percentiles(distribution: &Distribution, times: Unit) -> Table {
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
        let missing = || format!("{}   (fewer than ten requests beyond)", cell::NOTHING);
        let shown = us.map_or_else(missing, |us| cell::latency(Some(us), times));
        cells([label.to_owned(), shown])
    };
    let columns = ["", ""].map(|name| Column::figure(name, ""));
    Table::new("latency distribution", columns, ladder.map(line))
}

/// A row for each step of a scenario. No rows for a rotation.
pub(crate) fn steps(round: &RoundRecord, times: Unit) -> Table {
    let steps = step::all(&[round]);
    let rows = steps.iter().map(|step| {
        let [p50, p99, max] = step.quantiles_us().map(|us| cell::latency(us, times));
        let name = step.name.clone();
        cells([String::new(), name, p50, p99, max, step.outcomes()])
    });
    Table::new(
        "steps of the scenario",
        [
            Column::words("Steps"),
            Column::words(""),
            Column::figure("50 %", ""),
            Column::figure("99 %", ""),
            Column::figure("Max", ""),
            Column::words("Outcomes"),
        ],
        rows.collect::<Vec<_>>(),
    )
}

/// The iterations of a scenario in words.
fn iterations(round: &RoundRecord) -> Option<String> {
    let iterations = round.iterations?;
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
    Some(counts.join(", "))
}

/// One row with the iterations of a scenario. No rows for a rotation.
pub(crate) fn iteration_counts(round: &RoundRecord) -> Table {
    listed(iterations(round).map(|counts| ("Iterations", counts)))
}

fn connections(round: &RoundRecord, times: Unit) -> String {
    let connections = round.connect_ns_hdr.histogram();
    match connections.quantile_ns(0.5) {
        None => "none opened".to_owned(),
        Some(p50) => format!(
            "{} opened, in {} (median)",
            digits::count(connections.len()),
            latency_ns(p50, times)
        ),
    }
}

/// A row for each fact of a load that is no distribution: outcomes, connections, lateness and the generator.
pub(crate) fn facts(row: &VariantSummary, round: &RoundRecord, is_open_loop: bool) -> Table {
    let elapsed_us = round.elapsed_us;
    let times = row.unit(Metric::Mean);
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
        ("Connections", connections(round, times)),
    ];
    facts.extend(first_bytes(round, times));
    facts.extend(events(round, times));
    if round.sent_again > 0 {
        facts.push(("Sent again", sent_again(round.sent_again)));
    }
    facts.extend(round.packets.map(|it| ("Packets", packets::sentence(it))));
    let handshakes = round.handshakes.map(handshakes::sentence);
    facts.extend(handshakes.map(|it| ("Handshakes", it)));
    if let Some(statuses) = bodies::statuses(row) {
        facts.push(("Statuses", statuses));
    }
    if row.bodies.bytes_mean.is_some() {
        facts.push(("Bodies", bodies_of(row)));
    }
    if is_open_loop {
        facts.push(("Lateness", lateness(round, times)));
        let service = round.service_ns_hdr.histogram();
        if let Some((p50, p99)) = service.quantile_ns(0.5).zip(service.quantile_ns(0.99)) {
            let [p50, p99] = [p50, p99].map(|ns| latency_ns(ns, times));
            facts.push((
                "Service time",
                format!("50 % {p50}, 99 % {p99} (from the actual send)"),
            ));
        }
    }
    // A load that was stopped at once has no duration, so there are no shares of it.
    if elapsed_us == 0 {
        return listed(facts);
    }
    let cpu = row.metric(Metric::GeneratorCpu).map(|cpu| cpu.value);
    facts.push((
        "Generator",
        format!(
            "{} us CPU a request, busy {} of {}{}",
            cell::single(cpu, Unit::Microseconds),
            digits::percent(float(micros(round.generator.cpu)) / round.counted_us().max(1.0)),
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
    listed(facts)
}

/// The times to the first byte, if bodies arrive later than that.
fn first_bytes(round: &RoundRecord, unit: Unit) -> Option<(&'static str, String)> {
    let times = round.first_byte.as_ref()?.ns_hdr.histogram();
    let whole = round.latency_ns_hdr.histogram();
    let is_early = times.mean_ns()? < EARLY_SHARE * whole.mean_ns()?;
    is_early.then(|| ("First byte", format!("{} (from due)", spread(&times, unit))))
}

/// The events of streamed responses.
fn events(round: &RoundRecord, unit: Unit) -> Vec<(&'static str, String)> {
    let Some(events) = &round.events else {
        return Vec::new();
    };
    let per_stream = events.events_per_stream();
    let per_stream = per_stream.map_or_else(cell::nothing, |it| digits::value(it, None));
    let streams = describe::plural(events.streams, "complete stream");
    let mut facts = vec![("Streams", format!("{streams}, {per_stream} events each"))];
    let lines = [
        ("First event", Some(&events.first.ns_hdr), " (from due)"),
        ("Event gaps", Some(&events.gaps_ns_hdr), ""),
        (
            "Delivery",
            events.delivery.as_ref().map(|it| &it.ns_hdr),
            " (from the time stamp of an event)",
        ),
        (
            "Round trips",
            events.round_trips.as_ref().map(|it| &it.ns_hdr),
            "",
        ),
    ];
    for (label, hdr, suffix) in lines {
        let times = hdr.map(Hdr::histogram).filter(|times| !times.is_empty());
        facts.extend(times.map(|times| (label, format!("{}{suffix}", spread(&times, unit)))));
    }
    facts
}

/// Percentiles and maximum in words: `50 % 1.2 ms, 99 % 3.4 ms, 99.9 % 5 ms, max 6 ms`.
fn spread(times: &Histogram, unit: Unit) -> String {
    let at = |share: f64| {
        let ns = times.quantile_ns(share);
        ns.map_or_else(cell::nothing, |ns| latency_ns(ns, unit))
    };
    format!(
        "50 % {}, 99 % {}, 99.9 % {}, max {}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    )
}

fn sent_again(times: u64) -> String {
    let times = describe::plural(times, "request");
    format!("{times} that the server declared unprocessed (GOAWAY, REFUSED_STREAM, rejected 0-RTT)")
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

fn lateness(round: &RoundRecord, times: Unit) -> String {
    let lateness = round.lateness_ns_hdr.histogram();
    let (Some(p50), Some(p99), Some(max)) = (
        lateness.quantile_ns(0.5),
        lateness.quantile_ns(0.99),
        lateness.max_ns(),
    ) else {
        return "nothing was sent".to_owned();
    };
    let [p50, p99, max] = [p50, p99, max].map(|ns| latency_ns(ns, times));
    format!("50 % {p50}, 99 % {p99}, max {max} (actual send minus due, part of the latency)")
}

fn listed(facts: impl IntoIterator<Item = (&'static str, String)>) -> Table {
    let facts = facts.into_iter();
    let rows = facts.map(|(label, fact)| cells([label.to_owned(), fact]));
    Table::new("facts", ["", ""].map(Column::words), rows)
}
