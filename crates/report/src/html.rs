//! The report as one page: no script, no external request, light and dark.

mod forest;

use crate::cell;
use crate::describe;
use crate::digits;
use crate::metric::{Metric, Unit};
use crate::recording::Recording;
use crate::summary::{
    Check, CheckState, MetricSummary, Summary, SystemSummary, VariantSummary, Verdict,
};
use crate::text::{counts, latencies};

const STYLE: &str = include_str!("html/style.css");
/// Nothing may be loaded from anywhere, whatever a name in the recording says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Renders a recording as one HTML file.
pub fn html(recording: &Recording, summary: &Summary) -> String {
    let title = escape(&summary.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}: what it costs</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    out += &heading(recording, summary);
    let mut add = |title: &str, body: &str| {
        if !body.is_empty() {
            out += &format!("<section>\n<h2>{title}</h2>\n{body}</section>\n");
        }
    };
    add("Results", &results(summary));
    add("Overhead", &forests(summary));
    add(
        "Latency over the requests of all rounds",
        &distributions(summary),
    );
    add("Rates, throughput and outcomes", &traffic(summary));
    add("Cost by system", &systems(summary));
    add("Checks", &checks(summary));
    add("How to read it", &list(&describe::statistics(summary)));
    add("How it was measured", &measured(recording));
    add("How to reproduce it", &reproduced(recording));
    out + "</body>\n</html>\n"
}

fn heading(recording: &Recording, summary: &Summary) -> String {
    let mut out = format!("<header>\n<h1>{}</h1>\n", escape(&summary.title));
    if let Some(question) = &summary.question {
        out += &format!("<p class=\"question\">{}</p>\n", escape(question));
    }
    if let Some(interruption) = describe::interruption(summary) {
        out += &format!(
            "<p class=\"alarm\" role=\"alert\">{}</p>\n",
            escape(&interruption)
        );
    }
    out += &format!(
        "<ul class=\"facts\"><li>{}</li><li>{}</li></ul>\n</header>\n",
        escape(&describe::load(recording)),
        escape(&describe::rounds(summary))
    );
    out
}

fn results(summary: &Summary) -> String {
    let columns = [
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
    let mut header = vec!["Variant".to_owned(), "Verdict".to_owned()];
    header.extend(columns.map(|metric| match metric.unit() {
        Unit::Milliseconds => format!("{} ms", metric.label()),
        _ => metric.label().to_owned(),
    }));
    let row = |row: &VariantSummary| {
        let verdict = format!(
            "<td class=\"words verdict {}\">{}</td>",
            verdict_class(&row.verdict),
            prose(&row.verdict_text)
        );
        let figures = columns.map(|metric| figure(row, metric)).concat();
        let class = if row.verdict.is_invalid() {
            " class=\"invalid\""
        } else {
            ""
        };
        format!("<tr{class}>{}{verdict}{figures}</tr>\n", name(row))
    };
    let rows: Vec<String> = summary.variants.iter().map(row).collect();
    let caption = if summary.comparisons > 0 {
        format!(
            "Below each figure, against {}: {}.",
            escape(&summary.against().replace('`', "")),
            describe::difference(summary)
        )
    } else {
        String::new()
    };
    table(&caption, &header, &[0, 1], &rows)
}

fn name(row: &VariantSummary) -> String {
    format!(
        "<th scope=\"row\" class=\"words\">{}</th>",
        escape(&row.name)
    )
}

fn figure(row: &VariantSummary, metric: Metric) -> String {
    let Some(summary) = row.metric(metric) else {
        return format!("<td>{}</td>", cell::NOTHING);
    };
    let change = match metric {
        Metric::Requests => cell::change(row, metric),
        _ => cell::difference(row, metric),
    };
    let small = change.map(|change| {
        let claim = summary.overhead.as_ref().map(|overhead| overhead.claim);
        let class = claim.map_or("same", |claim| forest::class(metric, claim));
        format!("<small class=\"{class}\">{change}</small>")
    });
    format!(
        "<td title=\"{}\">{}{}</td>",
        cell::with_error(summary, metric.unit()),
        cell::of(summary, metric.unit()),
        small.unwrap_or_default()
    )
}

fn verdict_class(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Slower { .. } | Verdict::Invalid { .. } => "worse",
        Verdict::Faster { .. } => "better",
        _ => "same",
    }
}

fn forests(summary: &Summary) -> String {
    let note = format!(
        "The dot is the estimate, the line its {} interval; a line that crosses zero shows no \
         difference.",
        describe::percent(summary.confidence_each)
    );
    let mut metrics = vec![summary.headline, Metric::P99, Metric::Cpu];
    metrics.dedup();
    let plots: String = metrics
        .into_iter()
        .filter_map(|metric| forest::forest(summary, metric))
        .map(|plot| scroll("overhead", &plot))
        .collect();
    if plots.is_empty() {
        plots
    } else {
        format!("<p class=\"note\">{note}</p>\n{plots}")
    }
}

fn distributions(summary: &Summary) -> String {
    let header = [
        "Variant", "min ms", "mean ms", "stdev ms", "50 %", "75 %", "90 %", "95 %", "99 %",
        "99.9 %", "max ms",
    ];
    let row = |row: &VariantSummary| {
        let distribution = row.distribution.as_ref()?;
        let cells = latencies(distribution)
            .map(|us| format!("<td>{}</td>", cell::single(Some(us), Unit::Milliseconds)));
        Some(format!("<tr>{}{}</tr>\n", name(row), cells.concat()))
    };
    let rows: Vec<String> = summary.variants.iter().filter_map(row).collect();
    table("", &header.map(str::to_owned), &[0], &rows)
}

fn traffic(summary: &Summary) -> String {
    let windows = describe::windows(summary).unwrap_or_default();
    let header = [
        "Variant".to_owned(),
        "requests/s avg".to_owned(),
        format!("stdev {windows}"),
        format!("max {windows}"),
        "MB/s".to_owned(),
        "generator CPU us/request".to_owned(),
        "Outcomes and statuses".to_owned(),
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
        let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
        let outcomes = escape(&counts(row));
        format!(
            "<tr>{}{cells}<td class=\"words\">{outcomes}</td></tr>\n",
            name(row)
        )
    };
    let rows: Vec<String> = summary.variants.iter().map(row).collect();
    table("", &header, &[0, 6], &rows)
}

fn systems(summary: &Summary) -> String {
    let header = [
        "Variant",
        "System",
        "CPU us/request",
        "peak memory MiB",
        "throttled",
        "Version",
        "Source",
    ];
    let figure = |summary: Option<&MetricSummary>, unit| {
        summary.map_or_else(
            || cell::NOTHING.to_owned(),
            |summary| cell::with_error(summary, unit),
        )
    };
    let line = |row: &VariantSummary, system: &SystemSummary| {
        let or_nothing = |text: &Option<String>| escape(text.as_deref().unwrap_or(cell::NOTHING));
        format!(
            "<tr>{}<td class=\"words\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"words\">{}</td><td class=\"words\">{}</td></tr>\n",
            name(row),
            escape(&system.name),
            figure(system.cpu_us_per_request.as_ref(), Unit::Microseconds),
            figure(system.memory_peak_bytes.as_ref(), Unit::Mebibytes),
            system
                .throttled_periods_share
                .map_or_else(|| "no limit".to_owned(), digits::percent),
            or_nothing(&system.version),
            or_nothing(&system.source),
        )
    };
    let lines = |row: &VariantSummary| {
        row.systems
            .iter()
            .map(|system| line(row, system))
            .collect::<Vec<_>>()
    };
    let rows: Vec<String> = summary.variants.iter().flat_map(lines).collect();
    table("", &header.map(str::to_owned), &[0, 1, 5, 6], &rows)
}

fn checks(summary: &Summary) -> String {
    let troubles = describe::troubles(summary);
    let mut out = if troubles.is_empty() {
        "<p>All in order.</p>\n".to_owned()
    } else {
        list(&troubles)
    };
    let line = |row: &VariantSummary, check: &Check| {
        let class = if check.state == CheckState::Ok {
            "same"
        } else {
            "worse"
        };
        format!(
            "<tr>{}<td class=\"words\">{}</td><td class=\"words {class}\">{}</td>\
             <td class=\"words\">{}</td></tr>\n",
            name(row),
            escape(&check.name.to_string()),
            check.state,
            prose(&check.text)
        )
    };
    let lines = |row: &VariantSummary| {
        row.checks
            .iter()
            .map(|check| line(row, check))
            .collect::<Vec<_>>()
    };
    let rows: Vec<String> = summary.variants.iter().flat_map(lines).collect();
    let header = ["Variant", "Check", "State", "Figure"].map(str::to_owned);
    let table = table("", &header, &[0, 1, 2, 3], &rows);
    out += &format!("<details><summary>Every check</summary>\n{table}</details>\n");
    out
}

fn measured(recording: &Recording) -> String {
    let mut out = "<dl>\n".to_owned();
    let requests = describe::requests(&recording.load);
    let facts = requests
        .into_iter()
        .map(|line| ("request", line))
        .chain(
            describe::systems(recording)
                .into_iter()
                .map(|line| ("system", line)),
        )
        .chain(describe::environment(recording));
    for (label, value) in facts {
        out += &format!("<dt>{}</dt><dd>{}</dd>\n", escape(label), escape(&value));
    }
    out + "</dl>\n"
}

fn reproduced(recording: &Recording) -> String {
    let command = escape(&describe::command(recording));
    let mut out = format!("<pre><code>{command}</code></pre>\n");
    for file in recording.lab.iter().flat_map(|lab| &lab.files) {
        let text = file
            .text
            .as_deref()
            .unwrap_or("(not kept: not text, or too long)");
        out += &format!(
            "<details><summary><code>{}</code> (SHA-256 <code>{}</code>)</summary>\n\
             <pre><code>{}</code></pre></details>\n",
            escape(&file.path),
            escape(&file.sha256),
            escape(text)
        );
    }
    out
}

/// A table with its header; columns named in `words` are aligned left. Nothing without rows.
fn table(caption: &str, header: &[String], words: &[usize], rows: &[String]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = |(index, label): (usize, &String)| {
        let class = if words.contains(&index) {
            " class=\"words\""
        } else {
            ""
        };
        format!("<th scope=\"col\"{class}>{}</th>", escape(label))
    };
    let head: String = header.iter().enumerate().map(head).collect();
    let caption = if caption.is_empty() {
        String::new()
    } else {
        format!("<caption>{caption}</caption>")
    };
    let rows = rows.concat();
    let label = if caption.is_empty() {
        "table"
    } else {
        "results"
    };
    scroll(
        label,
        &format!(
            "<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
        ),
    )
}

/// Wide content scrolls by itself, reachable by keyboard, and the page does not.
fn scroll(label: &str, content: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n{content}</div>\n"
    )
}

fn list(lines: &[String]) -> String {
    let items: String = lines
        .iter()
        .map(|line| format!("<li>{}</li>\n", prose(line)))
        .collect();
    format!("<ul>\n{items}</ul>\n")
}

/// A sentence of ours, in which backticks mark words of the user.
fn prose(sentence: &str) -> String {
    let parts: Vec<&str> = sentence.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escape(sentence);
    }
    let mark = |(index, part): (usize, &&str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(mark).collect()
}

/// Text of the user as text, in elements and in attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
