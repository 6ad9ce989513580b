//! The groups of variants that run together, if the lab sets them.

use yaml_with_places::{At, Finding, Findings, Node, Place, did_you_mean};

use crate::experiment::Variant;
use crate::formats::{Title, Verbatim};
use crate::systems::list;
use crate::wire::{LabFile, OrderFile};

/// Returns the groups by name. `None` if the run decides.
pub(crate) fn check(
    file: &LabFile,
    tree: &Node,
    variants: &[Variant],
    findings: &mut Findings,
) -> Option<Vec<Vec<String>>> {
    let groups = file.groups.as_ref()?;
    if file.order == Some(OrderFile::InTurn) {
        let mut finding = Finding::new(
            groups.place,
            "`groups` cannot be used with `order: in-turn`",
        )
        .help("in turn, only one variant runs at a time. Remove one of the two");
        if let Some(order) = tree.entry("order") {
            finding = finding.related(order.key_place, "`order` is given here");
        }
        findings.add(finding);
    }
    let mut seen: Vec<(&str, Place)> = Vec::new();
    for name in groups.value.iter().flat_map(|group| &group.value) {
        let Title(word) = &name.value.0;
        match seen.iter().find(|(known, _)| known == word) {
            Some((_, first)) => findings.add(
                Finding::new(name.place, format!("`{word}` is in two groups"))
                    .related(*first, "first here")
                    .help("each variant belongs to one group. `weigh` adds the baselines to the groups"),
            ),
            None => {
                seen.push((word, name.place));
                check_name(word, name.place, variants, findings);
            }
        }
    }
    let is_missing = |variant: &&Variant| {
        variant.against.is_some() && seen.iter().all(|it| it.0 != variant.name)
    };
    let missing: Vec<&str> = variants
        .iter()
        .filter(is_missing)
        .map(|variant| variant.name.as_str())
        .collect();
    if !missing.is_empty() {
        findings.add(
            Finding::new(
                groups.place,
                list("`groups` does not contain", missing.iter().copied()),
            )
            .help("add every variant to one of the groups"),
        );
    }
    for group in groups.value.iter().filter(|group| group.value.is_empty()) {
        findings.add(Finding::new(group.place, "this group has no variants").help("remove it"));
    }
    let names = |group: &At<Vec<At<Verbatim<Title>>>>| {
        let names = group.value.iter();
        names.map(|name| name.value.0.0.clone()).collect()
    };
    Some(groups.value.iter().map(names).collect())
}

/// Reports a name that is not the name of a variant.
fn check_name(word: &str, place: Place, variants: &[Variant], findings: &mut Findings) {
    let compared = variants.iter().filter(|variant| variant.against.is_some());
    let known = compared.map(|variant| variant.name.as_str());
    match variants.iter().find(|variant| variant.name == word) {
        Some(found) if found.against.is_none() => {
            findings.add(Finding::new(place, format!("`{word}` is a baseline")).help(
                "`weigh` adds a baseline to each group with one of its variants. Remove it here",
            ))
        }
        Some(_) => {}
        None => findings.add(
            Finding::new(place, format!("there is no variant `{word}`")).help(
                did_you_mean(word, known.clone())
                    .unwrap_or_else(|| list("the variants are", known)),
            ),
        ),
    }
}
