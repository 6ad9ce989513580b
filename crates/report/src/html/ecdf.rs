//! Pictures of two distributions: the share of the requests within each latency, up to p95. The area between
//! the lines is the difference of the means of these requests.

use analysis::summary::{ClaimName, Summary, VariantSummary};
use model::{Metric, Unit};
use recording::digits;
use stats::Histogram;

use super::distribution::{PooledLatencies, quantiles};
use super::escape::escape;
use super::pairs::shown;
use super::plot::{Frame, STRETCHED, Scale, Tick, figure, path};

/// The largest share of the requests in the picture. The slowest requests would flatten the rest.
const TO: f64 = 0.95;
/// Number of steps of a line.
const STEPS: u32 = 48;
/// The shares with figures under the pointer.
const TOLD: [(f64, &str); 4] = [(0.25, "p25"), (0.5, "p50"), (0.75, "p75"), (0.9, "p90")];

/// Share of the requests, and latency in the unit of the report.
type Place = (f64, f64);

/// A picture for each compared variant. The largest differences come first.
pub(super) fn distributions(summary: &Summary, all: &PooledLatencies<'_>) -> Vec<String> {
    let rows = super::by_size(summary).into_iter();
    rows.filter_map(|row| picture(summary, row, all)).collect()
}

fn picture(summary: &Summary, row: &VariantSummary, all: &PooledLatencies<'_>) -> Option<String> {
    let against = &row.baseline;
    let (base, own) = (all.get(against.as_str())?, all.get(row.name.as_str())?);
    let unit = summary.unit(Metric::Mean);
    let shares: Vec<f64> = (0..=STEPS)
        .map(|step| TO * f64::from(step) / f64::from(STEPS))
        .collect();
    let (base_line, own_line) = (
        quantiles(base, &shares, unit),
        quantiles(own, &shares, unit),
    );
    let scale = scale(&base_line, &own_line)?;
    let x = |latency: f64| scale.percent(latency);
    let drawn = |line: &[Place]| {
        path(
            line.iter()
                .map(|(share, latency)| (x(*latency), share * 100.0)),
        )
    };
    let mut body = format!(
        "{STRETCHED}{}",
        areas(&base_line, &own_line, scale, row, summary)
    );
    body += &format!(
        "<path class=\"curve base\" d=\"{}\"/><path class=\"curve own\" d=\"{}\"/></svg>\n",
        drawn(&base_line),
        drawn(&own_line)
    );
    let mut words = Vec::new();
    for told in told([base, own], against, unit) {
        let y = 100.0 - told.share * 100.0;
        body += &format!(
            "<g class=\"quantile\"><title>{}</title>\
             <line x1=\"{:.2}%\" x2=\"{:.2}%\" y1=\"{y}%\" y2=\"{y}%\"/>\
             <circle cx=\"{:.2}%\" cy=\"{y}%\" r=\"3.5\"/></g>\n",
            escape(&told.text),
            x(told.base),
            x(told.own),
            x(told.own)
        );
        words.push(told.text);
    }
    let ticks = scale.ticks_across(5.0).into_iter();
    let across = ticks.map(|(latency, label)| tick(x(latency), label));
    let up = [0, 25, 50, 75, 95].map(|share| tick(f64::from(share), format!("{share} %")));
    let frame = Frame {
        title: &format!(
            "{} and {against}: share of the requests by latency",
            row.name
        ),
        description: &words.join("; "),
        class: "ecdf",
        across: across.collect(),
        up: up.into(),
    };
    let caption = format!(
        "<span class=\"line own\"></span><b>{}</b> <span class=\"line base\"></span>{}",
        escape(&row.name),
        escape(against)
    );
    let picture = frame.draw(&body);
    Some(figure(
        &caption,
        "requests within the latency",
        &format!("latency, {}", unit.sign()),
        &picture,
    ))
}

/// A quantile of both sides, with its figures in words.
struct Quantile {
    share: f64,
    base: f64,
    own: f64,
    text: String,
}

/// The quantiles with figures under the pointer. `against` is the name of the baseline.
fn told(sides: [&Histogram; 2], against: &str, unit: Unit) -> Vec<Quantile> {
    let shares = TOLD.map(|(share, _)| share);
    let [base, own] = sides.map(|all| quantiles(all, &shares, unit));
    let sign = unit.sign();
    let each = base.into_iter().zip(own).zip(TOLD);
    let quantile = |(((share, base), (_, own)), (_, label)): ((_, _), (_, &str))| Quantile {
        share,
        base,
        own,
        text: format!(
            "{label}: {} {sign}, {against} {} {sign}, {} {sign}",
            digits::value(own, None),
            digits::value(base, None),
            digits::difference(own - base, None, own)
        ),
    };
    each.map(quantile).collect()
}

fn tick(percent: f64, label: String) -> Tick {
    Tick {
        percent,
        label,
        is_minor: false,
    }
}

/// The scale of both lines. It begins at zero unless both are far from it. `None` if all latencies are 0.
fn scale(base: &[Place], own: &[Place]) -> Option<Scale> {
    let all = || base.iter().chain(own).map(|(_, latency)| *latency);
    let (low, high) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let from = match low < high * 0.4 {
        true => 0.0,
        false => low - (high - low) * 0.05,
    };
    (high > 0.0).then(|| Scale::linear(from, high + (high - from) * 0.03))
}

/// The area between the lines, in parts with one sign each. It has a color only if a difference is shown.
fn areas(
    base: &[Place],
    own: &[Place],
    scale: Scale,
    row: &VariantSummary,
    summary: &Summary,
) -> String {
    let found = shown(row, summary.headline);
    let claimed = found.and_then(|(figure, is_trusted)| {
        let claim = figure.overhead.as_ref()?.claim;
        Some(is_trusted && matches!(claim, ClaimName::Higher | ClaimName::Lower))
    });
    let pairs = base.iter().zip(own);
    let both: Vec<[Place; 2]> = pairs.map(|(base, own)| [*base, *own]).collect();
    let is_slower = |[base, own]: &[Place; 2]| own.1 > base.1;
    let part = |part: &[[Place; 2]]| {
        let color = match (claimed, part.iter().any(is_slower)) {
            (Some(true), true) => "worse",
            (Some(true), false) => "better",
            _ => "same",
        };
        let place = |(share, latency): &Place| (scale.percent(*latency), share * 100.0);
        let there = part.iter().map(|[base, _]| place(base));
        let back = part.iter().rev().map(|[_, own]| place(own));
        format!(
            "<path class=\"area {color}\" d=\"{}Z\"/>",
            path(there.chain(back))
        )
    };
    both.chunk_by(|one, other| is_slower(one) == is_slower(other))
        .map(part)
        .collect()
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::super::distribution::pooled_latencies;
    use super::*;

    #[test]
    fn the_area_has_the_color_of_the_verdict_and_quantiles_are_under_the_pointer() {
        let recording = SampleRun::side_by_side()
            .rounds(12)
            .variant("a", 700.0)
            .variant("slow", 900.0)
            .variant("alike", 700.0)
            .build();
        let summary = Summary::of(&recording);
        let drawn = distributions(&summary, &pooled_latencies(&recording, &summary));
        assert_eq!(drawn.len(), 2);
        assert!(
            drawn[0].contains("<path class=\"area worse\""),
            "{}",
            drawn[0]
        );
        assert!(!drawn[0].contains("area better"));
        for quantile in ["p25", "p50", "p75", "p90"] {
            assert!(
                drawn[0].contains(&format!("<title>{quantile}: ")),
                "{}",
                drawn[0]
            );
        }
        assert!(!drawn[1].contains("area worse"), "{}", drawn[1]);
        assert!(drawn[1].contains("area same"), "{}", drawn[1]);
    }
}
