//! Sentences from the facts of a summary. [`analysis`] computes facts and codes, and this module words them.

mod causes;
mod checks;
mod factors;
mod few;
mod gates;
mod meaning;
mod outcomes;
mod verdict;

use analysis::compare::{NoNumber, NoVerdict, Row};
use analysis::summary::quantity;
use analysis::summary::{Remark, VariantSummary, Verdict};
use model::Metric;

pub(crate) use causes::{cause, remedy_for};
pub use checks::text as check_text;
pub(crate) use factors::{effects, missing};
pub(crate) use few::{mean, payers, words as few};
pub(crate) use gates::gate_reason;
pub use gates::why;
pub(crate) use outcomes::named_outcomes;
pub(crate) use verdict::{problem, reason, short, verdict, withheld_cause};

/// The verdict on a variant in words, with a remark that a reader must see.
pub fn verdict_text(row: &VariantSummary) -> String {
    let verdict = match (&row.verdict, &row.estimate) {
        (Verdict::NotCompared, Some(_)) => {
            "not compared: the verdict on the baseline is withheld".to_owned()
        }
        (found, _) => verdict(found),
    };
    remarked(verdict, remark(row))
}

/// Sentence that explains the verdict: the cost of a request, or the smallest difference that this run would
/// have shown. `None` if the variant was not compared.
pub fn in_words(row: &VariantSummary) -> Option<String> {
    Some(meaning::sentence(&row.name, row.meaning.as_ref()?))
}

/// Like [`in_words`], with the load.
pub(crate) fn in_words_at(row: &VariantSummary, at: &str) -> Option<String> {
    Some(meaning::sentence_at(&row.name, row.meaning.as_ref()?, at))
}

/// The verdict on a variant in few words, for a narrow column.
pub(crate) fn verdict_short(row: &VariantSummary) -> String {
    remarked(short(&row.verdict), remark(row))
}

/// Remark on a verdict. It is a part of [`verdict_text`].
pub(crate) fn remark(row: &VariantSummary) -> Option<String> {
    match row.remark? {
        Remark::BelowNoiseFloor => Some("below the noise floor".to_owned()),
        Remark::MeanBelowNoiseFloor => Some("its mean latency is below the noise floor".to_owned()),
        Remark::FewPay => {
            let few_pay = row.few_pay.as_ref();
            few_pay.map(|it| few::words(it, row.unit(Metric::Mean)))
        }
        Remark::Estimate => {
            let words = estimate(row)?;
            Some(format!("~{words}, not trusted"))
        }
    }
}

fn remarked(verdict: String, remark: Option<String>) -> String {
    match remark {
        Some(remark) => format!("{verdict}; {remark}"),
        None => verdict,
    }
}

/// The difference of an estimate that would decide the verdict: `+90 us (60 to 110)`. `None` for a baseline,
/// and with too few rounds for an interval.
pub(crate) fn estimate(row: &VariantSummary) -> Option<String> {
    let estimate = row.estimate.as_ref()?;
    let headline = estimate.headline;
    let figure = estimate.metrics.get(&headline)?;
    let overhead = figure.overhead.as_ref()?;
    match headline {
        // A rate is compared by its ratio, as in the verdict.
        Metric::Requests => {
            let change = figure.change()?;
            overhead.ratio_low.map(|_| format!("{change} requests/s"))
        }
        _ => {
            let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
            Some(quantity::signed(
                row.unit(headline),
                overhead.difference,
                low,
                high,
            ))
        }
    }
}

/// The verdict on a row of a comparison in words, or the reason why there is no verdict.
pub(crate) fn comparison_verdict(row: &Row) -> String {
    if let Some(found) = &row.verdict {
        return verdict(found);
    }
    match row.no_verdict {
        Some(NoVerdict::NotComparable) => "withheld: the two are not comparable".to_owned(),
        Some(NoVerdict::SingleRun) => "no verdict: a single run has no interval".to_owned(),
        Some(NoVerdict::OneSided(metric)) => {
            format!("no verdict: only one side has {}", metric.label())
        }
        Some(NoVerdict::NoNumber) | None => {
            let reason = row.no_number.as_ref().map(no_number);
            format!("no number {}", reason.unwrap_or_default())
        }
    }
}

/// The side without a number and its problem: `in A: it exited with 1`.
pub(crate) fn no_number(none: &NoNumber) -> String {
    format!("in {}: {}", none.side, problem(&none.verdict))
}

/// The meaning of a verdict on a row of a comparison.
pub(crate) fn comparison_in_words(row: &Row) -> Option<String> {
    Some(meaning::sentence(&row.name_b, row.meaning.as_ref()?))
}
