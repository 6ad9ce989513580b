//! Readers of other tools' result files, which convert them to the figures of `weigh`.
//!
//! Most readers are a table of fields (`tables.rs`) or of columns (`samples.rs`). Only texts that have
//! neither have code of their own. A reader takes a figure if it has the same meaning here, and converts its
//! unit. If the tool's meaning differs, a note explains it. A figure that is not in the file is absent,
//! never guessed. `requests/s` are successful responses per second, whatever the tool prints under that name.
//!
//! A file of one run contains many requests and one round, so it has no interval. Several reports in one file
//! are several runs.

mod ab;
mod agreed;
mod bombardier;
mod gatling_log;
mod hgrm;
mod hyperfine;
mod jtl_xml;
mod k6;
mod k6_csv;
mod k6_points;
mod k6_text;
mod locust_history;
mod reports;
mod samples;
mod table;
mod tables;
mod unrecognized;
mod vegeta;
mod vegeta_hits;
mod words;
mod wrk;

use std::collections::BTreeMap;

use model::Metric;
use serde_json::Value;

use crate::digits;
use reports::Reports;

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
    /// Figures of requests with a name, such as a label of JMeter. Empty if the file has no names.
    pub parts: BTreeMap<String, ForeignRun>,
    /// True if the file does not name the unit of its latencies.
    pub is_unit_open: bool,
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
    /// The file contains results of several tools.
    #[error("expected results of one tool, found {found}. Give each tool its own file")]
    Mixed {
        /// The tools in the file.
        found: String,
    },
    /// A reader recognizes the file, but a value is missing.
    #[error("this is {shape}, but {missing}")]
    Incomplete {
        /// Tool and kind of file.
        shape: &'static str,
        /// The missing value, in words.
        missing: String,
    },
}

/// Largest relative difference of two measured rates that still counts as one requested rate.
pub const RATE_TOLERANCE: f64 = 0.02;

/// Largest number of names of requests that become rows. More are ids in URLs and not names.
const NAMES_MAX: usize = 200;

/// The tools with a reader, for error and help texts.
pub const TOOLS: &str = "ab, Artillery, autocannon, bombardier, Fortio, Gatling, ghz, h2load, hey, \
                         Hyperfoil, hyperfine, JMeter, k6, Locust, Nighthawk, oha, siege, vegeta, \
                         wrk, wrk2 or HdrHistogram";

/// A value that a reader did not find in the file, in words.
struct Missing(String);

/// A file that a reader converts.
struct Document<'a> {
    text: &'a str,
    /// The file as one JSON value, or the error of the JSON parser.
    json: Result<Value, serde_json::Error>,
    /// Unit of latencies from the user, in microseconds.
    unit_us: Option<f64>,
}

/// A kind of file that can be read.
trait Reads: Sync {
    fn shape(&self) -> &'static str;

    fn reports(&self) -> Reports;

    fn recognizes(&self, document: &Document<'_>) -> bool;

    /// The runs, or the commands, of one report.
    fn read(&self, document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing>;
}

/// A kind of file with code of its own.
struct Reader {
    shape: &'static str,
    reports: Reports,
    recognizes: fn(&Document<'_>) -> bool,
    read: fn(&Document<'_>) -> Result<Vec<ForeignRun>, Missing>,
}

impl Reads for Reader {
    fn shape(&self) -> &'static str {
        self.shape
    }

    fn reports(&self) -> Reports {
        self.reports
    }

    fn recognizes(&self, document: &Document<'_>) -> bool {
        (self.recognizes)(document)
    }

    fn read(&self, document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
        (self.read)(document)
    }
}

/// The order matters, because some tools print another tool's format inside their own.
static READERS: [&dyn Reads; 48] = [
    &k6::EXPORT,
    &k6::HANDLED,
    &k6::MACHINE,
    &k6_points::POINTS,
    &k6_csv::CSV,
    &k6_text::TEXT,
    &k6_text::OLD,
    &tables::VEGETA,
    &vegeta::TEXT,
    &vegeta_hits::JSON,
    &vegeta_hits::CSV,
    &hgrm::HDRPLOT,
    &tables::OHA,
    // They precede hey, because hey's text looks like theirs.
    &tables::OHA_TEXT,
    &tables::GHZ_TEXT,
    &tables::HEY_TEXT,
    &samples::HEY,
    &samples::OHA,
    &samples::JTL,
    &samples::GHZ,
    &tables::GHZ,
    &tables::BOMBARDIER,
    &bombardier::TEXT,
    &tables::AUTOCANNON,
    &tables::ARTILLERY,
    &tables::ARTILLERY_1,
    &tables::FORTIO,
    &tables::NIGHTHAWK,
    &tables::JMETER_STATISTICS,
    &tables::JMETER_AGGREGATE,
    &jtl_xml::XML,
    &locust_history::HISTORY,
    &tables::LOCUST,
    &tables::GATLING,
    &tables::GATLING_GLOBAL,
    &gatling_log::LOG,
    &tables::HYPERFOIL,
    &tables::SIEGE,
    &tables::SIEGE_TEXT,
    &tables::H2LOAD,
    &tables::WRK_SCRIPT,
    &tables::WRK_SCRIPT_WITHOUT_UNIT,
    &hyperfine::JSON,
    &ab::TEXT,
    &ab::CSV,
    &ab::TABLE,
    &wrk::TEXT,
    // It is last, because wrk2 prints this table inside its own report.
    &hgrm::TABLE,
];

/// Reads a result file of another tool and recognizes it by its content. Several reports of one target in a
/// file become one result with several runs. Each command of hyperfine, and each of several targets, is a
/// result of its own.
///
/// # Errors
/// When no known tool writes such files, or when a value is missing that the tool always writes.
pub fn read(text: &str) -> Result<Vec<ForeignRun>, ImportError> {
    read_in(text, None)
}

/// Reads a result file like [`read`]. `unit_us` is the unit of latencies, in microseconds, for files that do
/// not name it.
///
/// # Errors
/// Like [`read`].
pub fn read_in(text: &str, unit_us: Option<f64>) -> Result<Vec<ForeignRun>, ImportError> {
    // Files from Windows begin with a byte order mark, and output copied from a terminal has colors.
    let plain = words::without_colors(text.trim_start_matches('\u{feff}'));
    let document = Document {
        text: &plain,
        json: serde_json::from_str(&plain),
        unit_us,
    };
    if document.json.is_err() {
        reports::of_one_tool(&plain)?;
    }
    let of = |document: &Document<'_>| {
        let reader = READERS.iter().find(|reader| reader.recognizes(document));
        reader.map(|reader| read_reports(*reader, document))
    };
    if let Some(runs) = of(&document) {
        return runs;
    }
    let unknown = |document: &Document<'_>| ImportError::Unknown {
        found: unrecognized::description(document),
    };
    let objects = match &document.json {
        Ok(_) => Vec::new(),
        Err(_) => reports::objects(&plain, unit_us),
    };
    let mut runs = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        match of(object) {
            Some(found) => runs.extend(found?),
            // The first object decides if these are results at all.
            None if index == 0 => return Err(unknown(&document)),
            None => return Err(unknown(object)),
        }
    }
    if runs.is_empty() {
        return Err(unknown(&document));
    }
    grouped(runs)
}

/// Reads each report of a document.
fn read_reports(
    reader: &dyn Reads,
    document: &Document<'_>,
) -> Result<Vec<ForeignRun>, ImportError> {
    let incomplete = |Missing(missing)| ImportError::Incomplete {
        shape: reader.shape(),
        missing,
    };
    let parts = reader.reports().of(document.text).map_err(incomplete)?;
    if parts.len() == 1 {
        let runs = reader.read(document).map_err(incomplete)?;
        // A command of hyperfine is a result, even if another command is equal.
        return match runs.len() == 1 || reader.shape() == hyperfine::SHAPE {
            true => Ok(runs),
            false => grouped(runs),
        };
    }
    let mut runs = Vec::new();
    for part in parts {
        let document = Document {
            text: part,
            json: serde_json::from_str(part),
            unit_us: document.unit_us,
        };
        runs.extend(reader.read(&document).map_err(incomplete)?);
    }
    grouped(runs)
}

/// Merges the runs of each target, in the order of the file.
fn grouped(runs: Vec<ForeignRun>) -> Result<Vec<ForeignRun>, ImportError> {
    let mut groups: Vec<Vec<ForeignRun>> = Vec::new();
    for run in runs {
        let first = groups.first().and_then(|group| group.first());
        if let Some(first) = first.filter(|first| first.shape != run.shape) {
            return Err(ImportError::Mixed {
                found: format!("{} and {}", first.shape, run.shape),
            });
        }
        match groups
            .iter_mut()
            .find(|group| group[0].subject == run.subject)
        {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let merged = groups.into_iter().filter_map(|group| {
        let count = group.len();
        let mut run = ForeignRun::of_all(group)?;
        if count > 1 {
            run.note(format!(
                "the file holds {count} reports, and each counts as a run"
            ));
        }
        Some(run)
    });
    Ok(merged.collect())
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
            parts: BTreeMap::new(),
            is_unit_open: false,
        }
    }

    /// The same run as the part of all requests with this name.
    fn named(mut self, name: String) -> ForeignRun {
        self.subject = Some(name);
        self
    }

    /// Adds the figures of named requests, unless there is a single name, which means the same as all requests.
    fn name_several(&mut self, parts: Vec<ForeignRun>) {
        if parts.len() > 1 {
            self.name_parts(parts);
        }
    }

    /// Adds the figures of named requests. A name that occurs twice is ambiguous.
    fn name_parts(&mut self, parts: Vec<ForeignRun>) {
        if parts.len() > NAMES_MAX {
            self.note(samples::too_many_names());
            return;
        }
        for mut part in parts {
            let name = part.subject.take().unwrap_or_default();
            if self.parts.remove(&name).is_some() {
                self.note(format!(
                    "several rows have the name `{name}`, so it is not compared"
                ));
            } else {
                self.parts.insert(name, part);
            }
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
        self.is_unit_open |= other.is_unit_open;
        let mut parts = other.parts;
        let own = std::mem::take(&mut self.parts).into_iter();
        // Only a name that every run has can be compared.
        self.parts = own
            .filter_map(|(name, part)| Some((part.and(parts.remove(&name)?), name)))
            .map(|(part, name)| (name, part))
            .collect();
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
        // Without any answer, tools print latencies of 0.
        let is_zero = |metric| {
            self.figures
                .get(&metric)
                .is_none_or(|values| values == &[0.0])
        };
        if self.figures.contains_key(&Metric::Max)
            && [Metric::Max, Metric::Mean].map(is_zero) == [true; 2]
        {
            self.figures.clear();
        }
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

impl ForeignRun {
    /// Stores the rate of successful answers, from the rate of all answers.
    fn rate_of_all(&mut self, per_s: Option<f64>) {
        let share = match self.succeeded.zip(self.failed) {
            Some((succeeded, failed)) if succeeded + failed > 0 => {
                crate::float::float(succeeded) / crate::float::float(succeeded + failed)
            }
            _ => 1.0,
        };
        self.put(Metric::Requests, per_s.map(|rate| rate * share));
        if self.failed.is_none() {
            self.note("it does not contain failures, so requests/s counts every answer");
        }
    }

    /// Stores the rate of this number of answers, or of the successes if they are known.
    fn rate_of_count(&mut self, answers: Option<f64>, us: Option<f64>) {
        let seconds = us.filter(|us| *us > 0.0).map(|us| us / 1e6);
        match self.succeeded {
            Some(_) => self.rate_over(seconds),
            None => self.rate_of_all(answers.zip(seconds).map(|(count, seconds)| count / seconds)),
        }
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
mod more_tests;
#[cfg(test)]
mod tests;
