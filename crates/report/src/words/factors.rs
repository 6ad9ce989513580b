//! Effects of factors in words.

use analysis::summary::quantity;
use analysis::summary::{ClaimName, EffectFigure, EffectSummary, FactorsSummary, MissingVariant};
use model::{Metric, Unit};

/// The reason why a variant of a design has no trusted number.
pub(crate) fn missing(variant: &MissingVariant) -> String {
    let verdict = variant.verdict.as_ref();
    verdict.map_or_else(|| "it was not measured".to_owned(), super::verdict)
}

/// The sentence on all effects. An example is ``For a typical request, `log` alone costs 7 us (6 to 8), `tls`
/// alone costs 14 us (12 to 16)``, and then the interaction: ``both together cost 3 us (0 to 6) more``.
pub(crate) fn effects(summary: &FactorsSummary, headline: Metric, times: Unit) -> Option<String> {
    if !summary.missing.is_empty() || headline == Metric::Requests {
        return None;
    }
    let is_pair = summary.factors.len() == 2 && summary.alone.len() == 2;
    let (rows, how, over) = match is_pair {
        true => (&summary.alone, "alone ", ""),
        false => (
            &summary.effects,
            "",
            ", over all levels of the other factors",
        ),
    };
    let unit = headline.unit().with_times(times);
    let of_one = rows.iter().filter(|it| it.factors.len() == 1);
    let single = |effect: &EffectSummary| {
        let figure = effect.metrics.get(&headline)?;
        let name = &effect.factors[0];
        let words = match figure.claim {
            ClaimName::Higher => format!("`{name}` {how}costs {}", size(figure, unit)?),
            ClaimName::Lower => format!("`{name}` {how}saves {}", size(figure, unit)?),
            _ => format!(
                "`{name}` {how}shows no difference ({})",
                range(figure, unit)?
            ),
        };
        Some((figure.value, words))
    };
    let singles: Vec<(f64, String)> = of_one.map(single).collect::<Option<_>>()?;
    let whom = match headline {
        Metric::Typical => "For a typical request",
        _ => "For a request on average",
    };
    let said = [
        vec![largest(singles, "factors")],
        together(summary, headline, unit)?,
    ]
    .concat();
    let confounded = summary.effects.iter().any(|it| it.confounded.is_some());
    let confounded = match confounded {
        true => ". This fraction confounds some of these effects with others",
        false => "",
    };
    Some(format!("{whom}{over}, {}{confounded}", said.join("; ")))
}

/// Most effects of one kind in the sentence.
const NAMED_MAX: usize = 4;

/// The words for the largest of these effects, and the number of others.
fn largest(mut each: Vec<(f64, String)>, kind: &str) -> String {
    let more = each.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        each.sort_by(|(one, _), (other, _)| other.abs().total_cmp(&one.abs()));
        each.truncate(NAMED_MAX);
    }
    let mut words: Vec<String> = each.into_iter().map(|(_, words)| words).collect();
    if more > 0 {
        words.push(format!("and {more} more of the {kind}"));
    }
    words.join(", ")
}

/// The visible interactions of two factors in words, and the number of others. Empty without interactions.
fn together(summary: &FactorsSummary, headline: Metric, unit: Unit) -> Option<Vec<String>> {
    let of_two = summary.effects.iter().filter(|it| it.factors.len() == 2);
    let of_two: Vec<&EffectSummary> = of_two.collect();
    let (mut visible, mut silent) = (Vec::new(), Vec::new());
    for effect in &of_two {
        let figure = effect.metrics.get(&headline)?;
        let both = match summary.factors.len() {
            2 => "both together cost".to_owned(),
            _ => {
                let names: Vec<String> =
                    effect.factors.iter().map(|it| format!("`{it}`")).collect();
                format!("{} together cost", names.join(" and "))
            }
        };
        let way = match figure.claim {
            ClaimName::Higher => "more",
            ClaimName::Lower => "less",
            _ => {
                silent.push(range(figure, unit)?);
                continue;
            }
        };
        let words = format!("{both} {} {way}", size(figure, unit)?);
        visible.push((figure.value, words));
    }
    let mut parts = Vec::new();
    if !visible.is_empty() {
        parts.push(largest(visible, "pairs"));
    }
    match (silent.as_slice(), of_two.len()) {
        ([], _) => {}
        ([range], 1) => parts.push(format!("together they show no additional cost ({range})")),
        (silent, all) => parts.push(format!(
            "no interaction shown for {} of {all} pairs",
            silent.len()
        )),
    }
    Some(parts)
}

/// The size without its sign: `7 us (6 to 8)`. `None` with too few rounds.
fn size(figure: &EffectFigure, unit: Unit) -> Option<String> {
    let (low, high) = figure.low.zip(figure.high)?;
    Some(quantity::with_ends(unit, figure.value, low, high))
}

/// The ends of the interval: `-1 to +4 us`. `None` with too few rounds.
fn range(figure: &EffectFigure, unit: Unit) -> Option<String> {
    let (low, high) = figure.low.zip(figure.high)?;
    let text = quantity::signed(unit, figure.value, low, high);
    let (value, ends) = text.split_once(" (")?;
    let unit = value.rsplit_once(' ').map_or("", |(_, unit)| unit);
    Some(format!("{} {unit}", ends.trim_end_matches(')')))
}
