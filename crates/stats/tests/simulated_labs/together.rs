//! Several variants against one baseline: the rate of labs with all intervals right, and the width of the
//! intervals.

use std::fmt::Write as _;

use stats::simultaneous::confidence_each;

use crate::CONFIDENCE;
use crate::random::Random;

/// Labs of each row of the table.
pub(crate) const LABS: u64 = 1_000;

/// The differences of equal variants from their baseline, a row for each variant. Baseline and variants have a
/// standard deviation of 1 from round to round, and six times that in one of `spoiled` rounds.
fn differences(seed: u64, variants: usize, rounds: usize, spoiled: Option<usize>) -> Vec<Vec<f64>> {
    let mut random = Random(seed);
    let mut rows = vec![Vec::new(); variants];
    for _ in 0..rounds {
        let scale = match spoiled {
            Some(one_in) if random.below(one_in) == 0 => 6.0,
            _ => 1.0,
        };
        let baseline = random.normal();
        for row in &mut rows {
            row.push(scale * (random.normal() - baseline));
        }
    }
    rows
}

/// Share of the labs with all intervals right, and the mean half width.
pub(crate) struct Kept {
    pub(crate) together: f64,
    half_width: f64,
}

/// Results with the confidence that each lab needs, and with Bonferroni's confidence.
pub(crate) fn kept(labs: u64, variants: usize, rounds: usize, spoiled: Option<usize>) -> [Kept; 2] {
    let bonferroni = stats::per_comparison_confidence(CONFIDENCE, variants);
    let mut sums = [(0.0, 0.0); 2];
    for seed in 0..labs {
        let rows = differences(seed, variants, rounds, spoiled);
        let known: Vec<Vec<Option<f64>>> = rows
            .iter()
            .map(|row| row.iter().copied().map(Some).collect())
            .collect();
        let needed = confidence_each(&known, CONFIDENCE);
        for (sum, confidence) in sums.iter_mut().zip([needed, bonferroni]) {
            let intervals: Vec<stats::Interval> = rows
                .iter()
                .map(|row| stats::location(row, confidence).and_then(|it| it.interval))
                .collect::<Option<_>>()
                .expect("there are rounds enough");
            sum.0 += f64::from(u8::from(intervals.iter().all(|it| it.contains(0.0))));
            let widths = intervals.iter().map(stats::Interval::half_width);
            sum.1 += widths.sum::<f64>() / intervals.len() as f64;
        }
    }
    sums.map(|(together, half_width)| Kept {
        together: together / labs as f64,
        half_width: half_width / labs as f64,
    })
}

/// The table of simultaneous intervals in METHODOLOGY.md.
pub(crate) fn table() -> String {
    let mut text = "| variants, rounds | all intervals hold | by Bonferroni's correction | width against Bonferroni's |\n\
                    |---|---|---|---|\n"
        .to_owned();
    for (variants, rounds, spoiled) in [
        (1, 6, None),
        (3, 6, None),
        (8, 6, None),
        (3, 8, None),
        (8, 8, None),
        (3, 12, None),
        (8, 12, None),
        (3, 12, Some(8)),
        (8, 12, Some(8)),
    ] {
        let [own, bonferroni] = kept(LABS, variants, rounds, spoiled);
        let how = match spoiled {
            Some(one_in) => format!(", one round in {one_in} six times as noisy"),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "| {variants}, {rounds}{how} | {:.1} % | {:.1} % | {:.2} |",
            own.together * 100.0,
            bonferroni.together * 100.0,
            own.half_width / bonferroni.half_width
        );
    }
    text
}
