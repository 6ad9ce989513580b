//! Pictures of the overhead at every quantile: the difference from the baseline, with intervals that all hold
//! together.

use analysis::summary::tail::BEYOND;
use analysis::summary::{ClaimName, Summary, complete_rounds};
use model::{Metric, Unit};
use recording::{Recording, RoundPart, digits};
use stats::Histogram;
use stats::shift::Shift;

use super::escape::escape;
use super::forest::class;
use super::plot::{Frame, Scale, Tick, figure, signed};

const QUANTILES: [(f64, &str); 8] = [
    (0.1, "p10"),
    (0.25, "p25"),
    (0.5, "p50"),
    (0.75, "p75"),
    (0.9, "p90"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p99.9"),
];

/// The shift function of one variant.
struct Panel<'a> {
    name: &'a str,
    shifts: Vec<Shift>,
}

/// A picture for each compared variant, all on one scale. Empty without intervals.
pub(super) fn shifts(recording: &Recording, summary: &Summary) -> String {
    let panels: Vec<Panel<'_>> = summary
        .variants
        .iter()
        .filter(|row| {
            row.metric(summary.headline)
                .is_some_and(|metric| metric.overhead.is_some())
        })
        .filter_map(|row| {
            let baseline = histograms(recording, &row.baseline);
            let variant = histograms(recording, &row.name);
            let shifts = shift(&baseline, &variant, summary.confidence_each)?;
            Some(Panel {
                name: &row.name,
                shifts,
            })
        })
        .collect();
    let unit = summary.unit(Metric::Mean);
    let ends = panels
        .iter()
        .flat_map(|panel| &panel.shifts)
        .flat_map(|shift| {
            let interval = shift.difference_ns.interval;
            // Zero does not change the scale. Only intervals are drawn.
            interval.map_or([0.0; 2], |ends| {
                [ends.low, ends.high].map(|ns| in_unit(ns, unit))
            })
        });
    let scale = Scale::around_zero(ends);
    panels.iter().map(|panel| panel.draw(scale, unit)).collect()
}

/// Latencies by round, or by group of a round.
fn histograms(recording: &Recording, name: &str) -> Vec<(RoundPart, Histogram)> {
    complete_rounds(recording, name)
        .iter()
        .map(|round| (round.part(), round.latency_ns_hdr.histogram()))
        // A round without a response has no quantiles to pair.
        .filter(|(_, latency)| !latency.is_empty())
        .collect()
}

/// `None` if there are too few rounds for intervals.
fn shift(
    baseline: &[(RoundPart, Histogram)],
    variant: &[(RoundPart, Histogram)],
    confidence: f64,
) -> Option<Vec<Shift>> {
    let mut base = Vec::new();
    let mut own = Vec::new();
    // Rounds are paired by their number, because a round may be complete for only one variant.
    for (round, latency) in variant {
        if let Some((_, of_baseline)) = baseline.iter().find(|(other, _)| other == round) {
            base.push(of_baseline.clone());
            own.push(latency.clone());
        }
    }
    // The shortest round decides. If one round cannot support a quantile, that round has no pair for it.
    let fewest = base.iter().chain(&own).map(Histogram::len).min()?;
    let quantiles: Vec<f64> = QUANTILES
        .iter()
        .map(|(share, _)| *share)
        // A tenth of a hundred requests is ten, but slightly less in floating point.
        .filter(|share| (1.0 - share) * recording::float(fewest) + 1e-6 >= BEYOND)
        .collect();
    let shifts = stats::shift::shift(&base, &own, &quantiles, confidence).ok()?;
    // All intervals must exist, because the picture promises that its intervals hold together.
    let has_intervals = shifts
        .iter()
        .all(|one| one.difference_ns.interval.is_some());
    (has_intervals && !shifts.is_empty()).then_some(shifts)
}

fn label(quantile: f64) -> &'static str {
    QUANTILES
        .iter()
        // Shares come from the same list, so the tolerance only guards against rounding.
        .find(|(share, _)| (share - quantile).abs() < 1e-9)
        .map_or("", |(_, label)| label)
}

impl Panel<'_> {
    fn draw(&self, scale: Scale, unit: Unit) -> String {
        let room = 100.0 / self.shifts.len() as f64;
        let place = |index: usize| (index as f64 + 0.5) * room;
        let zero = 100.0 - scale.percent(0.0);
        let mut body = format!(
            "<line class=\"zero\" x1=\"0\" x2=\"100%\" y1=\"{zero:.2}%\" y2=\"{zero:.2}%\"/>\n"
        );
        for (index, shift) in self.shifts.iter().enumerate() {
            body += &mark(shift, place(index), scale, unit);
        }
        let told: Vec<String> = self.shifts.iter().map(|it| told(it, unit)).collect();
        let across = self.shifts.iter().enumerate().map(|(index, shift)| Tick {
            percent: place(index),
            is_minor: false,
            label: label(shift.quantile).to_owned(),
        });
        let title = format!("{}: difference by quantile", self.name);
        let frame = Frame {
            title: &title,
            description: &told.join("; "),
            class: "shift",
            across: across.collect(),
            up: signed(scale, 5.0),
        };
        let caption = format!("<b>{}</b>", escape(self.name));
        let picture = frame.draw(&body);
        figure(
            &caption,
            &format!("difference, {}", unit.sign()),
            "percentile of latency",
            &picture,
        )
    }
}

fn mark(shift: &Shift, x: f64, scale: Scale, unit: Unit) -> String {
    let Some(interval) = shift.difference_ns.interval else {
        return String::new();
    };
    let claim = ClaimName::of_ends(Some((interval.low, interval.high)));
    // Every quantile is a latency, so it has the colors of a latency.
    let class = class(Metric::P50, claim);
    let y = |ns: f64| 100.0 - scale.percent(in_unit(ns, unit));
    let (low, high, value) = (
        y(interval.low),
        y(interval.high),
        y(shift.difference_ns.value),
    );
    format!(
        "<g class=\"mark {class}\"><title>{}</title>\
         <line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{low:.2}%\" y2=\"{high:.2}%\"/>\
         <circle cx=\"{x:.2}%\" cy=\"{value:.2}%\" r=\"4\"/></g>\n",
        escape(&told(shift, unit))
    )
}

/// Nanoseconds in the unit of the report.
fn in_unit(ns: f64, unit: Unit) -> f64 {
    unit.shown(ns / 1e3)
}

/// One quantile in words: `p99: +0.22 ±0.03 ms`
fn told(shift: &Shift, unit: Unit) -> String {
    let shown = |ns: f64| in_unit(ns, unit);
    let estimate = &shift.difference_ns;
    let ends = estimate
        .interval
        .map(|ends| (shown(ends.low), shown(ends.high)));
    let figure = digits::estimate(shown(estimate.value), ends, 0.0);
    format!("{}: {figure} {}", label(shift.quantile), unit.sign())
}
