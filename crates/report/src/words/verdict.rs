//! Verdicts in words.

use analysis::summary::{Invalidity, Margin, Reason, Verdict};
use model::InvalidKind;
use recording::digits;

use super::causes::cause;
use super::checks::text as check_text;
use super::outcomes::named;

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
        Verdict::Withheld { check, figure, .. } => {
            format!("no verdict: {}", cause(*check, *figure))
        }
        Verdict::Invalid { kind, reason } => match (kind, self::reason(reason)) {
            // The variant did not run, so there is no invalid work.
            (
                Invalidity::Recorded(InvalidKind::ProgramMissing | InvalidKind::BuildFailed),
                reason,
            ) => format!("NOT RUN: {reason}"),
            (_, reason) => format!("invalid: {reason}"),
        },
    }
}

/// The problem of a verdict without a number: the reason if it is invalid, the cause if it is withheld. Empty
/// for another verdict.
pub(crate) fn problem(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Invalid { reason, .. } => self::reason(reason),
        other => withheld_cause(other).unwrap_or_default(),
    }
}

/// The reason why a variant has no number.
pub(crate) fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Recorded(text) => text.clone(),
        Reason::NotProven => "no proof before the load shows that it does its work".to_owned(),
        Reason::NotMeasured => "no round was measured to the end".to_owned(),
        Reason::Mismatched {
            mismatched,
            completed,
            kinds,
            first,
        } => {
            let first = first.as_ref().map(|reason| format!(", first: {reason}"));
            format!(
                "{} of {} answers mismatched ({}){}",
                digits::count(*mismatched),
                digits::count(*completed),
                named(kinds),
                first.unwrap_or_default()
            )
        }
        Reason::ChecksFailed(checks) => {
            let failed = checks
                .iter()
                .map(|check| format!("{}: {}", check.name, check_text(check)));
            failed.collect::<Vec<_>>().join("; ")
        }
    }
}

/// The cause of a withheld verdict. It also names failed checks that another check explains:
/// `other programs used 74 % of the cores (failed check: lateness)`. `None` for another verdict.
pub(crate) fn withheld_cause(verdict: &Verdict) -> Option<String> {
    let Verdict::Withheld {
        check,
        figure,
        failed,
        ..
    } = verdict
    else {
        return None;
    };
    let cause = cause(*check, *figure);
    let others = failed.iter().filter(|name| *name != check);
    let others: Vec<String> = others.map(ToString::to_string).collect();
    Some(match others.as_slice() {
        [] => cause,
        [one] => format!("{cause} (failed check: {one})"),
        several => format!("{cause} (failed checks: {})", several.join(", ")),
    })
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
        Margin::Amount { unit, from, to, .. } => {
            let (from, to) = digits::interval_ends(unit.shown(from), unit.shown(to));
            format!("{speed} by {from} to {to} {}", unit.sign())
        }
    }
}
