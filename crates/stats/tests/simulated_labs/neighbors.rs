//! Adjusted differences of tables and of ladders, on machines that drift: the rate of labs with all intervals
//! right, with and without the degree of freedom of the slope, and with Bonferroni's correction.

use std::fmt::Write as _;

use stats::factorial::Contrast;

use crate::factors::{Adjusting, Correction, Design, Runs, Score, score_of};

/// Labs of each row of the table.
const LABS: u64 = 2_000;

/// The differences that a lab reports.
#[derive(Clone, Copy, Debug)]
enum Compared {
    /// Each variant with the first one.
    WithBaseline,
    /// Each variant with the one before it, and the last with the first.
    AsLadder,
}

impl Compared {
    fn contrasts(self, variants: usize) -> Vec<Contrast> {
        let pairs: Vec<[usize; 2]> = match self {
            Self::WithBaseline => (1..variants).map(|own| [own, 0]).collect(),
            Self::AsLadder => (1..variants)
                .map(|own| [own, own - 1])
                .chain([[variants - 1, 0]])
                .collect(),
        };
        let contrast = |pair| Contrast {
            pairs: vec![pair],
            scale: 1.0,
        };
        pairs.into_iter().map(contrast).collect()
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Case {
    compared: Compared,
    variants: usize,
    rounds: usize,
    /// Standard deviation of the machine's speed from round to round.
    mood: f64,
    spoiled: Option<usize>,
}

impl Case {
    fn score(self, labs: u64, adjusting: Adjusting, correction: Correction) -> Score {
        let runs = Runs {
            design: Design::Plain(self.variants),
            rounds: self.rounds,
            mood: self.mood,
            spoiled: self.spoiled,
            is_free: false,
        };
        let contrasts = self.compared.contrasts(self.variants);
        score_of(labs, &runs, &contrasts, adjusting, correction)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let machines = [
        (6, 0.03, None),
        (6, 0.0, None),
        (7, 0.03, None),
        (8, 0.03, None),
        (8, 0.0, None),
        (8, 0.15, None),
        (12, 0.03, None),
        (12, 0.03, Some(8)),
    ];
    let compared = [Compared::WithBaseline, Compared::AsLadder].into_iter();
    compared.flat_map(move |compared| {
        [3, 4, 8].into_iter().flat_map(move |variants| {
            machines.map(|(rounds, mood, spoiled)| Case {
                compared,
                variants,
                rounds,
                mood,
                spoiled,
            })
        })
    })
}

/// The table of adjusted differences in METHODOLOGY.md.
pub(crate) fn table() -> String {
    let mut text = "| differences, rounds, machine | all intervals hold | with method 3 | \
                    by flips, with the degree of freedom | width against method 3 |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for case in cases() {
        let own = case.score(LABS, Adjusting::Counted, Correction::Bonferroni);
        let [older, flips] = [Adjusting::Uncounted, Adjusting::Counted]
            .map(|it| case.score(LABS, it, Correction::Flips));
        let compared = match case.compared {
            Compared::WithBaseline => "variants and a baseline",
            Compared::AsLadder => "variants of a ladder",
        };
        let machine = match case.spoiled {
            Some(one_in) => format!(", one round in {one_in} six times as noisy"),
            None => String::new(),
        };
        let width = |score: &Score| score.half_widths.iter().sum::<f64>();
        let _ = writeln!(
            text,
            "| {} {compared}, {}, speed differs by {:.0} %{machine} | {:.1} % | {:.1} % | {:.1} % | {:.2} |",
            case.variants,
            case.rounds,
            case.mood * 100.0,
            own.together * 100.0,
            older.together * 100.0,
            flips.together * 100.0,
            width(&own) / width(&older),
        );
    }
    text
}

#[test]
fn adjusted_intervals_of_tables_and_ladders_hold_together_as_often_as_the_page_says() {
    for case in cases() {
        let found = case.score(300, Adjusting::Counted, Correction::Bonferroni);
        // 300 labs have a standard error of 1.3 %.
        assert!(found.together >= 0.915, "{case:?}: {found:?}");
    }
}

#[test]
fn with_flips_or_without_the_degree_of_freedom_intervals_would_be_too_narrow() {
    let case = Case {
        compared: Compared::AsLadder,
        variants: 8,
        rounds: 7,
        mood: 0.03,
        spoiled: None,
    };
    let of = |adjusting, correction| case.score(2_000, adjusting, correction).together;
    let older = of(Adjusting::Uncounted, Correction::Flips);
    let flips = of(Adjusting::Counted, Correction::Flips);
    let own = of(Adjusting::Counted, Correction::Bonferroni);
    assert!(older < 0.91, "{older}");
    assert!(flips >= older + 0.015 && flips < 0.935, "{flips} {older}");
    assert!(own >= 0.94, "{own}");
}
