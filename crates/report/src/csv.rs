//! The report as CSV with one line per figure, for spreadsheets and scripts (RFC 4180).

use analysis::summary::{
    ClaimName, EffectFigure, EffectSummary, MetricSummary, OverheadSummary, Summary, VariantSummary,
};
use model::Metric;
use recording::Recording;

use crate::tables;
use crate::terminal::one_line;

const HEADER: &str = "lab,variant,verdict,metric,value,low,high,rounds,difference,difference_low,\
                      difference_high,ratio,ratio_low,ratio_high,trusted";

/// Renders every figure as a line. A variant without a number is one line with its verdict. Figures of a
/// withheld verdict are not `trusted`.
pub fn csv(_: &Recording, summary: &Summary) -> String {
    let mut out = format!("{HEADER}\r\n");
    for row in &summary.variants {
        let head = [&summary.title, &row.name, &row.verdict_text]
            .map(|text| quoted(text))
            .join(",");
        if !row.has_number() && row.estimate.is_none() {
            // The number of empty fields is the number of the header's columns beyond the first three.
            out += &format!("{head}{}\r\n", ",".repeat(HEADER.matches(',').count() - 2));
        }
        for metric in Metric::ALL {
            let trusted = row.metric(metric);
            let estimated = row.estimate.as_ref().and_then(|it| it.metrics.get(&metric));
            for (figure, is_trusted) in [(trusted, true), (estimated, false)] {
                if let Some(figure) = figure {
                    let cells = figures(figure).join(",");
                    out += &format!("{head},{},{cells},{is_trusted}\r\n", metric.key());
                }
            }
        }
        for (key, value) in further(row) {
            // The empty fields between the value and the field `trusted`.
            let empty = ",".repeat(HEADER.matches(',').count() - 4);
            let is_trusted = row.has_number();
            out += &format!("{head},{key},{value}{empty}{is_trusted}\r\n");
        }
    }
    for (name, effect) in effects(summary) {
        for (metric, figure) in &effect.metrics {
            let head =
                [&summary.title, &name, &claim(figure.claim).to_owned()].map(|text| quoted(text));
            let cells = of_effect(figure).join(",");
            out += &format!("{},{},{cells},true\r\n", head.join(","), metric.key());
        }
    }
    // A gate has no figure. Its ruling is in the column of verdicts.
    for judgement in &summary.gates {
        let head = [
            &summary.title,
            &judgement.variant,
            &format!("{}: {}", judgement.ruling, judgement.why()),
            &format!("gate: {}", judgement.gate),
        ]
        .map(|text| quoted(text))
        .join(",");
        out += &format!("{head}{}\r\n", ",".repeat(HEADER.matches(',').count() - 3));
    }
    out
}

/// The effects of factors with the names of their lines: `effect: log × tls`.
fn effects(summary: &Summary) -> impl Iterator<Item = (String, &EffectSummary)> {
    summary.factors.iter().flat_map(|factors| {
        let effects = factors.effects.iter().map(|effect| {
            let name = tables::factors::name(effect, factors);
            (format!("effect: {name}"), effect)
        });
        let alone = factors.alone.iter();
        let alone = alone.map(|effect| {
            let name = tables::factors::alone_name(effect);
            (format!("effect: {name}"), effect)
        });
        effects.chain(alone)
    })
}

/// An effect is a difference without a value of its own.
fn of_effect(figure: &EffectFigure) -> [String; 10] {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let nothing = String::new;
    [
        nothing(),
        nothing(),
        nothing(),
        figure.rounds.to_string(),
        figure.value.to_string(),
        text(figure.low),
        text(figure.high),
        nothing(),
        nothing(),
        nothing(),
    ]
}

fn claim(claim: ClaimName) -> &'static str {
    match claim {
        ClaimName::Higher => "higher",
        ClaimName::Lower => "lower",
        ClaimName::NoDifferenceShown => "no difference shown",
        ClaimName::TooFewRounds => "not enough rounds",
    }
}

/// Figures that are not metrics, and have no comparison.
fn further(row: &VariantSummary) -> Vec<(String, String)> {
    let bytes = row.bodies.bytes_mean;
    let bytes = bytes.filter(|_| row.has_number() || row.estimate.is_some());
    let bytes = bytes.map(|bytes| ("body_bytes".to_owned(), bytes.to_string()));
    let of_status = row.by_status.iter().flat_map(|(status, seen)| {
        [
            (format!("responses_{status}"), seen.responses.to_string()),
            (
                format!("latency_us_p50_{status}"),
                seen.latency_us_p50.to_string(),
            ),
            (
                format!("latency_us_p99_{status}"),
                seen.latency_us_p99.to_string(),
            ),
        ]
    });
    bytes.into_iter().chain(of_status).collect()
}

fn figures(summary: &MetricSummary) -> [String; 10] {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let overhead = summary.overhead.as_ref();
    let of = |part: fn(&OverheadSummary) -> Option<f64>| text(overhead.and_then(part));
    [
        // The value is not rounded, and sparse figures are included, because scripts may choose for
        // themselves.
        summary.value.to_string(),
        text(summary.low),
        text(summary.high),
        summary.rounds.len().to_string(),
        of(|overhead| Some(overhead.difference)),
        of(|overhead| overhead.difference_low),
        of(|overhead| overhead.difference_high),
        of(|overhead| overhead.ratio),
        of(|overhead| overhead.ratio_low),
        of(|overhead| overhead.ratio_high),
    ]
}

/// A text as a field. Spreadsheets treat a field with some first characters as a formula, which may send
/// network requests. An apostrophe before it makes it text.
fn quoted(text: &str) -> String {
    let mut text = one_line(text);
    if text.starts_with([
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]) {
        text.insert(0, '\'');
    }
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b, with a comma", 800.0)
            .variant("c", 800.0)
            .build();
        recording.variants[2].proof = None;
        let out = csv(&recording, &Summary::of(&recording));
        let fields = |line: &str| line.replace("\"b, with a comma\"", "b").split(',').count();
        assert!(out.lines().all(|line| fields(line) == 15), "{out}");
        // The two variants with a number have all metrics and the bytes of a body.
        assert_eq!(out.lines().count(), 1 + 2 * (Metric::ALL.len() + 1) + 1);
        insta::assert_snapshot!(out.lines().last().unwrap(), @"graphql-server,c,invalid: no proof before the load shows that it does its work,,,,,,,,,,,,");
    }
}
