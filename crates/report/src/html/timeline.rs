//! Pictures of rate, latency and errors over time. The rounds of a variant follow one another, so that a
//! drift from round to round and a stall inside a round are visible.

use analysis::summary::{Summary, complete_rounds};
use recording::{Recording, RoundRecord, digits, float};

use super::escape::escape;
use super::plot::{Frame, STRETCHED, Scale, Tick, path};

/// Maximum number of points of one line. Windows are merged to stay below it.
const POINTS: usize = 400;

/// Figures of a part of a round.
struct Point {
    /// Time in rounds since the start of the first one: 2.5 is the middle of the third.
    at: f64,
    requests_per_s: f64,
    /// `None` if there was no response.
    latency_ms: Option<f64>,
    errors: u64,
}

/// One variant over all its rounds.
struct Line<'a> {
    name: &'a str,
    /// Numbers of the rounds, from 1.
    numbers: Vec<u32>,
    rounds: Vec<Vec<Point>>,
    /// Length of a point in microseconds.
    width_us: u64,
}

/// A picture for each variant that has a number, all on the same scales.
pub(super) fn timelines(recording: &Recording, summary: &Summary) -> String {
    let lines: Vec<Line<'_>> = summary
        .variants
        .iter()
        .filter(|row| row.has_number())
        .filter_map(|row| Line::of(&row.name, &complete_rounds(recording, &row.name)))
        .collect();
    let points = || lines.iter().flat_map(|line| line.rounds.iter().flatten());
    let rate = points()
        .map(|point| point.requests_per_s)
        .fold(0.0, f64::max);
    let latency = points().filter_map(|point| point.latency_ms);
    let latency = latency.fold(0.0, f64::max);
    // Without a point there is no axis, so the scale 0 has no effect.
    let errors = points().map(|point| point.errors).max().unwrap_or(0);
    let is_level =
        summary.is_open_loop && points().all(|point| point.requests_per_s >= rate * LEVEL);
    let scales = Scales {
        rate: (!is_level).then(|| Scale::linear(0.0, rate * 1.08)),
        latency: Scale::linear(0.0, latency * 1.08),
        errors: (errors > 0).then(|| Scale::linear(0.0, float(errors))),
    };
    lines.iter().map(|line| line.draw(&scales)).collect()
}

/// Length of a point in the pictures: `100 ms`. `None` without windows.
pub(super) fn width(recording: &Recording, summary: &Summary) -> Option<String> {
    let row = summary.variants.iter().find(|row| row.has_number())?;
    let rounds = complete_rounds(recording, &row.name);
    let line = Line::of(&row.name, &rounds)?;
    Some(digits::length_us(line.width_us))
}

/// Share of the highest rate that every point of a level rate has.
const LEVEL: f64 = 0.8;

struct Scales {
    /// `None` if the plan gives the rate and every point keeps it.
    rate: Option<Scale>,
    latency: Scale,
    /// `None` if every request of every variant passed.
    errors: Option<Scale>,
}

impl<'a> Line<'a> {
    fn of(name: &'a str, rounds: &[&RoundRecord]) -> Option<Self> {
        let windows = |round: &&RoundRecord| round.windows.completed.len();
        let longest = rounds.iter().map(windows).max()?;
        // A point has at least one window. It has several if a run is longer than the number of points in the
        // picture.
        let together = (longest * rounds.len()).div_ceil(POINTS).max(1);
        let points = |(index, round): (usize, &&RoundRecord)| points(round, index, together);
        let width_us = rounds.first()?.windows.width_us * together as u64;
        let line = Self {
            name,
            numbers: rounds.iter().map(|round| round.round + 1).collect(),
            rounds: rounds.iter().enumerate().map(points).collect(),
            width_us,
        };
        // A round of one window is a single point, so it has no line.
        line.rounds
            .iter()
            .any(|round| round.len() > 1)
            .then_some(line)
    }

    fn draw(&self, scales: &Scales) -> String {
        let rate = |point: &Point| Some(point.requests_per_s);
        let mut strips = String::new();
        if let Some(scale) = scales.rate {
            strips += &self.strip("requests/s", scale, &self.lines(scale, rate));
        }
        let latency = |point: &Point| point.latency_ms;
        let lines = self.lines(scales.latency, latency);
        strips += &self.strip("mean latency, ms", scales.latency, &lines);
        if let Some(scale) = scales.errors {
            strips += &self.strip("errors", scale, &self.errors(scale));
        }
        let axis = match self.rounds.len() {
            1 => "time",
            _ => "round, in the order of time",
        };
        format!(
            "<figure>\n<figcaption><b>{}</b></figcaption>\n{strips}\
             <p class=\"under\">{axis}</p>\n</figure>\n",
            escape(self.name)
        )
    }

    fn strip(&self, label: &str, scale: Scale, body: &str) -> String {
        let count = float(self.rounds.len() as u64);
        // Some round numbers are left out, because there is too little space for all.
        let every = self.rounds.len().div_ceil(12);
        let across = self.numbers.iter().enumerate().map(|(index, number)| Tick {
            percent: (float(index as u64) + 0.5) / count * 100.0,
            is_minor: false,
            label: if index % every == 0 && self.rounds.len() > 1 {
                number.to_string()
            } else {
                String::new()
            },
        });
        let borders: String = (1..self.rounds.len())
            .map(|index| {
                let x = float(index as u64) / count * 100.0;
                format!(
                    "<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"100%\"/>\n"
                )
            })
            .collect();
        let title = format!("{}: {label} over time", self.name);
        let frame = Frame {
            title: &title,
            description: "",
            class: if label == "errors" {
                "strip low"
            } else {
                "strip"
            },
            across: across.collect(),
            up: scale
                .ticks(if label == "errors" { 1.0 } else { 3.0 })
                .into_iter()
                .map(|(value, label)| Tick {
                    percent: scale.percent(value),
                    is_minor: false,
                    label,
                })
                .collect(),
        };
        format!(
            "<p class=\"over\">{label}</p>\n{}",
            frame.draw(&(borders + body))
        )
    }

    /// A line for each round. A part without responses is a gap.
    fn lines(&self, scale: Scale, value: impl Fn(&Point) -> Option<f64>) -> String {
        let count = float(self.rounds.len() as u64);
        let mut paths = String::new();
        for round in &self.rounds {
            for part in round.split(|point| value(point).is_none()) {
                let places = part.iter().filter_map(|point| {
                    Some((point.at / count * 100.0, scale.percent(value(point)?)))
                });
                paths += &path(places);
            }
        }
        format!("{STRETCHED}<path class=\"curve own\" d=\"{paths}\"/></svg>\n")
    }

    fn errors(&self, scale: Scale) -> String {
        let count = float(self.rounds.len() as u64);
        let points = self
            .rounds
            .iter()
            .flatten()
            .filter(|point| point.errors > 0);
        let bar = |point: &Point| {
            let (x, y) = (
                point.at / count * 100.0,
                100.0 - scale.percent(float(point.errors)),
            );
            format!(
                "<line class=\"error\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{y:.2}%\" y2=\"100%\"/>\n"
            )
        };
        points.map(bar).collect()
    }
}

/// The windows of a round, `together` per point. A window that the end cut short is left out.
fn points(round: &RoundRecord, index: usize, together: usize) -> Vec<Point> {
    let windows = &round.windows;
    let (width_us, elapsed_us) = (windows.width_us, round.elapsed_us);
    if width_us == 0 || elapsed_us == 0 {
        return Vec::new();
    }
    // A window that the end cut short would show a false drop.
    let whole = usize::try_from(elapsed_us / width_us).expect("a usize has 64 bits");
    let whole = whole.min(windows.completed.len());
    let mut points = Vec::new();
    for first in (0..whole).step_by(together) {
        let last = (first + together).min(whole);
        let sum = |counts: &[u64]| -> u64 { counts.iter().take(last).skip(first).sum() };
        let completed = sum(&windows.completed);
        let length_us = float(width_us * (last - first) as u64);
        let middle_us = float(width_us) * float((first + last) as u64) / 2.0;
        points.push(Point {
            at: float(index as u64) + middle_us / float(elapsed_us),
            requests_per_s: float(completed) * 1e6 / length_us,
            // A part without responses is a gap and not a latency of 0.
            latency_ms: (completed > 0)
                .then(|| float(sum(&windows.latency_sum_ns)) / float(completed) / 1e6),
            errors: sum(&windows.errors),
        });
    }
    points
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_level_rate_of_a_plan_is_not_drawn() {
        let drawn = |recording: &Recording| timelines(recording, &Summary::of(recording));
        let mut planned = SampleRun::open().variant("a", 700.0).build();
        for round in &mut planned.rounds {
            round.windows.completed.fill(400);
        }
        let is_rate_drawn = |drawn: &str| drawn.contains("<p class=\"over\">requests/s</p>");
        assert!(!is_rate_drawn(&drawn(&planned)));
        let mut stalled = planned;
        let windows = &mut stalled.rounds[0].windows;
        windows.completed[10..15].fill(0);
        assert!(is_rate_drawn(&drawn(&stalled)));
        let closed = SampleRun::closed().variant("a", 700.0).build();
        assert!(is_rate_drawn(&drawn(&closed)));
    }

    #[test]
    fn merged_windows_lose_no_answer() {
        let recording = SampleRun::closed().variant("a", 700.0).build();
        let round = &recording.rounds[0];
        let whole = usize::try_from(round.elapsed_us / round.windows.width_us).unwrap();
        let counted: u64 = round.windows.completed.iter().take(whole).sum();
        for together in [1, 2, 3] {
            let points = points(round, 0, together);
            assert_eq!(points.len(), whole.div_ceil(together));
            let width_s = |index: usize| {
                let windows = together.min(whole - index * together);
                float(round.windows.width_us * windows as u64) / 1e6
            };
            let sum: f64 = points
                .iter()
                .enumerate()
                .map(|(index, point)| point.requests_per_s * width_s(index))
                .sum();
            assert!((sum - float(counted)).abs() < 1e-3, "{together}");
        }
    }
}
