//! Pictures of the differences by round, in the order of time, with the estimate as a band. They show why an
//! interval is as narrow as it is.

use analysis::summary::{MetricSummary, OverheadSummary, RoundDifference, Summary, VariantSummary};
use model::{Metric, Unit};
use recording::{digits, float};

use super::escape::escape;
use super::forest::{class, title};
use super::plot::{Frame, Scale, Tick, figure, signed};
use crate::cell;

/// Distance of a round from the middle half of all rounds, in widths of that half, that puts the round outside
/// of the picture. Tukey calls such values "far out".
const FAR: f64 = 3.0;

/// Maximum distance of zero from the rounds for a picture with zero, in widths of all rounds.
const ZERO_WITHIN: f64 = 1.5;

/// The interval of the estimate.
#[derive(Clone, Copy)]
struct Band {
    low: f64,
    high: f64,
}

/// A picture for each variant with differences. The largest differences come first.
pub(super) fn pairs(summary: &Summary) -> Vec<String> {
    let rows = super::by_size(summary).into_iter();
    rows.filter_map(|row| picture(row, summary.headline))
        .collect()
}

/// The figures of the pictures as sentences, for readers without a pointer.
pub(super) fn figures(summary: &Summary) -> Vec<String> {
    let unit = summary.unit(summary.headline);
    let rows = super::by_size(summary).into_iter();
    let rows = rows.filter(|row| !row.round_differences.is_empty());
    rows.map(|row| {
        let rounds = row.round_differences.iter().map(|round| told(*round, unit));
        let rounds: Vec<String> = rounds.collect();
        format!("`{}`: {} ({})", row.name, rounds.join(", "), unit.sign())
    })
    .collect()
}

/// The picture of one variant. `None` with too few rounds for an interval.
fn picture(row: &VariantSummary, metric: Metric) -> Option<String> {
    let rounds = &row.round_differences;
    let (found, is_trusted) = shown(row, metric)?;
    let overhead = found.overhead.as_ref()?;
    if rounds.is_empty() {
        return None;
    }
    let unit = row.unit(metric);
    let band = band(overhead, unit)?;
    let scale = scale(rounds, band, unit);
    let room = 100.0 / float(rounds.len() as u64);
    let place = |index: usize| (float(index as u64) + 0.5) * room;
    let zero = 100.0 - scale.percent(0.0);
    let color = match is_trusted {
        true => class(metric, overhead.claim),
        false => "doubtful",
    };
    let mut body = drawn_band(scale, band, unit.shown(overhead.difference), color);
    if scale.contains(0.0) {
        body += &format!(
            "<line class=\"zero\" x1=\"0\" x2=\"100%\" y1=\"{zero:.2}%\" y2=\"{zero:.2}%\"/>\n"
        );
    }
    for (index, round) in rounds.iter().enumerate() {
        body += &dot(*round, place(index), scale, unit);
    }
    let every = rounds.len().div_ceil(10);
    let across = rounds.iter().enumerate().step_by(every);
    let across = across.map(|(index, round)| Tick {
        percent: place(index),
        is_minor: index / every % 2 == 1,
        label: round.round.to_string(),
    });
    let size = cell::overhead(row, metric).unwrap_or_default();
    let sign = match metric {
        Metric::Requests => "",
        _ => unit.sign(),
    };
    let frame = Frame {
        title: &format!("{}: difference in each round", row.title()),
        description: &format!("{} rounds, {size} {sign}", rounds.len()),
        class: "rounds",
        across: across.collect(),
        up: signed(scale, 4.0),
    };
    let caption = format!("<b>{}</b> {} {sign}", escape(&row.title()), escape(&size));
    let up = format!("difference in {}", escape(&title(metric, unit)));
    Some(figure(
        &caption,
        &up,
        "round, in the order of time",
        &frame.draw(&body),
    ))
}

/// The figure of the row, and true if it is trusted. Otherwise it is an estimate. A trusted figure may have no
/// difference because the baseline is not trusted, and then the estimate has it.
pub(super) fn shown(row: &VariantSummary, metric: Metric) -> Option<(&MetricSummary, bool)> {
    let own = row.metric(metric);
    let compared = own.filter(|figure| figure.overhead.is_some());
    let estimated = || row.estimate.as_ref()?.metrics.get(&metric);
    let doubtful = || Some((estimated()?, false));
    compared
        .map(|figure| (figure, true))
        .or_else(doubtful)
        .or_else(|| Some((own?, true)))
}

/// The ends of the estimate's interval in the shown unit. `None` with too few rounds.
fn band(overhead: &OverheadSummary, unit: Unit) -> Option<Band> {
    Some(Band {
        low: unit.shown(overhead.difference_low?),
        high: unit.shown(overhead.difference_high?),
    })
}

fn drawn_band(scale: Scale, band: Band, value: f64, color: &str) -> String {
    let [top, bottom, line] =
        [band.high, band.low, value].map(|value| 100.0 - scale.percent(value));
    let height = bottom - top;
    format!(
        "<g class=\"mark {color}\">\
         <rect class=\"span\" x=\"0\" width=\"100%\" y=\"{top:.2}%\" height=\"{height:.2}%\"/>\
         <line x1=\"0\" x2=\"100%\" y1=\"{line:.2}%\" y2=\"{line:.2}%\"/></g>\n"
    )
}

/// The scale with the band and all rounds that are not far out. It contains zero if zero is near, so that a small
/// spread of a large difference stays visible.
fn scale(rounds: &[RoundDifference], band: Band, unit: Unit) -> Scale {
    let mut values: Vec<f64> = rounds.iter().map(|it| unit.shown(it.difference)).collect();
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    let (low, high) = (values[last / 4], values[last - last / 4]);
    let reach = (high - low) * FAR;
    let near = values.into_iter();
    let near = near.filter(|value| (low - reach..=high + reach).contains(value));
    let all: Vec<f64> = near.chain([band.low, band.high]).collect();
    let low = all.iter().copied().fold(f64::MAX, f64::min);
    let high = all.iter().copied().fold(f64::MIN, f64::max);
    let distance = low.max(-high).max(0.0);
    match distance > (high - low) * ZERO_WITHIN {
        true => {
            let margin = (high - low) * 0.15;
            Scale::linear(low - margin, high + margin)
        }
        false => Scale::around_zero(all.into_iter()),
    }
}

/// The dot of a round. An arrow at the edge marks a round outside of the picture.
fn dot(round: RoundDifference, x: f64, scale: Scale, unit: Unit) -> String {
    let value = unit.shown(round.difference);
    let shape = match scale.contains(value) {
        true => {
            let y = 100.0 - scale.percent(value);
            format!("<circle cx=\"{x:.2}%\" cy=\"{y:.2}%\" r=\"3\"/>")
        }
        false => {
            let (y, arrow) = match scale.is_above(value) {
                true => (0, "M0 0L-4 7L4 7Z"),
                false => (100, "M0 0L-4 -7L4 -7Z"),
            };
            format!("<svg x=\"{x:.2}%\" y=\"{y}%\"><path d=\"{arrow}\"/></svg>")
        }
    };
    format!(
        "<g class=\"round\"><title>{}</title>{shape}</g>\n",
        escape(&told(round, unit))
    )
}

/// One round in words: `round 3: +0.091`
fn told(round: RoundDifference, unit: Unit) -> String {
    let value = unit.shown(round.difference);
    format!(
        "round {}: {}",
        round.round,
        digits::difference(value, None, value)
    )
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn every_round_is_a_dot_under_the_pointer_and_a_far_one_is_an_arrow() {
        let recording = SampleRun::side_by_side()
            .rounds(12)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let mut summary = Summary::of(&recording);
        let drawn = pairs(&summary).remove(0);
        assert_eq!(drawn.matches("<circle").count(), 12, "{drawn}");
        assert_eq!(drawn.matches("<title>round ").count(), 12);
        assert!(drawn.contains("<g class=\"mark worse\"><rect class=\"span\""));
        let rounds = &mut summary.variants[1].round_differences;
        rounds[4].difference *= 40.0;
        let drawn = pairs(&summary).remove(0);
        assert_eq!(drawn.matches("<circle").count(), 11, "{drawn}");
        assert!(drawn.contains("<title>round 5: +"), "{drawn}");
    }
}
