//! From a gate and the figures of a row to a ruling with its reason.

use super::judgement::{Judgement, Ruling, Undecided};
use super::{Gate, Relation, Subject};
use crate::confidence::CONFIDENCE;
use crate::digits;
use crate::metric::Metric;
use crate::summary::{MetricSummary, Summary, Verdict};

/// A row as gates see it: of a summary, or of a comparison of two.
pub(crate) struct Judged<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_baseline: bool,
    /// Why nothing can be judged on it, if so.
    pub(crate) no_number: Option<String>,
    pub(crate) metric: &'a dyn Fn(Metric) -> Option<&'a MetricSummary>,
}

impl Summary {
    /// Judges gates on it; every rendering shows what became of them.
    #[must_use]
    pub fn judged(self, gates: &[Gate], undecided: Undecided) -> Self {
        let metrics: Vec<_> = self
            .variants
            .iter()
            .map(|row| move |metric: Metric| row.metric(metric))
            .collect();
        let rows: Vec<Judged<'_>> = self
            .variants
            .iter()
            .zip(&metrics)
            .map(|(row, metric)| Judged {
                name: &row.name,
                is_baseline: row.is_baseline,
                no_number: match &row.verdict {
                    Verdict::Invalid { reason, .. } => {
                        Some(format!("`{}` has no number: {reason}", row.name))
                    }
                    _ => None,
                },
                metric,
            })
            .collect();
        let gates = judge(gates, undecided, &rows);
        Self { gates, ..self }
    }
}

/// Judges every gate on every row it is about. A gate that is about none is undecided.
pub(crate) fn judge(gates: &[Gate], undecided: Undecided, rows: &[Judged<'_>]) -> Vec<Judgement> {
    let of = |gate: &Gate, variant: &str, (ruling, reason): (Ruling, String)| Judgement {
        gate: gate.text.clone(),
        variant: variant.to_owned(),
        ruling,
        is_passed: match ruling {
            Ruling::Holds => true,
            Ruling::Broken => false,
            Ruling::Undecided => undecided == Undecided::Passes,
        },
        reason,
    };
    let mut judgements = Vec::new();
    for gate in gates {
        let about = rows.iter().filter(|row| match &gate.variant {
            Some(name) => name == row.name,
            None => !row.is_baseline,
        });
        let found: Vec<_> = about
            .map(|row| of(gate, row.name, rule(gate, row)))
            .collect();
        if found.is_empty() {
            let name = gate.variant.as_deref().unwrap_or("*");
            let known: Vec<String> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
            let reason = format!(
                "undecided: there is no variant `{name}` to judge, but {}",
                known.join(", ")
            );
            judgements.push(of(gate, name, (Ruling::Undecided, reason)));
        }
        judgements.extend(found);
    }
    judgements
}

fn rule(gate: &Gate, row: &Judged<'_>) -> (Ruling, String) {
    let undecided = |reason: String| (Ruling::Undecided, format!("undecided: {reason}"));
    if let Some(reason) = &row.no_number {
        return undecided(reason.clone());
    }
    let label = gate.metric.label();
    let Some(figure) = (row.metric)(gate.metric) else {
        return undecided(format!("{label} of `{}` was not measured", row.name));
    };
    let found = match gate.subject {
        Subject::Value => Some((figure.value, figure.low.zip(figure.high))),
        Subject::Overhead => figure.overhead.as_ref().map(|overhead| {
            let ends = overhead.difference_low.zip(overhead.difference_high);
            (overhead.difference, ends)
        }),
        Subject::Ratio => figure.overhead.as_ref().and_then(|overhead| {
            let ends = overhead.ratio_low.zip(overhead.ratio_high);
            Some((overhead.ratio?, ends))
        }),
    };
    let Some((value, ends)) = found else {
        return undecided(match gate.subject {
            _ if row.is_baseline => format!("`{}` is the baseline itself", row.name),
            Subject::Ratio => format!("there is no ratio of {label}, since a figure is 0"),
            _ => format!(
                "there was nothing to compare {label} of `{}` with",
                row.name
            ),
        });
    };
    let Some((low, high)) = ends else {
        return undecided(without_interval(gate, figure, value));
    };
    let limit = gate.limit;
    // An end on the limit is within `<=` and beyond `<`, so each relation has its own pair.
    let (is_within, is_beyond) = match gate.relation {
        Relation::Below => (high < limit, low >= limit),
        Relation::AtMost => (high <= limit, low > limit),
        Relation::Above => (low > limit, high <= limit),
        Relation::AtLeast => (low >= limit, high < limit),
    };
    let shown = interval(gate, low, high);
    match (is_within, is_beyond) {
        (true, _) => (Ruling::Holds, shown),
        (_, true) => (Ruling::Broken, shown),
        _ => undecided(format!(
            "the limit lies inside of {shown}; measure more rounds"
        )),
    }
}

/// `0.10 to 0.14 ms`, `1.2 % to 1.9 % of the baseline`, `1.012 to 1.019 times the baseline`.
fn interval(gate: &Gate, low: f64, high: f64) -> String {
    if gate.is_share() {
        let (from, to) = digits::interval_ends((low - 1.0) * 100.0, (high - 1.0) * 100.0);
        return format!("{from} % to {to} % of the baseline");
    }
    if gate.subject == Subject::Ratio {
        let (from, to) = digits::interval_ends(low, high);
        return format!("{from} to {to} times the baseline");
    }
    let unit = gate.metric.unit();
    let (from, to) = digits::interval_ends(unit.shown(low), unit.shown(high));
    format!("{from} to {to} {}", unit.sign())
}

fn without_interval(gate: &Gate, figure: &MetricSummary, value: f64) -> String {
    let needed = figure
        .overhead
        .as_ref()
        .map_or(stats::paired::rounds_needed(CONFIDENCE), |overhead| {
            overhead.rounds_needed
        });
    let shown = if gate.is_share() {
        format!(
            "{} % of the baseline",
            digits::value((value - 1.0) * 100.0, None)
        )
    } else if gate.subject == Subject::Ratio {
        format!("{} times the baseline", digits::value(value, None))
    } else {
        let unit = gate.metric.unit();
        format!("{} {}", digits::value(unit.shown(value), None), unit.sign())
    };
    format!(
        "{shown} without an interval, which needs {needed} rounds; {} measured",
        figure.rounds.len()
    )
}
