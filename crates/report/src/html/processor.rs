//! Waterfalls of processor time: the baseline, then the part of each system, then the variant.

use analysis::summary::{ClaimName, Summary, SystemDifference, VariantSummary};
use model::Metric;
use recording::digits;

use super::escape::escape;
use super::forest::class;
use super::waterfall::{Bar, drawing};

/// Share of the variant's processor time that the parts may miss by rounding and is not shown.
const REST_MIN: f64 = 0.003;

/// A picture for each variant with processor time. The largest differences come first.
pub(super) fn waterfalls(summary: &Summary) -> Vec<String> {
    let rows = super::by_size(summary).into_iter();
    rows.filter_map(|row| picture(summary, row)).collect()
}

fn picture(summary: &Summary, row: &VariantSummary) -> Option<String> {
    let against = &row.baseline;
    let base = summary.variant(against)?.level(Metric::Cpu)?;
    let own = row.level(Metric::Cpu)?;
    let parts = &row.system_differences;
    // Bars without intervals would claim too much.
    if parts.is_empty() || parts.iter().any(|part| part.ends_us.is_none()) {
        return None;
    }
    let whole = |name: &str, us: f64| Bar {
        name: name.to_owned(),
        from: 0.0,
        to: us,
        ends: (us, us),
        class: "whole",
        figure: format!("{} us", digits::value(us, Some(own * 0.005))),
    };
    let mut bars = vec![whole(against, base)];
    let mut at = base;
    for system in parts {
        bars.push(part(system, at, own));
        at += system.cpu_us;
    }
    let rest = own - at;
    // Each estimate has its own rounding, so the parts need not add up to the difference.
    if rest.abs() > own * REST_MIN {
        bars.push(Bar {
            name: "rest of the estimates".to_owned(),
            from: at,
            to: own,
            ends: (own, own),
            class: "same",
            figure: format!("{} us", digits::difference(rest, None, own)),
        });
    }
    bars.push(whole(&format!("= {}", row.name), own));
    let caption = format!("<b>{}</b> processor time per request", escape(&row.title()));
    Some(drawing(&caption, "processor time per request, us", &bars))
}

/// The bar of a system, from the end of the bar before it.
fn part(system: &SystemDifference, at: f64, scale: f64) -> Bar {
    let us = system.cpu_us;
    let (low, high) = system.ends_us.unwrap_or((us, us));
    let claim = ClaimName::of_ends(system.ends_us);
    let sign = if us < 0.0 { '-' } else { '+' };
    Bar {
        name: format!("{sign} {}", system.name),
        from: at,
        to: at + us,
        ends: (at + low, at + high),
        class: class(Metric::Cpu, claim),
        figure: format!("{} us", digits::estimate(us, system.ends_us, scale)),
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn the_bars_lead_from_the_baseline_to_the_variant() {
        let mut recording = SampleRun::side_by_side()
            .rounds(9)
            .variant("plain", 700.0)
            .variant("cached", 800.0)
            .build();
        for round in recording
            .rounds
            .iter_mut()
            .filter(|it| it.variant == "cached")
        {
            let mut cache = round.systems[0].clone();
            cache.name = "cache".to_owned();
            cache.cpu_us = Some(round.outcomes.passed * 30);
            round.systems.push(cache);
        }
        let summary = Summary::of(&recording);
        let drawn = waterfalls(&summary).remove(0);
        let names: Vec<&str> = drawn
            .split("<span class=\"name\">")
            .skip(1)
            .filter_map(|rest| rest.split('<').next())
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!(
            (names[0], names[2], names[3]),
            ("plain", "+ cache", "= cached")
        );
        assert!(drawn.contains("+30"), "{drawn}");
    }
}
