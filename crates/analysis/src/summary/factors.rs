//! Effects of the factors of a lab, and their interactions.
//!
//! Each effect is a contrast over all variants of the design ([`stats::factorial`]), computed in each round.

use std::collections::{BTreeMap, BTreeSet};

use model::{FactorSet, FactorialDesign, Metric};
use recording::{FactorsText, Recording, RoundPart};
use serde::Serialize;
use stats::covariate::Adjustment;
use stats::factorial::{Contrast, Pace, by_round};
use stats::paired;

use super::estimate::ClaimName;
use super::quantity;
use super::row::{Frame, Row};
use crate::confidence::{self, CONFIDENCE, Looks};

/// The most factors of a full design with interactions of three factors. With more, they would widen all
/// intervals, and hardly any of them has a meaning.
const FACTORS_OF_THIRD_ORDER: usize = 4;

/// Effects of factors, over all variants of their design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorsSummary {
    /// The factors, with their levels.
    pub factors: Vec<FactorLevels>,
    /// Number of variants of the design. Each effect uses the requests of all of them.
    pub variants: usize,
    /// Effects of one factor, then interactions. In each metric, the intervals of all effects and of all
    /// costs alone hold together with 95 %.
    pub effects: Vec<EffectSummary>,
    /// The cost of each factor with all others at the first level. It uses two variants. Empty if the design
    /// has no such variants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<EffectSummary>,
    /// Sentence on the effects in the headline metric. Absent if a variant has no trusted number, with too
    /// few rounds, and for rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_words: Option<String>,
    /// Variants of the design without a trusted number. Without them, there are no effects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingVariant>,
}

/// A factor and its levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactorLevels {
    /// The name of the factor.
    pub name: String,
    /// The first level and the second level.
    pub levels: [String; 2],
}

/// An effect or an interaction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectSummary {
    /// The factors of the effect.
    pub factors: Vec<String>,
    /// The sum that the figure is, if the design confounds the effect with others of at most two factors:
    /// `log - 1/2 (tls × auth)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confounded: Option<String>,
    /// The figures. Empty if a variant that the effect needs has no trusted number.
    pub metrics: BTreeMap<Metric, EffectFigure>,
}

/// An effect in one metric, in the unit of the metric's name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectFigure {
    /// Number of rounds in the estimate.
    pub rounds: usize,
    /// Hodges-Lehmann estimate over the rounds.
    pub value: f64,
    /// Lower end of the interval. Absent with too few rounds.
    pub low: Option<f64>,
    /// Upper end of the interval. Absent with too few rounds.
    pub high: Option<f64>,
    /// Confidence of the interval. Absent with too few rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The claim about the effect that the interval supports.
    pub claim: ClaimName,
    /// Figure of the baseline, which is the size of the compared values.
    pub of_baseline: f64,
}

/// A variant without a trusted number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingVariant {
    /// The name of the variant.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// A row of the table before its figures: the factors, and the pairs of variants.
struct Wanted {
    effect: FactorSet,
    contrast: Contrast,
}

/// The variants of a design, by run. A variant without a trusted number is `None`.
struct Runs<'r> {
    rows: Vec<Option<&'r Row<'r>>>,
    frame: &'r Frame<'r>,
    /// True if variants ran in several groups. A figure is then the difference from the baseline of the same
    /// group.
    is_grouped: bool,
}

/// Returns the effects of a recording. `None` if its lab has no factors.
pub(super) fn of(
    recording: &Recording,
    rows: &[Row<'_>],
    frame: &Frame<'_>,
) -> Option<FactorsSummary> {
    let text = recording.lab.as_ref()?.factors.as_ref()?;
    let design = text.design()?;
    let row = |name: &String| rows.iter().find(|row| row.variant.name == *name);
    let trusted = |name: &String| row(name).filter(|row| row.invalid.is_none());
    let runs = Runs {
        rows: text.variants.iter().map(trusted).collect(),
        frame,
        is_grouped: !recording.groups().is_empty(),
    };
    let (effects, alone) = (effects(&design), alone(&design));
    let all: Vec<&Wanted> = effects.iter().chain(&alone).collect();
    let mut figures = figures(&all, &runs, Looks::of(recording));
    let names = text.names();
    let of_alone = figures.split_off(effects.len());
    let summarize = |wanted: &[Wanted], figures: Vec<BTreeMap<Metric, EffectFigure>>| {
        let each = wanted.iter().zip(figures);
        each.map(|(wanted, metrics)| EffectSummary {
            factors: wanted
                .effect
                .factors()
                .map(|it| names[it].to_owned())
                .collect(),
            confounded: match wanted.contrast.pairs.len() {
                // The cost alone is the difference between two variants.
                1 if text.variants.len() > 2 => None,
                _ => design.confounded(wanted.effect, &names),
            },
            metrics,
        })
        .collect::<Vec<_>>()
    };
    let missing = text.variants.iter().filter(|name| trusted(name).is_none());
    let missing = missing.map(|name| MissingVariant {
        name: name.clone(),
        reason: match row(name).and_then(|row| row.invalid.as_ref()) {
            Some(verdict) => verdict.to_string(),
            None => "it was not measured".to_owned(),
        },
    });
    let mut summary = FactorsSummary {
        factors: levels(text),
        variants: text.variants.len(),
        effects: summarize(&effects, figures),
        alone: summarize(&alone, of_alone),
        in_words: None,
        missing: missing.collect(),
    };
    summary.in_words = in_words(&summary, frame.headline);
    Some(summary)
}

fn levels(text: &FactorsText) -> Vec<FactorLevels> {
    let factors = text.factors.iter().map(|factor| FactorLevels {
        name: factor.name.clone(),
        levels: factor.levels.clone(),
    });
    factors.collect()
}

/// The effects of a design in the order of the report.
fn effects(design: &FactorialDesign) -> Vec<Wanted> {
    let is_small = design.is_full() && design.factors() <= FACTORS_OF_THIRD_ORDER;
    let order = if is_small { 3 } else { 2 };
    let wanted = design.effects(order).into_iter().map(|effect| Wanted {
        effect,
        contrast: Contrast {
            pairs: design.pairs(effect),
            // Effects of an order above 3 are not listed.
            scale: [0.0, 1.0, 2.0, 4.0][effect.len()],
        },
    });
    wanted.collect()
}

/// The cost of each factor with all others at the first level, if the design has this variant.
fn alone(design: &FactorialDesign) -> Vec<Wanted> {
    let runs = design.runs();
    let each = (0..design.factors()).filter_map(|factor| {
        let effect = FactorSet::of([factor]);
        let run = runs.iter().position(|run| *run == effect)?;
        Some(Wanted {
            effect,
            contrast: Contrast {
                pairs: vec![[run, 0]],
                scale: 1.0,
            },
        })
    });
    each.collect()
}

/// The figures of each row, in all metrics of the table. In a metric, all intervals hold together.
fn figures(
    wanted: &[&Wanted],
    runs: &Runs<'_>,
    looks: Looks,
) -> Vec<BTreeMap<Metric, EffectFigure>> {
    let mut found = vec![BTreeMap::new(); wanted.len()];
    let metrics = [
        runs.frame.headline,
        Metric::Mean,
        Metric::Cpu,
        Metric::Memory,
    ];
    for metric in metrics {
        let values: Vec<Adjustment> = wanted
            .iter()
            .map(|wanted| runs.values(&wanted.contrast, metric))
            .collect();
        let known = values.iter().filter(|it| !it.values.is_empty()).count();
        // Bonferroni's correction, as for all adjusted differences ([`confidence::each_of`]).
        let confidence = confidence::each(looks, known);
        for (figures, values) in found.iter_mut().zip(values) {
            if let Some(figure) = figure(&values, confidence, runs.of_baseline(metric)) {
                figures.insert(metric, figure);
            }
        }
    }
    found
}

/// The estimate of an effect from its values by round. `None` without a round.
fn figure(adjusted: &Adjustment, confidence: f64, of_baseline: f64) -> Option<EffectFigure> {
    let estimate = paired::location_of(adjusted, confidence)?;
    let interval = estimate.interval;
    let claim = ClaimName::of_ends(interval.map(|it| (it.low, it.high)));
    Some(EffectFigure {
        rounds: adjusted.values.len(),
        value: estimate.value,
        low: interval.map(|it| it.low),
        high: interval.map(|it| it.high),
        confidence: interval.map(|it| it.confidence),
        claim,
        of_baseline,
    })
}

impl Runs<'_> {
    fn of_baseline(&self, metric: Metric) -> f64 {
        let baseline = self.rows.first().copied().flatten();
        let values = baseline.map(|row| row.figures.values(metric));
        values
            .and_then(|values| stats::sample::median(&values))
            .unwrap_or_default()
    }

    /// The values of a contrast, in the order of the rounds. Empty if a variant that it needs has no trusted number.
    fn values(&self, contrast: &Contrast, metric: Metric) -> Adjustment {
        let needed: BTreeSet<usize> = contrast.pairs.iter().flatten().copied().collect();
        let needed: Vec<usize> = needed.into_iter().collect();
        let figures: Option<Vec<BTreeMap<RoundPart, f64>>> = needed
            .iter()
            .map(|run| self.by_part(*run, metric))
            .collect();
        let Some(figures) = figures.filter(|figures| !figures.is_empty()) else {
            return Adjustment {
                values: Vec::new(),
                lost: 0,
            };
        };
        // Only rounds with all variants, because a contrast needs all of them.
        let parts: Vec<RoundPart> = figures[0]
            .keys()
            .filter(|part| figures.iter().all(|of| of.contains_key(part)))
            .copied()
            .collect();
        let dense = |of: &BTreeMap<RoundPart, f64>| -> Option<Vec<f64>> {
            parts.iter().map(|part| of.get(part).copied()).collect()
        };
        let variants: Vec<Vec<f64>> = figures.iter().filter_map(dense).collect();
        let place = |run: usize| needed.iter().position(|it| *it == run);
        let placed = |[plus, minus]: &[usize; 2]| Some([place(*plus)?, place(*minus)?]);
        let own = Contrast {
            pairs: contrast.pairs.iter().filter_map(placed).collect(),
            scale: contrast.scale,
        };
        let pace = self.is_paced(metric).then(|| {
            let outside = self
                .outside(&needed)
                .map(|row| row.by_part(metric).collect());
            let outside: Vec<Vec<f64>> = outside.filter_map(|of| dense(&of)).collect();
            Pace::of(&variants, &outside)
        });
        by_round(&own, &variants, pace.as_ref(), CONFIDENCE).used()
    }

    /// True if the variants show the speed of the machine in this metric.
    fn is_paced(&self, metric: Metric) -> bool {
        metric.is_of_speed() && !self.frame.told_by.is_empty() && !self.is_grouped
    }

    /// The figures of the variants that a contrast does not use.
    fn outside<'s>(
        &'s self,
        needed: &[usize],
    ) -> impl Iterator<Item = &'s super::figures::Figures> {
        let names: BTreeSet<&str> = needed
            .iter()
            .filter_map(|run| Some(self.rows.get(*run)?.as_ref()?.variant.name.as_str()))
            .collect();
        let told = self.frame.told_by.iter();
        told.filter(move |(name, _)| !names.contains(name))
            .map(|(_, figures)| *figures)
    }

    /// The figures of a variant by round. `None` if it has no trusted number.
    fn by_part(&self, run: usize, metric: Metric) -> Option<BTreeMap<RoundPart, f64>> {
        let row = self.rows.get(run).copied().flatten()?;
        let own = row.figures.by_part(metric);
        if !self.is_grouped {
            return Some(own.collect());
        }
        // Variants of two groups have no time in common. Each is compared with the baseline of its own group,
        // which a contrast cancels out.
        let baseline = self.rows.first().copied().flatten()?;
        let of_baseline: BTreeMap<RoundPart, f64> = baseline.figures.by_part(metric).collect();
        let relative = own.filter_map(|(part, value)| {
            let whole = RoundPart { group: 0, ..part };
            Some((whole, value - of_baseline.get(&part)?))
        });
        Some(relative.collect())
    }
}

/// The sentence on all effects. An example is ``For a typical request, `log` alone costs 7 us (6 to 8), `tls`
/// alone costs 14 us (12 to 16)``, and then the interaction: ``both together cost 3 us (0 to 6) more``.
fn in_words(summary: &FactorsSummary, headline: Metric) -> Option<String> {
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
    let of_one = rows.iter().filter(|it| it.factors.len() == 1);
    let single = |effect: &EffectSummary| {
        let figure = effect.metrics.get(&headline)?;
        let name = &effect.factors[0];
        let words = match figure.claim {
            ClaimName::Higher => format!("`{name}` {how}costs {}", figure.size(headline)?),
            ClaimName::Lower => format!("`{name}` {how}saves {}", figure.size(headline)?),
            _ => format!(
                "`{name}` {how}shows no difference ({})",
                figure.range(headline)?
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
        together(summary, headline)?,
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
fn together(summary: &FactorsSummary, headline: Metric) -> Option<Vec<String>> {
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
                silent.push(figure.range(headline)?);
                continue;
            }
        };
        let words = format!("{both} {} {way}", figure.size(headline)?);
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

impl EffectFigure {
    /// The size without its sign: `7 us (6 to 8)`. `None` with too few rounds.
    fn size(&self, metric: Metric) -> Option<String> {
        let (low, high) = self.low.zip(self.high)?;
        Some(quantity::with_ends(metric.unit(), self.value, low, high))
    }

    /// The ends of the interval: `-1 to +4 us`. `None` with too few rounds.
    fn range(&self, metric: Metric) -> Option<String> {
        let (low, high) = self.low.zip(self.high)?;
        let text = quantity::signed(metric.unit(), self.value, low, high);
        let (value, ends) = text.split_once(" (")?;
        let unit = value.rsplit_once(' ').map_or("", |(_, unit)| unit);
        Some(format!("{} {unit}", ends.trim_end_matches(')')))
    }
}
