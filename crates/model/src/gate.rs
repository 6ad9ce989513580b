//! Parser of gates, which are limits that a build must keep.
//!
//! The `analysis` crate judges them.

mod quantity;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::Metric;

/// One limit, as written on the command line: `rhai p99 overhead < 0.2ms`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// The gate as the user wrote it.
    pub text: String,
    /// The variant that the gate applies to. `None` for all variants.
    pub variant: Option<String>,
    /// The metric with the limited figure.
    pub metric: Metric,
    /// The part of the figure that is limited.
    pub subject: Subject,
    /// The side of the limit on which the figure must be.
    pub relation: Relation,
    /// The limit in the metric's own unit. For a ratio, it is a plain number.
    pub limit: f64,
}

/// The part of a figure that a gate limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The overhead: variant minus baseline.
    Overhead,
    /// The ratio: variant divided by baseline.
    Ratio,
    /// The figure of the variant itself.
    Value,
}

/// The side of the limit on which a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Relation {
    /// The figure must be below the limit.
    #[serde(rename = "<")]
    Below,
    /// The figure must be below the limit or equal to it.
    #[serde(rename = "<=")]
    AtMost,
    /// The figure must be above the limit.
    #[serde(rename = ">")]
    Above,
    /// The figure must be above the limit or equal to it.
    #[serde(rename = ">=")]
    AtLeast,
}

/// Reason why a text is not a gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what}. A gate has the form `VARIANT METRIC overhead|ratio|value < QUANTITY`, for example `rhai p99 overhead < 0.2ms`"
)]
pub struct GateError {
    what: String,
}

/// The grammar of gates, for `--help` and the documentation.
#[must_use]
pub fn gate_grammar() -> String {
    format!(
        "\
[VARIANT] METRIC overhead|ratio|value <|<=|>|>= QUANTITY

VARIANT   a variant's name; without one, every variant but the baseline
METRIC    {}, or a name as in
          the JSON
overhead  variant minus baseline, or with a quantity in % its share of the baseline
          (of failures, which are in % themselves, always the difference)
ratio     variant divided by baseline, 1 for no difference
value     the variant's own figure
QUANTITY  with its unit (200us, 0.2ms, 1s, 64MiB, 5000/s, 3MB/s, 5%), a ratio without

A gate holds when the whole interval is within the limit and is broken when the
whole interval is beyond. In between, or without an interval, it is undecided,
which fails too unless --undecided pass is given. Failures are counted, so they
are compared with the limit as they are.",
        Metric::list(10, 80)
    )
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        let (left, relation, right) = split(text)?;
        let mut words: Vec<&str> = left.split_whitespace().collect();
        let subject = match words.pop() {
            Some("overhead") => Subject::Overhead,
            Some("ratio") => Subject::Ratio,
            Some("value") => Subject::Value,
            other => {
                return Err(wrong(format!(
                    "expected `overhead`, `ratio` or `value` before `{relation}`, found `{}`",
                    other.unwrap_or("nothing")
                )));
            }
        };
        let word = words
            .pop()
            .ok_or_else(|| wrong(format!("expected a metric before `{subject}`")))?;
        let metric = Metric::named(word).ok_or_else(|| {
            let known = Metric::ALL.map(Metric::name).join(", ");
            wrong(format!("`{word}` is not a metric. The metrics are {known}"))
        })?;
        // The remaining words are the variant, because a variant's name may have spaces.
        let variant = words.join(" ");
        let variant = variant.trim_matches(['"', '\'']);
        let (subject, limit) = quantity::read(right, metric, subject).map_err(wrong)?;
        Ok(Gate {
            text: text.trim().to_owned(),
            // A star stands for all variants, as in judgements.
            variant: Some(variant)
                .filter(|name| !name.is_empty() && *name != "*")
                .map(str::to_owned),
            metric,
            subject,
            relation,
            limit,
        })
    }
}

fn wrong(what: String) -> GateError {
    GateError { what }
}

/// Splits the text at its comparison sign into the text before it, the relation, and the text after it.
fn split(text: &str) -> Result<(&str, Relation, &str), GateError> {
    // The longer signs come first, because they begin with the shorter signs. A variant's name may also
    // contain such a sign, so the last sign of the text is the comparison.
    let signs = [
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("<", Relation::Below),
        (">", Relation::Above),
    ];
    let found = signs
        .iter()
        .filter_map(|(sign, relation)| Some((text.rfind(sign)?, *sign, *relation)))
        .max_by_key(|(at, sign, _)| (*at, sign.len()));
    let (at, sign, relation) = found.ok_or_else(|| {
        wrong(format!(
            "expected `<`, `<=`, `>` or `>=` in `{}`",
            text.trim()
        ))
    })?;
    Ok((&text[..at], relation, text[at + sign.len()..].trim()))
}

impl Gate {
    /// True if the gate limits an overhead as a share of the baseline. The ratio is then judged.
    #[must_use]
    pub fn is_share(&self) -> bool {
        // A share is parsed to a ratio. Only its text shows how it was written.
        self.subject == Subject::Ratio && self.text.ends_with('%')
    }

    /// True if the gate applies to this variant.
    #[must_use]
    pub fn is_about(&self, variant: &str) -> bool {
        self.variant.as_ref().is_none_or(|name| name == variant)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Overhead => "overhead",
            Self::Ratio => "ratio",
            Self::Value => "value",
        })
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        })
    }
}

#[cfg(test)]
mod tests;
