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
use super::row::{Frame, Row};
use super::verdict::Verdict;
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingVariant {
    /// The name of the variant.
    pub name: String,
    /// The verdict on it. Absent if the variant was not measured.
    pub verdict: Option<Verdict>,
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
        verdict: row(name).and_then(|row| row.invalid.clone()),
    });
    Some(FactorsSummary {
        factors: levels(text),
        variants: text.variants.len(),
        effects: summarize(&effects, figures),
        alone: summarize(&alone, of_alone),
        missing: missing.collect(),
    })
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
