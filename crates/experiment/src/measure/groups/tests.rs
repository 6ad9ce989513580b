use super::*;

fn used_on(on: Option<Vec<usize>>, used: f64) -> CoresUsed {
    let system = "server".to_owned();
    CoresUsed::new(vec![Part { system, on, used }])
}

/// A baseline and its variants, with the cores that each uses.
fn members(used: &[f64]) -> Vec<Member> {
    let id = CandidateId::at;
    (0..)
        .zip(used)
        .map(|(index, used)| Member {
            id: id(index),
            name: format!("v{index}"),
            baseline: (index > 0).then(|| id(0)),
            used: Some(used_on(None, *used)),
        })
        .collect()
}

/// The numbers of the variants in each group.
fn numbers(fit: &CoreFit) -> Vec<Vec<usize>> {
    let CoreFit::Splits(groups, _) = fit else {
        panic!("expected groups, found {fit:?}");
    };
    let number = |id: &CandidateId| {
        let mut numbers = 0..100;
        numbers.find(|number| CandidateId::at(*number) == *id)
    };
    let groups = groups.iter().map(|(group, _)| group.iter());
    groups
        .map(|group| group.filter_map(number).collect())
        .collect()
}

/// The fill of the machine by all candidates, in percent.
fn percent_of_all(fit: &CoreFit) -> f64 {
    let CoreFit::Fits(Fill(share)) = fit else {
        panic!("expected one group, found {fit:?}");
    };
    (share * 100.0).round()
}

#[test]
fn light_variants_are_together() {
    assert_eq!(percent_of_all(&split(&members(&[0.05; 8]), 2.0)), 20.0);
    // Half of the cores may be used, and no variant is heavy.
    let fit = split(&members(&[0.2, 0.2, 0.2, 0.2, 0.2]), 2.0);
    assert_eq!(percent_of_all(&fit), 50.0);
}

#[test]
fn a_heavy_variant_gets_a_group_of_its_own() {
    let fit = split(&members(&[0.02, 0.03, 0.5, 0.02]), 2.0);
    assert_eq!(numbers(&fit), [vec![1, 3], vec![2]]);
    let CoreFit::Splits(_, because) = fit else {
        unreachable!("it was split")
    };
    assert_eq!(
        because,
        "`v2` uses 0.50 of 2 cores, the median of all is 0.02"
    );
    // On a machine with many cores it does not disturb the other variants.
    assert_eq!(split(&members(&[0.02, 0.03, 0.5, 0.02]), 16.0).groups(), 1);
    // A single variant shares the machine only with its baseline.
    assert_eq!(split(&members(&[0.02, 0.5]), 2.0).groups(), 1);
}

#[test]
fn variants_that_together_use_too_much_are_split_into_few_groups() {
    // The baseline is in each group. 0.2 plus three times 0.25 is the maximum for half of two cores.
    let fit = split(&members(&[0.2, 0.25, 0.25, 0.25, 0.25]), 2.0);
    assert_eq!(numbers(&fit), [vec![1, 2, 3], vec![4]]);
    let CoreFit::Splits(groups, _) = fit else {
        unreachable!("it was split")
    };
    let permille = groups.iter().map(|(_, Fill(share))| share * 1e3);
    assert_eq!(permille.map(f64::round).collect::<Vec<_>>(), [475.0, 225.0]);
}

#[test]
fn a_pair_that_fills_the_cores_is_not_measured_side_by_side() {
    let fit = split(&members(&[0.9, 0.9]), 2.0);
    let CoreFit::PairTooLarge { because, fits_at } = fit else {
        panic!("expected a refusal, found {fit:?}");
    };
    // A round side by side may use half of the cores.
    assert!((fits_at - 0.5 / 0.9).abs() < 1e-9);
    assert_eq!(
        because,
        "`v1` and its baseline together would use 90 % of their cores"
    );
}

#[test]
fn systems_pinned_to_a_core_share_that_core() {
    let mut pinned = members(&[0.2; 4]);
    for member in &mut pinned {
        member.used = Some(used_on(Some(vec![1]), 0.2));
    }
    // 0.8 of sixteen cores is little, but 0.8 of core 1 is too much.
    let fit = split(&pinned, 16.0);
    assert_eq!(numbers(&fit), [vec![1], vec![2], vec![3]]);
}

#[test]
fn a_core_has_room_for_what_is_placed_on_it_or_nothing_is_placed() {
    let on_one_core = |used: &[f64]| {
        let mut placed = members(used);
        for (member, used) in placed.iter_mut().zip(used) {
            member.used = Some(used_on(Some(vec![1]), *used));
        }
        split(&placed, 2.0).has_room()
    };
    assert!(on_one_core(&[0.3, 0.3]));
    // One group, but a variant and its baseline would wait for each other.
    assert!(!on_one_core(&[0.39, 0.39]));
    // Split into pairs, but one pair uses too much.
    assert!(!on_one_core(&[0.1, 0.1, 0.6]));
    assert!(!on_one_core(&[0.5, 0.5]));
}

#[test]
fn every_round_measures_every_group_once_in_an_order_that_changes() {
    let id = CandidateId::at;
    let groups = Groups::of(vec![vec![id(1)], vec![id(2)]], None, 7);
    let firsts: Vec<u32> = (0..20)
        .map(|round| {
            let group = groups.in_round(round);
            assert_eq!(group.len(), 2);
            group[0].number.expect("one of two").0
        })
        .collect();
    assert_eq!(firsts.iter().filter(|first| **first == 0).count(), 10);
    assert!(Groups::whole(vec![id(1)]).in_round(3)[0].number.is_none());
}
