//! Result files of other tools, as figures in our words.
//!
//! Each tool has a file of its own below. A reader takes what means the same here as there,
//! converts its unit, and says in a note where the tool means something else. What a file does not
//! hold is absent, never guessed. `requests/s` are successful answers per second whatever the tool
//! prints under that name.
//!
//! Absent on purpose: intervals. A file of one run holds many requests and one round.

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

use serde_json::Value;

use crate::digits;
use crate::metric::Metric;

/// One run of another tool; of a tool that repeats its runs, all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignRun {
    /// The tool and the kind of file, as its users call it: `k6 --summary-export`.
    pub shape: &'static str,
    /// What was measured, where the file says so: a URL or a command.
    pub subject: Option<String>,
    /// One value a run, in the metric's own unit.
    pub figures: BTreeMap<Metric, Vec<f64>>,
    /// Requests that were answered with success.
    pub succeeded: Option<u64>,
    /// Requests that were not.
    pub failed: Option<u64>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
    /// Whether the tool waits for an answer before it sends the next request; false where the file
    /// does not tell.
    pub is_closed_loop: bool,
    /// Requests per second that were to be sent, where the tool sends at a rate and says which.
    pub offered_per_s: Option<f64>,
    /// How it was measured, by name, as far as the file says so.
    pub conditions: BTreeMap<Condition, String>,
}

/// One thing that was chosen for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// What got the requests.
    Target,
    /// Connections that were kept busy.
    Connections,
    /// Requests under way on a connection at once.
    Pipelining,
    /// Whether connections were kept open.
    KeepAlive,
    /// Virtual users, at most.
    Users,
    /// Threads of the tool.
    Threads,
    /// How long it was to run, or how many requests it was to send.
    Length,
}

impl Condition {
    /// Its name in words.
    pub(crate) fn label(self) -> &'static str {
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

    /// Whether figures under another one mean something else.
    pub(crate) fn is_load(self) -> bool {
        matches!(
            self,
            Self::Connections | Self::Pipelining | Self::KeepAlive | Self::Users
        )
    }
}

/// Why a file cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No reader recognizes it.
    #[error(
        "expected a recording of `weigh` or a result file of {TOOLS}, found {found}. `weigh compare --help` lists the kinds of file"
    )]
    Unknown {
        /// What it looks like, and what to do where that is known.
        found: String,
    },
    /// It is recognized and lacks something.
    #[error("this is {shape}, but {missing}. Was the run cut short, or the file edited?")]
    Incomplete {
        /// The kind of file.
        shape: &'static str,
        /// What is missing.
        missing: String,
    },
}

/// Rates that are measured differ by this share although the same one was asked for.
pub(crate) const RATE_TOLERANCE: f64 = 0.02;

/// The tools whose files can be read.
pub const TOOLS: &str = "ab, Artillery, autocannon, bombardier, hey, hyperfine, k6, oha, vegeta, \
                         wrk, wrk2 or HdrHistogram";

/// What a reader misses in a file.
struct Missing(String);

/// A file on its way to figures.
struct Document<'a> {
    text: &'a str,
    /// The whole file where it is one JSON value, else where and why it is not.
    json: Result<Value, serde_json::Error>,
}

struct Reader {
    shape: &'static str,
    recognizes: fn(&Document<'_>) -> bool,
    read: fn(&Document<'_>) -> Result<Vec<ForeignRun>, Missing>,
}

/// The order matters where one tool prints another's format inside of its own.
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
    // Before hey, whose text looks like it.
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
    // Last, because wrk2 prints this table inside of its own report.
    hgrm::TABLE,
];

/// Reads a result file of another tool, which is recognized by its content; hyperfine's file holds
/// several runs, the others one.
///
/// # Errors
/// When no tool writes such files, or when the file lacks what the tool always writes.
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

    /// Keeps how it was measured, if the file says so.
    fn under(&mut self, condition: Condition, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.conditions.insert(condition, value.to_string());
        }
    }

    fn closed(mut self) -> ForeignRun {
        self.is_closed_loop = true;
        self
    }

    /// The kind of file, and what was measured where the file says so.
    pub(crate) fn title(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} of `{subject}`", self.shape),
            None => self.shape.to_owned(),
        }
    }

    /// Several runs of the same thing as one: figures that all have, conditions that all state, and all
    /// notes. What the runs do not agree in is a note.
    pub(crate) fn of_all(runs: Vec<ForeignRun>) -> Option<ForeignRun> {
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
            // Figures that only some runs have would pair different runs under one number.
            .retain(|metric, values| match figures.remove(metric) {
                Some(more) => {
                    values.extend(more);
                    true
                }
                None => false,
            });
        // Unknown on one side is unknown in sum.
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

    /// Keeps a figure, if there is one.
    fn put(&mut self, metric: Metric, value: Option<f64>) {
        // A tool that divides by zero prints `inf` or `NaN`, which is not a figure.
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.figures.insert(metric, vec![value]);
        }
    }

    /// Keeps figures that the file has in a unit of so many microseconds.
    fn put_all<const N: usize>(&mut self, unit_us: f64, figures: [(Metric, Option<f64>); N]) {
        for (metric, value) in figures {
            self.put(metric, value.map(|value| value * unit_us));
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Counts answers, and says so when some were no success: their latencies are in the figures.
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

    /// Successful answers per second, once they are counted.
    fn rate_over(&mut self, seconds: Option<f64>) {
        let succeeded = self.succeeded.map(crate::float::float);
        // Without a time there is no rate, and a run of no length would have an infinite one.
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
    /// The value at the end of these keys.
    fn at(&self, keys: &[&str]) -> Option<&Value> {
        self.json.as_ref().ok().and_then(|json| at(json, keys))
    }

    fn number(&self, keys: &[&str]) -> Option<f64> {
        self.at(keys).and_then(Value::as_f64)
    }

    /// The number there, or a complaint that names its place.
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

/// A whole number that JSON may have written as `12.0`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, and counts are far below 2^53"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Counts by status code as a JSON object has them: successes (200 to 399) and the rest.
fn by_status(codes: Option<&Value>) -> (u64, u64) {
    let mut sums = (0, 0);
    // A count that is not a number is left out of both sums.
    for (code, count) in codes.and_then(Value::as_object).into_iter().flatten() {
        let count = count.as_f64().map_or(0, whole);
        match code.parse::<u16>() {
            // Redirects are successes, as wrk and vegeta have it.
            Ok(200..=399) => sums.0 += count,
            _ => sums.1 += count,
        }
    }
    sums
}

#[cfg(test)]
mod tests;
