//! Gates that are looked at after every round: how often they are decided wrongly, and how soon.

use std::fmt::Write as _;

use stats::sequential::{LOOKS, look_confidence};

use crate::CONFIDENCE;
use crate::random::Random;

/// The result of a gate `overhead < limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Holds,
    Broken,
    Undecided,
}

/// Judges a gate after each round. The difference of a round has a standard deviation of 1 around `truth`,
/// and one round in `spoiled` has six. Returns the ruling and the number of rounds.
pub(crate) fn judged(seed: u64, truth: f64, limit: f64, spoiled: Option<usize>) -> (Ruling, usize) {
    let mut random = Random(seed);
    let mut differences = Vec::new();
    for rounds in 1..=*LOOKS.end() {
        let noise = match spoiled {
            Some(one_in) if random.below(one_in) == 0 => 6.0,
            _ => 1.0,
        };
        differences.push(truth + noise * random.normal());
        if !LOOKS.contains(&rounds) {
            continue;
        }
        let found = stats::location(&differences, look_confidence(CONFIDENCE));
        let interval = found
            .and_then(|it| it.interval)
            .expect("there are rounds enough");
        if interval.high < limit {
            return (Ruling::Holds, rounds);
        }
        if interval.low >= limit {
            return (Ruling::Broken, rounds);
        }
    }
    (Ruling::Undecided, *LOOKS.end())
}

/// Shares of the rulings, and the mean number of rounds.
pub(crate) struct Tally {
    pub(crate) broken: f64,
    pub(crate) undecided: f64,
    pub(crate) rounds: f64,
}

pub(crate) fn tally(runs: u64, gate: (f64, f64), spoiled: Option<usize>) -> Tally {
    let found: Vec<(Ruling, usize)> = (0..runs)
        .map(|seed| judged(seed, gate.0, gate.1, spoiled))
        .collect();
    let share = |wanted: Ruling| {
        let own = found.iter().filter(|(ruling, _)| *ruling == wanted);
        own.count() as f64 / runs as f64
    };
    Tally {
        broken: share(Ruling::Broken),
        undecided: share(Ruling::Undecided),
        rounds: found.iter().map(|(_, rounds)| *rounds as f64).sum::<f64>() / runs as f64,
    }
}

/// The table of METHODOLOGY.md.
pub(crate) fn table() -> String {
    const RUNS: u64 = 4_000;
    let mut text = "| the change costs, the limit is at | differences of rounds | gate broken | undecided | rounds |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for (truth, limit) in [(0.0, 1.0), (0.0, 1.5), (0.0, 2.0), (3.0, 1.5), (1.5, 1.5)] {
        for (spoiled, how) in [
            (None, "normal"),
            (Some(10), "one in ten six times as noisy"),
        ] {
            let found = tally(RUNS, (truth, limit), spoiled);
            let _ = writeln!(
                text,
                "| {truth}, {limit} standard deviations of a round | {how} | {:.2} % | {:.2} % | {:.1} |",
                found.broken * 100.0,
                found.undecided * 100.0,
                found.rounds
            );
        }
    }
    text
}
