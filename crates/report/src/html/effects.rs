//! Picture of the effects of factors: each bar begins at zero.
//!
//! Every number of the picture is also next to it as text.

use analysis::summary::{EffectSummary, FactorsSummary, Summary};
use model::{Metric, Unit};

use super::forest::class;
use super::panels;
use super::waterfall::{Bar, drawn};
use crate::tables::factors::{alone_name, name, text};

/// A picture for latency or rate, processor time and memory. Empty without factors.
pub(super) fn effects(summary: &Summary) -> String {
    let Some(factors) = &summary.factors else {
        return String::new();
    };
    let metrics = [summary.headline, Metric::Cpu, Metric::Memory];
    let figures: String = metrics
        .into_iter()
        .filter_map(|metric| picture(factors, metric, summary.unit(metric)))
        .collect();
    panels(&figures)
}

/// The picture for one metric. `None` without a figure.
fn picture(factors: &FactorsSummary, metric: Metric, unit: Unit) -> Option<String> {
    let effects = factors.effects.iter();
    let effects = effects.filter_map(|it| bar(it, metric, unit, name(it, factors)));
    let alone = factors.alone.iter();
    let alone = alone.filter_map(|it| bar(it, metric, unit, alone_name(it)));
    let bars: Vec<Bar> = effects.chain(alone).collect();
    (!bars.is_empty()).then(|| drawn(metric, unit, &bars))
}

fn bar(effect: &EffectSummary, metric: Metric, unit: Unit, name: String) -> Option<Bar> {
    let figure = effect.metrics.get(&metric)?;
    let value = unit.shown(figure.value);
    let ends = figure.low.zip(figure.high);
    let ends = ends.map_or((value, value), |(low, high)| {
        (unit.shown(low), unit.shown(high))
    });
    Some(Bar {
        name,
        from: 0.0,
        to: value,
        ends,
        class: class(metric, figure.claim),
        figure: format!("{} {}", text(figure, unit), unit.sign()),
    })
}
