//! Gates: limits that a build must keep, as they are written.
//!
//! What they are judged on is the business of `report`.

mod quantity;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::Metric;

/// One limit, as written on the command line: `rhai p99 overhead < 0.2ms`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// The text as written.
    pub text: String,
    /// The variant it is about; absent for all of them.
    pub variant: Option<String>,
    /// The metric whose figure is limited.
    pub metric: Metric,
    /// What of the figure is limited.
    pub subject: Subject,
    /// On which side of the limit it must be.
    pub relation: Relation,
    /// The limit in the metric's own unit; a plain number for a ratio.
    pub limit: f64,
}

/// What of a figure a gate is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// Variant minus baseline.
    Overhead,
    /// Variant divided by baseline.
    Ratio,
    /// The variant's own.
    Value,
}

/// On which side of its limit a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Relation {
    /// Below the limit.
    #[serde(rename = "<")]
    Below,
    /// Below the limit or on it.
    #[serde(rename = "<=")]
    AtMost,
    /// Above the limit.
    #[serde(rename = ">")]
    Above,
    /// Above the limit or on it.
    #[serde(rename = ">=")]
    AtLeast,
}

/// Why a text is not a gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what}. A gate has the form `VARIANT METRIC overhead|ratio|value < QUANTITY`, for example `rhai p99 overhead < 0.2ms`"
)]
pub struct GateError {
    what: String,
}

/// The grammar of gates, for `--help` and docs.
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
QUANTITY  with its unit: 200us, 0.2ms, 1s; 64MiB; 5000/s; 3MB/s; 5%; a ratio has none

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
        // All that is left: a variant's name may have spaces.
        let variant = words.join(" ");
        let variant = variant.trim_matches(['"', '\'']);
        let (subject, limit) = quantity::read(right, metric, subject).map_err(wrong)?;
        Ok(Gate {
            text: text.trim().to_owned(),
            // A star stands for all variants, as judgements write it.
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

/// The text at its comparison: what stands before, the relation, what stands behind.
fn split(text: &str) -> Result<(&str, Relation, &str), GateError> {
    // The longer signs first, since they begin with the shorter ones. A name of a variant may hold
    // such a sign too; the last one of the text compares.
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
    /// Whether it is about an overhead as a share of the baseline, which is judged on the ratio.
    #[must_use]
    pub fn is_share(&self) -> bool {
        // A share is read as a ratio; only its text remembers how it was written.
        self.subject == Subject::Ratio && self.text.ends_with('%')
    }

    /// Whether it is about this variant.
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
