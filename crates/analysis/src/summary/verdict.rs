//! The verdict, one sentence about a variant, and the rules for it.

use std::fmt;

use model::{InvalidKind, Metric, Outcomes, Unit};
use recording::{Kind, RoundRecord, VariantRecord, VariantStatus};
use schemars::JsonSchema;
use serde::Serialize;

use super::check::{Check, CheckName, CheckState, root};
use super::estimate::{ClaimName, MetricSummary, OverheadSummary};

/// The conclusion about a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Verdict {
    /// The variant is the baseline.
    Baseline,
    /// The variant was measured without a comparison: a single load.
    Measured,
    /// The variant is worse than the baseline in the headline metric.
    Slower {
        /// The size of the difference. Absent if its interval is unknown.
        by: Option<Margin>,
    },
    /// The variant is better than the baseline in the headline metric.
    Faster {
        /// The size of the difference. Absent if its interval is unknown.
        by: Option<Margin>,
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
        /// The figure of this check.
        figure: f64,
        /// The metric that would decide. It belongs to the remedy.
        headline: Metric,
        /// All checks that failed.
        failed: Vec<CheckName>,
    },
    /// The variant has no number.
    Invalid {
        /// The kind of the problem.
        kind: Invalidity,
        /// The problem.
        reason: Reason,
    },
}

/// Size of a difference, from interval end to interval end and without its sign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Margin {
    /// The change of the requests per second, as a share of the baseline.
    Share {
        /// The end of the interval that is nearer to 0.
        from: f64,
        /// The other end.
        to: f64,
    },
    /// The difference in the unit of a metric.
    Amount {
        /// The metric.
        metric: Metric,
        /// The unit in which a report shows it.
        #[serde(skip)]
        unit: Unit,
        /// The end of the interval that is nearer to 0.
        from: f64,
        /// The other end.
        to: f64,
    },
}

/// A fact that a reader of a verdict must see next to it. The row of the summary has its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remark {
    /// The difference is below the noise floor of the machine.
    BelowNoiseFloor,
    /// The difference in mean latency, which does not decide the verdict, is below the noise floor.
    MeanBelowNoiseFloor,
    /// Few requests pay a cost that the headline metric does not show.
    FewPay,
    /// There is an estimate, which is not trusted.
    Estimate,
}

/// The problem that kept a variant from having a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The reason that the run recorded.
    Recorded(String),
    /// No proof before the load shows that the variant does its work.
    NotProven,
    /// No round was measured to the end.
    NotMeasured,
    /// Responses were wrong.
    Mismatched {
        /// Number of wrong responses.
        mismatched: u64,
        /// Number of complete responses.
        completed: u64,
        /// Number of wrong responses of each kind.
        kinds: Vec<(&'static str, u64)>,
        /// The recorded reason of the first one.
        first: Option<String>,
    },
    /// These checks failed.
    ChecksFailed(Vec<Check>),
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
    pub(super) fn invalid(kind: impl Into<Invalidity>, reason: Reason) -> Self {
        Self::Invalid {
            kind: kind.into(),
            reason,
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
        let by = share_of_requests(headline, overhead).or_else(|| amount(headline, overhead));
        if is_faster {
            Self::Faster { by }
        } else {
            Self::Slower { by }
        }
    }

    /// Sets the unit of a latency.
    pub(crate) fn show_times_in(&mut self, times: Unit) {
        let (Self::Slower { by } | Self::Faster { by }) = self else {
            return;
        };
        if let Some(Margin::Amount { metric, unit, .. }) = by {
            *unit = metric.unit().with_times(times);
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
        Some(Self::Withheld {
            check: root.name,
            figure: root.figure,
            headline,
            failed: failed.map(|it| it.name).collect(),
        })
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

/// The change if requests per second decide.
fn share_of_requests(headline: Metric, overhead: &OverheadSummary) -> Option<Margin> {
    let (low, high) = (overhead.ratio_low?, overhead.ratio_high?);
    let (from, to) = match overhead.claim {
        ClaimName::Lower => (1.0 - high, 1.0 - low),
        _ => (low - 1.0, high - 1.0),
    };
    // The ratio has its own interval, which may touch 1 although the difference does not touch 0.
    (headline == Metric::Requests && from > 0.0).then_some(Margin::Share { from, to })
}

/// The size of the overhead.
fn amount(headline: Metric, overhead: &OverheadSummary) -> Option<Margin> {
    let (low, high) = (overhead.difference_low?, overhead.difference_high?);
    let (from, to) = match overhead.claim {
        ClaimName::Lower => (-high, -low),
        _ => (low, high),
    };
    Some(Margin::Amount {
        metric: headline,
        unit: headline.unit(),
        from,
        to,
    })
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
        return Some(Verdict::invalid(*kind, Reason::Recorded(reason.clone())));
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
        return Some(Verdict::invalid(InvalidKind::NotProven, Reason::NotProven));
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
    let failed: Vec<Check> = stopped.into_iter().chain(others).cloned().collect();
    (!failed.is_empty())
        .then(|| Verdict::invalid(Invalidity::CheckFailed, Reason::ChecksFailed(failed)))
}

fn mismatched(outcomes: &Outcomes, rounds: &[&RoundRecord]) -> Reason {
    let mut samples = rounds.iter().flat_map(|round| &round.failures);
    // There are also samples of failed requests, which do not explain a wrong response.
    let first = samples.find(|sample| sample.kind.is_mismatch());
    Reason::Mismatched {
        mismatched: outcomes.mismatched.total(),
        completed: outcomes.completed(),
        kinds: outcomes.mismatched.by_name().to_vec(),
        first: first.map(|sample| sample.reason.clone()),
    }
}
