//! Groups of variants that ran at the same time, and systems that all variants share.

use recording::Recording;

use crate::summary::Summary;

/// The groups in words, without the baselines, which are in each: `config, rhai; java`. `None` if all
/// variants ran together.
pub(crate) fn listed(groups: &[Vec<String>]) -> Option<String> {
    let in_several = |name: &String| groups.iter().filter(|group| group.contains(name)).count() > 1;
    let names = |group: &Vec<String>| {
        let own: Vec<&str> = group
            .iter()
            .filter(|name| !in_several(name))
            .map(String::as_str)
            .collect();
        own.join(", ")
    };
    let texts: Vec<String> = groups.iter().map(names).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The groups of a run, in words. Empty if the run has no groups.
pub fn in_words(summary: &Summary) -> String {
    let Some(listed) = listed(&summary.groups) else {
        return String::new();
    };
    let because = summary.groups_because.as_ref();
    let because = because.map_or_else(
        || "chosen by the lab".to_owned(),
        |because| format!("since {because}"),
    );
    format!(
        ", measured in {} groups, each with {}: {listed} ({because})",
        summary.groups.len(),
        if summary.baselines > 1 {
            "its baselines"
        } else {
            "the baseline"
        },
    )
}

/// Sentences about figures that depend on the variants of the same time.
pub fn sentences(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    if !summary.groups.is_empty() {
        sentences.push(
            "A difference compares a variant with the baseline of its own group. The figure of a \
             baseline is the mean over its groups, so absolute figures of different groups do not \
             add up."
                .to_owned(),
        );
    }
    let shared = &summary.shared_systems;
    if !shared.is_empty() {
        sentences.push(format!(
            "All variants that ran together shared one {}. No figure contains its processor time or \
             memory.",
            quoted(shared).join(", one ")
        ));
    }
    let placed = &summary.placed_systems;
    if !placed.is_empty() {
        sentences.push(format!(
            "Each process of {} ran on one core, the same for all variants. No difference contains \
             the scheduler's choice of a core.",
            quoted(placed).join(", ")
        ));
    }
    sentences
}

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}

/// True if two variants were measured at the same time, or if one of them was measured with each group.
pub(crate) fn is_together(recording: &Recording, one: &str, other: &str) -> bool {
    let groups = recording.groups();
    let has = |group: &Vec<String>, name: &str| group.iter().any(|known| known == name);
    // Any group with both is enough, because a baseline is in several.
    groups.is_empty()
        || groups
            .iter()
            .any(|group| has(group, one) && has(group, other))
}

#[cfg(test)]
mod tests;
