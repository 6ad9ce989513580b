//! Tables of the HTML page.

use analysis::gate::Judgement;
use analysis::summary::{Check, CheckState, Summary, VariantSummary};
use model::{Metric, Unit};
use recording::{Profile, Recording};

use super::escape::escape;
use super::forest::{class, verdict_class};
use super::markup::{Grid, figure, folded, list, name, prose, table, words};
use crate::cell;
use crate::explain;
use crate::gates;
use crate::tables;
use crate::text::{counts, latencies};

const COLUMNS: [Metric; 10] = [
    Metric::Requests,
    Metric::Min,
    Metric::Mean,
    Metric::P50,
    Metric::P90,
    Metric::P95,
    Metric::P99,
    Metric::Max,
    Metric::Cpu,
    Metric::Memory,
];

pub(super) fn results(summary: &Summary) -> String {
    let mut columns = COLUMNS.to_vec();
    if summary.headline == Metric::Typical {
        // If the plan gives the rate, its column shows the figure that decides.
        columns[0] = Metric::Typical;
    }
    if summary.few_pay() {
        columns.insert(1, Metric::SlowQuarter);
    }
    let mut header = vec!["Variant".to_owned()];
    header.extend(columns.iter().map(|metric| match metric.unit() {
        Unit::Milliseconds => format!("{}\nms", metric.label()),
        Unit::Microseconds => "CPU\nus/request".to_owned(),
        Unit::Mebibytes => "memory\nMiB".to_owned(),
        _ => metric.label().to_owned(),
    }));
    if summary.kind == recording::Kind::Lab {
        header.push("Verdict".to_owned());
    }
    let row = |row: &VariantSummary| {
        let figures = columns.iter().map(|metric| result(row, *metric));
        let figures: String = figures.collect();
        let verdict = match summary.kind {
            recording::Kind::Lab => format!(
                "<td class=\"words verdict {}\">{}</td>",
                verdict_class(&row.verdict),
                prose(&row.verdict_text)
            ),
            recording::Kind::Load => String::new(),
        };
        let class = if row.verdict.is_invalid() {
            " class=\"invalid\""
        } else {
            ""
        };
        format!("<tr{class}>{}{figures}{verdict}</tr>\n", name(&row.title()))
    };
    let caption = if summary.comparisons > 0 {
        format!(
            // The caption is already markup, and backticks would be shown as text.
            "Below each figure, compared with <b>{}</b>: {}. Each estimate is computed from the \
             rounds, so a difference need not equal the difference of two figures.",
            escape(&summary.against().replace('`', "")),
            explain::difference(summary)
        )
    } else {
        String::new()
    };
    let table = Grid {
        caption: &caption,
        header,
        words: &[0, COLUMNS.len() + 1],
        rows: summary.variants.iter().map(row).collect(),
    };
    table.draw("results")
}

fn result(row: &VariantSummary, metric: Metric) -> String {
    // Rates are compared by ratio, as in the verdict of a closed loop.
    let change = match metric {
        Metric::Requests => cell::change(row, metric),
        _ => cell::difference(row, metric),
    };
    let small = change.map(|change| {
        // A claim applies to rounds, and a sparse figure is not from rounds.
        let trusted = row.metric(metric).filter(|it| !it.is_sparse);
        let claimed = trusted.and_then(|it| it.overhead.as_ref());
        let claim = claimed.map(|overhead| overhead.claim);
        let class = claim.map_or("same", |claim| class(metric, claim));
        format!("<small class=\"{class}\">{change}</small>")
    });
    let value = cell::value(row, metric);
    if value == cell::NOTHING {
        return figure(cell::NOTHING);
    }
    format!(
        "<td data-metric=\"{}\" title=\"{}\"><span>{value}</span>{}</td>",
        metric.key(),
        match row.metric(metric) {
            None => "an estimate that is not trusted".to_owned(),
            Some(_) if cell::is_pooled(row, metric) =>
                "over the requests of all rounds together".to_owned(),
            Some(summary) => cell::with_error(summary, metric.unit()),
        },
        small.unwrap_or_default()
    )
}

/// The meaning of each verdict. Empty if there is no comparison.
pub(super) fn in_words(summary: &Summary) -> String {
    let sentences = explain::in_words(summary);
    // A single sentence is already the result at the top.
    if sentences.len() < 2 {
        return String::new();
    }
    list(&sentences)
}

pub(super) fn gates(summary: &Summary) -> String {
    let row = |judgement: &Judgement| {
        let [gate, variant, ruling, reason] = gates::cells(judgement);
        let class = if judgement.is_passed {
            "same"
        } else {
            "refused"
        };
        format!(
            "<tr><th scope=\"row\" class=\"words\"><code>{}</code></th>{}\
             <td class=\"words {class}\"><b>{}</b></td>{}</tr>\n",
            escape(&gate),
            words(&variant),
            // The page makes the words bold by markup. Markdown uses asterisks.
            escape(ruling.trim_matches('*')),
            words(&reason)
        )
    };
    let table = Grid {
        caption: "",
        header: gates::HEADINGS.map(str::to_owned).to_vec(),
        words: &[0, 1, 2, 3],
        rows: summary.gates.iter().map(row).collect(),
    };
    table.draw("gates")
}

pub(super) fn distributions(summary: &Summary) -> String {
    let header = [
        "Variant", "min", "mean", "stdev", "50 %", "75 %", "90 %", "95 %", "99 %", "99.9 %", "max",
    ];
    let row = |row: &VariantSummary| {
        let distribution = row.distribution.as_ref()?;
        let cells = latencies(distribution).map(|us| figure(&cell::single(us, Unit::Milliseconds)));
        Some(format!("<tr>{}{}</tr>\n", name(&row.name), cells.concat()))
    };
    let table = Grid {
        caption: "In ms, over the requests of all rounds together. The table Results is computed by \
                  round, so its figures differ. Slow rounds weigh more here.",
        header: header.map(str::to_owned).to_vec(),
        words: &[0],
        rows: summary.variants.iter().filter_map(row).collect(),
    };
    table.draw("latency distribution")
}

pub(super) fn traffic(summary: &Summary) -> String {
    let windows = explain::windows(summary).unwrap_or_default();
    let header = [
        "Variant",
        "requests/s",
        &format!("stdev\n{windows}"),
        &format!("max\n{windows}"),
        "MB/s",
        "generator CPU\nus/request",
        "Outcomes and statuses",
    ];
    let row = |row: &VariantSummary| {
        let rates = row.rate_windows.as_ref();
        let stdev = rates.and_then(|rates| rates.requests_per_s_stdev);
        let cells = [
            cell::value(row, Metric::Requests),
            cell::single(stdev, Unit::PerSecond),
            cell::single(rates.map(|rates| rates.requests_per_s_max), Unit::PerSecond),
            cell::value(row, Metric::Throughput),
            cell::value(row, Metric::GeneratorCpu),
        ];
        let cells: String = cells.iter().map(|cell| figure(cell)).collect();
        format!(
            "<tr>{}{cells}{}</tr>\n",
            name(&row.name),
            words(&counts(row))
        )
    };
    let table = Grid {
        caption: "",
        header: header.map(str::to_owned).to_vec(),
        words: &[0, 6],
        rows: summary.variants.iter().map(row).collect(),
    };
    table.draw("rates, throughput and outcomes")
}

/// Links to the drawings of a profile, which are in the page's folder.
fn drawings(profile: &Profile) -> String {
    let link = |file: &String| {
        let label = match file.ends_with("-difference.svg") {
            true => "difference from the baseline",
            false => "flamegraph",
        };
        format!(" <a href=\"./{}\">{label}</a>", escape(file))
    };
    let drawings = profile.files.iter().filter(|file| file.ends_with(".svg"));
    drawings.map(link).collect()
}

/// The functions with the most processor time, for each system. Empty without profiles.
pub(super) fn hottest(recording: &Recording) -> String {
    let of_profile = |profile: &Profile| {
        let title = escape(&tables::hottest::title(profile)) + &drawings(profile);
        match table(&tables::hottest::table(profile), &title).as_str() {
            "" => format!("<p>{title}</p>\n"),
            drawn => drawn.to_owned(),
        }
    };
    recording.profiles.iter().map(of_profile).collect()
}

/// The checks that are not in order, then all states, then all figures.
pub(super) fn checks(summary: &Summary) -> String {
    // A recording without checks, such as an imported one, must not claim that all is in order.
    if summary.variants.iter().all(|row| row.checks.is_empty()) {
        return String::new();
    }
    let troubles = explain::troubles(summary);
    let mut out = if troubles.is_empty() {
        "<p>All in order.</p>\n".to_owned()
    } else {
        list(&troubles)
    };
    out += &states(summary);
    let line = |row: &VariantSummary, check: &Check| {
        format!(
            "<tr>{}{}{}{}</tr>\n",
            name(&row.name),
            words(&check.name.to_string()),
            state(check),
            words(&check.text)
        )
    };
    let lines = |row: &VariantSummary| {
        row.checks
            .iter()
            .map(|check| line(row, check))
            .collect::<Vec<_>>()
    };
    let table = Grid {
        caption: "",
        header: ["Variant", "Check", "State", "Figure"]
            .map(str::to_owned)
            .to_vec(),
        words: &[0, 1, 2, 3],
        rows: summary.variants.iter().flat_map(lines).collect(),
    };
    out + &folded("The figure behind every check", &table.draw("every check"))
}

/// A row per variant, a column per check.
// Columns follow the first appearance of each check, because every row has this order.
fn states(summary: &Summary) -> String {
    let mut names: Vec<String> = Vec::new();
    for check in summary.variants.iter().flat_map(|row| &row.checks) {
        let name = check.name.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let row = |row: &VariantSummary| {
        let cell = |wanted: &String| {
            let check = row
                .checks
                .iter()
                .find(|check| check.name.to_string() == *wanted);
            check.map_or_else(|| words(""), state)
        };
        let cells: String = names.iter().map(cell).collect();
        format!("<tr>{}{cells}</tr>\n", name(&row.name))
    };
    let mut header = vec!["Variant".to_owned()];
    header.extend(names.iter().cloned());
    let table = Grid {
        caption: "",
        words: &(0..header.len()).collect::<Vec<_>>(),
        header,
        rows: summary.variants.iter().map(row).collect(),
    };
    table.draw("states of the checks")
}

fn state(check: &Check) -> String {
    let class = match check.state {
        CheckState::Ok => "ok",
        CheckState::Weak => "weak",
        CheckState::Failed => "failed",
    };
    format!(
        "<td class=\"words\" title=\"{}\"><span class=\"state {class}\">{}</span></td>",
        escape(&check.text),
        check.state
    )
}
