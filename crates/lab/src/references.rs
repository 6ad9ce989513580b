//! The key `against` of a variant: a comparison with another variant instead of the baseline.

use yaml_with_places::{At, Finding, Findings, did_you_mean};

use crate::systems::list;
use crate::variants::Draft;

/// Returns the other side of each comparison in a group, in the order of the group.
pub(crate) fn compared_with<'d>(
    baseline: &'d Draft<'_>,
    group: &[&'d Draft<'_>],
    findings: &mut Findings,
) -> Vec<&'d str> {
    let with = |(index, variant): (usize, &&'d Draft<'_>)| {
        let Some(wanted) = &variant.against else {
            return baseline.name.as_str();
        };
        // Proofs and loads take the variants in the order of the lab, so the other variant has to be known.
        let mut earlier = std::iter::once(baseline).chain(group[..index].iter().copied());
        if let Some(found) = earlier.find(|it| it.name == wanted.value) {
            return found.name.as_str();
        }
        findings.add(unknown_reference(variant, wanted, baseline, group));
        baseline.name.as_str()
    };
    group.iter().enumerate().map(with).collect()
}

/// The finding for an `against` that names no variant above it in the group.
fn unknown_reference(
    variant: &Draft<'_>,
    wanted: &At<String>,
    baseline: &Draft<'_>,
    group: &[&Draft<'_>],
) -> Finding {
    let word = &wanted.value;
    if *word == variant.name {
        return Finding::new(wanted.place, "a variant cannot be compared with itself")
            .help("name another variant, or remove `against` to compare it with the baseline");
    }
    if let Some(later) = group.iter().find(|it| it.name == *word) {
        return Finding::new(
            wanted.place,
            format!("`{word}` is below the variant that is compared with it"),
        )
        .related(later.place, "here")
        .help(format!("move `{word}` above `{}`", variant.name));
    }
    let known = || std::iter::once(baseline).chain(group.iter().copied());
    let names = || {
        let others = known().filter(|it| it.name != variant.name);
        others.map(|it| it.name.as_str())
    };
    let help = did_you_mean(word, names()).unwrap_or_else(|| list("the variants are", names()));
    let message = format!(
        "there is no variant `{word}` with the baseline of `{}`",
        variant.name
    );
    Finding::new(wanted.place, message).help(help)
}
