//! The verdict, one sentence about a variant, and the rules for it.

use std::fmt;

use model::{InvalidKind, Metric, Outcomes, Unit};
use recording::{Kind, RoundRecord, VariantRecord, VariantStatus, digits};
use schemars::JsonSchema;
use serde::Serialize;

use super::check::{Check, CheckName, CheckState, named, root};
use super::estimate::{ClaimName, MetricSummary, OverheadSummary};

/// The conclusion about a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Verdict {
    /// The variant is the baseline.
    Baseline,
    /// The variant was measured without a comparison: a single load.
    Measured,
    /// The variant is worse than the baseline in the headline metric.
    Slower {
        /// The difference from interval end to interval end, as a sentence: `slower by 0.10 to 0.14 ms`.
        sentence: String,
    },
    /// The variant is better than the baseline in the headline metric.
    Faster {
        /// The difference from interval end to interval end, as a sentence: `12 % to 14 % more requests/s`.
        sentence: String,
    },
    /// The interval contains zero. This does not prove that there is no difference.
    NoDifferenceShown,
    /// There are too few rounds for any claim.
    TooFewRounds {
        /// Minimum number of rounds that could support a claim.
        needed: usize,
        /// Number of rounds that measured both sides.
        measured: usize,
    },
    /// The variant was measured, but the baseline has no number.
    NotCompared,
    /// The variant did its work, but a check of the measurement failed. There is an estimate, which is not
    /// trusted.
    Withheld {
        /// The check that explains the failure best, by its name in `checks`.
        check: CheckName,
        /// The cause in few words: `other programs used 74 % of the cores`.
        cause: String,
        /// The remedy, as an instruction.
        remedy: String,
        /// All checks that failed.
        failed: Vec<CheckName>,
    },
    /// The variant has no number.
    Invalid {
        /// The kind of the problem.
        kind: Invalidity,
        /// The problem in words.
        reason: String,
    },
}

/// The kind of problem that kept a variant from having a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Invalidity {
    /// A check of the measurement failed.
    CheckFailed,
    /// The run recorded a problem of the variant.
    #[serde(untagged)]
    Recorded(InvalidKind),
}

impl Verdict {
    pub(super) fn invalid(kind: impl Into<Invalidity>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            kind: kind.into(),
            reason: reason.into(),
        }
    }

    /// The verdict on a variant that was compared.
    pub(crate) fn of(headline: Metric, figure: Option<&MetricSummary>) -> Self {
        let Some(overhead) = figure.and_then(|figure| figure.overhead.as_ref()) else {
            return Self::NotCompared;
        };
        let is_lower = match overhead.claim {
            ClaimName::NoDifferenceShown => return Self::NoDifferenceShown,
            ClaimName::TooFewRounds => {
                return Self::TooFewRounds {
                    needed: overhead.rounds_needed,
                    measured: overhead.rounds,
                };
            }
            ClaimName::Lower => true,
            ClaimName::Higher => false,
        };
        let is_faster = is_lower == headline.is_better_low();
        let sentence = share_of_requests(headline, overhead)
            .or_else(|| amount(headline, overhead, is_faster))
            .unwrap_or_else(|| if is_faster { "faster" } else { "slower" }.to_owned());
        if is_faster {
            Self::Faster { sentence }
        } else {
            Self::Slower { sentence }
        }
    }

    /// The verdict in few words, for a narrow column.
    pub fn short(&self) -> String {
        match self {
            Self::Invalid { kind, .. } => format!("invalid: {kind}"),
            Self::Withheld { check, .. } => format!("not trusted: {check}"),
            Self::NotCompared => "not compared".to_owned(),
            other => other.to_string(),
        }
    }

    /// True if the variant has no trusted number.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid { .. } | Self::Withheld { .. })
    }

    /// Cause of a withheld verdict on a variant that did its work. `None` if no check failed.
    pub(super) fn withheld(checks: &[Check], headline: Metric) -> Option<Self> {
        let root = root(checks)?;
        let failed = checks.iter().filter(|it| it.state == CheckState::Failed);
        let remedy = match headline {
            // The rate decides a closed loop, so the advice must not name the typical latency.
            Metric::Requests => root.name.remedy().replace("typical ±20us", "requests ±2%"),
            Metric::Mean => root.name.remedy().replace("typical ±", "mean ±"),
            _ => root.name.remedy().to_owned(),
        };
        Some(Self::Withheld {
            check: root.name,
            cause: root.cause(),
            remedy,
            failed: failed.map(|it| it.name).collect(),
        })
    }

    /// The cause of a withheld verdict. It also names failed checks that another check explains:
    /// `other programs used 74 % of the cores (failed check: lateness)`.
    pub fn cause(&self) -> Option<String> {
        let Self::Withheld {
            check,
            cause,
            failed,
            ..
        } = self
        else {
            return None;
        };
        let others = failed.iter().filter(|name| *name != check);
        let others: Vec<String> = others.map(ToString::to_string).collect();
        Some(match others.as_slice() {
            [] => cause.clone(),
            [one] => format!("{cause} (failed check: {one})"),
            several => format!("{cause} (failed checks: {})", several.join(", ")),
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Baseline => formatter.write_str("baseline"),
            Self::Measured => formatter.write_str("measured"),
            Self::Slower { sentence } | Self::Faster { sentence } => formatter.write_str(sentence),
            Self::NoDifferenceShown => formatter.write_str("no difference shown"),
            Self::TooFewRounds { needed, measured } => {
                write!(
                    formatter,
                    "not enough rounds ({needed} needed, {measured} measured)"
                )
            }
            Self::NotCompared => formatter.write_str("not compared: the baseline has no number"),
            Self::Withheld { cause, .. } => write!(formatter, "no verdict: {cause}"),
            Self::Invalid { kind, reason } => match kind {
                // The variant did not run, so there is no invalid work.
                Invalidity::Recorded(InvalidKind::ProgramMissing | InvalidKind::BuildFailed) => {
                    write!(formatter, "NOT RUN: {reason}")
                }
                _ => write!(formatter, "invalid: {reason}"),
            },
        }
    }
}

impl fmt::Display for Invalidity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CheckFailed => formatter.write_str("a check failed"),
            Self::Recorded(kind) => kind.fmt(formatter),
        }
    }
}

impl From<InvalidKind> for Invalidity {
    fn from(kind: InvalidKind) -> Self {
        Self::Recorded(kind)
    }
}

/// The change if requests per second decide: `12.1 % to 13.9 % fewer requests/s`.
fn share_of_requests(headline: Metric, overhead: &OverheadSummary) -> Option<String> {
    let (low, high) = (overhead.ratio_low?, overhead.ratio_high?);
    let (from, to, word) = if overhead.claim == ClaimName::Lower {
        (1.0 - high, 1.0 - low, "fewer")
    } else {
        (low - 1.0, high - 1.0, "more")
    };
    // The ratio has its own interval, which may touch 1 although the difference does not touch 0.
    if headline != Metric::Requests || from <= 0.0 {
        return None;
    }
    let (from, to) = digits::interval_ends(from * 100.0, to * 100.0);
    Some(format!("{from} % to {to} % {word} requests/s"))
}

/// The size of the overhead: `slower by 0.10 to 0.14 ms`.
fn amount(headline: Metric, overhead: &OverheadSummary, is_faster: bool) -> Option<String> {
    let (low, high) = (overhead.difference_low?, overhead.difference_high?);
    let (from, to) = if overhead.claim == ClaimName::Lower {
        (-high, -low)
    } else {
        (low, high)
    };
    let unit = headline.unit();
    // Differences that are visible side by side would have too many zeros in milliseconds.
    let unit = match unit {
        Unit::Milliseconds if headline == Metric::Typical && to < 100.0 => Unit::Microseconds,
        other => other,
    };
    let (from, to) = digits::interval_ends(unit.shown(from), unit.shown(to));
    let word = if is_faster { "faster" } else { "slower" };
    Some(format!("{word} by {from} to {to} {}", unit.sign()))
}

/// Data that decide if a variant has a trusted number.
pub(super) struct Judged<'a> {
    pub(super) kind: Kind,
    pub(super) headline: Metric,
    pub(super) variant: &'a VariantRecord,
    pub(super) outcomes: &'a Outcomes,
    /// All measurements of the variant, including measurements that are not compared.
    pub(super) rounds: &'a [&'a RoundRecord],
    pub(super) checks: &'a [Check],
}

/// Reason why a variant has no trusted number. `None` if it has one.
pub(super) fn invalid(judged: &Judged<'_>) -> Option<Verdict> {
    let Judged {
        kind,
        headline,
        variant,
        outcomes,
        rounds,
        checks,
    } = *judged;
    if let VariantStatus::Invalid { kind, reason } = &variant.status {
        return Some(Verdict::invalid(*kind, reason.clone()));
    }
    // A single wrong response is enough, because a server may be fast only because it responds wrongly.
    if outcomes.mismatched.total() > 0 {
        return Some(Verdict::invalid(
            InvalidKind::Mismatched,
            mismatched(outcomes, rounds),
        ));
    }
    if kind == Kind::Lab
        && variant
            .proof
            .as_ref()
            .is_none_or(|proof| proof.answers.is_empty())
    {
        let reason = "no proof before the load shows that it does its work";
        return Some(Verdict::invalid(InvalidKind::NotProven, reason));
    }
    if kind == Kind::Lab {
        return Verdict::withheld(checks, headline);
    }
    let is_failed = |check: &&Check| check.state == CheckState::Failed;
    // These checks come first, because they cause other failures.
    let (stopped, others): (Vec<&Check>, Vec<&Check>) = checks
        .iter()
        .filter(is_failed)
        .partition(|check| check.name == CheckName::StoppedAnswering);
    let failed: Vec<String> = stopped
        .into_iter()
        .chain(others)
        .map(|check| format!("{}: {}", check.name, check.text))
        .collect();
    (!failed.is_empty()).then(|| Verdict::invalid(Invalidity::CheckFailed, failed.join("; ")))
}

fn mismatched(outcomes: &Outcomes, rounds: &[&RoundRecord]) -> String {
    let mut reason = format!(
        "{} of {} answers mismatched ({})",
        digits::count(outcomes.mismatched.total()),
        digits::count(outcomes.completed()),
        named(&outcomes.mismatched.by_name())
    );
    let mut samples = rounds.iter().flat_map(|round| &round.failures);
    // There are also samples of failed requests, which do not explain a wrong response.
    if let Some(first) = samples.find(|sample| sample.kind.is_mismatch()) {
        reason += &format!(", first: {}", first.reason);
    }
    reason
}
