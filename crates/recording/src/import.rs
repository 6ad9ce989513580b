//! Readers of other tools' result files, which convert them to the figures of `weigh`.
//!
//! Each tool has its own file below. A reader takes a figure if it has the same meaning here, and converts
//! its unit. If the tool's meaning differs, a note explains it. A figure that is not in the file is absent,
//! never guessed. `requests/s` are successful responses per second, whatever the tool prints under that name.
//!
//! Intervals are absent on purpose. A file of one run contains many requests and one round.

mod ab;
mod agreed;
mod artillery;
mod autocannon;
mod bombardier;
mod hey;
mod hgrm;
mod hyperfine;
mod k6;
mod k6_csv;
mod k6_points;
mod k6_text;
mod oha;
mod samples;
mod unrecognized;
mod vegeta;
mod vegeta_hits;
mod words;
mod wrk;

use std::collections::BTreeMap;

use model::Metric;
use serde_json::Value;

use crate::digits;

/// One run of another tool. If the tool repeats its runs, this contains all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignRun {
    /// The tool and the kind of file, as its users call it: `k6 --summary-export`.
    pub shape: &'static str,
    /// The measured URL or command. `None` if the file does not contain it.
    pub subject: Option<String>,
    /// Values of each metric in its own unit, one value per run.
    pub figures: BTreeMap<Metric, Vec<f64>>,
    /// Requests with a successful response.
    pub succeeded: Option<u64>,
    /// Requests without a successful response.
    pub failed: Option<u64>,
    /// Notes that a reader of the figures needs.
    pub notes: Vec<String>,
    /// True if the tool waits for a response before it sends the next request. False if the file does not
    /// show it.
    pub is_closed_loop: bool,
    /// Planned requests per second. `None` if the tool does not send at a rate, or does not report the rate.
    pub offered_per_s: Option<f64>,
    /// Conditions of the measurement that the file contains.
    pub conditions: BTreeMap<Condition, String>,
}

/// One setting that was chosen for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// URL or command that received the load.
    Target,
    /// Connections that the tool kept busy.
    Connections,
    /// Requests in flight on one connection.
    Pipelining,
    /// Use of a connection for several requests.
    KeepAlive,
    /// Maximum number of virtual users.
    Users,
    /// Threads of the load tool.
    Threads,
    /// Planned duration, or planned number of requests.
    Length,
}

impl Condition {
    /// Name of the condition in words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Connections => "connections",
            Self::Pipelining => "requests at once on a connection",
            Self::KeepAlive => "connections kept open",
            Self::Users => "virtual users",
            Self::Threads => "threads of the tool",
            Self::Length => "length",
        }
    }

    /// True if figures under another value of this condition have another meaning.
    pub fn is_load(self) -> bool {
        matches!(
            self,
            Self::Connections | Self::Pipelining | Self::KeepAlive | Self::Users
        )
    }
}

/// Reason why a file cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No reader recognizes the file.
    #[error(
        "expected a recording of `weigh` or a result file of {TOOLS}, found {found}. `weigh compare --help` lists the kinds of file"
    )]
    Unknown {
        /// Description of the file, with advice if there is any.
        found: String,
    },
    /// A reader recognizes the file, but a value is missing.
    #[error("this is {shape}, but {missing}. Was the run cut short, or the file edited?")]
    Incomplete {
        /// Tool and kind of file.
        shape: &'static str,
        /// The missing value, in words.
        missing: String,
    },
}

/// Largest relative difference of two measured rates that still counts as one requested rate.
pub const RATE_TOLERANCE: f64 = 0.02;

/// The tools with a reader, for error and help texts.
pub const TOOLS: &str = "ab, Artillery, autocannon, bombardier, hey, hyperfine, k6, oha, vegeta, \
                         wrk, wrk2 or HdrHistogram";

/// A value that a reader did not find in the file, in words.
struct Missing(String);

/// A file that a reader converts.
struct Document<'a> {
    text: &'a str,
    /// The file as one JSON value, or the error of the JSON parser.
    json: Result<Value, serde_json::Error>,
}

struct Reader {
    shape: &'static str,
    recognizes: fn(&Document<'_>) -> bool,
    read: fn(&Document<'_>) -> Result<Vec<ForeignRun>, Missing>,
}

/// The order matters, because some tools print another tool's format inside their own.
const READERS: [Reader; 25] = [
    k6::EXPORT,
    k6::HANDLED,
    k6::MACHINE,
    k6_points::POINTS,
    k6_csv::CSV,
    k6_text::TEXT,
    vegeta::JSON,
    vegeta::TEXT,
    vegeta_hits::JSON,
    vegeta_hits::CSV,
    hgrm::HDRPLOT,
    oha::JSON,
    // It precedes hey, because hey's text looks like it.
    oha::TEXT,
    bombardier::JSON,
    bombardier::TEXT,
    autocannon::JSON,
    artillery::JSON,
    hyperfine::JSON,
    ab::TEXT,
    ab::CSV,
    ab::TABLE,
    hey::TEXT,
    hey::CSV,
    wrk::TEXT,
    // It is last, because wrk2 prints this table inside its own report.
    hgrm::TABLE,
];

/// Reads a result file of another tool and recognizes it by its content. A file of hyperfine contains several
/// runs, and every other file contains one.
///
/// # Errors
/// When no known tool writes such files, or when a value is missing that the tool always writes.
pub fn read(text: &str) -> Result<Vec<ForeignRun>, ImportError> {
    // Files from Windows begin with a byte order mark, and output copied from a terminal has
    // colors.
    let plain = words::without_colors(text.trim_start_matches('\u{feff}'));
    let document = Document {
        text: &plain,
        json: serde_json::from_str(&plain),
    };
    let Some(reader) = READERS.iter().find(|reader| (reader.recognizes)(&document)) else {
        return Err(ImportError::Unknown {
            found: unrecognized::description(&document),
        });
    };
    (reader.read)(&document).map_err(|Missing(missing)| ImportError::Incomplete {
        shape: reader.shape,
        missing,
    })
}

impl ForeignRun {
    fn new(shape: &'static str) -> ForeignRun {
        ForeignRun {
            shape,
            subject: None,
            figures: BTreeMap::new(),
            succeeded: None,
            failed: None,
            notes: Vec::new(),
            is_closed_loop: false,
            offered_per_s: None,
            conditions: BTreeMap::new(),
        }
    }

    /// Stores a condition of the measurement. A missing value is ignored.
    fn under(&mut self, condition: Condition, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.conditions.insert(condition, value.to_string());
        }
    }

    fn closed(mut self) -> ForeignRun {
        self.is_closed_loop = true;
        self
    }

    /// The kind of file, and the measured URL or command if the file contains it.
    pub fn title(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} of `{subject}`", self.shape),
            None => self.shape.to_owned(),
        }
    }

    /// Merges several runs of one target. The result has the figures and conditions that all runs contain,
    /// and all notes. Differences between the runs become a note.
    pub fn of_all(runs: Vec<ForeignRun>) -> Option<ForeignRun> {
        let conditions = agreed::conditions(&runs);
        let offered = agreed::offered(&runs);
        let mut merged = runs.into_iter().reduce(ForeignRun::and)?;
        merged.conditions = conditions.value;
        merged.offered_per_s = offered.value;
        merged.notes.extend(conditions.notes);
        merged.notes.extend(offered.notes);
        Some(merged)
    }

    fn and(mut self, other: ForeignRun) -> ForeignRun {
        let mut figures = other.figures;
        self.figures
            // A figure that only some runs have would mix different runs in one number.
            .retain(|metric, values| match figures.remove(metric) {
                Some(more) => {
                    values.extend(more);
                    true
                }
                None => false,
            });
        // If one count is unknown, the sum is unknown too.
        let sum = |one: Option<u64>, more: Option<u64>| Some(one? + more?);
        self.succeeded = sum(self.succeeded, other.succeeded);
        self.failed = sum(self.failed, other.failed);
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self
    }

    /// Stores a figure. A missing value is ignored.
    fn put(&mut self, metric: Metric, value: Option<f64>) {
        // A tool that divides by zero prints `inf` or `NaN`, which is not a figure.
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.figures.insert(metric, vec![value]);
        }
    }

    /// Stores figures. The file has them in a unit of `unit_us` microseconds.
    fn put_all<const N: usize>(&mut self, unit_us: f64, figures: [(Metric, Option<f64>); N]) {
        for (metric, value) in figures {
            self.put(metric, value.map(|value| value * unit_us));
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Counts responses. Failed responses add a note, because their latencies are in the figures.
    fn count(&mut self, succeeded: u64, failed: u64, what_failed: &str) {
        self.succeeded = Some(succeeded);
        self.failed = Some(failed);
        if failed > 0 {
            self.note(format!(
                "{} of {} requests did not succeed ({what_failed}). Requests/s does not count them, \
                 but the latencies may contain them",
                digits::count(failed),
                digits::count(succeeded + failed),
            ));
        }
    }

    /// Stores successful responses per second. The responses must be counted before.
    fn rate_over(&mut self, seconds: Option<f64>) {
        let succeeded = self.succeeded.map(crate::float::float);
        // Without a duration there is no rate, and a duration of zero would give an infinite rate.
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        self.put(
            Metric::Requests,
            succeeded
                .zip(seconds)
                .map(|(count, seconds)| count / seconds),
        );
    }
}

impl Document<'_> {
    /// The value at this path of keys.
    fn at(&self, keys: &[&str]) -> Option<&Value> {
        self.json.as_ref().ok().and_then(|json| at(json, keys))
    }

    fn number(&self, keys: &[&str]) -> Option<f64> {
        self.at(keys).and_then(Value::as_f64)
    }

    /// The number at this path of keys, or an error that names the path.
    fn need(&self, keys: &[&str]) -> Result<f64, Missing> {
        self.number(keys)
            .ok_or_else(|| Missing(format!("`{}` is not a number", keys.join("."))))
    }

    fn string(&self, keys: &[&str]) -> Option<&str> {
        self.at(keys).and_then(Value::as_str)
    }

    fn has(&self, keys: &[&str]) -> bool {
        self.at(keys).is_some()
    }
}

fn at<'a>(json: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(json, |value, key| value.get(key))
}

/// A whole number. JSON may contain it as `12.0`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, and counts are far below 2^53"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Counts by status code from a JSON object: successes (200 to 399), then all other responses.
fn by_status(codes: Option<&Value>) -> (u64, u64) {
    let mut sums = (0, 0);
    // A value that is not a number is left out of both sums.
    for (code, count) in codes.and_then(Value::as_object).into_iter().flatten() {
        let count = count.as_f64().map_or(0, whole);
        match code.parse::<u16>() {
            // Redirects are successes, as in wrk and vegeta.
            Ok(200..=399) => sums.0 += count,
            _ => sums.1 += count,
        }
    }
    sums
}

#[cfg(test)]
mod tests;
