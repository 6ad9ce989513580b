//! Causes of the differences, from the sampled rounds of `--why`.

use analysis::summary::{CauseKind, Summary, VariantWhy, WhyCost, WhyPart, WhySummary};
use recording::{describe, digits};

use crate::cell;
use crate::table::{Column, Table, row};

/// Title of the section.
pub(crate) const TITLE: &str = "Why they differ";

/// A sentence for each compared variant. Empty without `--why`.
pub(crate) fn sentences(summary: &Summary) -> Vec<String> {
    let why = summary.why.iter();
    why.flat_map(|why| &why.variants).map(sentence).collect()
}

fn sentence(variant: &VariantWhy) -> String {
    let name = &variant.variant;
    let causes: Vec<&WhyPart> = variant.parts.iter().filter(|it| it.is_cause).collect();
    let whole = amount(variant.latency_us);
    let Some((first, others)) = causes.split_first() else {
        return format!(
            "`{name}`: no cause is named. No kind of work or wait differs clearly enough to explain \
             {whole} us per request."
        );
    };
    let others = match others {
        [] => String::new(),
        others => {
            let names: Vec<String> = others.iter().map(|it| cause(it)).collect();
            format!(" Further causes: {}.", names.join(", "))
        }
    };
    format!(
        "`{name}`: {}, with a difference in mean latency of {whole} us per request.{others}",
        cause(first)
    )
}

/// A cause with its amount: `sleep in server (clock_nanosleep) +2,010 us`.
fn cause(part: &WhyPart) -> String {
    let system = part
        .system
        .as_ref()
        .map_or_else(String::new, |system| format!(" in {system}"));
    let place = place(part).map_or_else(String::new, |place| format!(" ({place})"));
    let size = match (part.connections, part.difference_us) {
        (Some(count), _) => format!("{} per request", amount(count)),
        (None, us) => format!("{} us", amount(us.unwrap_or(0.0))),
    };
    format!("{}{system}{place} {size}", name(part.kind))
}

/// The function or system call: `clock_nanosleep in rest`.
fn place(part: &WhyPart) -> Option<String> {
    match (&part.place, &part.function) {
        (Some(place), Some(function)) => Some(format!("{place} in {function}")),
        (place, function) => place.clone().or_else(|| function.clone()),
    }
}

/// An amount without an interval, with its sign.
fn amount(value: f64) -> String {
    digits::difference(value, None, value.abs())
}

/// The name of a kind.
fn name(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Burn => "burn",
        CauseKind::Sleep => "sleep",
        CauseKind::Lock => "lock",
        CauseKind::Connections => "extra connections",
        CauseKind::Connecting => "connecting",
        CauseKind::File => "file",
        CauseKind::Thread => "waiting for a thread",
        CauseKind::Input => "waiting for input",
        CauseKind::Other => "another wait",
    }
}

/// One row for each part of each variant, causes first. No rows without `--why`.
pub(crate) fn parts(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for variant in summary.why.iter().flat_map(|why| &why.variants) {
        rows.extend(variant.parts.iter().map(|part| {
            let ends = part.low_us.zip(part.high_us);
            let is_cause = if part.is_cause { "cause" } else { "" };
            row([
                variant.variant.clone(),
                name(part.kind).to_owned(),
                part.system.clone().unwrap_or_else(cell::nothing),
                part.difference_us
                    .map_or_else(cell::nothing, |us| digits::estimate(us, ends, us.abs())),
                part.share
                    .map_or_else(cell::nothing, |share| format!("{:.0}", share * 100.0)),
                is_cause.to_owned(),
                place(part).unwrap_or_else(cell::nothing),
            ])
        }));
    }
    Table {
        label: "causes of the differences",
        columns: vec![
            Column::words("variant"),
            Column::words("kind"),
            Column::words("system"),
            Column::figure("difference", "us/request").short("difference\nus/req"),
            Column::figure("share", "%"),
            Column::words("named"),
            Column::words("where"),
        ],
        notes: match rows.is_empty() {
            true => Vec::new(),
            false => notes(summary),
        },
        rows,
    }
}

fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = vec![
        "Burn is processor time, and comes from the rounds without samplers. Waits are thread time from \
         the sampled loads, so they can be longer than the latency. Idle threads wait for threads and for \
         input, so these two are never causes. The share is of the difference in mean latency. Each \
         interval holds alone with 95 %."
            .to_owned(),
    ];
    let parts = summary.why.iter().flat_map(|why| &why.variants);
    let parts = parts.flat_map(|it| it.parts.iter().map(move |part| (&it.variant, part)));
    for (variant, part) in parts {
        if let Some(count) = part.connections {
            notes.push(format!(
                "`{variant}` has {} connections per request against its baseline. Their cost is a part of \
                 the burn.",
                amount(count)
            ));
        }
    }
    notes.extend(summary.why.iter().flat_map(costs_and_sources));
    notes
}

fn costs_and_sources(why: &WhySummary) -> Vec<String> {
    let cost = why.cost.iter().map(cost);
    cost.chain(why.sources.iter().cloned()).collect()
}

/// The cost of the samplers in words.
pub(crate) fn cost(cost: &WhyCost) -> String {
    let percent = |share: f64| amount(share * 100.0);
    let interval = match cost.low.zip(cost.high) {
        Some((low, high)) => format!(" (95 % interval {} to {} %)", percent(low), percent(high)),
        None => " (too few pairs for an interval)".to_owned(),
    };
    format!(
        "Cost of `--why`: {} % of mean latency{interval}, from {} of a load with samplers and an equal \
         load without them. No figure of a variant contains it.",
        percent(cost.relative),
        describe::plural(cost.pairs as u64, "pair")
    )
}

/// The five functions of each variant that differ most.
pub(crate) fn functions(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for variant in summary.why.iter().flat_map(|why| &why.variants) {
        rows.extend(variant.functions.iter().map(|function| {
            let us = |us: f64| digits::value(us, None);
            let difference = function.difference_us;
            row([
                variant.variant.clone(),
                function.system.clone(),
                function.function.clone(),
                amount(difference),
                us(function.own_us),
                us(function.baseline_us),
            ])
        }));
    }
    Table {
        label: "functions that differ most",
        columns: vec![
            Column::words("variant"),
            Column::words("system"),
            Column::words("function"),
            Column::figure("difference", "us/request").short("difference\nus/req"),
            Column::figure("variant's", "us/request").short("variant\nus/req"),
            Column::figure("baseline's", "us/request").short("baseline\nus/req"),
        ],
        rows,
        notes: Vec::new(),
    }
}

/// Title of the table of functions.
pub(crate) const FUNCTIONS_TITLE: &str = "Functions that differ most";

/// Title of the table of runtimes.
pub(crate) const RUNTIMES_TITLE: &str = "Allocation and collection";

/// Numbers of runtimes per 1,000 requests. No rows if no runtime reports any.
pub(crate) fn runtimes(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for variant in summary.why.iter().flat_map(|why| &why.variants) {
        rows.extend(variant.runtimes.iter().map(|number| {
            let per_thousand = |value: f64| digits::value(value * 1000.0, None);
            row([
                variant.variant.clone(),
                number.system.clone(),
                number_name(&number.name).to_owned(),
                per_thousand(number.own),
                number.baseline.map_or_else(cell::nothing, per_thousand),
            ])
        }));
    }
    Table {
        label: "allocation and collection",
        columns: vec![
            Column::words("variant"),
            Column::words("system"),
            Column::words("number"),
            Column::figure("variant's", "/1,000 requests").short("variant\n/1,000"),
            Column::figure("baseline's", "/1,000 requests").short("baseline\n/1,000"),
        ],
        notes: match rows.is_empty() {
            true => Vec::new(),
            false => vec![
                "From all loads of the extra rounds. The time of a collection contains its work next to the \
                 program."
                    .to_owned(),
            ],
        },
        rows,
    }
}

fn number_name(name: &str) -> &str {
    match name {
        "go_collections" => "collections of Go",
        "go_collection_us" => "time of collections of Go (us)",
        "go_allocated_bytes" => "bytes allocated by Go",
        "jvm_collections" => "collections of the JVM",
        "jvm_collection_us" => "time of collections of the JVM (us)",
        other => other,
    }
}
