//! Reader of files with figures in the fields of a tree: a table of paths for each kind of file.
//!
//! A path consists of keys between slashes. `[key=value]` selects an element of a list, and `[key>=1]` the
//! first element with at least this number. Alternatives have `|` between them, and the first present value
//! counts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::Metric;
use serde_json::Value;

use super::{Condition, Document, ForeignRun, Missing, Reads, Reports, by_status, whole, words};

/// The fields of one kind of file.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) shape: &'static str,
    pub(super) reports: Reports,
    /// Words in the text, which are cheaper to find than paths.
    pub(super) words: &'static [&'static str],
    /// Paths that together only this kind of file has.
    pub(super) marks: &'static [&'static str],
    /// The file as a tree. `None` if it cannot be this kind of file.
    pub(super) tree: for<'a> fn(&'a Document<'_>) -> Option<Cow<'a, Value>>,
    /// The parts of the tree that are runs.
    pub(super) split: for<'a> fn(&'a Value) -> Split<'a>,
    /// The object that contains the figures.
    pub(super) latencies: &'static str,
    /// Unit of a latency without its own unit, in microseconds. `None` if it comes from the user.
    pub(super) unit_us: Option<f64>,
    pub(super) figures: &'static [(Metric, &'static str)],
    pub(super) counts: Counts,
    /// Name of the failures in the note on them.
    pub(super) failures: &'static str,
    pub(super) rate: Pace,
    pub(super) subject: &'static str,
    pub(super) conditions: &'static [(Condition, &'static str)],
    pub(super) offered: &'static str,
    pub(super) is_closed_loop: bool,
    pub(super) notes: &'static [&'static str],
    /// Adds the parts that need code. The figures and counts are present before.
    pub(super) more: fn(&Value, &mut ForeignRun),
}

/// Place of the numbers of successes and failures.
#[derive(Clone, Copy)]
pub(super) enum Counts {
    /// The file has no failures.
    Unknown,
    /// Counts by status code, and counts or a count of requests without an answer.
    Statuses(&'static str, &'static str),
    /// Counts by status code, and the number of all requests.
    StatusesOf(&'static str, &'static str),
    /// Counts of successes and of failures that add up.
    Sums(&'static [&'static str], &'static [&'static str]),
    /// The number of all requests, and of failures.
    Failed(&'static str, &'static str),
    /// The number of all requests, and the share of failures in percent.
    Percent(&'static str, &'static str),
    /// Successes and failures that code counts. `None` if they are unknown.
    By(fn(&Value) -> Option<Answered>),
}

/// Numbers of requests by their result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answered {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
}

/// Place of the rate, or of the length of the run.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    Unknown,
    /// Length of the run. A number without a unit is in this many seconds.
    Over(&'static str, f64),
    /// All answers per second.
    Answers(&'static str),
    /// Successful answers per second.
    Successes(&'static str),
}

/// The parts of a file that are runs.
#[derive(Default)]
pub(super) struct Split<'a> {
    /// The figures of all requests together.
    pub(super) total: Option<&'a Value>,
    /// The figures of requests with a name.
    pub(super) named: Vec<(String, &'a Value)>,
}

impl Fields {
    /// A kind of file without any field.
    pub(super) const NONE: Self = Self {
        shape: "",
        reports: Reports::One,
        words: &[],
        marks: &[],
        tree: json,
        split: whole_tree,
        latencies: "",
        unit_us: Some(1.0),
        figures: &[],
        counts: Counts::Unknown,
        failures: "a status outside of 200 to 399, or no answer",
        rate: Pace::Unknown,
        subject: "",
        conditions: &[],
        offered: "",
        is_closed_loop: false,
        notes: &[],
        more: |_, _| {},
    };

    fn run(&self, tree: &Value, unit: Option<f64>) -> Result<ForeignRun, Missing> {
        let mut run = ForeignRun::new(self.shape);
        run.is_closed_loop = self.is_closed_loop;
        run.is_unit_open = self.unit_us.is_none();
        let unit_us = self.unit_us.or(unit).ok_or_else(|| {
            Missing(
                "its latencies have no unit. Name it with `--unit us`, `ms`, `s` or `ns`".into(),
            )
        })?;
        let latencies = match self.latencies {
            "" => Some(tree),
            path => find(tree, path),
        };
        for (metric, path) in self.figures {
            let value = latencies.and_then(|latencies| find(latencies, path));
            run.put(*metric, value.and_then(|value| time_us(value, unit_us)));
        }
        let has_latencies = !run.figures.is_empty();
        self.count(tree, &mut run)?;
        self.pace(tree, &mut run)?;
        run.subject = text(tree, self.subject);
        for (condition, path) in self.conditions {
            run.under(*condition, text(tree, path));
        }
        run.offered_per_s = number(tree, self.offered).filter(|rate| *rate > 0.0);
        (self.more)(tree, &mut run);
        // Without any answer there is no latency. Otherwise the file is not complete.
        if !has_latencies && run.succeeded != Some(0) {
            return Err(Missing("it has no latencies".to_owned()));
        }
        for note in self.notes {
            run.note(*note);
        }
        Ok(run)
    }

    fn count(&self, tree: &Value, run: &mut ForeignRun) -> Result<(), Missing> {
        let sum = |paths: &[&str]| {
            paths
                .iter()
                .filter_map(|path| number(tree, path))
                .sum::<f64>()
        };
        let need = |path: &str| {
            let name = path.split('|').next().unwrap_or_default().replace('/', ".");
            number(tree, path).ok_or_else(|| Missing(format!("`{name}` is not a number")))
        };
        let (succeeded, failed) = match self.counts {
            Counts::Unknown => return Ok(()),
            Counts::Statuses(codes, errors) => {
                let Some(codes) = find(tree, codes) else {
                    return Ok(());
                };
                let (succeeded, others) = by_status(Some(codes));
                (succeeded, others + find(tree, errors).map_or(0, summed))
            }
            Counts::StatusesOf(codes, total) => {
                let total = whole(need(total)?);
                let (succeeded, _) = by_status(find(tree, codes));
                (succeeded, total.saturating_sub(succeeded))
            }
            Counts::Sums(succeeded, failed) => {
                if succeeded.iter().all(|path| number(tree, path).is_none()) {
                    return Ok(());
                }
                (whole(sum(succeeded)), whole(sum(failed)))
            }
            Counts::Failed(total, failed) => {
                let total = whole(need(total)?);
                let Some(failed) = number(tree, failed).map(whole) else {
                    return Ok(());
                };
                (total.saturating_sub(failed), failed)
            }
            Counts::Percent(total, percent) => {
                let total = need(total)?;
                let Some(percent) = number(tree, percent) else {
                    return Ok(());
                };
                let failed = whole(total * percent / 100.0);
                (whole(total).saturating_sub(failed), failed)
            }
            Counts::By(count) => match count(tree) {
                Some(counts) => (counts.succeeded, counts.failed),
                None => return Ok(()),
            },
        };
        run.count(succeeded, failed, self.failures);
        Ok(())
    }

    fn pace(&self, tree: &Value, run: &mut ForeignRun) -> Result<(), Missing> {
        match self.rate {
            Pace::Unknown => {}
            Pace::Over(path, seconds) => {
                let length = find(tree, path).and_then(|value| time_us(value, seconds * 1e6));
                let name = path.split('|').next().unwrap_or_default().replace('/', ".");
                let length = length.ok_or_else(|| Missing(format!("`{name}` is not a number")))?;
                run.rate_over(Some(length / 1e6));
            }
            Pace::Answers(path) => run.rate_of_all(number(tree, path)),
            Pace::Successes(path) => run.put(Metric::Requests, number(tree, path)),
        }
        Ok(())
    }
}

impl Reads for Fields {
    fn shape(&self) -> &'static str {
        self.shape
    }

    fn reports(&self) -> Reports {
        self.reports
    }

    fn recognizes(&self, document: &Document<'_>) -> bool {
        if !self.words.iter().all(|word| document.text.contains(word)) {
            return false;
        }
        let tree = (self.tree)(document);
        tree.is_some_and(|tree| self.marks.iter().all(|mark| find(&tree, mark).is_some()))
    }

    fn read(&self, document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
        let tree = (self.tree)(document).ok_or_else(|| Missing("it has no fields".to_owned()))?;
        let split = (self.split)(&tree);
        let mut named = Vec::new();
        for (name, part) in split.named {
            named.push(self.run(part, document.unit_us)?.named(name));
        }
        let Some(total) = split.total else {
            if let [only] = named.as_mut_slice() {
                only.subject = None;
            }
            return match named.is_empty() {
                true => Err(Missing("it has no rows".to_owned())),
                false => Ok(named),
            };
        };
        let mut run = self.run(total, document.unit_us)?;
        run.name_several(named);
        Ok(vec![run])
    }
}

/// The file as one JSON value.
pub(super) fn json<'a>(document: &'a Document<'_>) -> Option<Cow<'a, Value>> {
    document.json.as_ref().ok().map(Cow::Borrowed)
}

fn whole_tree(tree: &Value) -> Split<'_> {
    Split {
        total: Some(tree),
        named: Vec::new(),
    }
}

/// The value at a path. A whole path may also be one key, because columns of tables have slashes.
pub(super) fn find<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return None;
    }
    path.split('|').find_map(|path| {
        let found = tree.get(path).or_else(|| {
            path.split('/')
                .try_fold(tree, |value, key| match key.strip_prefix('[') {
                    Some(rule) => selected(value, rule.strip_suffix(']')?),
                    None => value
                        .get(key)
                        .or_else(|| value.get(key.parse::<usize>().ok()?)),
                })
        });
        found.filter(|value| !value.is_null())
    })
}

/// The element of a list that a rule such as `percentile>=0.5` selects.
fn selected<'a>(list: &'a Value, rule: &str) -> Option<&'a Value> {
    let list = list.as_array()?;
    if let Some((key, least)) = rule.split_once(">=") {
        let least: f64 = least.parse().ok()?;
        return list.iter().find(|one| {
            let found = one.get(key).and_then(plain);
            found.is_some_and(|found| found >= least - 1e-9)
        });
    }
    let (key, wanted) = rule.split_once('=')?;
    list.iter().find(|one| match one.get(key) {
        Some(Value::String(text)) => text == wanted,
        Some(value) => {
            let wanted = wanted.parse::<f64>().ok();
            value
                .as_f64()
                .zip(wanted)
                .is_some_and(|(found, wanted)| (found - wanted).abs() < 1e-9)
        }
        None => false,
    })
}

/// A number at a path. Tools also write numbers as text, with `%` or a unit after them.
pub(super) fn number(tree: &Value, path: &str) -> Option<f64> {
    find(tree, path).and_then(plain)
}

fn plain(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => {
            let word = text.split_whitespace().next()?;
            words::number(word.trim_end_matches('%'))
        }
        _ => value.as_f64(),
    }
}

/// A duration in microseconds. A text may contain its own unit.
pub(super) fn time_us(value: &Value, unit_us: f64) -> Option<f64> {
    match value {
        Value::String(text) => {
            words::spaced_time_us(text).or_else(|| Some(plain(value)? * unit_us))
        }
        _ => Some(value.as_f64()? * unit_us),
    }
}

/// A scalar at a path as text. An empty text counts as absent.
pub(super) fn text(tree: &Value, path: &str) -> Option<String> {
    match find(tree, path)? {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        value => value.as_f64().map(|number| number.to_string()),
    }
}

/// A count, or the sum of the counts of an object.
fn summed(value: &Value) -> u64 {
    match value.as_object() {
        Some(counts) => counts.values().filter_map(plain).map(whole).sum(),
        None => plain(value).map_or(0, whole),
    }
}

/// The labels of a text for humans with their values: `Total: 2.0 secs`, `50% in 3 ms`, `[200] 7 responses`.
/// The first of equal labels counts.
pub(super) fn labels<'a>(document: &'a Document<'_>) -> Option<Cow<'a, Value>> {
    let mut fields: BTreeMap<String, Value> = BTreeMap::new();
    let (mut statuses, mut errors) = (serde_json::Map::new(), serde_json::Map::new());
    let mut columns: Vec<&str> = Vec::new();
    for line in document.text.lines().map(str::trim) {
        let bracketed = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if let Some((inside, rest)) = bracketed {
            let rest = rest.trim();
            match rest.strip_suffix("responses").and_then(words::number) {
                Some(count) => statuses.insert(inside.to_owned(), count.into()),
                None => errors.insert(rest.to_owned(), words::number(inside).unwrap_or(0.0).into()),
            };
        } else if let Some((percent, time)) =
            line.split_once(" in ").filter(|it| it.0.contains('%'))
        {
            // `50% in`, `50%% in`, `50 % in` and `50.00% in` are the same label.
            let percent = percent.trim_end_matches(['%', ' ']).parse::<f64>();
            if let Ok(percent) = percent {
                let label = format!("{percent}%");
                fields.entry(label).or_insert_with(|| time.into());
            }
        } else if let Some(rest) = line.strip_prefix("finished in ") {
            let time = rest.split_whitespace().next().and_then(words::time_us);
            fields.insert("finished_us".to_owned(), time.into());
        } else if line.starts_with("min ") {
            columns = line.split_whitespace().collect();
        } else if let Some((label, value)) = line.split_once(':') {
            let value = match columns.is_empty() {
                true => Value::from(value.trim()),
                false => {
                    let values = value.split_whitespace().map(Value::from);
                    columns
                        .iter()
                        .map(|name| (*name).to_owned())
                        .zip(values)
                        .collect()
                }
            };
            fields.entry(label.trim().to_owned()).or_insert(value);
        }
    }
    fields.insert("statuses".to_owned(), statuses.into());
    fields.insert("errors".to_owned(), errors.into());
    Some(Cow::Owned(fields.into_iter().collect()))
}

/// The rows of a table with a header, each as an object. `None` for a table of over 10,000 rows, which
/// contains no figures but samples.
pub(super) fn rows<'a>(document: &'a Document<'_>) -> Option<Cow<'a, Value>> {
    let header = document.text.lines().next()?;
    if header.len() > 4096 || !header.contains(',') {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(document.text.as_bytes());
    let names = reader.headers().ok()?.clone();
    let mut rows = Vec::new();
    for row in reader.records().take(ROWS_MAX + 1) {
        let row = row.ok()?;
        let fields = names.iter().zip(row.iter());
        let fields =
            fields.map(|(name, value)| (name.trim().to_owned(), Value::from(value.trim())));
        rows.push(fields.collect());
    }
    (rows.len() <= ROWS_MAX).then_some(Cow::Owned(Value::Array(rows)))
}

const ROWS_MAX: usize = 10_000;
