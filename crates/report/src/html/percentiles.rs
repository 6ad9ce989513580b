//! Pictures of latency over percentiles, in the form of HdrHistogram's plot. The axis is logarithmic in
//! 1 - quantile, so that the tail is visible. A line ends where fewer than ten requests lie beyond it.

use analysis::summary::tail::BEYOND;
use analysis::summary::{Summary, VariantSummary};
use model::{Metric, Unit};
use recording::float;

use super::distribution::{PooledLatencies, quantiles};
use super::escape::escape;
use super::plot::{Frame, STRETCHED, Scale, Tick, figure, path};
use crate::cell;

/// The line of one variant.
struct Curve<'a> {
    row: &'a VariantSummary,
    /// CSS class of the line.
    class: &'static str,
    /// Share of requests and latency in the unit of the report, in rising order.
    points: Vec<(f64, f64)>,
}

/// A picture for each compared variant with its baseline, or for the target of a single load.
pub(super) fn percentiles(summary: &Summary, all: &PooledLatencies<'_>) -> Vec<String> {
    let of_pair = |row: &VariantSummary| {
        let base = summary
            .variant(&row.baseline)
            .filter(|base| base.name != row.name);
        let base = base.and_then(|base| curve(base, all, "base"));
        let curves: Vec<Curve<'_>> = base.into_iter().chain(curve(row, all, "own")).collect();
        picture(&curves, summary.unit(Metric::Mean))
    };
    let compared = super::by_size(summary);
    match compared.as_slice() {
        [] => summary.variants.iter().filter_map(of_pair).collect(),
        rows => rows.iter().copied().filter_map(of_pair).collect(),
    }
}

fn picture(curves: &[Curve<'_>], unit: Unit) -> Option<String> {
    let last_share = curves
        .iter()
        .filter_map(|curve| Some(curve.points.last()?.0));
    let nines = -(1.0 - last_share.fold(0.0, f64::max)).log10();
    if nines <= 0.0 {
        return None;
    }
    let across = Across { nines };
    let up = vertical(curves);
    let lines: String = curves.iter().map(|curve| curve.line(&across, up)).collect();
    let body = format!("{STRETCHED}{lines}</svg>\n");
    let description: Vec<String> = curves.iter().map(Curve::description).collect();
    let ticks = up.ticks(5.0).into_iter();
    let frame = Frame {
        title: "Latency by percentile",
        description: &description.join("; "),
        class: "percentiles",
        across: across.ticks(),
        up: ticks
            .map(|(value, label)| Tick {
                percent: up.percent(value),
                label,
                is_minor: false,
            })
            .collect(),
    };
    let log = match is_log(curves) {
        true => " (logarithmic)",
        false => "",
    };
    Some(figure(
        &names(curves),
        &format!("latency, {}{log}", unit.sign()),
        "percentile of the requests",
        &frame.draw(&body),
    ))
}

/// The names of the lines, in the order of their ends. Empty for one line.
fn names(curves: &[Curve<'_>]) -> String {
    let end = |curve: &Curve<'_>| curve.points.last().map_or(0.0, |point| point.1);
    let mut order: Vec<&Curve<'_>> = curves.iter().collect();
    order.sort_by(|one, other| end(other).total_cmp(&end(one)));
    let name = |curve: &&Curve<'_>| {
        format!(
            "<span class=\"line {}\"></span><b>{}</b>",
            curve.class,
            escape(&curve.row.name)
        )
    };
    match order.len() {
        0 | 1 => String::new(),
        _ => order.iter().map(name).collect::<Vec<_>>().join(" "),
    }
}

fn curve<'a>(
    row: &'a VariantSummary,
    all: &PooledLatencies<'_>,
    class: &'static str,
) -> Option<Curve<'a>> {
    let own = all.get(row.name.as_str()).filter(|_| row.has_number())?;
    let requests = float(own.len());
    let mut shares = shares(requests);
    shares.retain(|share| (1.0 - share) * requests >= BEYOND - 1e-6);
    (!shares.is_empty()).then(|| Curve {
        row,
        class,
        points: quantiles(own, &shares, row.unit(Metric::Mean)),
    })
}

/// Shares in equal steps of nines, from 0 to the share with one of `requests` requests beyond it.
fn shares(requests: f64) -> Vec<f64> {
    // With 20 points per nine, the curve is smooth and the file is small.
    const STEP: f64 = 0.05;
    let nines = requests.max(1.0).log10();
    let mut place = 0.0;
    let mut shares = Vec::new();
    while place < nines {
        shares.push(1.0 - 10f64.powf(-place));
        place += STEP;
    }
    shares.push(1.0 - 1.0 / requests.max(1.0));
    shares
}

/// The horizontal scale from the first percentile to the last. Every nine has the same width.
struct Across {
    nines: f64,
}

impl Across {
    fn percent(&self, share: f64) -> f64 {
        -(1.0 - share).log10() / self.nines * 100.0
    }

    fn ticks(&self) -> Vec<Tick> {
        const MARKS: [(f64, &str); 7] = [
            (0.5, "p50"),
            (0.9, "p90"),
            (0.99, "p99"),
            (0.999, "p99.9"),
            (0.9999, "p99.99"),
            (0.99999, "p99.999"),
            (0.999_999, "p99.9999"),
        ];
        let mark = |(share, label): &(f64, &str)| Tick {
            percent: self.percent(*share),
            label: (*label).to_owned(),
            // The longest labels need more space than a nine has on a small screen.
            is_minor: label.len().is_multiple_of(2),
        };
        let ticks = MARKS.iter().map(mark);
        ticks.filter(|tick| tick.percent <= 100.0).collect()
    }
}

/// True if a linear scale would flatten all curves because of the slowest request.
fn is_log(curves: &[Curve<'_>]) -> bool {
    let median = |curve: &Curve<'_>| {
        let found = curve.row.distribution.as_ref()?;
        Some(curve.row.unit(Metric::P50).shown(found.latency_us_p50))
    };
    let medians = curves.iter().filter_map(median);
    let lowest_median = medians.fold(f64::INFINITY, f64::min);
    // At 12 times the median, half of the requests have a twelfth of the height. 0 has no logarithm.
    highest(curves) > lowest_median * 12.0 && lowest(curves) > 0.0
}

fn highest(curves: &[Curve<'_>]) -> f64 {
    let points = curves.iter().flat_map(|curve| &curve.points);
    points.map(|point| point.1).fold(0.0, f64::max)
}

fn lowest(curves: &[Curve<'_>]) -> f64 {
    let points = curves.iter().flat_map(|curve| &curve.points);
    points.map(|point| point.1).fold(f64::INFINITY, f64::min)
}

fn vertical(curves: &[Curve<'_>]) -> Scale {
    if is_log(curves) {
        Scale::log(lowest(curves) * 0.8, highest(curves) * 1.15)
    } else {
        Scale::linear(0.0, highest(curves) * 1.05)
    }
}

impl Curve<'_> {
    fn line(&self, across: &Across, up: Scale) -> String {
        let place = |(share, latency): &(f64, f64)| (across.percent(*share), up.percent(*latency));
        format!(
            "<path class=\"curve {}\" d=\"{}\"/>\n",
            self.class,
            path(self.points.iter().map(place)),
        )
    }

    fn description(&self) -> String {
        let latency = |us: f64| cell::latency(Some(us), self.row.unit(Metric::Mean));
        match &self.row.distribution {
            Some(of) => format!(
                "{}: median {}, 99 % within {}, longest {}",
                self.row.name,
                latency(of.latency_us_p50),
                latency(of.latency_us_p99),
                latency(of.latency_us_max),
            ),
            None => self.row.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use stats::Histogram;

    use super::super::distribution::pooled_latencies;
    use super::*;

    #[test]
    fn one_pass_over_the_buckets_finds_the_quantiles_of_the_histogram() {
        let mut histogram = Histogram::new();
        for value in 1..=10_000_u64 {
            histogram.record_ns(value * value);
        }
        for (share, ms) in quantiles(&histogram, &shares(10_000.0), Unit::Milliseconds) {
            let expected = float(histogram.quantile_ns(share).unwrap()) / 1e6;
            assert!((ms - expected).abs() <= expected * 0.002, "{share}: {ms}");
        }
    }

    #[test]
    fn names_stand_in_the_order_of_the_lines() {
        let recording = recording::sample::SampleRun::side_by_side()
            .rounds(9)
            .variant("base", 700.0)
            .variant("slow", 900.0)
            .variant("fast", 500.0)
            .build();
        let summary = Summary::of(&recording);
        let drawn = percentiles(&summary, &pooled_latencies(&recording, &summary));
        let names = |index: usize| {
            let drawn: &String = &drawn[index];
            let parts = drawn.split("<b>").skip(1);
            let names = parts.filter_map(|part| part.split('<').next());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["base", "fast"]);
        assert_eq!(names(1), ["slow", "base"]);
    }
}
