//! Reader of k6's stream of points, `--out json`, with one value per line. The quantiles are exact.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::k6::{MEANING, dropped_text};
use super::samples::too_many_names;
use super::{Condition, Document, ForeignRun, Missing, NAMES_MAX, Reader, Reports, whole};
use crate::digits;

const SHAPE: &str = "k6 --out json";

pub(super) const POINTS: Reader = Reader {
    shape: SHAPE,
    reports: Reports::One,
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
    method: Option<String>,
    name: Option<String>,
}

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let mut runs = vec![Points::default()];
    // k6 describes each metric once, before its first point. A second description begins another run.
    let mut described: Vec<String> = Vec::new();
    for (index, text) in document.text.lines().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(text)
            .map_err(|error| Missing(format!("line {} is broken: {error}", index + 1)))?;
        // Lines that describe a metric have neither time nor value.
        let (Some(value), Some(time)) = (line.data.value, line.data.time) else {
            if described.contains(&line.metric) {
                described.clear();
                runs.push(Points::default());
            }
            described.push(line.metric);
            continue;
        };
        let time: Timestamp = time
            .parse()
            .map_err(|_| Missing(format!("line {} has no time, found `{time}`", index + 1)))?;
        let tags = line.data.tags.as_ref();
        let tag = |of: fn(&Tags) -> &Option<String>| {
            tags.and_then(|tags| of(tags).as_deref())
                .unwrap_or_default()
        };
        let points = runs.last_mut().expect("it begins with one run");
        points.add(&Point {
            metric: &line.metric,
            value,
            time,
            group: tag(|tags| &tags.group),
            method: tag(|tags| &tags.method),
            name: tag(|tags| &tags.name),
        });
    }
    let runs = runs.into_iter().map(|points| {
        let mut run = points.run(SHAPE)?;
        run.note("requests/s is counted from the first answer to the last");
        Ok(run)
    });
    runs.collect()
}

/// One value of one metric.
pub(super) struct Point<'a> {
    pub(super) metric: &'a str,
    pub(super) value: f64,
    pub(super) time: Timestamp,
    pub(super) group: &'a str,
    pub(super) method: &'a str,
    /// The name that the script gives to the request, or its URL.
    pub(super) name: &'a str,
}

/// Sums and values of a stream of points.
#[derive(Default)]
pub(super) struct Points {
    all: Requests,
    /// Requests by their name. Empty after too many names.
    named: BTreeMap<String, Requests>,
    has_too_many_names: bool,
    dropped: f64,
    /// The maximum number of virtual users. `None` if no point contains it.
    users: Option<f64>,
    /// Requests of `setup()` and `teardown()`, which do not belong to the load.
    aside: u64,
    span: Option<(Timestamp, Timestamp)>,
}

/// Values of the points of some requests.
#[derive(Default)]
struct Requests {
    durations_ms: Vec<f64>,
    sent: f64,
    /// `None` without points of failures.
    failed: Option<f64>,
}

impl Requests {
    fn add(&mut self, metric: &str, value: f64) {
        match metric {
            // A script sends requests of HTTP or calls of gRPC.
            "http_req_duration" | "grpc_req_duration" => self.durations_ms.push(value),
            // A point is 1 for a failed request and 0 for any other request, so the sum is their count.
            "http_req_failed" => *self.failed.get_or_insert(0.0) += value,
            "http_reqs" => self.sent += value,
            _ => {}
        }
    }

    fn run(self, shape: &'static str, seconds: Option<f64>) -> ForeignRun {
        let mut run = ForeignRun::new(shape);
        run.put_samples(1e3, &self.durations_ms);
        if let Some(failed) = self.failed {
            run.count(
                whole(self.sent - failed),
                whole(failed),
                "`http_req_failed`",
            );
        }
        let sent = Some(self.sent).filter(|sent| *sent > 0.0);
        run.rate_of_count(sent, seconds.map(|seconds| seconds * 1e6));
        run
    }
}

impl Points {
    pub(super) fn add(&mut self, point: &Point<'_>) {
        let is_aside = ["::setup", "::teardown"].contains(&point.group);
        // The count comes before all points of `setup()` and `teardown()` are skipped.
        match point.metric {
            "http_reqs" if is_aside => self.aside += 1,
            _ if is_aside => return,
            "dropped_iterations" => self.dropped += point.value,
            "vus_max" => self.users = Some(self.users.unwrap_or(0.0).max(point.value)),
            "http_reqs" => {
                let (first, last) = self.span.unwrap_or((point.time, point.time));
                self.span = Some((first.min(point.time), last.max(point.time)));
            }
            _ => {}
        }
        if is_aside {
            return;
        }
        self.all.add(point.metric, point.value);
        let is_of_request =
            point.metric.starts_with("http_req") || point.metric == "grpc_req_duration";
        if !is_of_request || point.name.is_empty() || self.has_too_many_names {
            return;
        }
        // A URL is a name only together with its method.
        let name = match point.name.contains("://") && !point.method.is_empty() {
            true => format!("{} {}", point.method, point.name),
            false => point.name.to_owned(),
        };
        if self.named.len() == NAMES_MAX && !self.named.contains_key(&name) {
            self.has_too_many_names = true;
            self.named.clear();
        } else {
            let named = self.named.entry(name).or_default();
            named.add(point.metric, point.value);
        }
    }

    pub(super) fn run(self, shape: &'static str) -> Result<ForeignRun, Missing> {
        if self.all.durations_ms.is_empty() {
            return Err(Missing("it has no point of `http_req_duration`".to_owned()));
        }
        let span = self.span;
        let seconds = span.map(|(first, last)| last.duration_since(first).as_secs_f64());
        let mut run = self.all.run(shape, seconds);
        let named = self.named.into_iter();
        let named = named.map(|(name, requests)| requests.run(shape, seconds).named(name));
        run.name_several(named.collect());
        if self.has_too_many_names {
            run.note(too_many_names());
        }
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
