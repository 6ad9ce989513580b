use super::*;

/// The factors of a word in the book, counted from 1.
fn set(word: &str) -> FactorSet {
    FactorSet::of(word.bytes().map(|digit| usize::from(digit - b'1')))
}

fn words(factors: usize, halvings: usize) -> Vec<String> {
    let design = FactorialDesign::standard(factors, halvings).unwrap();
    design.words().into_iter().map(written).collect()
}

fn written(set: FactorSet) -> String {
    set.factors().map(|it| (it + 1).to_string()).collect()
}

/// The aliases of at most two factors.
fn short_aliases(factors: usize, halvings: usize, effect: &str) -> Vec<String> {
    let design = FactorialDesign::standard(factors, halvings).unwrap();
    let aliases = design.aliases(set(effect)).into_iter();
    let short = aliases.filter(|alias| alias.effect.len() <= 2);
    short.map(|alias| written(alias.effect)).collect()
}

#[test]
fn the_defining_relations_are_those_of_the_book() {
    // Box, Hunter and Hunter, 2nd edition, chapter 6.
    assert_eq!(words(4, 1), ["1234"]);
    assert_eq!(words(5, 1), ["12345"]);
    assert_eq!(words(5, 2), ["124", "135", "2345"]);
    assert_eq!(
        words(6, 3),
        ["124", "135", "236", "456", "1256", "1346", "2345"]
    );
    let seven = words(7, 4);
    let of_three = ["124", "135", "167", "236", "257", "347", "456"];
    let of_four = ["1237", "1256", "1346", "1457", "2345", "2467", "3567"];
    assert_eq!(seven[..7], of_three);
    assert_eq!(seven[7..14], of_four);
    assert_eq!(seven[14..], ["1234567"]);
}

#[test]
fn the_aliases_are_those_of_the_book() {
    // 2^(4-1) IV: pairs of two-factor interactions.
    assert_eq!(short_aliases(4, 1, "12"), ["34"]);
    assert_eq!(short_aliases(4, 1, "13"), ["24"]);
    assert_eq!(short_aliases(4, 1, "23"), ["14"]);
    assert!(short_aliases(4, 1, "1").is_empty());
    // 2^(5-2) III.
    assert_eq!(short_aliases(5, 2, "1"), ["24", "35"]);
    assert_eq!(short_aliases(5, 2, "2"), ["14"]);
    assert_eq!(short_aliases(5, 2, "23"), ["45"]);
    assert_eq!(short_aliases(5, 2, "25"), ["34"]);
    // 2^(6-3) III.
    assert_eq!(short_aliases(6, 3, "1"), ["24", "35"]);
    assert_eq!(short_aliases(6, 3, "6"), ["23", "45"]);
    assert_eq!(short_aliases(6, 3, "16"), ["25", "34"]);
    // 2^(7-4) III: each main effect with three interactions of two factors.
    assert_eq!(short_aliases(7, 4, "1"), ["24", "35", "67"]);
    assert_eq!(short_aliases(7, 4, "7"), ["16", "25", "34"]);
}

#[test]
fn each_standard_design_has_the_resolution_of_the_book() {
    for (factors, halvings, resolution) in [
        (3, 1, 3),
        (4, 1, 4),
        (5, 1, 5),
        (5, 2, 3),
        (6, 1, 6),
        (6, 2, 4),
        (6, 3, 3),
        (7, 2, 4),
        (7, 3, 4),
        (7, 4, 3),
        (8, 3, 4),
        (8, 4, 4),
        (9, 4, 4),
        (9, 5, 3),
        (10, 5, 4),
        (10, 6, 3),
        (11, 6, 4),
        (11, 7, 3),
    ] {
        let design = FactorialDesign::standard(factors, halvings).unwrap();
        let found = design.resolution();
        assert_eq!(found, Some(resolution), "{factors} {halvings}");
        assert_eq!(design.runs().len(), 1 << (factors - halvings));
        assert_eq!(design.factors(), factors);
    }
    assert_eq!(STANDARD.len(), 18, "each is in the list above");
    assert_eq!(FactorialDesign::standard(5, 0).unwrap().resolution(), None);
}

#[test]
fn a_fraction_begins_with_the_baseline_and_balances_every_factor() {
    for factors in 2..=11 {
        for halvings in FactorialDesign::halvings(factors) {
            let design = FactorialDesign::standard(factors, halvings).unwrap();
            let runs = design.runs();
            assert_eq!(runs[0], FactorSet::NONE);
            for factor in 0..factors {
                let high = runs.iter().filter(|run| run.has(factor)).count();
                assert_eq!(2 * high, runs.len(), "{factors} {halvings} {factor}");
            }
        }
    }
}

#[test]
fn pairs_contain_each_run_once_and_differ_in_the_sign_of_the_effect() {
    for (factors, halvings) in [(2, 0), (3, 0), (5, 0), (3, 1), (5, 2), (7, 4), (8, 4)] {
        let design = FactorialDesign::standard(factors, halvings).unwrap();
        let runs = design.runs();
        for effect in design.effects(3) {
            let pairs = design.pairs(effect);
            let mut seen: Vec<usize> = pairs.iter().flatten().copied().collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..runs.len()).collect::<Vec<_>>());
            // The sign of a run is the product of the signs of its factors: -1 at the first level.
            let sign = |run: usize| {
                let low = effect.factors().filter(|it| !runs[run].has(*it)).count();
                if low % 2 == 1 { -1 } else { 1 }
            };
            for [plus, minus] in pairs {
                assert_eq!((sign(plus), sign(minus)), (1, -1), "{effect:?}");
            }
        }
    }
}

#[test]
fn the_share_of_an_alias_is_its_part_in_the_contrast() {
    // Figures with one interaction only. The contrast of another effect must show its share of it.
    for (factors, halvings) in [(3, 1), (4, 1), (5, 2), (7, 4)] {
        let design = FactorialDesign::standard(factors, halvings).unwrap();
        let runs = design.runs();
        for effect in design.effects(2) {
            for alias in design.aliases(effect) {
                // An effect of 1 in this scale: all its factors at the second level cost 1 more.
                let figure = |run: &FactorSet| {
                    let low = alias.effect.factors().filter(|it| !run.has(*it)).count();
                    let sign = if low % 2 == 1 { -1.0 } else { 1.0 };
                    sign / power(alias.effect.len())
                };
                let pairs = design.pairs(effect);
                let count = pairs.len() as f64;
                let differences = pairs
                    .iter()
                    .map(|[plus, minus]| figure(&runs[*plus]) - figure(&runs[*minus]));
                let found = power(effect.len() - 1) * differences.sum::<f64>() / count;
                assert!((found - alias.share).abs() < 1e-12, "{effect:?} {alias:?}");
            }
        }
    }
}

#[test]
fn effects_are_told_apart_as_far_as_the_design_can() {
    let count = |factors, halvings, order| {
        let design = FactorialDesign::standard(factors, halvings).unwrap();
        design.effects(order).len()
    };
    assert_eq!(count(3, 0, 3), 7);
    assert_eq!(count(3, 0, 2), 6);
    // Three main effects, and nothing else is left of four runs.
    assert_eq!(count(3, 1, 2), 3);
    // Four main effects and three pairs of interactions.
    assert_eq!(count(4, 1, 2), 7);
    assert_eq!(count(5, 1, 2), 15);
    assert_eq!(count(7, 4, 2), 7);
}

#[test]
fn there_is_no_design_that_confounds_main_effects_with_each_other() {
    assert_eq!(FactorialDesign::standard(2, 1), None);
    assert_eq!(FactorialDesign::standard(4, 2), None);
    assert_eq!(FactorialDesign::standard(8, 5), None);
    assert_eq!(FactorialDesign::standard(1, 0), None);
    assert_eq!(FactorialDesign::standard(6, 0), None, "64 runs");
    assert_eq!(FactorialDesign::standard(12, 7), None);
    let wrong = [set("13"), set("2"), set("")];
    for word in wrong {
        assert_eq!(FactorialDesign::generated(2, vec![word]), None, "{word:?}");
    }
    assert_eq!(FactorialDesign::halvings(7).collect::<Vec<_>>(), [2, 3, 4]);
}

#[test]
fn a_confounded_effect_is_shown_as_the_sum_that_is_measured() {
    let names = ["log", "tls", "auth", "gzip"];
    let half = FactorialDesign::standard(3, 1).unwrap();
    let sum = half.confounded(set("1"), &names);
    assert_eq!(sum.as_deref(), Some("log - 1/2 (tls × auth)"));
    let half = FactorialDesign::standard(4, 1).unwrap();
    assert_eq!(half.confounded(set("1"), &names), None);
    let sum = half.confounded(set("12"), &names);
    assert_eq!(sum.as_deref(), Some("log × tls + auth × gzip"));
    let full = FactorialDesign::standard(2, 0).unwrap();
    assert_eq!(full.confounded(set("12"), &names), None);
}
