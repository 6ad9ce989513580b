//! The fraction of a factorial design that fits into one group.

use lab::Factors;
use model::FactorialDesign;

use super::groups::{CoreFit, Member, split};

/// Returns advice with the largest fraction that fits into one group on these cores. `None` if the design is a
/// fraction itself, and if no fraction fits.
pub(super) fn that_fits(factors: &Factors, members: &[Member], cores: f64) -> Option<String> {
    if !factors.design.is_full() {
        return None;
    }
    let count = factors.factors.len();
    let smaller = FactorialDesign::halvings(count).filter(|halvings| *halvings > 0);
    let mut designs = smaller
        .filter_map(|halvings| Some((halvings, FactorialDesign::standard(count, halvings)?)));
    let (halvings, design) = designs.find(|(_, design)| {
        let some = kept(factors, design, members);
        matches!(split(&some, cores), CoreFit::Fits(_))
    })?;
    Some(format!(
        ". Effects are more certain in one group. `fraction: 1/{}` has {} variants, and they fit",
        1_u64 << halvings,
        design.runs().len()
    ))
}

/// The members that a fraction keeps. It has the names of the full design, and variants outside of it stay.
fn kept(factors: &Factors, fraction: &FactorialDesign, members: &[Member]) -> Vec<Member> {
    let runs = fraction.runs();
    let all = factors.design.runs().into_iter().zip(&factors.variants);
    let left_out: Vec<&String> = all
        .filter(|(run, _)| !runs.contains(run))
        .map(|(_, name)| name)
        .collect();
    let mut kept = members.to_vec();
    kept.retain(|member| !left_out.contains(&&member.name));
    kept
}

#[cfg(test)]
mod tests {
    use lab::Factor;

    use super::*;
    use crate::measure::candidate_id::CandidateId;
    use crate::measure::groups::{CoresUsed, Part};

    /// A design of all combinations, with variants `0`, `1` and so on, that each use these cores.
    fn lab(factors: usize, used: f64) -> (Factors, Vec<Member>) {
        let design = FactorialDesign::standard(factors, 0).expect("a design");
        let names: Vec<String> = (0..design.runs().len())
            .map(|run| run.to_string())
            .collect();
        let factor = |number: usize| Factor {
            name: format!("f{number}"),
            setting: format!("f{number}"),
            levels: ["off", "on"].map(str::to_owned),
        };
        let member = |(index, name): (usize, &String)| Member {
            id: CandidateId::at(index),
            name: name.clone(),
            baseline: (index > 0).then(|| CandidateId::at(0)),
            used: Some(CoresUsed::new(vec![Part {
                system: "server".to_owned(),
                on: None,
                used,
            }])),
        };
        let members = names.iter().enumerate().map(member).collect();
        let factors = Factors {
            factors: (0..factors).map(factor).collect(),
            variants: names,
            design,
        };
        (factors, members)
    }

    #[test]
    fn the_largest_fraction_that_fits_is_the_advice() {
        // Half of two cores may be used: 16 variants of 0.05 need 0.8, and 32 need 1.6.
        let (factors, members) = lab(5, 0.05);
        assert!(matches!(split(&members, 2.0), CoreFit::Splits(..)));
        let advice = that_fits(&factors, &members, 2.0).expect("a fraction");
        assert!(
            advice.contains("`fraction: 1/2` has 16 variants"),
            "{advice}"
        );
        let (factors, members) = lab(5, 0.1);
        let advice = that_fits(&factors, &members, 2.0).expect("a fraction");
        assert!(
            advice.contains("`fraction: 1/4` has 8 variants"),
            "{advice}"
        );
        let (factors, members) = lab(5, 0.3);
        assert_eq!(that_fits(&factors, &members, 2.0), None);
    }

    #[test]
    fn a_fraction_gets_no_advice() {
        let (mut factors, members) = lab(5, 0.05);
        factors.design = FactorialDesign::standard(5, 1).expect("a design");
        assert_eq!(that_fits(&factors, &members, 2.0), None);
    }
}
