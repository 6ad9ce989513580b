//! Table of every figure, with a row per figure. The figures are not rounded, because scripts read them.

use analysis::summary::{
    ClaimName, EffectFigure, EffectSummary, MetricSummary, OverheadSummary, Summary, VariantSummary,
};
use model::Metric;

use super::factors;
use crate::table::{Cell, Column, Table};
use crate::words;

/// The columns after the metric.
const FIGURES: [&str; 10] = [
    "value",
    "low",
    "high",
    "rounds",
    "difference",
    "difference_low",
    "difference_high",
    "ratio",
    "ratio_low",
    "ratio_high",
];

/// A subject of rows: its name and its verdict.
struct Subject<'a> {
    lab: &'a str,
    name: &'a str,
    verdict: &'a str,
}

impl Subject<'_> {
    /// A row with these figures. Missing figures at the end stay empty.
    fn row(&self, metric: &str, figures: &[String], is_trusted: Option<bool>) -> Vec<Cell> {
        let mut cells: Vec<Cell> = [self.lab, self.name, self.verdict, metric]
            .map(Cell::from)
            .into();
        cells.extend(figures.iter().map(Cell::from));
        cells.resize_with(4 + FIGURES.len(), Cell::default);
        cells.push(is_trusted.map_or_else(Cell::default, |it| it.to_string().into()));
        cells
    }
}

/// A row for each figure. A variant without a number is one row with its verdict. Figures of a withheld
/// verdict are not `trusted`.
pub(crate) fn table(summary: &Summary) -> Table {
    let lab = summary.title.as_str();
    let mut rows = Vec::new();
    for row in &summary.variants {
        rows.extend(of_variant(row, lab));
    }
    for (name, effect) in effects(summary) {
        for (metric, figure) in &effect.metrics {
            let subject = Subject {
                lab,
                name: &name,
                verdict: claim(figure.claim),
            };
            rows.push(subject.row(metric.key(), &of_effect(figure), Some(true)));
        }
    }
    // A gate has no figure. Its ruling is in the column of verdicts.
    for judgement in &summary.gates {
        let subject = Subject {
            lab,
            name: &judgement.variant,
            verdict: &format!("{}: {}", judgement.ruling, words::why(judgement)),
        };
        rows.push(subject.row(&format!("gate: {}", judgement.gate), &[], None));
    }
    let mut columns = Vec::from(["lab", "variant", "verdict", "metric"].map(Column::words));
    columns.extend(FIGURES.map(|name| Column::figure(name, "")));
    columns.push(Column::words("trusted"));
    Table::new("every figure", columns, rows)
}

fn of_variant(row: &VariantSummary, lab: &str) -> Vec<Vec<Cell>> {
    let subject = Subject {
        lab,
        name: &row.name,
        verdict: &words::verdict_text(row),
    };
    let mut rows = Vec::new();
    if !row.has_number() && row.estimate.is_none() {
        rows.push(subject.row("", &[], None));
    }
    for metric in Metric::ALL {
        let trusted = row.metric(metric);
        let estimated = row.estimate.as_ref().and_then(|it| it.metrics.get(&metric));
        for (figure, is_trusted) in [(trusted, true), (estimated, false)] {
            let figure = figure.into_iter();
            rows.extend(figure.map(|it| subject.row(metric.key(), &figures(it), Some(is_trusted))));
        }
    }
    for (key, value) in further(row) {
        rows.push(subject.row(&key, &[value], Some(row.has_number())));
    }
    rows
}

/// The effects of factors with the names of their lines: `effect: log × tls`.
fn effects(summary: &Summary) -> impl Iterator<Item = (String, &EffectSummary)> {
    summary.factors.iter().flat_map(|found| {
        let effects = found.effects.iter().map(|effect| {
            let name = factors::name(effect, found);
            (format!("effect: {name}"), effect)
        });
        let alone = found.alone.iter();
        let alone = alone.map(|effect| {
            let name = factors::alone_name(effect);
            (format!("effect: {name}"), effect)
        });
        effects.chain(alone)
    })
}

/// An effect is a difference without a value of its own.
fn of_effect(figure: &EffectFigure) -> [String; 7] {
    let nothing = String::new;
    [
        nothing(),
        nothing(),
        nothing(),
        figure.rounds.to_string(),
        figure.value.to_string(),
        text(figure.low),
        text(figure.high),
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
    let overhead = summary.overhead.as_ref();
    let of = |part: fn(&OverheadSummary) -> Option<f64>| text(overhead.and_then(part));
    [
        // Sparse figures are included, because scripts may choose for themselves.
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

fn text(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
