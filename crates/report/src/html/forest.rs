//! Overheads with their intervals as a picture: one line a variant, a line at zero.
//!
//! Every number of the picture is also text in it, so nothing is lost to a reader who hears it.

use super::escape;
use crate::cell;
use crate::digits;
use crate::metric::Metric;
use crate::summary::{ClaimName, Summary, VariantSummary};

const WIDTH: f64 = 900.0;
const ROW: f64 = 30.0;
const TOP: f64 = 28.0;
/// Where the plot begins and ends; names stand before it, figures after it.
const LEFT: f64 = 240.0;
const RIGHT: f64 = 740.0;

/// One overhead in the unit of the plot.
struct Line<'a> {
    name: &'a str,
    estimate: f64,
    ends: (f64, f64),
    figure: String,
    class: &'static str,
}

/// The picture for one metric; none without an interval: a dot alone claims more than it knows.
pub(super) fn forest(summary: &Summary, metric: Metric) -> Option<String> {
    let is_share = metric == Metric::Requests;
    let lines: Vec<Line<'_>> = summary
        .variants
        .iter()
        .filter_map(|row| line(row, metric, is_share))
        .collect();
    let (low, high) = lines.iter().fold((0.0f64, 0.0f64), |(low, high), line| {
        (low.min(line.ends.0), high.max(line.ends.1))
    });
    if lines.is_empty() || high - low <= 0.0 {
        return None;
    }
    let margin = (high - low) * 0.06;
    let axis = Axis {
        low: low - margin,
        high: high + margin,
    };
    let height = TOP + ROW * lines.len() as f64 + 44.0;
    let unit = if is_share { "%" } else { metric.unit().sign() };
    let title = format!(
        "{} against {}",
        metric.label(),
        summary.against().replace('`', "")
    );
    let description: Vec<String> = lines
        .iter()
        .map(|line| format!("{}: {}", line.name, line.figure))
        .collect();
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><title>{}</title><desc>{}</desc>\n",
        escape(&title),
        escape(&description.join("; "))
    );
    out += &axis.draw(TOP + ROW * lines.len() as f64, unit, metric);
    for (index, line) in lines.iter().enumerate() {
        out += &line.draw(&axis, TOP + ROW * (index as f64 + 0.5));
    }
    out += "</svg>\n";
    Some(out)
}

fn line(row: &VariantSummary, metric: Metric, is_share: bool) -> Option<Line<'_>> {
    let overhead = row.metric(metric)?.overhead.as_ref()?;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let unit = metric.unit();
    let (estimate, ends, figure) = if is_share {
        let (low, high) = overhead.ratio_low.zip(overhead.ratio_high)?;
        (
            percent(overhead.ratio?),
            (percent(low), percent(high)),
            cell::change(row, metric)?,
        )
    } else {
        let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
        (
            unit.shown(overhead.difference),
            (unit.shown(low), unit.shown(high)),
            format!("{} {}", cell::difference(row, metric)?, unit.sign()),
        )
    };
    Some(Line {
        name: &row.name,
        estimate,
        ends,
        figure,
        class: class(metric, overhead.claim),
    })
}

/// The color of a claim; the position relative to the zero line says the same.
pub(super) fn class(metric: Metric, claim: ClaimName) -> &'static str {
    match claim {
        ClaimName::Higher if metric.is_better_low() => "worse",
        ClaimName::Lower if !metric.is_better_low() => "worse",
        ClaimName::Higher | ClaimName::Lower => "better",
        ClaimName::NoDifferenceShown | ClaimName::TooFewRounds => "same",
    }
}

struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn x(&self, value: f64) -> f64 {
        LEFT + (value - self.low) / (self.high - self.low) * (RIGHT - LEFT)
    }

    /// Ticks at 1, 2 or 5 times a power of ten, about six of them.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(power * 10.0);
        let first = (self.low / step).ceil();
        (0..20)
            .map(|index| (first + f64::from(index)) * step)
            .take_while(|tick| *tick <= self.high)
            .collect()
    }

    fn draw(&self, bottom: f64, unit: &str, metric: Metric) -> String {
        let ticks = self.ticks();
        let step = ticks
            .get(1)
            .zip(ticks.first())
            .map_or(1.0, |(second, first)| second - first);
        let mut out = String::new();
        for tick in ticks {
            let x = self.x(tick);
            let class = if tick.abs() < step / 2.0 {
                "zero"
            } else {
                "grid"
            };
            // A tick is a multiple of its step, so the step says which digits it has.
            let label = digits::difference(tick, Some(step), 0.0);
            let label = label.split(" ±").next().unwrap_or_default();
            out += &format!(
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"quiet\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>\n",
                bottom + 18.0
            );
        }
        let (left, right) = if metric.is_better_low() {
            ("better", "worse")
        } else {
            ("worse", "better")
        };
        out += &format!(
            "<text class=\"quiet\" x=\"{LEFT}\" y=\"16\">← {left}</text>\
             <text class=\"quiet\" x=\"{RIGHT}\" y=\"16\" text-anchor=\"end\">{right} →</text>\
             <text class=\"quiet\" x=\"{}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            f64::midpoint(LEFT, RIGHT),
            bottom + 38.0,
            escape(&axis_label(metric, unit)),
        );
        out
    }
}

/// The unit, unless the label has it already.
fn axis_label(metric: Metric, unit: &str) -> String {
    if metric.label().contains(unit) {
        return metric.label().to_owned();
    }
    format!("{}, {unit}", metric.label())
}

impl Line<'_> {
    fn draw(&self, axis: &Axis, y: f64) -> String {
        let x = axis.x(self.estimate);
        let mut out = format!(
            "<text x=\"0\" y=\"{:.1}\">{}</text><g class=\"{}\">",
            y + 4.5,
            escape(&shortened(self.name)),
            self.class
        );
        let (low, high) = (axis.x(self.ends.0), axis.x(self.ends.1));
        let (above, below) = (y - 6.0, y + 6.0);
        out += &format!(
            "<line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <line x1=\"{low:.1}\" x2=\"{low:.1}\" y1=\"{above:.1}\" y2=\"{below:.1}\"/>\
             <line x1=\"{high:.1}\" x2=\"{high:.1}\" y1=\"{above:.1}\" y2=\"{below:.1}\"/>"
        );
        out + &format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/></g><text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            RIGHT + 14.0,
            y + 4.5,
            escape(&self.figure)
        )
    }
}

/// Names longer than the room before the plot; the table has them in full.
fn shortened(name: &str) -> String {
    const ROOM: usize = 32;
    if name.chars().count() <= ROOM {
        return name.to_owned();
    }
    name.chars().take(ROOM - 1).chain(['…']).collect()
}
