//! Picture of overheads with their intervals: one line per variant, and a line at zero.
//!
//! Every number of the picture is also next to it as text. So users of screen readers and users who paste the
//! page lose no information.

use analysis::summary::{ClaimName, MetricSummary, Summary, VariantSummary};
use model::{Metric, Unit};

use super::escape::escape;
use super::markup::{class_of, prose};
use super::plot::Scale;
use crate::cell;
use crate::words;

/// One overhead in the unit of the plot.
#[derive(Clone, Copy)]
struct Mark {
    estimate: f64,
    ends: (f64, f64),
    class: &'static str,
}

/// The verdicts, each with the overhead in the headline metric.
pub(super) fn answer(summary: &Summary) -> String {
    let metric = summary.headline;
    let forest = Forest::of(summary, metric, 6.0);
    let row = |row: &VariantSummary| {
        let sentence = format!(
            "<span class=\"said {}\">{}</span>",
            class_of(cell::tone_of_verdict(&row.verdict)),
            prose(&words::verdict_text(row))
        );
        let value = row.metric(metric).map(|figure| {
            let value = cell::with_error(figure, row.unit(metric));
            format!(
                "<span class=\"quiet\">{value} {}</span>",
                row.unit(metric).sign()
            )
        });
        let name = format!(
            "<span class=\"name\"><b>{}</b>{sentence}</span>",
            escape(&row.title())
        );
        // A row without a number keeps its place and shows the reason.
        let mut shown = figure(row, metric).or(value).unwrap_or_default();
        if mean(row, metric).is_some()
            && let Some(mean) = figure(row, Metric::Mean)
        {
            shown += &format!("<small>mean {mean}</small>");
        }
        forest.row(&name, row, &shown)
    };
    let rows: String = summary.variants.iter().map(row).collect();
    forest.frame("answer", &rows)
}

/// The marks of the answer in words. Empty if there is one kind of mark.
pub(super) fn key(summary: &Summary) -> &'static str {
    let has_mean = |row: &VariantSummary| mean(row, summary.headline).is_some();
    match summary.variants.iter().any(has_mean) {
        true => {
            "The dot is the typical request, and the diamond is the mean with its slow requests."
        }
        false => "",
    }
}

/// The picture for one metric. `None` without an interval, because a dot alone would claim too much.
pub(super) fn forest(summary: &Summary, metric: Metric) -> Option<String> {
    let forest = Forest::of(summary, metric, 5.0);
    forest.scale?;
    let rows: String = summary
        .variants
        .iter()
        .filter(|row| mark(row, metric).is_some())
        .map(|row| {
            let name = format!("<span class=\"name\">{}</span>", escape(&row.title()));
            forest.row(&name, row, &figure(row, metric).unwrap_or_default())
        })
        .collect();
    Some(format!(
        "<figure>\n<figcaption>difference in {}</figcaption>\n{}</figure>\n",
        escape(&title(metric, forest.unit)),
        forest.frame("panel", &rows)
    ))
}

/// The CSS class that colors a claim. The position relative to the zero line has the same meaning.
pub(super) fn class(metric: Metric, claim: ClaimName) -> &'static str {
    class_of(cell::tone_of_claim(metric, claim))
}

/// True for requests per second, which are compared by ratio. All other metrics are compared by difference.
fn is_share(metric: Metric) -> bool {
    metric == Metric::Requests
}

fn figure(row: &VariantSummary, metric: Metric) -> Option<String> {
    if is_share(metric) {
        return cell::change(row, metric);
    }
    let difference = cell::difference(row, metric)?;
    Some(format!("{difference} {}", row.unit(metric).sign()))
}

/// The mean next to the typical latency, on the same scale.
fn mean(row: &VariantSummary, metric: Metric) -> Option<Mark> {
    let has_mean = metric == Metric::Typical;
    has_mean.then(|| mark(row, Metric::Mean)).flatten()
}

fn mark(row: &VariantSummary, metric: Metric) -> Option<Mark> {
    let trusted = row.metric(metric).filter(|it| it.overhead.is_some());
    let Some(summary) = trusted else {
        let estimate = row.estimate.as_ref()?.metrics.get(&metric)?;
        let shown = mark_of(row, metric, estimate).filter(|_| !estimate.is_sparse)?;
        return Some(Mark {
            class: "doubtful",
            ..shown
        });
    };
    mark_of(row, metric, summary)
}

fn mark_of(row: &VariantSummary, metric: Metric, summary: &MetricSummary) -> Option<Mark> {
    let overhead = summary.overhead.as_ref()?;
    if summary.is_sparse {
        // The tables do the same, because a round has too few requests for such a tail.
        let (estimate, ends) = cell::pooled(row, metric)?;
        let class = class(metric, ClaimName::of_ends(Some(ends)));
        return Some(Mark {
            estimate,
            ends,
            class,
        });
    }
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let unit = row.unit(metric);
    let (estimate, ends) = if is_share(metric) {
        let (low, high) = overhead.ratio_low.zip(overhead.ratio_high)?;
        (percent(overhead.ratio?), (percent(low), percent(high)))
    } else {
        let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
        (
            unit.shown(overhead.difference),
            (unit.shown(low), unit.shown(high)),
        )
    };
    Some(Mark {
        estimate,
        ends,
        class: class(metric, overhead.claim),
    })
}

/// The metric with its unit, unless its label contains the unit.
pub(super) fn title(metric: Metric, unit: Unit) -> String {
    let label = metric.label();
    match metric.unit() {
        Unit::Milliseconds => format!("{label} latency, {}", unit.sign()),
        _ => label.to_owned(),
    }
}

/// Rows that share a scale.
struct Forest {
    metric: Metric,
    unit: Unit,
    /// `None` if no row has an interval.
    scale: Option<Scale>,
    ticks: Vec<(f64, String)>,
}

impl Forest {
    fn of(summary: &Summary, metric: Metric, ticks: f64) -> Self {
        let rows = &summary.variants;
        let marks: Vec<Mark> = rows.iter().filter_map(|row| mark(row, metric)).collect();
        let has_width = marks.iter().any(|mark| mark.ends != (0.0, 0.0));
        let mut ends: Vec<f64> = marks.iter().flat_map(Mark::places).collect();
        let all = rows
            .iter()
            .filter_map(|row| Some((row, mean(row, metric)?)));
        let (apart, near): (Vec<_>, Vec<_>) = all.partition(|(row, _)| row.few_pay.is_some());
        // Where the mean disagrees, the axis shows it whole.
        ends.extend(apart.iter().flat_map(|(_, mean)| mean.places()));
        // A wide interval of a mean that agrees would flatten all others, so the edge cuts it.
        let limit = 2.0 * width(&ends);
        for (_, mean) in near {
            let wider: Vec<f64> = ends.iter().copied().chain(mean.places()).collect();
            if width(&wider) <= limit {
                ends = wider;
            }
        }
        // If all intervals have no width, there is no scale, and a picture would suggest one.
        let scale = has_width.then(|| Scale::around_zero(ends.into_iter()));
        Self {
            metric,
            unit: summary.unit(metric),
            ticks: scale.map_or_else(Vec::new, |scale| scale.ticks_across(ticks)),
            scale,
        }
    }

    /// One row. `name` and `figure` are markup.
    fn row(&self, name: &str, row: &VariantSummary, figure: &str) -> String {
        let class = if row.verdict.is_invalid() {
            "row invalid"
        } else {
            "row"
        };
        let plot = match self.scale {
            Some(scale) => self.plot(scale, row),
            None => String::new(),
        };
        format!("<div class=\"{class}\">{name}{plot}<span class=\"figure\">{figure}</span></div>\n")
    }

    fn plot(&self, scale: Scale, row: &VariantSummary) -> String {
        let mut out = "<svg class=\"bar\" aria-hidden=\"true\">".to_owned();
        out += &self.grid(scale);
        let told = |metric: Metric| figure(row, metric).unwrap_or_default();
        let mean = mean(row, self.metric);
        // The marks are in two lines, so that neither hides the other.
        let (line, of_mean) = match mean {
            Some(_) => (34, 70),
            None => (50, 50),
        };
        if let Some(mark) = mark(row, self.metric) {
            let words = format!("{} {}", self.metric.label(), told(self.metric));
            out += &drawn(
                scale,
                mark,
                line,
                &Shape::Dot.drawn(scale, mark, line),
                &words,
            );
        } else if row.is_baseline {
            let x = scale.percent(0.0);
            out += &format!("<circle class=\"origin\" cx=\"{x:.2}%\" cy=\"50%\" r=\"4\"/>");
        }
        if let Some(mean) = mean {
            let words = format!("mean {}", told(Metric::Mean));
            let shape = Shape::Diamond.drawn(scale, mean, of_mean);
            out += &drawn(scale, mean, of_mean, &shape, &words);
        }
        out + "</svg>"
    }

    fn grid(&self, scale: Scale) -> String {
        let line = |(tick, _): &(f64, String)| {
            let x = scale.percent(*tick);
            format!("<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"100%\"/>")
        };
        let zero = scale.percent(0.0);
        self.ticks.iter().map(line).collect::<String>()
            + &format!(
                "<line class=\"zero\" x1=\"{zero:.2}%\" x2=\"{zero:.2}%\" y1=\"0\" y2=\"100%\"/>"
            )
    }

    /// Name of the axis.
    fn axis(&self) -> String {
        match is_share(self.metric) {
            true => "change in requests/s".to_owned(),
            false => format!("difference, {}", self.unit.sign()),
        }
    }

    /// Rows with the axis below them.
    fn frame(&self, class: &str, rows: &str) -> String {
        let Some(scale) = self.scale else {
            return format!("<div class=\"forest {class} bare\">\n{rows}</div>\n");
        };
        let label = |(tick, label): &(f64, String)| {
            let x = scale.percent(*tick);
            // Every mark but zero has a sign. The mark nearest to 0 represents zero.
            let sign = if label.starts_with('-') || *tick < scale_step(&self.ticks) / 2.0 {
                ""
            } else {
                "+"
            };
            let unit = if is_share(self.metric) { " %" } else { "" };
            format!(
                "<text x=\"{x:.2}%\" y=\"1.1em\" text-anchor=\"middle\">{sign}{label}{unit}</text>"
            )
        };
        let labels: String = self.ticks.iter().map(label).collect();
        let (left, right) = if self.metric.is_better_low() {
            ("better", "worse")
        } else {
            ("worse", "better")
        };
        format!(
            "<div class=\"forest {class}\">\n{rows}<div class=\"row axis\" aria-hidden=\"true\">\
             <span class=\"name\"></span><svg class=\"bar\">{labels}\
             <text x=\"0\" y=\"2.6em\">← {left}</text>\
             <text class=\"unit\" x=\"50%\" y=\"2.6em\" text-anchor=\"middle\">{}</text>\
             <text x=\"100%\" y=\"2.6em\" text-anchor=\"end\">{right} →</text></svg></div>\n</div>\n",
            self.axis()
        )
    }
}

impl Mark {
    /// The places that an axis must contain to show the whole mark.
    fn places(&self) -> [f64; 2] {
        [self.ends.0, self.ends.1]
    }
}

/// The distance from the lowest to the highest of these values and zero.
fn width(values: &[f64]) -> f64 {
    let (low, high) = values
        .iter()
        .fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
    high - low
}

/// The shape of an estimate. Shapes differ, so that no reader depends on color.
#[derive(Clone, Copy)]
enum Shape {
    Dot,
    Diamond,
}

impl Shape {
    /// The shape at the estimate. `line` is its height in percent. Empty if the axis does not reach it.
    fn drawn(self, scale: Scale, mark: Mark, line: u32) -> String {
        if !scale.contains(mark.estimate) {
            return String::new();
        }
        let x = scale.percent(mark.estimate);
        match self {
            Self::Dot => format!("<circle cx=\"{x:.2}%\" cy=\"{line}%\" r=\"4.5\"/>"),
            Self::Diamond => format!(
                "<svg x=\"{x:.2}%\" y=\"{line}%\"><path class=\"hollow\" \
                 d=\"M-5 0L0 -5L5 0L0 5Z\"/></svg>"
            ),
        }
    }
}

/// A mark with its interval. An arrow shows that the interval continues beyond the edge.
fn drawn(scale: Scale, mark: Mark, line: u32, shape: &str, words: &str) -> String {
    let [low, high] = [mark.ends.0, mark.ends.1].map(|end| scale.percent(end).clamp(0.0, 100.0));
    let class = mark.class;
    let end = |value: f64, x: f64, arrow: &str| match scale.contains(value) {
        true => format!(
            "<line class=\"end\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{}%\" y2=\"{}%\"/>",
            line - 14,
            line + 14
        ),
        false => format!("<svg x=\"{x:.2}%\" y=\"{line}%\"><path d=\"{arrow}\"/></svg>"),
    };
    let ends =
        end(mark.ends.0, low, "M0 0L7 -4L7 4Z") + &end(mark.ends.1, high, "M0 0L-7 -4L-7 4Z");
    format!(
        "<g class=\"mark {class}\"><title>{}</title>\
         <line x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"{line}%\" y2=\"{line}%\"/>{ends}{shape}</g>",
        escape(words)
    )
}

fn scale_step(ticks: &[(f64, String)]) -> f64 {
    match ticks {
        [(first, _), (second, _), ..] => second - first,
        _ => 0.0,
    }
}
