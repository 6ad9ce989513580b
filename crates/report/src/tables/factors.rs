//! Table of the effects of factors.

use analysis::summary::{EffectFigure, EffectSummary, FactorsSummary, Summary};
use model::Unit;
use recording::digits;

use super::ladder;
use crate::cell;
use crate::table::{Cell, Table};
use crate::words;

/// Title of the table.
pub(crate) const TITLE: &str = "Factors: the cost of each, and of combinations";

/// One row for each effect, and one for the cost of each factor alone. No rows without factors.
pub(crate) fn table(summary: &Summary) -> Table {
    let (columns, metrics) = ladder::columns(summary, "effect");
    let factors = summary.factors.as_ref();
    let cells = |effect: &EffectSummary, name: String| {
        let figures = metrics.iter().map(|metric| {
            let figure = effect.metrics.get(metric);
            figure.map_or_else(cell::nothing, |it| text(it, summary.unit(*metric)))
        });
        let cells = std::iter::once(name).chain(figures);
        cells.map(Cell::from).collect::<Vec<Cell>>()
    };
    let rows = factors.into_iter().flat_map(|factors| {
        let effects = factors.effects.iter();
        let effects = effects.map(|effect| cells(effect, name(effect, factors)));
        let alone = factors.alone.iter();
        let alone = alone.map(|effect| cells(effect, alone_name(effect)));
        effects.chain(alone)
    });
    Table::new("effects of the factors", columns, rows)
        .with_notes(factors.map(notes).unwrap_or_default())
}

/// An effect with its interval: `+0.022 ±0.003`.
pub(crate) fn text(figure: &EffectFigure, unit: Unit) -> String {
    let ends = figure.low.zip(figure.high);
    let ends = ends.map(|(low, high)| (unit.shown(low), unit.shown(high)));
    digits::estimate(
        unit.shown(figure.value),
        ends,
        unit.shown(figure.of_baseline),
    )
}

/// The name of a row. The effect of one factor has its direction, and a confounded effect the whole sum.
pub(crate) fn name(effect: &EffectSummary, factors: &FactorsSummary) -> String {
    if let Some(sum) = &effect.confounded {
        return sum.clone();
    }
    let [only] = effect.factors.as_slice() else {
        return effect.factors.join(" × ");
    };
    let levels = factors.factors.iter().find(|factor| factor.name == *only);
    match levels.map(|factor| &factor.levels) {
        Some([first, second]) => format!("{only}: {first} → {second}"),
        None => only.clone(),
    }
}

/// The name of the row with the cost of one factor alone.
pub(crate) fn alone_name(effect: &EffectSummary) -> String {
    format!("{} alone", effect.factors.join(" × "))
}

fn notes(factors: &FactorsSummary) -> Vec<String> {
    let mut notes = vec![format!(
        "Each effect uses the requests of all {} variants. The effect of a factor is the mean of its cost over \
         all levels of the others. An interaction (×) is the additional cost if both are at their second level.",
        factors.variants
    )];
    if !factors.alone.is_empty() {
        notes.push(
            "Alone means: with all other factors at their first level. Alone, a factor pays no interaction."
                .to_owned(),
        );
    }
    if factors
        .effects
        .iter()
        .any(|effect| effect.confounded.is_some())
    {
        notes.push(
            "The lab measured a fraction of all combinations. A row with several effects is their sum, and no \
             figure tells them apart. Interactions of three or more factors are taken as zero."
                .to_owned(),
        );
    }
    notes.push("In each column, all intervals hold together with 95 %.".to_owned());
    if !factors.missing.is_empty() {
        let missing = factors.missing.iter();
        let missing = missing.map(|it| format!("`{}` has none: {}", it.name, words::missing(it)));
        notes.push(format!(
            "An effect needs a trusted number of every variant. {}.",
            missing.collect::<Vec<String>>().join(". ")
        ));
    }
    notes
}
