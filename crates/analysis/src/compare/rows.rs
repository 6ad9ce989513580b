//! Selection of the variants to compare, and their figures by round.

use std::collections::BTreeMap;

use model::{Metric, Unit};
use recording::Recording;
use stats::{Overhead, paired, unpaired};

use super::comparability::{self, Comparability};
use super::side::{self, Side};
use super::{
    CompareError, Compared, Comparison, FailuresOf, NoNumber, NoVerdict, Operand, OperandSource,
    Origin, Pairing, Row,
};
use crate::confidence::CONFIDENCE;
use crate::pace;
use crate::summary::meaning::{self, Meaning, Reference};
use crate::summary::{MetricSummary, OverheadSummary, Summary, Verdict};

pub(super) fn compare(a: &Operand, b: &Operand, despite: bool) -> Result<Comparison, CompareError> {
    let is_same_run = match (&a.source, &b.source) {
        (OperandSource::Recording(one), OperandSource::Recording(other)) => {
            if one.method != other.method {
                return Err(CompareError::Methods {
                    a: a.label.clone(),
                    a_method: one.method,
                    b: b.label.clone(),
                    b_method: other.method,
                });
            }
            is_same_run(one, other)
        }
        _ => false,
    };
    let pairs = pairs(a, b)?;
    // These are copies of one recording, or one file named twice, compared with equal names. All differences
    // would be 0.
    let is_itself =
        (is_same_run || a.source == b.source) && pairs.iter().all(|(of_a, of_b)| of_a == of_b);
    if is_itself {
        return Err(itself(a));
    }
    let summaries = [a, b].map(|operand| match &operand.source {
        OperandSource::Recording(recording) => Some(Summary::of(recording)),
        OperandSource::Runs(_) => None,
    });
    let sides: Vec<(Side, Side)> = pairs
        .iter()
        .map(|(of_a, of_b)| {
            let side = |operand: &Operand, summary: usize, index: usize| {
                Side::of(operand, summaries[summary].as_ref(), index)
            };
            (side(a, 0, *of_a), side(b, 1, *of_b))
        })
        .collect();
    // Only rows with an interval count for Bonferroni's correction.
    let compared = sides
        .iter()
        .filter(|(of_a, of_b)| of_a.no_number.is_none() && of_b.no_number.is_none())
        .count();
    let confidence_each = stats::per_comparison_confidence(CONFIDENCE, compared);
    let found = comparability::of(a, b, is_same_run, &sides);
    let Comparability { obstacles, notes } = found.settled(despite);
    let frame = Frame {
        is_same_run,
        headline: headline(a, b, &summaries, &sides),
        confidence: confidence_each,
        is_withheld: !obstacles.is_empty(),
        has_files: summaries.iter().any(Option::is_none),
        // Only the second round length is used. It is read with paired rounds, and then both variants are of
        // one run.
        round_s: summaries[1].as_ref().and_then(|summary| summary.round_s),
    };
    let comparison = Comparison {
        format: "weighbridge-comparison",
        a: origin(a),
        b: origin(b),
        pairing: frame.pairing(&sides),
        headline: frame.headline,
        confidence: CONFIDENCE,
        confidence_each,
        obstacles,
        notes,
        rows: sides
            .iter()
            .map(|(of_a, of_b)| frame.row(of_a, of_b))
            .collect(),
        times: Unit::Microseconds,
        gates: Vec::new(),
    };
    Ok(comparison.in_one_unit())
}

fn itself(operand: &Operand) -> CompareError {
    let advice = match side::names(operand).as_slice() {
        [first, second, ..] => {
            format!("Name two of its results, as in `FILE#{first}` and `FILE#{second}`")
        }
        _ => "Give the result of another run (both files have equal contents)".to_owned(),
    };
    CompareError::Same {
        label: operand.label.clone(),
        advice,
    }
}

/// True if two files are copies of one recording.
fn is_same_run(one: &Recording, other: &Recording) -> bool {
    // Two machines may begin at the same moment, but hardly with the same seed, command and order.
    one.started_at == other.started_at
        && one.seed == other.seed
        && one.command == other.command
        && one.order == other.order
}

/// Pairs of a variant of `a` and a variant of `b`, by their indexes.
fn pairs(a: &Operand, b: &Operand) -> Result<Vec<(usize, usize)>, CompareError> {
    let (names_a, names_b) = (side::names(a), side::names(b));
    let chosen_a = chosen(a, &names_a)?;
    let chosen_b = chosen(b, &names_b)?;
    let named = |names: &[String], name: &str| names.iter().position(|known| known == name);
    let only = |names: &[String]| (names.len() == 1).then_some(0);
    let is_whole = |operand: &Operand| match &operand.source {
        OperandSource::Recording(_) => false,
        OperandSource::Runs(runs) => runs.len() == 1,
    };
    let (whole_a, whole_b) = (is_whole(a), is_whole(b));
    // All requests of two files are compared under the names of the files, and named requests by their names.
    if whole_a && whole_b && chosen_a.is_none() && chosen_b.is_none() {
        let parts = names_a
            .iter()
            .enumerate()
            .skip(1)
            .filter_map(|(of_a, name)| {
                let of_b = names_b.iter().skip(1).position(|known| known == name)?;
                Some((of_a, of_b + 1))
            });
        return Ok(std::iter::once((0, 0)).chain(parts).collect());
    }
    // A side that names no requests is compared with all requests of the other side.
    let sole = |names: &[String], is_whole: bool, other: Option<usize>| {
        only(names).or_else(|| (is_whole && other.is_none()).then_some(0))
    };
    // A single run needs no name. Otherwise, a name that was requested on one side is also used for the other
    // side.
    let of_a = chosen_a.or_else(|| sole(&names_a, whole_a, chosen_b));
    let of_b = chosen_b.or_else(|| sole(&names_b, whole_b, chosen_a));
    let found = match (of_a, of_b) {
        (Some(of_a), Some(of_b)) => vec![(of_a, of_b)],
        (Some(of_a), None) => named(&names_b, &names_a[of_a])
            .map(|of_b| (of_a, of_b))
            .into_iter()
            .collect(),
        (None, Some(of_b)) => named(&names_a, &names_b[of_b])
            .map(|of_a| (of_a, of_b))
            .into_iter()
            .collect(),
        (None, None) => names_a
            .iter()
            .enumerate()
            .filter_map(|(of_a, name)| Some((of_a, named(&names_b, name)?)))
            .collect(),
    };
    if found.is_empty() {
        return Err(CompareError::NothingInCommon {
            a: a.label.clone(),
            a_has: listed(&names_a),
            b: b.label.clone(),
            b_has: listed(&names_b),
        });
    }
    Ok(found)
}

/// The index of the requested variant, by name. In a file of several runs, a number from 1 also works.
fn chosen(operand: &Operand, names: &[String]) -> Result<Option<usize>, CompareError> {
    let Some(name) = &operand.variant else {
        return Ok(None);
    };
    let by_number = || {
        let number: usize = name.parse().ok()?;
        let is_there =
            matches!(operand.source, OperandSource::Runs(_)) && (1..=names.len()).contains(&number);
        is_there.then(|| number - 1)
    };
    names
        .iter()
        .position(|known| known == name)
        // A name has priority over a number, because a command may be called `2`.
        .or_else(by_number)
        .map(Some)
        .ok_or_else(|| CompareError::UnknownVariant {
            label: operand.label.clone(),
            name: name.clone(),
            known: listed(names),
        })
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn origin(operand: &Operand) -> Origin {
    let (text, notes) = match &operand.source {
        OperandSource::Recording(recording) => (comparability::described(recording), Vec::new()),
        OperandSource::Runs(runs) => {
            let first = runs.first().expect("a source has a run");
            // A run may lack a figure. The figure with the most values shows the number of runs.
            let count = first.figures.values().map(Vec::len).max().unwrap_or(0);
            let of_many = match (runs.len(), count) {
                (1, 1) => String::new(),
                (1, many) => format!(", {many} runs"),
                (several, _) => format!(", {several} commands or targets"),
            };
            let mut notes: Vec<String> = Vec::new();
            for note in runs.iter().flat_map(|run| &run.notes) {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
            (format!("{}{of_many}", first.shape), notes)
        }
    };
    Origin {
        label: operand.label.clone(),
        text,
        notes,
    }
}

/// The metric that decides the verdict: usually mean latency. Two closed loops are compared by their rate,
/// which is more informative. Two results that are themselves judged by typical latency are compared by it.
fn headline(
    a: &Operand,
    b: &Operand,
    summaries: &[Option<Summary>; 2],
    sides: &[(Side, Side)],
) -> Metric {
    let is_closed = |operand: &Operand| match &operand.source {
        OperandSource::Recording(recording) => !recording.load.model.is_open(),
        OperandSource::Runs(runs) => runs.iter().all(|run| run.is_closed_loop),
    };
    // The headline must exist in every row. Otherwise rows would be judged by different figures.
    let have = |metric: Metric| {
        sides.iter().all(|(of_a, of_b)| {
            of_a.figures.contains_key(&metric) && of_b.figures.contains_key(&metric)
        })
    };
    let is_typical = summaries.iter().all(|summary| {
        let headline = summary.as_ref().map(|summary| summary.headline);
        headline == Some(Metric::Typical)
    });
    if is_closed(a) && is_closed(b) && have(Metric::Requests) {
        Metric::Requests
    } else if is_typical && have(Metric::Typical) {
        Metric::Typical
    } else if have(Metric::Mean) {
        Metric::Mean
    } else {
        // Some files are tables of percentiles without a mean, such as the file of `ab -e`.
        Metric::P50
    }
}

/// Properties that all rows share.
struct Frame {
    is_same_run: bool,
    headline: Metric,
    confidence: f64,
    is_withheld: bool,
    /// True if a side is a file of another tool.
    has_files: bool,
    /// Length of a round in seconds, if both variants are of one run.
    round_s: Option<f64>,
}

impl Frame {
    fn pairing(&self, sides: &[(Side, Side)]) -> Pairing {
        let is_single = |side: &Side| side.figures.values().all(|values| values.len() <= 1);
        if sides
            .iter()
            .all(|(of_a, of_b)| is_single(of_a) || is_single(of_b))
        {
            Pairing::Single
        } else if self.is_same_run {
            Pairing::Paired
        } else {
            Pairing::Unpaired
        }
    }

    fn row(&self, of_a: &Side, of_b: &Side) -> Row {
        let no_number = [("A", of_a), ("B", of_b)]
            .into_iter()
            .find_map(|(side, of)| {
                of.no_number
                    .clone()
                    .map(|verdict| NoNumber { side, verdict })
            });
        let metrics = match no_number {
            None => self.metrics(of_a, of_b),
            Some(_) => BTreeMap::new(),
        };
        let overheads = match no_number {
            // Within one run the metrics are paired already, and both rows have the same baseline.
            None if !self.is_same_run => self.overheads(of_a, of_b),
            _ => BTreeMap::new(),
        };
        let found = self.verdict(no_number.as_ref(), metrics.get(&self.headline));
        Row {
            // Gates apply to the second result, so the row has its name.
            name: of_b.name.clone(),
            name_a: of_a.name.clone(),
            name_b: of_b.name.clone(),
            is_baseline: of_a.is_baseline && of_b.is_baseline,
            meaning: found
                .as_ref()
                .ok()
                .and_then(|_| self.meaning(of_a, &metrics)),
            times: Unit::Microseconds,
            no_verdict: found.as_ref().err().copied(),
            verdict: found.ok(),
            metrics,
            overheads,
            no_number,
            failures: self.has_files.then_some(FailuresOf {
                a: of_a.replies,
                b: of_b.replies,
            }),
        }
    }

    fn meaning(&self, of_a: &Side, metrics: &BTreeMap<Metric, Compared>) -> Option<Meaning> {
        let own = |(metric, found): (&Metric, &Compared)| (*metric, found.b.clone());
        Meaning::of(meaning::Compared {
            // The names of two different runs are often equal, or do not show which run is meant.
            against: match self.is_same_run {
                true => Reference::Variant(of_a.name.clone()),
                false => Reference::OtherResult,
            },
            headline: self.headline,
            metrics: &metrics.iter().map(own).collect(),
            of_baseline: metrics.get(&self.headline)?.a.value,
            few: None,
            round_s: self.round_s,
        })
    }

    fn rounds_needed(&self) -> usize {
        if self.is_same_run {
            paired::rounds_needed(self.confidence)
        } else {
            unpaired::rounds_needed(self.confidence)
        }
    }

    fn metrics(&self, of_a: &Side, of_b: &Side) -> BTreeMap<Metric, Compared> {
        let compare = |metric: Metric| {
            let (a, b) = (of_a.figures.get(&metric)?, of_b.figures.get(&metric)?);
            let mut found = if self.is_same_run {
                // Rounds and groups are paired. A round that only one side completed has no partner. The
                // other variants are on neither side and have the same names on both.
                let others = of_a
                    .others
                    .iter()
                    .filter(|other| other.name != of_a.name && other.name != of_b.name);
                let others = others.filter_map(|other| other.figures.get(&metric));
                let paired = pace::overhead(metric, a, b, others, self.confidence)?;
                let overhead = OverheadSummary::of_paired(&paired, self.rounds_needed());
                let mut found = Compared {
                    a: MetricSummary::of(paired.base)?,
                    b: MetricSummary::of(paired.own)?,
                };
                found.b.overhead = Some(overhead);
                found
            } else {
                let (base, own) = (of_a.rounds(metric)?, of_b.rounds(metric)?);
                // More rounds narrow an unpaired interval in a different way, so its width is not predicted.
                let overhead = unpaired::overhead(&base, &own, self.confidence).ok()?;
                compared(base, own, &overhead, self.rounds_needed())?
            };
            found.a.is_sparse = of_a.sparse.contains(&metric);
            found.b.is_sparse = of_b.sparse.contains(&metric);
            Some((metric, found))
        };
        Metric::ALL.into_iter().filter_map(compare).collect()
    }

    /// Changes of the overhead against each side's own baseline.
    fn overheads(&self, of_a: &Side, of_b: &Side) -> BTreeMap<Metric, Compared> {
        let compare = |metric: Metric| {
            let (then, now) = (of_a.overheads(metric), of_b.overheads(metric));
            let mut change = unpaired::overhead(&then, &now, self.confidence).ok()?;
            // A ratio of differences that may be 0 has no meaning.
            change.ratio = None;
            let mut found = compared(then, now, &change, self.rounds_needed())?;
            found.a.is_sparse = of_a.sparse.contains(&metric);
            found.b.is_sparse = of_b.sparse.contains(&metric);
            Some((metric, found))
        };
        let typical = Some(Metric::Typical).filter(|typical| *typical == self.headline);
        let metrics = [Metric::Mean, Metric::P50, Metric::P99, Metric::Cpu];
        let metrics = typical.into_iter().chain(metrics);
        metrics.filter_map(compare).collect()
    }

    fn verdict(
        &self,
        no_number: Option<&NoNumber>,
        figure: Option<&Compared>,
    ) -> Result<Verdict, NoVerdict> {
        if no_number.is_some() {
            return Err(NoVerdict::NoNumber);
        }
        let figure = figure.ok_or(NoVerdict::OneSided(self.headline))?;
        // This follows the lookup of the figure, because only an existing figure can be withheld.
        if self.is_withheld {
            return Err(NoVerdict::NotComparable);
        }
        // This follows the obstacles, which are more informative than the fact that there is a single run.
        if figure.a.rounds.len().min(figure.b.rounds.len()) == 1 {
            return Err(NoVerdict::SingleRun);
        }
        Ok(Verdict::of(self.headline, Some(&figure.b)))
    }
}

fn compared(a: Vec<f64>, b: Vec<f64>, overhead: &Overhead, needed: usize) -> Option<Compared> {
    let rounds = a.len().min(b.len());
    let a = MetricSummary::of(a)?;
    let mut b = MetricSummary::of(b)?;
    b.overhead = Some(OverheadSummary::of(overhead, rounds, needed));
    Some(Compared { a, b })
}
