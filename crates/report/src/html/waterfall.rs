//! Waterfalls of a ladder and of the parts of a difference: each bar begins where the bar before it ends.
//!
//! Every number of the picture is also next to it as text.

use analysis::summary::{
    BreakdownSummary, ClaimName, LadderStep, LadderSummary, Summary, VariantSummary,
};
use model::{Metric, Unit};
use recording::digits;

use super::escape::escape;
use super::forest::{class, title};
use super::panels;
use super::plot::Scale;
use crate::cell;
use crate::tables::breakdown;

/// One bar in the unit of its picture.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) from: f64,
    pub(super) to: f64,
    /// Ends of the interval of `to`. Equal to `to` without an interval.
    pub(super) ends: (f64, f64),
    pub(super) class: &'static str,
    pub(super) figure: String,
}

impl Bar {
    /// The bar at another beginning, with a name.
    fn placed(self, from: f64, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            from,
            to: from + self.to,
            ends: (from + self.ends.0, from + self.ends.1),
            ..self
        }
    }
}

/// A picture for latency or rate, processor time and memory. Empty without a ladder.
pub(super) fn waterfall(summary: &Summary) -> String {
    let Some(ladder) = &summary.ladder else {
        return String::new();
    };
    let metrics = [summary.headline, Metric::Cpu, Metric::Memory];
    let figures: String = metrics
        .into_iter()
        .filter_map(|metric| picture(ladder, metric, summary.unit(metric)))
        .collect();
    panels(&figures)
}

/// The picture for one metric. `None` if a step has no figure, because the next bar would have no beginning.
fn picture(ladder: &LadderSummary, metric: Metric, unit: Unit) -> Option<String> {
    let mut at = 0.0;
    let mut bars = Vec::new();
    for step in &ladder.steps {
        let bar = bar(step, metric, unit)?.placed(at, &step.to);
        at = bar.to;
        bars.push(bar);
    }
    if let Some(whole) = &ladder.whole {
        bars.push(bar(whole, metric, unit)?.placed(0.0, "all steps"));
    }
    Some(drawn(metric, unit, &bars))
}

/// A picture of these bars, one below the other.
pub(super) fn drawn(metric: Metric, unit: Unit, bars: &[Bar]) -> String {
    let axis = format!("difference, {}", unit.sign());
    let axis = match metric {
        Metric::Requests => "difference, requests/s",
        _ => &axis,
    };
    drawing(&escape(&title(metric, unit)), axis, bars)
}

/// A picture of bars on one scale. `caption` is markup, and `axis` is the name of the axis.
pub(super) fn drawing(caption: &str, axis: &str, bars: &[Bar]) -> String {
    let places = bars
        .iter()
        .flat_map(|bar| [bar.from, bar.to, bar.ends.0, bar.ends.1]);
    let scale = Scale::around_zero(places);
    let rows: String = bars.iter().map(|bar| row(scale, bar)).collect();
    let label = |(value, label): (f64, String)| {
        let x = scale.percent(value);
        format!("<text x=\"{x:.2}%\" y=\"1.1em\" text-anchor=\"middle\">{label}</text>")
    };
    let labels: String = scale.ticks_across(4.0).into_iter().map(label).collect();
    format!(
        "<figure>\n<figcaption>{caption}</figcaption>\n<div class=\"forest panel\">\n{rows}\
         <div class=\"row axis\" aria-hidden=\"true\"><span class=\"name\"></span>\
         <svg class=\"bar\">{labels}<text class=\"unit\" x=\"50%\" y=\"2.6em\" \
         text-anchor=\"middle\">{}</text></svg></div>\n</div></figure>\n",
        escape(axis)
    )
}

/// A picture for each compared variant: the parts of its difference in mean latency, then the whole.
pub(super) fn parts(summary: &Summary) -> String {
    let picture = |row: &VariantSummary| {
        let breakdown = row.breakdown.as_ref()?;
        // Bars without intervals would claim too much.
        let has_ends = breakdown.parts.iter().all(|part| part.low_us.is_some());
        has_ends.then(|| {
            let caption = format!("<b>{}</b>", escape(&row.title()));
            drawing(
                &caption,
                "difference in mean latency, us",
                &parts_of(breakdown),
            )
        })
    };
    let figures: String = summary.variants.iter().filter_map(picture).collect();
    panels(&figures)
}

fn parts_of(breakdown: &BreakdownSummary) -> Vec<Bar> {
    let scale = breakdown.latency_us;
    let mut at = 0.0;
    let mut bars = Vec::new();
    for part in &breakdown.parts {
        let ends = part.low_us.zip(part.high_us);
        let claim = ClaimName::of_ends(ends);
        let difference = part.difference_us;
        let (low, high) = ends.unwrap_or((difference, difference));
        bars.push(Bar {
            name: breakdown::name(part),
            from: at,
            to: at + difference,
            ends: (at + low, at + high),
            class: class(Metric::Mean, claim),
            figure: format!("{} us", breakdown::figure(part, scale)),
        });
        at += difference;
    }
    let single = |name: &str, from: f64, to: f64| Bar {
        name: name.to_owned(),
        from,
        to,
        ends: (to, to),
        class: class(Metric::Mean, ClaimName::NoDifferenceShown),
        figure: format!("{} us", digits::estimate(to - from, None, scale)),
    };
    bars.push(single("remainder", at, scale));
    bars.push(single("mean latency", 0.0, scale));
    bars
}

/// The bar of a step, which begins at zero and has no name.
fn bar(step: &LadderStep, metric: Metric, unit: Unit) -> Option<Bar> {
    let summary = step.metrics.get(&metric)?;
    let overhead = summary.overhead.as_ref()?;
    let difference = unit.shown(overhead.difference);
    let ends = overhead.difference_low.zip(overhead.difference_high);
    let ends = ends.map_or((difference, difference), |(low, high)| {
        (unit.shown(low), unit.shown(high))
    });
    let figure = cell::difference_of(summary, unit, summary.value)?;
    Some(Bar {
        name: String::new(),
        from: 0.0,
        to: difference,
        ends,
        class: class(metric, overhead.claim),
        figure: format!("{figure} {}", unit.sign()),
    })
}

fn row(scale: Scale, bar: &Bar) -> String {
    let [from, to] = [bar.from, bar.to].map(|place| scale.percent(place));
    let (left, width) = (from.min(to), (to - from).abs());
    let [low, high] = [bar.ends.0, bar.ends.1].map(|place| scale.percent(place));
    let zero = scale.percent(0.0);
    let class = bar.class;
    format!(
        "<div class=\"row\"><span class=\"name\">{0}</span>\
         <svg class=\"bar\" aria-hidden=\"true\">\
         <line class=\"zero\" x1=\"{zero:.2}%\" x2=\"{zero:.2}%\" y1=\"0\" y2=\"100%\"/>\
         <g class=\"mark {class}\"><title>{0}: {1}</title>\
         <rect class=\"step\" x=\"{left:.2}%\" width=\"{width:.2}%\" y=\"25%\" height=\"50%\"/>\
         <line x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"50%\" y2=\"50%\"/></g></svg>\
         <span class=\"figure\">{1}</span></div>\n",
        escape(&bar.name),
        escape(&bar.figure)
    )
}
