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
mod side;

use std::collections::BTreeMap;

use model::{Gate, Metric, Outcomes, Unit};
use recording::import::{self, ForeignRun, ImportError};
use recording::{ReadError, Recording};
use schemars::JsonSchema;
use serde::Serialize;

use crate::gate::{self, Grounds, Judged, Judgement, Role, Undecided};
use crate::summary::times::{self, USUAL};
use crate::summary::{Invalidity, Meaning, MetricSummary, Verdict};

/// Content of a file, or of a folder of files.
#[derive(Clone, Debug, PartialEq)]
pub enum OperandSource {
    /// A recording that `weigh` made.
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
    /// The parsed content of the file or folder.
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
    /// The two results were measured by different methods. See [`recording::METHOD`].
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
        /// Label of the result on both sides.
        label: String,
        /// Suggestion of a comparison that the user may have meant.
        advice: String,
    },
    /// A result has no variant with the requested name.
    #[error("expected a variant of `{label}`, found `{name}`. The variants are {known}")]
    UnknownVariant {
        /// Label of the result without the variant.
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

/// The relation between the rounds of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// The sides are two variants of one run, compared round by round.
    Paired,
    /// The sides are runs at different times. Only the spread within each run can be measured.
    Unpaired,
    /// A side has only one run, so there is a difference but no interval.
    Single,
}

/// General information about one of the two results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Origin {
    /// The label, as the user wrote it.
    pub label: String,
    /// A description of the result in one line.
    pub text: String,
    /// Facts that a reader of the figures needs.
    pub notes: Vec<String>,
}

/// A comparison of two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The name of the format, which identifies the JSON of a comparison.
    pub format: &'static str,
    /// The first result, which is the reference.
    pub a: Origin,
    /// The second result, which is compared with the first.
    pub b: Origin,
    /// The relation between the rounds of the two sides.
    pub pairing: Pairing,
    /// The metric that decides verdicts.
    pub headline: Metric,
    /// Confidence of all verdicts together.
    pub confidence: f64,
    /// Confidence of each interval of a difference (Bonferroni over the rows).
    pub confidence_each: f64,
    /// Reasons why the results are not comparable. Any reason withholds every verdict.
    pub obstacles: Vec<String>,
    /// Other differences between the results, and facts that a reader needs.
    pub notes: Vec<String>,
    /// The compared variants, one row each.
    pub rows: Vec<Row>,
    /// The unit of all latencies in a report.
    #[serde(skip)]
    pub(crate) times: Unit,
    /// Results of the gates that the user requested. Absent without gates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Judgement>,
}

/// One variant, command or target of the first result, compared with one of the second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The name of the row, which gates use.
    pub name: String,
    /// The name in the first result.
    pub name_a: String,
    /// The name in the second result.
    pub name_b: String,
    /// True if it is the baseline of both results.
    pub is_baseline: bool,
    /// The unit of all latencies in a report, the same for all rows.
    #[serde(skip)]
    pub(crate) times: Unit,
    /// The verdict. Absent if the figures support no verdict.
    pub verdict: Option<Verdict>,
    /// The reason why there is no verdict. Absent with a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_verdict: Option<NoVerdict>,
    /// The meaning of the verdict for a user. Absent without a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// Figures of both sides. Empty if a side has no number.
    pub metrics: BTreeMap<Metric, Compared>,
    /// The overhead in each result, against the baseline of that result. A disturbance of a whole run cancels
    /// out.
    pub overheads: BTreeMap<Metric, Compared>,
    /// The reason why a side has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_number: Option<NoNumber>,
    /// Failures of the requests of other tools. Absent if both sides are recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailuresOf>,
}

/// Failures of both sides of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailuresOf {
    /// Requests of the first result. `null` if its file does not contain failures.
    pub a: Option<Replies>,
    /// Requests of the second result. `null` if its file does not contain failures.
    pub b: Option<Replies>,
}

/// Numbers of requests by their result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Replies {
    /// Requests with a successful answer.
    pub succeeded: u64,
    /// Requests with another answer or without an answer.
    pub failed: u64,
}

impl Replies {
    fn outcomes(self) -> Outcomes {
        let mut outcomes = Outcomes {
            passed: self.succeeded,
            ..Outcomes::default()
        };
        // Files of other tools do not always say if an answer came.
        outcomes.mismatched.status = self.failed;
        outcomes
    }
}

/// The reason why a row has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoVerdict {
    /// A side has no number. The row has the reason.
    NoNumber,
    /// Only one side has the metric that decides.
    OneSided(Metric),
    /// The two results are not comparable.
    NotComparable,
    /// A single run has no interval.
    SingleRun,
}

/// The reason why a side has no number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoNumber {
    /// The side, `A` or `B`.
    pub side: &'static str,
    /// The verdict on it, which is invalid or withheld.
    pub verdict: Verdict,
}

impl NoNumber {
    /// The kind of the problem.
    #[must_use]
    pub fn kind(&self) -> Invalidity {
        match &self.verdict {
            Verdict::Invalid { kind, .. } => *kind,
            // Only a failed check withholds a verdict.
            _ => Invalidity::CheckFailed,
        }
    }
}

/// One metric of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// The figure of the first result.
    pub a: MetricSummary,
    /// The figure of the second result, with its difference from the first.
    pub b: MetricSummary,
}

impl OperandSource {
    /// Reads the files of one operand and recognizes them by content. A file is a recording or a result of
    /// another tool. With several files, each is a run of one other tool.
    ///
    /// # Errors
    /// When a file is neither, is incomplete, or comes from another tool than the files before it.
    pub fn read(files: &[(String, String)]) -> Result<Self, SourceError> {
        Self::read_in(files, None)
    }

    /// Reads files like [`Self::read`]. `unit_us` is the unit of latencies, in microseconds, for files of other
    /// tools that do not name it.
    ///
    /// # Errors
    /// Like [`Self::read`].
    pub fn read_in(files: &[(String, String)], unit_us: Option<f64>) -> Result<Self, SourceError> {
        // Only a single file can be a recording. Several recordings in a folder are not rounds of one run.
        if let [(_, text)] = files {
            return match format_of(text).as_deref() {
                Some("weighbridge-recording") => {
                    Ok(Self::Recording(Box::new(Recording::from_json(text)?)))
                }
                Some("weighbridge-summary" | "weighbridge-comparison") => Err(SourceError::Summary),
                _ => import::read_in(text, unit_us)
                    .map(Self::Runs)
                    .map_err(|error| {
                        let file = String::new();
                        SourceError::Import { file, error }
                    }),
            };
        }
        let mut targets: Vec<Vec<ForeignRun>> = Vec::new();
        for (index, (name, text)) in files.iter().enumerate() {
            let runs = import::read_in(text, unit_us).map_err(|error| SourceError::Import {
                file: format!("`{name}`: "),
                error,
            })?;
            for run in runs {
                let known = targets.iter_mut().find(|target| {
                    target[0].shape == run.shape && target[0].subject == run.subject
                });
                match known {
                    Some(target) => target.push(run),
                    None if index == 0 => targets.push(vec![run]),
                    // The interval of a mixture of tools or targets would have no meaning.
                    None => {
                        return Err(SourceError::Mixed {
                            file: format!("`{name}`"),
                            found: run.title(),
                            expected: targets
                                .first()
                                .map_or_else(String::new, |target| target[0].title()),
                        });
                    }
                }
            }
        }
        let merged = targets.into_iter().filter_map(ForeignRun::of_all);
        Ok(Self::Runs(merged.collect()))
    }

    /// True if it contains a file of another tool that does not name the unit of its latencies.
    #[must_use]
    pub fn is_unit_open(&self) -> bool {
        match self {
            Self::Recording(_) => false,
            Self::Runs(runs) => runs.iter().any(|run| run.is_unit_open),
        }
    }

    /// The runs of another tool that can be rows: the targets, or all requests and each name.
    fn rows(runs: &[ForeignRun]) -> Vec<NamedRun<'_>> {
        match runs {
            [run] => {
                let named = run.parts.iter().map(|(name, run)| NamedRun {
                    name: Some(name),
                    run,
                });
                let whole = NamedRun { name: None, run };
                std::iter::once(whole).chain(named).collect()
            }
            several => several
                .iter()
                .map(|run| NamedRun {
                    name: Some(run.subject.as_deref().unwrap_or_default()),
                    run,
                })
                .collect(),
        }
    }
}

/// A run of another tool as a row.
#[derive(Clone, Copy)]
struct NamedRun<'a> {
    /// The name of the requests or of the target. `None` for all requests of a file, which has the file's name.
    name: Option<&'a str>,
    run: &'a ForeignRun,
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

impl Row {
    /// The unit of a metric in the reports of this row.
    #[must_use]
    pub fn unit(&self, metric: Metric) -> Unit {
        metric.unit().with_times(self.times)
    }

    /// The largest latency of a usual request on either side, in microseconds. 0 without a figure.
    fn level_us(&self) -> f64 {
        let found = USUAL.iter().filter_map(|metric| self.metrics.get(metric));
        let sides = found.flat_map(|it| [it.a.value, it.b.value]);
        sides.fold(0.0, f64::max)
    }
}

impl Comparison {
    /// The unit of a metric in the reports of this comparison.
    #[must_use]
    pub fn unit(&self, metric: Metric) -> Unit {
        metric.unit().with_times(self.times)
    }

    /// Selects the unit of all latencies.
    fn in_one_unit(mut self) -> Self {
        let levels = self.rows.iter().map(Row::level_us);
        self.times = Unit::of_times(levels.fold(0.0, f64::max));
        for row in &mut self.rows {
            row.times = self.times;
            times::settle(self.times, row.verdict.as_mut(), row.meaning.as_mut());
        }
        self
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
                    .then(|| Grounds::Figure(format!("the two are not comparable: {obstacles}")))
            };
            let no_number = row.no_number.as_ref();
            no_number
                .map(|none| Grounds::NoNumberIn {
                    side: none.side,
                    verdict: none.verdict.clone(),
                })
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
                outcomes: row
                    .failures
                    .and_then(|both| Some((both.b?.outcomes(), both.a.map(Replies::outcomes)))),
            })
            .collect();
        let gates = gate::judge(gates, undecided, &rows);
        drop(rows);
        Self { gates, ..self }
    }
}

#[cfg(test)]
mod tests;
