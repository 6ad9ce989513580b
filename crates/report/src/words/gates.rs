//! Judgements on gates in words.

use analysis::gate::{Grounds, Judgement, Ruling};
use analysis::summary::Verdict;

/// The figure of a gate and its interval, or the reason why there is none, without the ruling.
pub fn why(judgement: &Judgement) -> String {
    match &judgement.grounds {
        Grounds::Figure(text) => text.clone(),
        Grounds::NoNumber { variant, verdict } => match verdict {
            Verdict::Withheld { .. } => format!(
                "the verdict on `{variant}` is withheld: {}",
                super::problem(verdict)
            ),
            _ => format!("`{variant}` has no number: {}", super::problem(verdict)),
        },
        Grounds::NoNumberIn { side, verdict } => {
            format!("there is no number in {side}: {}", super::problem(verdict))
        }
    }
}

/// The reason for the ruling on a gate. The reason of an undecided gate begins with that word.
pub(crate) fn gate_reason(judgement: &Judgement) -> String {
    match judgement.ruling {
        Ruling::Undecided => format!("undecided: {}", why(judgement)),
        Ruling::Holds | Ruling::Broken => why(judgement),
    }
}
