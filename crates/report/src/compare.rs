//! Comparison of two results: recordings, or result files of other tools.
//!
//! Two variants of one run are paired by round, because both met the same conditions in a round. All other
//! comparisons are unpaired. Their interval covers only the spread within each run, and the report states
//! this. A file of another tool is one run, so there is a difference and no interval.
//!
//! The comparison names each obstacle that makes two results incomparable, and withholds the verdict. It
//! still shows the figures. It refuses recordings that were computed by different methods.

mod comparability;
mod rows;
mod shown;
mod side;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::gate::{self, Gate, Judged, Judgement, Role, Undecided};
use crate::import::{self, ForeignRun, ImportError};
use crate::metric::Metric;
use crate::recording::{ReadError, Recording};
use crate::summary::{Invalidity, MetricSummary, Verdict};

pub use shown::{comparison_json, comparison_junit, comparison_markdown, comparison_text};

/// Content of a file, or of a folder of files.
#[derive(Clone, Debug, PartialEq)]
pub enum OperandSource {
    /// A recording of `weigh`.
    Recording(Box<Recording>),
    /// Runs of another tool: all runs of one file, or the runs of several files merged into one.
    Runs(Vec<ForeignRun>),
}

/// One of the two results, with its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The name to show, as the user wrote it.
    pub label: String,
    /// The requested variant, command or place in the file. `None` if the user did not select one.
    pub variant: Option<String>,
    /// The parsed content.
    pub source: OperandSource,
}

/// Reason why a file has no usable result.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file is marked as a recording but cannot be read as one.
    #[error(transparent)]
    Recording(#[from] ReadError),
    /// No known tool writes this file, or the file is incomplete.
    #[error("{file}{error}")]
    Import {
        /// The file's name and a colon if the folder has several files. Empty for a single file.
        file: String,
        /// The error of the reader.
        error: ImportError,
    },
    /// A JSON summary of `weigh`. It does not contain the rounds.
    #[error(
        "expected a recording, found the output of `--format json`, which has no histograms. Compare the `recording.json` of that run"
    )]
    Summary,
    /// The files of a folder are not runs of one target by one tool.
    #[error(
        "expected {expected} like the files before it, found {found} in {file}. A folder must contain runs of one target by one tool"
    )]
    Mixed {
        /// The file that does not fit.
        file: String,
        /// Tool and target of this file.
        found: String,
        /// Tool and target of the files before it.
        expected: String,
    },
}

/// Reason why two results cannot be compared at all.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The numbers of the two results were computed by different methods. See [`crate::METHOD`].
    #[error(
        "expected two recordings of one method, found method {a_method} in `{a}` and method {b_method} in `{b}`. Their numbers have different meanings (see \"Numbers\" in CHANGELOG.md). Record the older one again"
    )]
    Methods {
        /// Label of the first result.
        a: String,
        /// Method of the first result.
        a_method: u32,
        /// Label of the second result.
        b: String,
        /// Method of the second result.
        b_method: u32,
    },
    /// Both operands are the same result.
    #[error("expected two different results, found `{label}` twice. {advice}")]
    Same {
        /// Label of the result.
        label: String,
        /// Suggestion of a comparison that the user may have meant.
        advice: String,
    },
    /// A result has no variant with the requested name.
    #[error("expected a variant of `{label}`, found `{name}`. The variants are {known}")]
    UnknownVariant {
        /// Label of the result.
        label: String,
        /// Requested name of a variant.
        name: String,
        /// Names of the variants that the result contains.
        known: String,
    },
    /// The two results have no common variant, and the user did not select one.
    #[error(
        "expected a common variant, found {a_has} in `{a}` and {b_has} in `{b}`. Name the variants to compare, as in `FILE#NAME`"
    )]
    NothingInCommon {
        /// Label of the first result.
        a: String,
        /// Variants of the first result, in words.
        a_has: String,
        /// Label of the second result.
        b: String,
        /// Variants of the second result, in words.
        b_has: String,
    },
}

/// How the rounds of two sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// Two variants of one run: round by round.
    Paired,
    /// Runs at different times: only the spread within each is known.
    Unpaired,
    /// One run on a side: a difference and no interval.
    Single,
}

/// What is known about one of the two results as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Origin {
    /// What the user wrote.
    pub label: String,
    /// What it is, in one line.
    pub text: String,
    /// What a reader of its figures should know.
    pub notes: Vec<String>,
}

/// Two results against each other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Names the format of the JSON.
    pub format: &'static str,
    /// The first result, to which the second is compared.
    pub a: Origin,
    /// The second result.
    pub b: Origin,
    /// How their rounds belong together.
    pub pairing: Pairing,
    /// The metric that decides verdicts.
    pub headline: Metric,
    /// Confidence of all verdicts together.
    pub confidence: f64,
    /// Confidence of each interval of a difference (Bonferroni over the rows).
    pub confidence_each: f64,
    /// What makes them incomparable; withholds every verdict.
    pub obstacles: Vec<String>,
    /// What differs besides, or should be known.
    pub notes: Vec<String>,
    /// What was compared, a row each.
    pub rows: Vec<Row>,
    /// What became of the gates that were asked for; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub gates: Vec<Judgement>,
}

/// One thing of the first result against one of the second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The name of what is compared, which gates use.
    pub name: String,
    /// Its name in the first result.
    pub name_a: String,
    /// Its name in the second result.
    pub name_b: String,
    /// Whether both call it the baseline.
    pub is_baseline: bool,
    /// What may be said; absent where nothing may.
    pub verdict: Option<Verdict>,
    /// The verdict in words, or why none is given.
    pub verdict_text: String,
    /// What the verdict means for a person, in a sentence; absent where nothing may be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_words: Option<String>,
    /// Figures of both; empty when a side has no number.
    pub metrics: BTreeMap<Metric, Compared>,
    /// The overhead against each result's own baseline, then and now. What disturbs a whole run
    /// cancels in it.
    pub overheads: BTreeMap<Metric, Compared>,
    /// Why a side has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_number: Option<NoNumber>,
}

/// Why a side has no number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoNumber {
    /// What kind of thing went wrong.
    pub kind: Invalidity,
    /// Which side, and what exactly.
    pub reason: String,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// That of the first result.
    pub a: MetricSummary,
    /// That of the second, with its difference from the first.
    pub b: MetricSummary,
}

impl OperandSource {
    /// Reads the files of one operand and recognizes them by content. A file is a recording or a result of
    /// another tool. With several files, each is a run of one other tool.
    ///
    /// # Errors
    /// When a file is neither, is incomplete, or comes from another tool than the files before it.
    pub fn read(files: &[(String, String)]) -> Result<Self, SourceError> {
        // Only a single file can be a recording. Several recordings in a folder are not rounds of one run.
        if let [(_, text)] = files {
            return match format_of(text).as_deref() {
                Some("weighbridge-recording") => {
                    Ok(Self::Recording(Box::new(Recording::from_json(text)?)))
                }
                Some("weighbridge-summary" | "weighbridge-comparison") => Err(SourceError::Summary),
                _ => import::read(text).map(Self::Runs).map_err(|error| {
                    let file = String::new();
                    SourceError::Import { file, error }
                }),
            };
        }
        let mut all: Vec<ForeignRun> = Vec::new();
        for (name, text) in files {
            let runs = import::read(text).map_err(|error| SourceError::Import {
                file: format!("`{name}`: "),
                error,
            })?;
            for run in runs {
                // The interval of a mixture of tools or targets would have no meaning.
                let is_other =
                    |one: &&ForeignRun| one.shape != run.shape || one.subject != run.subject;
                if let Some(first) = all.first().filter(is_other) {
                    return Err(SourceError::Mixed {
                        file: format!("`{name}`"),
                        found: run.title(),
                        expected: first.title(),
                    });
                }
                all.push(run);
            }
        }
        Ok(Self::Runs(ForeignRun::of_all(all).into_iter().collect()))
    }
}

/// The value of `format` in a JSON file. `None` if the file has no such key.
fn format_of(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
    }
    // Invalid or unknown JSON is not yet an error. The readers of other tools try the file next.
    serde_json::from_str::<Head>(text)
        .ok()
        .map(|head| head.format)
}

impl Comparison {
    /// The JSON Schema of `weigh compare --format json`, committed at
    /// `schemas/comparison.schema.json`.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }

    /// Compares `b` with `a`. With `despite`, differences of load or machine do not withhold the verdict.
    ///
    /// # Errors
    /// When the results have no comparable variants or figures, or were computed by different methods.
    pub fn of(a: &Operand, b: &Operand, despite: bool) -> Result<Self, CompareError> {
        rows::compare(a, b, despite)
    }

    /// Judges gates. The overhead is the second result minus the first.
    #[must_use]
    pub fn judged(self, gates: &[Gate], undecided: Undecided) -> Self {
        let why_not = |row: &Row| {
            let withheld = || {
                let obstacles = self.obstacles.join("; ");
                (!self.obstacles.is_empty())
                    .then(|| format!("the two are not comparable: {obstacles}"))
            };
            let no_number = row.no_number.as_ref();
            no_number
                .map(|none| format!("there is no number {}", none.reason))
                .or_else(withheld)
        };
        let rows: Vec<Judged<'_>> = self
            .rows
            .iter()
            .map(|row| Judged {
                name: &row.name,
                // Neither side is a baseline here. Each row is judged on its own difference.
                role: Role::Compared,
                no_number: why_not(row),
                metric: Box::new(|metric| row.metrics.get(&metric).map(|compared| &compared.b)),
                outcomes: None,
            })
            .collect();
        let gates = gate::judge(gates, undecided, &rows);
        drop(rows);
        Self { gates, ..self }
    }
}

#[cfg(test)]
mod tests;
