//! Reader of k6's stream of points, `--out json`, with one value per line. The quantiles are exact.

use jiff::Timestamp;
use serde::Deserialize;

use super::k6::{MEANING, dropped_text};
use super::{Condition, Document, ForeignRun, Missing, Reader, whole};
use crate::digits;

const SHAPE: &str = "k6 --out json";

pub(super) const POINTS: Reader = Reader {
    shape: SHAPE,
    recognizes: |document| {
        let first = document.text.lines().next().unwrap_or_default();
        serde_json::from_str::<Line>(first)
            .is_ok_and(|line| ["Metric", "Point"].contains(&&*line.kind))
    },
    read,
};

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    metric: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    /// Time in RFC 3339. `None` if the line describes a metric.
    time: Option<String>,
    value: Option<f64>,
    tags: Option<Tags>,
}

#[derive(Deserialize)]
struct Tags {
    group: Option<String>,
}

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let mut points = Points::default();
    for (index, text) in document.text.lines().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(text)
            .map_err(|error| Missing(format!("line {} is broken: {error}", index + 1)))?;
        // Lines that describe a metric have neither time nor value.
        let (Some(value), Some(time)) = (line.data.value, line.data.time) else {
            continue;
        };
        let time: Timestamp = time
            .parse()
            .map_err(|_| Missing(format!("line {} has no time, found `{time}`", index + 1)))?;
        let group = line.data.tags.and_then(|tags| tags.group);
        points.add(&Point {
            metric: &line.metric,
            value,
            time,
            group: group.as_deref().unwrap_or_default(),
        });
    }
    let mut run = points.run(SHAPE)?;
    run.note("requests/s is counted from the first answer to the last");
    Ok(vec![run])
}

/// One value of one metric.
pub(super) struct Point<'a> {
    pub(super) metric: &'a str,
    pub(super) value: f64,
    pub(super) time: Timestamp,
    pub(super) group: &'a str,
}

/// Sums and values of a stream of points.
#[derive(Default)]
pub(super) struct Points {
    durations_ms: Vec<f64>,
    sent: f64,
    failed: f64,
    dropped: f64,
    /// The maximum number of virtual users. `None` if no point contains it.
    users: Option<f64>,
    /// Requests of `setup()` and `teardown()`, which do not belong to the load.
    aside: u64,
    span: Option<(Timestamp, Timestamp)>,
}

impl Points {
    pub(super) fn add(&mut self, point: &Point<'_>) {
        let is_aside = ["::setup", "::teardown"].contains(&point.group);
        // The count comes before all points of `setup()` and `teardown()` are skipped.
        match point.metric {
            "http_reqs" if is_aside => self.aside += 1,
            _ if is_aside => {}
            "http_req_duration" => self.durations_ms.push(point.value),
            // A point is 1 for a failed request and 0 for any other request, so the sum is their count.
            "http_req_failed" => self.failed += point.value,
            "dropped_iterations" => self.dropped += point.value,
            "vus_max" => self.users = Some(self.users.unwrap_or(0.0).max(point.value)),
            "http_reqs" => {
                self.sent += point.value;
                let (first, last) = self.span.unwrap_or((point.time, point.time));
                self.span = Some((first.min(point.time), last.max(point.time)));
            }
            _ => {}
        }
    }

    pub(super) fn run(self, shape: &'static str) -> Result<ForeignRun, Missing> {
        if self.durations_ms.is_empty() {
            return Err(Missing("it has no point of `http_req_duration`".to_owned()));
        }
        let mut run = ForeignRun::new(shape);
        run.put_samples(1e3, &self.durations_ms);
        run.count(
            whole(self.sent - self.failed),
            whole(self.failed),
            "`http_req_failed`",
        );
        let span = self.span;
        run.rate_over(span.map(|(first, last)| last.duration_since(first).as_secs_f64()));
        run.under(Condition::Users, self.users);
        run.note(MEANING);
        if self.aside > 0 {
            let count = digits::count(self.aside);
            run.note(format!(
                "{count} requests of `setup()` and `teardown()` are left out"
            ));
        }
        if self.dropped > 0.0 {
            run.note(dropped_text(whole(self.dropped)));
        }
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use crate::import::Condition;
    use crate::import::tests::one;

    #[test]
    fn the_most_virtual_users_of_the_stream_are_those_of_the_run() {
        let points = include_str!("../../samples/k6-points.json").trim_end();
        assert!(!one(points).conditions.contains_key(&Condition::Users));
        let users = |count: u32| {
            format!(
                r#"{{"metric":"vus_max","type":"Point","data":{{"time":"2026-11-21T14:21:55Z","value":{count},"tags":{{}}}}}}"#
            )
        };
        let stream = [points, &users(5), &users(20), &users(10)].join("\n");
        assert_eq!(one(&stream).conditions[&Condition::Users], "20");
    }
}
