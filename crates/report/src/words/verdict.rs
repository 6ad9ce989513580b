//! Verdicts in words.

use analysis::summary::{Invalidity, Margin, Verdict};
use model::{InvalidKind, Metric, Unit};
use recording::digits;

/// The verdict in words, without a remark.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Baseline => "baseline".to_owned(),
        Verdict::Measured => "measured".to_owned(),
        Verdict::Slower { by } => by.map_or_else(|| "slower".to_owned(), slower),
        Verdict::Faster { by } => by.map_or_else(|| "faster".to_owned(), faster),
        Verdict::NoDifferenceShown => "no difference shown".to_owned(),
        Verdict::TooFewRounds { needed, measured } => {
            format!("not enough rounds ({needed} needed, {measured} measured)")
        }
        Verdict::NotCompared => "not compared: the baseline has no number".to_owned(),
        Verdict::Withheld { cause, .. } => format!("no verdict: {cause}"),
        Verdict::Invalid { kind, reason } => match kind {
            // The variant did not run, so there is no invalid work.
            Invalidity::Recorded(InvalidKind::ProgramMissing | InvalidKind::BuildFailed) => {
                format!("NOT RUN: {reason}")
            }
            _ => format!("invalid: {reason}"),
        },
    }
}

/// The verdict in few words, for a narrow column.
pub(crate) fn short(found: &Verdict) -> String {
    match found {
        Verdict::Invalid { kind, .. } => format!("invalid: {kind}"),
        Verdict::Withheld { check, .. } => format!("not trusted: {check}"),
        Verdict::NotCompared => "not compared".to_owned(),
        other => verdict(other),
    }
}

/// The difference of a worse variant: `slower by 0.10 to 0.14 ms`, `12.1 % to 13.9 % fewer requests/s`.
pub(crate) fn slower(by: Margin) -> String {
    margin(by, "slower", "fewer")
}

/// The difference of a better variant: `faster by 0.10 to 0.14 ms`, `12.1 % to 13.9 % more requests/s`.
pub(crate) fn faster(by: Margin) -> String {
    margin(by, "faster", "more")
}

fn margin(by: Margin, speed: &str, number: &str) -> String {
    match by {
        Margin::Share { from, to } => {
            let (from, to) = digits::interval_ends(from * 100.0, to * 100.0);
            format!("{from} % to {to} % {number} requests/s")
        }
        Margin::Amount { metric, from, to } => {
            // Differences that are visible side by side would have too many zeros in milliseconds.
            let unit = match metric.unit() {
                Unit::Milliseconds if metric == Metric::Typical && to < 100.0 => Unit::Microseconds,
                other => other,
            };
            let (from, to) = digits::interval_ends(unit.shown(from), unit.shown(to));
            format!("{speed} by {from} to {to} {}", unit.sign())
        }
    }
}
