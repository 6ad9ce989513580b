//! Rulings on gates from the figures of a row, each with its reason.

use model::{Gate, Metric, Outcomes, Relation, Subject, Unit};
use recording::{Kind, digits};

use super::judgement::{Grounds, Judgement, Ruling, Undecided};
use crate::confidence::CONFIDENCE;
use crate::summary::{MetricSummary, Summary, VariantSummary, Verdict, tail};

/// A row of a summary, or of a comparison of two recordings, as gates use it.
pub(crate) struct Judged<'a> {
    pub(crate) name: &'a str,
    pub(crate) role: Role,
    /// Reason why the row cannot be judged. `None` if it can.
    pub(crate) no_number: Option<Grounds>,
    pub(crate) metric: Box<dyn Fn(Metric) -> Option<&'a MetricSummary> + 'a>,
    /// Outcomes of the row's requests and of the baseline's requests. The baseline's are `None` if the row
    /// has no baseline. All are `None` without requests, and in a comparison of two recordings, because its
    /// figures contain the failures.
    pub(crate) outcomes: Option<(Outcomes, Option<Outcomes>)>,
}

/// Role of a row in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Other rows are compared with it. A gate applies to it only if it names it.
    Baseline,
    /// The row is compared with a baseline.
    Compared,
    /// The row is a single load, which has no other row.
    Load,
}

impl Summary {
    /// Judges gates on the summary. Every report format shows the results.
    #[must_use]
    pub fn judged(self, gates: &[Gate], undecided: Undecided) -> Self {
        let rulings = judge(gates, undecided, &self.rows_judged(true));
        // The user decides how many requests of a single load may fail, and within this limit the figures are
        // valid. A variant of a lab is compared, and one wrong response means that it does other work.
        let (of_failures, _): (Vec<_>, Vec<_>) = rulings
            .iter()
            .zip(gates)
            .partition(|(_, gate)| gate.metric == Metric::Failures);
        let is_allowed = self.kind == Kind::Load
            && !of_failures.is_empty()
            && of_failures.iter().all(|(ruling, _)| ruling.is_passed)
            // If the target stopped, its few failures do not represent a running target.
            && !self.variants.iter().any(|row| row.stopped_answering().is_some());
        let gates = if is_allowed {
            judge(gates, undecided, &self.rows_judged(false))
        } else {
            rulings
        };
        Self {
            gates,
            allows_failures: is_allowed,
            ..self
        }
    }

    /// True if a gate allows some requests of a single load to fail and the failures are within its limit.
    #[must_use]
    pub fn allows_failures(&self) -> bool {
        self.allows_failures
    }

    /// The rows. With `disbelieves`, an invalid row cannot be judged.
    fn rows_judged(&self, disbelieves: bool) -> Vec<Judged<'_>> {
        let outcomes = |row: &VariantSummary| {
            let baseline = self.variant(&row.baseline).filter(|_| !row.is_baseline);
            (row.outcomes, baseline.map(|baseline| baseline.outcomes))
        };
        let rows = self.variants.iter();
        rows.map(|row| Judged {
            name: &row.name,
            role: match (self.kind, row.is_baseline) {
                (Kind::Load, _) => Role::Load,
                (Kind::Lab, true) => Role::Baseline,
                (Kind::Lab, false) => Role::Compared,
            },
            no_number: match &row.verdict {
                Verdict::Invalid { .. } if !disbelieves => None,
                Verdict::Invalid { .. } | Verdict::Withheld { .. } => Some(Grounds::NoNumber {
                    variant: row.name.clone(),
                    verdict: row.verdict.clone(),
                }),
                _ => None,
            },
            metric: Box::new(|metric| row.metric(metric)),
            outcomes: (row.outcomes.total() > 0).then(|| outcomes(row)),
        })
        .collect()
    }
}

/// Judges every gate on each row that it applies to. A gate that applies to no row is undecided.
pub(crate) fn judge(gates: &[Gate], undecided: Undecided, rows: &[Judged<'_>]) -> Vec<Judgement> {
    let of = |gate: &Gate, variant: &str, (ruling, grounds): (Ruling, Grounds)| Judgement {
        gate: gate.text.clone(),
        variant: variant.to_owned(),
        ruling,
        is_passed: match ruling {
            Ruling::Holds => true,
            Ruling::Broken => false,
            Ruling::Undecided => undecided == Undecided::Passes,
        },
        grounds,
    };
    let mut judgements = Vec::new();
    for gate in gates {
        let about = rows.iter().filter(|row| match &gate.variant {
            Some(name) => name == row.name,
            None => row.role != Role::Baseline,
        });
        let found: Vec<_> = about
            .map(|row| of(gate, row.name, rule(gate, row)))
            .collect();
        if found.is_empty() {
            let name = gate.variant.as_deref().unwrap_or("*");
            let known: Vec<String> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
            let known = known.join(", ");
            judgements.push(of(
                gate,
                name,
                self::undecided(format!(
                    "there is no variant `{name}`. The variants are {known}"
                )),
            ));
        }
        judgements.extend(found);
    }
    judgements
}

fn undecided(reason: impl Into<String>) -> (Ruling, Grounds) {
    (Ruling::Undecided, Grounds::Figure(reason.into()))
}

fn rule(gate: &Gate, row: &Judged<'_>) -> (Ruling, Grounds) {
    if let (Metric::Failures, Some((own, baseline))) = (gate.metric, &row.outcomes) {
        return of_failures(gate, row, own, baseline.as_ref());
    }
    if let Some(grounds) = &row.no_number {
        return (Ruling::Undecided, grounds.clone());
    }
    let label = gate.metric.label();
    let Some(figure) = (row.metric)(gate.metric) else {
        return undecided(match gate.metric {
            Metric::Failures => format!("failures of `{}` are unknown", row.name),
            _ => format!("{label} of `{}` was not measured", row.name),
        });
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
            _ if row.role == Role::Load => "a single load has no baseline".to_owned(),
            _ if row.role == Role::Baseline => format!("`{}` is the baseline itself", row.name),
            Subject::Ratio => format!("there is no ratio of {label}, because a figure is 0"),
            _ => format!("there is no {label} to compare `{}` with", row.name),
        });
    };
    let (low, high) = match ends {
        Some(ends) => ends,
        // A count of a load, or its one longest latency, is exact.
        None if row.role == Role::Load && is_counted(gate.metric) => (value, value),
        None if row.role == Role::Load => return undecided(without_blocks(gate.metric, figure)),
        None => return undecided(without_interval(gate, figure, value)),
    };
    let shown = interval(gate, low, high) + &of_blocks(figure);
    match side(gate, low, high) {
        Some(true) => (Ruling::Holds, Grounds::Figure(shown)),
        Some(false) => (Ruling::Broken, Grounds::Figure(shown)),
        None => undecided(format!(
            "the limit lies within {shown}. {}",
            match row.role {
                Role::Load => "Load for longer",
                Role::Baseline | Role::Compared => "Measure more rounds",
            }
        )),
    }
}

/// True if an interval is within the limit of a gate, false if it is beyond. `None` if it contains the limit.
fn side(gate: &Gate, low: f64, high: f64) -> Option<bool> {
    let limit = gate.limit;
    // An end equal to the limit is within `<=` and beyond `<`. So each relation has its own pair.
    let (is_within, is_beyond) = match gate.relation {
        Relation::Below => (high < limit, low >= limit),
        Relation::AtMost => (high <= limit, low > limit),
        Relation::Above => (low > limit, high <= limit),
        Relation::AtLeast => (low >= limit, high < limit),
    };
    (is_within || is_beyond).then_some(is_within)
}

/// Failures are counted and have no interval, so the limit applies to the failures of this run. A variant
/// without a number is judged as well, because failures may be the cause.
fn of_failures(
    gate: &Gate,
    row: &Judged<'_>,
    own: &Outcomes,
    baseline: Option<&Outcomes>,
) -> (Ruling, Grounds) {
    let share = |outcomes: &Outcomes| outcomes.failed_share().unwrap_or(0.0);
    let text = |outcomes: &Outcomes| {
        format!(
            "{} ({} of {})",
            digits::percent(share(outcomes)),
            digits::count(outcomes.total() - outcomes.passed),
            digits::count(outcomes.total())
        )
    };
    let (value, shown) = match (gate.subject, baseline) {
        (Subject::Value, _) => (share(own), text(own)),
        (_, Some(baseline)) => (
            share(own) - share(baseline),
            format!("{}, baseline {}", text(own), text(baseline)),
        ),
        (_, None) => {
            return undecided(match row.role {
                Role::Load => "a single load has no baseline".to_owned(),
                _ => format!(
                    "there is no baseline to compare the failures of `{}` with",
                    row.name
                ),
            });
        }
    };
    match side(gate, value, value) {
        Some(true) => (Ruling::Holds, Grounds::Figure(shown)),
        _ => (Ruling::Broken, Grounds::Figure(shown)),
    }
}

/// True for figures of a load that are counted exactly and are not a sample.
fn is_counted(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Min | Metric::Max | Metric::Throughput | Metric::GeneratorCpu
    )
}

/// Remark on an interval from blocks:
/// ` (from 24 blocks of one load, without what another start would differ by)`
fn of_blocks(figure: &MetricSummary) -> String {
    figure.blocks.map_or_else(String::new, |blocks| {
        format!(" ({blocks} blocks of one load, another start may differ by more)")
    })
}

/// Reason why a figure of a load has no interval.
fn without_blocks(metric: Metric, figure: &MetricSummary) -> String {
    let unit = metric.unit();
    let shown = format!(
        "{} {} without an interval",
        digits::value(unit.shown(figure.value), None),
        unit.sign()
    );
    match tail::share_of(metric) {
        _ if !figure.has_blocks => {
            format!("{shown}: an older `weigh` recorded the load without blocks")
        }
        Some(share) => format!(
            "{shown}. An interval needs six blocks of {} answers each. Load for longer",
            digits::count(tail::needed(share))
        ),
        None => format!(
            "{shown}. An interval needs six blocks of at least 0.1 s and 20 answers each. Load for longer"
        ),
    }
}

/// The interval in words: `0.10 to 0.14 ms`, `1.2 % to 1.9 % of the baseline`,
/// `1.012 to 1.019 times the baseline`.
fn interval(gate: &Gate, low: f64, high: f64) -> String {
    if gate.is_share() {
        let (from, to) = digits::interval_ends((low - 1.0) * 100.0, (high - 1.0) * 100.0);
        return format!("{from} % to {to} % of the baseline");
    }
    if gate.subject == Subject::Ratio {
        let (from, to) = digits::interval_ends(low, high);
        return format!("{from} to {to} times the baseline");
    }
    let unit = unit_of(gate);
    if low.to_bits() == high.to_bits() {
        return format!("{} {}", digits::value(unit.shown(low), None), unit.sign());
    }
    let (from, to) = digits::interval_ends(unit.shown(low), unit.shown(high));
    format!("{from} to {to} {}", unit.sign())
}

/// The unit of the figures next to a gate: the unit of its limit, so that a reader can compare them.
fn unit_of(gate: &Gate) -> Unit {
    let limit = gate.text.trim_end_matches(['"', '\'']).trim_end();
    let is_in_us = limit.ends_with("us") || limit.ends_with("µs");
    match gate.metric.unit() {
        Unit::Milliseconds if is_in_us => Unit::Microseconds,
        own => own,
    }
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
        let unit = unit_of(gate);
        format!("{} {}", digits::value(unit.shown(value), None), unit.sign())
    };
    format!(
        "{shown} without an interval. An interval needs {needed} rounds, and {} were measured",
        figure.rounds.len()
    )
}
