//! Picture of the latency distribution over percentiles, in the form of HdrHistogram's plot. The axis is
//! logarithmic in 1 - quantile, so that the tail is visible.

use analysis::summary::tail::BEYOND;
use analysis::summary::{Summary, VariantSummary, complete_rounds};
use recording::{Recording, float};
use stats::Histogram;

use super::escape::escape;
use super::plot::{Frame, STRETCHED, Scale, Tick, path, series, spread};

/// Height of the plot in pixels, as in the style sheet.
const HEIGHT: f64 = 320.0;
/// Height of a label in pixels.
const LABEL: f64 = 17.0;

/// The curve of one variant.
struct Curve<'a> {
    row: &'a VariantSummary,
    class: String,
    /// Share of requests and latency in ms, in rising order.
    points: Vec<(f64, f64)>,
    /// The largest share with enough requests beyond it. The curve is solid up to here.
    solid_to: f64,
}

/// The curves of all variants that have a number.
pub(super) fn percentiles(recording: &Recording, summary: &Summary) -> Option<String> {
    let curves: Vec<Curve<'_>> = summary
        .variants
        .iter()
        .enumerate()
        .filter(|(_, row)| row.has_number())
        .filter_map(|(index, row)| curve(recording, row, series(index, row.is_baseline)))
        .collect();
    let last_share = curves
        .iter()
        .filter_map(|curve| Some(curve.points.last()?.0));
    let nines = last_share.fold(0.0, f64::max);
    // The curves end where one request lies beyond, so the axis ends there as well.
    let nines = -(1.0 - nines).log10();
    if curves.is_empty() || nines <= 0.0 {
        return None;
    }
    let across = Across { nines };
    let up = vertical(&curves);
    let lines: String = curves
        .iter()
        .map(|curve| curve.lines(&across, up))
        .collect();
    let body = format!("{STRETCHED}{lines}</svg>\n{}", labels(&curves, up));
    let description: Vec<String> = curves.iter().map(Curve::description).collect();
    let frame = Frame {
        title: "Latency by percentile",
        description: &description.join("; "),
        class: "percentiles",
        across: across.ticks(),
        up: up
            .ticks(5.0)
            .into_iter()
            .map(|(value, label)| Tick {
                percent: up.percent(value),
                label,
                is_minor: false,
            })
            .collect(),
    };
    Some(format!(
        "<figure>\n<figcaption>latency, ms{}</figcaption>\n{}\
         <p class=\"under\">percentile of requests</p>\n{}</figure>\n",
        if is_log(&curves) {
            " (logarithmic)"
        } else {
            ""
        },
        frame.draw(&body),
        legend(&curves)
    ))
}

fn curve<'a>(recording: &Recording, row: &'a VariantSummary, class: String) -> Option<Curve<'a>> {
    let mut all = Histogram::new();
    for round in complete_rounds(recording, &row.name) {
        all.add(&round.latency_ns_hdr.histogram());
    }
    if all.is_empty() {
        return None;
    }
    let requests = float(all.len());
    Some(Curve {
        row,
        class,
        points: quantiles(&all, &shares(requests)),
        solid_to: 1.0 - BEYOND / requests,
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

/// The latency in ms at each share, in one pass. `shares` must rise.
fn quantiles(histogram: &Histogram, shares: &[f64]) -> Vec<(f64, f64)> {
    let total = float(histogram.len());
    let mut buckets = histogram.recorded();
    // The caller ensures that the histogram is not empty, so these zeros are never drawn.
    let (mut edge_ns, mut seen) = buckets.next().unwrap_or((0, 0));
    let longest = histogram.max_ns().unwrap_or(0);
    let mut points = Vec::with_capacity(shares.len());
    for share in shares {
        // The tolerance for rounding is the same as in `Histogram::quantile_ns`, because a share times a
        // count is not exact.
        while float(seen) < share * total * (1.0 - 1e-12) {
            let Some((next, count)) = buckets.next() else {
                break;
            };
            edge_ns = next;
            seen += count;
        }
        // The bucket's upper edge may exceed the longest latency, but the curve must not.
        points.push((*share, float(edge_ns.min(longest)) / 1e6));
    }
    points
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
    let median = |curve: &Curve<'_>| curve.row.distribution.as_ref().map(|of| of.latency_us_p50);
    let medians = curves.iter().filter_map(median);
    let lowest_ms = medians.fold(f64::INFINITY, f64::min) / 1e3;
    // At 12 times the median, half of the requests have a twelfth of the height. 0 has no logarithm.
    highest(curves) > lowest_ms * 12.0 && lowest(curves) > 0.0
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
    fn lines(&self, across: &Across, up: Scale) -> String {
        let place = |(share, ms): &(f64, f64)| (across.percent(*share), up.percent(*ms));
        let solid: Vec<_> = self
            .points
            .iter()
            .filter(|point| point.0 <= self.solid_to)
            .collect();
        // The two parts share one point, so that the solid and the dotted line meet.
        let rest = self.points.iter().skip(solid.len().saturating_sub(1));
        format!(
            "<path class=\"curve rare {class}\" d=\"{}\"/>\n\
             <path class=\"curve {class}\" d=\"{}\"/>\n",
            path(rest.map(place)),
            path(solid.into_iter().map(place)),
            class = self.class,
        )
    }

    fn description(&self) -> String {
        match &self.row.distribution {
            Some(of) => format!(
                "{}: median {}, 99 % within {}, longest {}",
                self.row.name,
                recording::digits::duration_ns(of.latency_us_p50 * 1e3),
                recording::digits::duration_ns(of.latency_us_p99 * 1e3),
                recording::digits::duration_ns(of.latency_us_max * 1e3),
            ),
            None => self.row.name.clone(),
        }
    }
}

/// The names at the ends of the curves. If they do not fit, the page shows the legend.
fn labels(curves: &[Curve<'_>], up: Scale) -> String {
    let ends: Vec<f64> = curves
        .iter()
        .map(|curve| 100.0 - up.percent(curve.points.last().map_or(0.0, |point| point.1)))
        .collect();
    let places = spread(&ends, LABEL / HEIGHT * 100.0);
    let label = |(curve, y): (&Curve<'_>, f64)| {
        format!(
            "<text class=\"direct {}\" x=\"100%\" dx=\"8\" y=\"{y:.2}%\" dy=\".35em\">{}</text>\n",
            curve.class,
            escape(&curve.row.name)
        )
    };
    curves.iter().zip(places).map(label).collect()
}

fn legend(curves: &[Curve<'_>]) -> String {
    let entry = |curve: &Curve<'_>| {
        format!(
            "<li class=\"{}\">{}</li>",
            curve.class,
            escape(&curve.row.name)
        )
    };
    let entries: String = curves.iter().map(entry).collect();
    format!("<ul class=\"legend\">{entries}</ul>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_over_the_buckets_finds_the_quantiles_of_the_histogram() {
        let mut histogram = Histogram::new();
        for value in 1..=10_000_u64 {
            histogram.record_ns(value * value);
        }
        for (share, ms) in quantiles(&histogram, &shares(10_000.0)) {
            let expected = float(histogram.quantile_ns(share).unwrap()) / 1e6;
            assert!((ms - expected).abs() <= expected * 0.002, "{share}: {ms}");
        }
    }
}
