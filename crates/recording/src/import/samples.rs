//! Figures from files that contain every request. Their quantiles are exact, and the number of omitted
//! requests is clear.

use std::collections::BTreeMap;

use model::Metric;
use stats::sample;

use super::{Document, ForeignRun, Missing, NAMES_MAX, Reads, Reports};

/// The columns of a table with a request in each row.
pub(super) struct Columns {
    pub(super) shape: &'static str,
    /// Names in the header that together only this kind of file has. The first is the first column.
    pub(super) header: &'static [&'static str],
    /// Column of the latency, and its unit in microseconds.
    pub(super) latency: &'static str,
    pub(super) latency_us: f64,
    /// Column of the time of the send, and its unit in microseconds. Without it there is no rate.
    pub(super) sent: &'static str,
    pub(super) sent_us: f64,
    /// True if times of sends count from the start of the run, so the run begins at 0.
    pub(super) is_since_start: bool,
    /// Column that shows if the request succeeded.
    pub(super) result: &'static str,
    pub(super) failures: &'static str,
    /// Column of the name of the request.
    pub(super) name: &'static str,
    /// Column of a text that marks rows that repeat the requests of other rows, and the start of this text.
    pub(super) repeats: (&'static str, &'static str),
    pub(super) is_closed_loop: bool,
    pub(super) notes: &'static [&'static str],
}

const STATUSES: &str = "a status outside of 200 to 399, or no answer";
/// hey and oha list only requests with an answer.
const ANSWERED_ONLY: &str = "the list omits requests without an answer, so failures may be missing";

const NONE: Columns = Columns {
    shape: "",
    header: &[],
    latency: "",
    latency_us: 1e6,
    sent: "",
    sent_us: 1e6,
    is_since_start: false,
    result: "",
    failures: STATUSES,
    name: "",
    repeats: ("", ""),
    is_closed_loop: true,
    notes: &[],
};

pub(super) const HEY: Columns = Columns {
    shape: "hey -o csv",
    header: &["response-time", "DNS+dialup", "status-code", "offset"],
    latency: "response-time",
    sent: "offset",
    is_since_start: true,
    result: "status-code",
    notes: &[
        ANSWERED_ONLY,
        "hey lists latencies in steps of 0.1 ms, and only the first million",
    ],
    ..NONE
};

pub(super) const OHA: Columns = Columns {
    shape: "oha --output-format csv",
    header: &["request-start", "DNS", "request-duration", "status"],
    latency: "request-duration",
    sent: "request-start",
    is_since_start: true,
    result: "status",
    notes: &[ANSWERED_ONLY],
    ..NONE
};

pub(super) const JTL: Columns = Columns {
    shape: "JTL of JMeter",
    header: &["timeStamp", "elapsed"],
    latency: "elapsed",
    latency_us: 1e3,
    sent: "timeStamp",
    sent_us: 1e3,
    result: "success",
    failures: super::tables::JMETER_FAILURES,
    name: "label",
    repeats: ("responseMessage", TRANSACTION),
    notes: &["JMeter keeps latency in whole milliseconds"],
    ..NONE
};

/// Start of the message of a transaction controller, which repeats the time of its samples.
pub(super) const TRANSACTION: &str = "Number of samples in transaction";

pub(super) const GHZ: Columns = Columns {
    shape: "ghz -O csv",
    header: &["duration (ms)", "status", "error"],
    latency: "duration (ms)",
    latency_us: 1e3,
    result: "status",
    failures: "a status other than OK, or no answer",
    is_closed_loop: false,
    notes: &["the table has no times of sends, so it has no rate"],
    ..NONE
};

/// One request of a file.
pub(super) struct Hit<'a> {
    /// Name of the request. Empty without a name.
    pub(super) name: &'a str,
    /// Time of the send. `None` if the file has none.
    pub(super) sent_us: Option<f64>,
    pub(super) latency_us: f64,
    /// `None` if the file does not show it.
    pub(super) is_success: Option<bool>,
    /// True if the file lists its parts as well. It counts for its own name only.
    pub(super) is_repeat: bool,
}

/// The requests of one run.
#[derive(Default)]
pub(super) struct Hits {
    all: Group,
    /// Empty after too many names.
    named: BTreeMap<String, Group>,
    has_too_many_names: bool,
    repeats: u64,
    /// Start of the first request and end of the last request.
    span_us: Option<(f64, f64)>,
    /// Longest time without a request on its way.
    idle_us: f64,
}

/// A pause that is long enough to be a pause between two runs.
const IDLE_MIN_US: f64 = 5e6;

#[derive(Default)]
struct Group {
    latencies_us: Vec<f64>,
    succeeded: u64,
    /// Requests without a result in the file.
    unknown: u64,
}

impl Group {
    fn add(&mut self, hit: &Hit<'_>) {
        self.latencies_us.push(hit.latency_us);
        self.succeeded += u64::from(hit.is_success == Some(true));
        self.unknown += u64::from(hit.is_success.is_none());
    }

    fn run(mut self, shape: &'static str, failures: &str, span_us: Option<f64>) -> ForeignRun {
        let mut run = ForeignRun::new(shape);
        self.latencies_us.sort_unstable_by(f64::total_cmp);
        run.put_samples(1.0, &self.latencies_us);
        let all = self.latencies_us.len() as u64;
        let seconds = span_us.map(|us| us / 1e6);
        if self.unknown == 0 {
            run.count(self.succeeded, all - self.succeeded, failures);
            run.rate_over(seconds);
        } else {
            let seconds = seconds.filter(|seconds| *seconds > 0.0);
            run.rate_of_all(seconds.map(|seconds| crate::float::float(all) / seconds));
        }
        run
    }
}

impl Hits {
    pub(super) fn add(&mut self, hit: &Hit<'_>) {
        if let Some(sent) = hit.sent_us {
            let end = sent + hit.latency_us;
            let (first, last) = self.span_us.unwrap_or((sent, end));
            self.idle_us = self.idle_us.max(sent - last);
            self.span_us = Some((first.min(sent), last.max(end)));
        }
        if hit.is_repeat {
            self.repeats += 1;
        } else {
            self.all.add(hit);
        }
        if hit.name.is_empty() || self.has_too_many_names {
            return;
        }
        if let Some(group) = self.named.get_mut(hit.name) {
            group.add(hit);
        } else if self.named.len() == NAMES_MAX {
            self.has_too_many_names = true;
            self.named.clear();
        } else {
            let mut group = Group::default();
            group.add(hit);
            self.named.insert(hit.name.to_owned(), group);
        }
    }

    pub(super) fn run(self, shape: &'static str, failures: &str) -> Result<ForeignRun, Missing> {
        if self.all.latencies_us.is_empty() {
            return Err(Missing("it has no rows".to_owned()));
        }
        let span_us = self.span_us.map(|(first, last)| last - first);
        let all = self.all.latencies_us.len() as u64;
        let mut run = self.all.run(shape, failures, span_us);
        let named = self.named.into_iter();
        let named = named.map(|(name, group)| group.run(shape, failures, span_us).named(name));
        run.name_several(named.collect());
        if self.has_too_many_names {
            run.note(too_many_names());
        }
        // Requests of a run follow one another closely. JMeter appends to a file without a mark.
        let usual_us = span_us.unwrap_or(0.0) / crate::float::float(all);
        if self.idle_us > IDLE_MIN_US && self.idle_us > 20.0 * usual_us {
            run.note(format!(
                "no request was on its way for {:.0} s. If the file holds two runs, give each run its own file",
                self.idle_us / 1e6
            ));
        }
        if self.repeats > 0 {
            run.note(format!(
                "{} samples of transactions repeat other samples, and count only under their own name",
                crate::digits::count(self.repeats)
            ));
        }
        Ok(run)
    }
}

/// The note on a file with ids in its names.
pub(super) fn too_many_names() -> String {
    format!(
        "it has more than {NAMES_MAX} names of requests, so only all requests together are compared"
    )
}

/// True if a column of results shows a success: a status code, `true`, or `OK`. `None` if it is empty.
fn is_success(result: &str) -> Option<bool> {
    match result.trim() {
        "" => None,
        "true" | "OK" => Some(true),
        other => Some(
            other
                .parse::<f64>()
                .is_ok_and(|code| (200.0..400.0).contains(&code)),
        ),
    }
}

impl Columns {
    /// The character between the columns, if the first line is the header of this kind of file.
    fn delimiter(&self, text: &str) -> Option<u8> {
        let line = text.lines().next()?;
        b",;\t".iter().copied().find(|delimiter| {
            let mut names = line.split(char::from(*delimiter)).map(str::trim);
            line.starts_with(self.header[0])
                && self
                    .header
                    .iter()
                    .all(|name| names.clone().any(|found| found == *name))
                && names.next() == Some(self.header[0])
        })
    }
}

impl Reads for Columns {
    fn shape(&self) -> &'static str {
        self.shape
    }

    fn reports(&self) -> Reports {
        Reports::FirstLine
    }

    fn recognizes(&self, document: &Document<'_>) -> bool {
        self.delimiter(document.text).is_some()
    }

    fn read(&self, document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
        let delimiter = self.delimiter(document.text).unwrap_or(b',');
        let header = document.text.lines().next().unwrap_or_default();
        let place = |name: &str| {
            let mut names = header.split(char::from(delimiter));
            names.position(|known| known.trim() == name)
        };
        let (latency, sent) = (place(self.latency), place(self.sent));
        let (result, name, message) = (place(self.result), place(self.name), place(self.repeats.0));
        let mut hits = Hits::default();
        if self.is_since_start {
            hits.span_us = Some((0.0, 0.0));
        }
        for row in rows(document.text, true, delimiter) {
            let (number, row) = row?;
            let at =
                |place: Option<usize>| place.and_then(|place| row.get(place)).unwrap_or_default();
            let need = |what: &str, place: Option<usize>| {
                at(place).trim().parse::<f64>().map_err(|_| {
                    let found = at(place);
                    Missing(format!(
                        "row {number} has no number as {what}, found `{found}`"
                    ))
                })
            };
            hits.add(&Hit {
                name: at(name),
                sent_us: match sent {
                    Some(_) => Some(need(self.sent, sent)? * self.sent_us),
                    None => None,
                },
                latency_us: need(self.latency, latency)? * self.latency_us,
                is_success: is_success(at(result)),
                is_repeat: message.is_some() && at(message).starts_with(self.repeats.1),
            });
        }
        let mut run = hits.run(self.shape, self.failures)?;
        run.is_closed_loop = self.is_closed_loop;
        for note in self.notes {
            run.note(*note);
        }
        Ok(vec![run])
    }
}

impl ForeignRun {
    /// Stores figures of single latencies. The file has them in a unit of `unit_us` microseconds.
    pub(super) fn put_samples(&mut self, unit_us: f64, values: &[f64]) {
        let quantile = |share: f64| sample::quantile(values, share);
        self.put_all(
            unit_us,
            [
                (Metric::Min, sample::min(values)),
                (Metric::Mean, sample::mean(values)),
                (Metric::Stdev, sample::stddev(values)),
                (Metric::P50, quantile(0.5)),
                (Metric::P75, quantile(0.75)),
                (Metric::P90, quantile(0.9)),
                (Metric::P95, quantile(0.95)),
                (Metric::P99, quantile(0.99)),
                (Metric::P999, quantile(0.999)),
                (Metric::Max, sample::max(values)),
            ],
        );
    }
}

/// The rows of a table, with their lines in the file. A broken row is an error.
pub(super) fn rows(
    text: &str,
    has_header: bool,
    delimiter: u8,
) -> impl Iterator<Item = Result<(usize, csv::StringRecord), Missing>> {
    let reader = csv::ReaderBuilder::new()
        .has_headers(has_header)
        .delimiter(delimiter)
        // The reader of the format rejects rows of other lengths, because it can name the missing field.
        .flexible(true)
        .from_reader(text.as_bytes());
    // Lines are counted as in an editor, with the header as line 1.
    let first = 1 + usize::from(has_header);
    reader
        .into_records()
        .enumerate()
        .map(move |(index, row)| match row {
            Ok(row) => Ok((index + first, row)),
            Err(error) => Err(Missing(format!("row {} is broken: {error}", index + first))),
        })
}

/// The index of a column, from the names in the first line.
pub(super) fn column(text: &str, name: &str) -> Option<usize> {
    let header = text.lines().next()?;
    header.split(',').position(|known| known.trim() == name)
}

#[cfg(test)]
mod tests {
    use model::Metric::{Max, Mean, Min, P50, Requests};

    use crate::import::tests::{claims, is_noted, one};

    #[test]
    fn the_table_of_k6_leaves_out_what_setup_sent() {
        let run = one(include_str!("../../samples/k6-points.csv"));
        assert_eq!(run.shape, "k6 --out csv");
        claims(
            &run,
            &[(Mean, 3.992_945), (Max, 10.629_866), (Requests, 40.0)],
            Some((40, 1)),
        );
        is_noted(
            &run,
            "1 requests of `setup()` and `teardown()` are left out",
        );
    }

    #[test]
    fn the_lists_of_hey_and_ab_have_exact_figures() {
        let hey = one(include_str!("../../samples/hey.csv"));
        assert_eq!(hey.shape, "hey -o csv");
        claims(
            &hey,
            &[(Mean, 4.076_667), (Max, 10.3), (Requests, 59.0 / 0.095)],
            Some((59, 1)),
        );
        let ab = one(include_str!("../../samples/ab.tsv"));
        assert_eq!(ab.shape, "ab -g");
        claims(&ab, &[(Min, 2.0), (Mean, 4.716_667), (Max, 8.0)], None);
    }

    #[test]
    fn the_hits_of_vegeta_mean_the_same_in_both_kinds() {
        let json = one(include_str!("../../samples/vegeta-hits.json"));
        let csv = one(include_str!("../../samples/vegeta-hits.csv"));
        assert_eq!(
            (json.shape, csv.shape),
            ("vegeta encode", "vegeta encode -to=csv")
        );
        assert_eq!(json.figures, csv.figures);
        // The time from the first send to the last response is 40 ms.
        claims(
            &json,
            &[
                (Min, 1.0),
                (P50, 2.65),
                (Mean, 4.075),
                (Max, 10.0),
                (Requests, 75.0),
            ],
            Some((3, 1)),
        );
        is_noted(&csv, "503 Service Unavailable");
    }

    #[test]
    fn a_broken_row_is_named() {
        for (text, what) in [
            (
                "metric_name,timestamp,metric_value,group\nhttp_reqs,then,1,\n",
                "row 2 has no time, found `then`",
            ),
            (
                "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n0.1,x\n",
                "row 2 has no number as offset",
            ),
        ] {
            let message = crate::import::read(text).unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
        }
    }
}
