//! Histories of simulated runs. They show how often a change is claimed without any, at any look, and how
//! soon a planted change is found.

use std::fmt::Write as _;

use stats::change_points::{Point, segments};

use crate::random::Random;

/// Number of runs in a history.
const RUNS: usize = 100;

/// The differences between the runs of a history without a change of the level. Each kind has a variance of
/// about 1.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Normal,
    /// Like `Normal`, but the given error of each run is a third of the true one.
    ErrorsTooSmall,
    /// Student's t with four degrees of freedom.
    HeavyTails,
    /// Two machines behind one name, two deviations apart, in any order.
    TwoHosts,
    /// Each day is half like the day before it.
    Correlated,
    /// One run in twelve is odd, by ten deviations.
    OddRuns,
}

pub(crate) const KINDS: [(&str, Kind); 6] = [
    ("normal", Kind::Normal),
    ("normal, errors of runs too small", Kind::ErrorsTooSmall),
    (
        "heavy tails (t with 4 degrees of freedom)",
        Kind::HeavyTails,
    ),
    ("two machines behind one name", Kind::TwoHosts),
    ("correlated from day to day (0.5)", Kind::Correlated),
    ("one odd run in twelve", Kind::OddRuns),
];

/// A history without a change.
pub(crate) fn history(kind: Kind, seed: u64) -> Vec<Point> {
    let mut random = Random(seed);
    let mut before = random.normal();
    let draw = |_| {
        let noise = random.normal();
        let value = match kind {
            Kind::Normal | Kind::ErrorsTooSmall => noise,
            Kind::HeavyTails => {
                let squares: f64 = (0..4).map(|_| random.normal().powi(2)).sum();
                noise / (squares / 4.0).sqrt() / 2.0_f64.sqrt()
            }
            Kind::TwoHosts => {
                let host = if random.below(2) == 0 { -1.0 } else { 1.0 };
                (noise + host) / 2.0_f64.sqrt()
            }
            Kind::Correlated => {
                before = 0.5 * before + 0.75_f64.sqrt() * noise;
                before
            }
            Kind::OddRuns => match random.below(12) {
                0 if random.below(2) == 0 => noise - 10.0,
                0 => noise + 10.0,
                _ => noise,
            },
        };
        let error = match kind {
            Kind::ErrorsTooSmall => 0.3,
            _ => 0.8,
        };
        Point { value, error }
    };
    (0..RUNS).map(draw).collect()
}

/// Share of histories with a claimed change at any look. There is one look after each run.
pub(crate) fn ever_claimed(kind: Kind, histories: u64) -> f64 {
    let claims = (0..histories).filter(|seed| {
        let points = history(kind, *seed);
        (1..=RUNS).any(|runs| segments(&points[..runs]).len() > 1)
    });
    claims.count() as f64 / histories as f64
}

/// Share of histories that reveal a change after the first eighty runs. `deviations` is its size, and `runs`
/// the number of runs after it.
pub(crate) fn found_within(kind: Kind, deviations: f64, runs: usize, histories: u64) -> f64 {
    const BEFORE: usize = 80;
    let found = (0..histories).filter(|seed| {
        let mut points = history(kind, *seed);
        points[BEFORE..]
            .iter_mut()
            .for_each(|it| it.value += deviations);
        (1..=runs).any(|more| {
            let segments = segments(&points[..BEFORE + more]);
            segments.iter().any(|it| it.start.abs_diff(BEFORE) <= 2)
        })
    });
    found.count() as f64 / histories as f64
}

/// The results of public packages for histories of the same kinds (`docs/evidence/change_points.py`).
const OTHERS: &str = include_str!("../../../../docs/evidence/change_points.tsv");

/// The table of histories in METHODOLOGY.md.
pub(crate) fn table() -> String {
    const HISTORIES: u64 = 400;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut rows: Vec<(String, String)> = KINDS
        .into_iter()
        .map(|(name, kind)| {
            let claimed = ever_claimed(kind, HISTORIES);
            (
                format!("no change, {name}: a change is claimed"),
                percent(claimed),
            )
        })
        .collect();
    for deviations in [2.0, 3.0] {
        let within = [3, 5, 8].map(|runs| found_within(Kind::Normal, deviations, runs, HISTORIES));
        rows.push((
            format!("a change by {deviations} deviations: found within 3, 5, 8 runs"),
            within.map(percent).join(", "),
        ));
    }
    let mut others = OTHERS
        .lines()
        .map(|line| line.split('\t').collect::<Vec<&str>>());
    let heading = others.next().expect("a heading").join(" | ");
    let mut text =
        format!("| 100 runs, looked at after each | weigh | {heading} |\n|---|---|---|---|\n");
    for ((name, own), others) in rows.into_iter().zip(others) {
        let _ = writeln!(text, "| {name} | {own} | {} |", others.join(" | "));
    }
    text
}
