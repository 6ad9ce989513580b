//! Effects of the start order of the systems of a round. The order also determines their ports.

use std::collections::BTreeMap;

use super::figures::{Figure, Run};

const CONFIDENCE: f64 = 0.95;

/// The effect of the position in the start order, collected over runs.
#[derive(Default)]
pub(super) struct Effects {
    /// For each round, the change from the first started system to the last.
    by_figure: BTreeMap<&'static str, Vec<f64>>,
}

impl Effects {
    /// Adds the rounds of a run with equal variants.
    pub(super) fn add(&mut self, run: &Run) -> anyhow::Result<()> {
        let measured = run.measured()?;
        for figure in Figure::ALL {
            let mut rounds: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
            for one in &measured {
                let place = (one.position as f64, one.figure(figure));
                rounds.entry(one.round).or_default().push(place);
            }
            let effects = rounds.values().filter_map(|round| first_to_last(round));
            let all = self.by_figure.entry(figure.name()).or_default();
            all.extend(effects);
        }
        Ok(())
    }

    /// A sentence with the effect on each figure, such as `p50 +0.2 us (-0.5 to +0.8)`.
    pub(super) fn in_words(&self) -> String {
        let effects = Figure::ALL.iter().filter_map(|figure| {
            let rounds = self.by_figure.get(figure.name())?;
            let found = stats::location(rounds, CONFIDENCE)?;
            let interval = found.interval?;
            Some(format!(
                "{} {:+.1} us ({:+.1} to {:+.1})",
                figure.name(),
                found.value,
                interval.low,
                interval.high
            ))
        });
        effects.collect::<Vec<_>>().join(", ")
    }
}

/// The change from the first to the last position of one round, along the line of least squares.
fn first_to_last(round: &[(f64, f64)]) -> Option<f64> {
    let count = round.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| round.iter().map(of).sum::<f64>() / count;
    let (place, value) = (mean(|it| it.0), mean(|it| it.1));
    let spread: f64 = round.iter().map(|it| (it.0 - place).powi(2)).sum();
    let shared: f64 = round.iter().map(|it| (it.0 - place) * (it.1 - value)).sum();
    (spread > 0.0).then(|| shared / spread * (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_is_the_difference_between_the_first_and_the_last() {
        assert_eq!(first_to_last(&[(1.0, 7.0), (0.0, 5.0)]), Some(2.0));
        let found = first_to_last(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]).unwrap();
        assert!((found - 2.0).abs() < 1e-12, "{found}");
        assert_eq!(first_to_last(&[(0.0, 1.0)]), None);
    }
}
