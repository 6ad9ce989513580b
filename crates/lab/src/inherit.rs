//! Variants that build on other variants. `extends` names the other variant, and its keys are inherited.
//!
//! This happens in the tree, so that each value keeps its place. The variants of factors are in the tree already,
//! and choices of settings are still names.

use yaml_with_places::{Entry, Finding, Node, Value, did_you_mean};

use crate::merge::merge;
use crate::reading::Reading;
use crate::systems::list;

/// The keys that a variant inherits.
const INHERITED: [&str; 4] = ["with", "target", "load", "proof"];

/// Returns the tree in which each variant also has its inherited keys.
pub(crate) fn inherit(mut root: Node, reading: &mut Reading<'_>) -> Node {
    let baseline = root.get("baseline").cloned();
    let Value::Map(entries) = &mut root.value else {
        return root;
    };
    let variants = entries.iter_mut().find(|entry| entry.key == "variants");
    let Some(Value::List(variants)) = variants.map(|entry| &mut entry.node.value) else {
        return root;
    };
    for index in 0..variants.len() {
        let Some(wanted) = variants[index].get("extends").cloned() else {
            continue;
        };
        // A wrong value is reported.
        let Some(word) = wanted.text() else {
            continue;
        };
        // The variants above are complete, so a chain of any length works.
        let mut earlier = baseline.iter().chain(&variants[..index]);
        match earlier.find(|it| name(it) == Some(word.trim())) {
            Some(base) if base.entry("for").is_some() => {
                let message = format!("`{word}` has a `for`, so no variant can extend it");
                let help = "write the shared keys into a variant without `for`";
                let finding = Finding::new(wanted.place, message).help(help);
                reading.findings.add(finding);
            }
            Some(base) => variants[index] = extended(&base.clone(), variants[index].clone()),
            None => {
                let finding = unknown(&wanted, word.trim(), index, baseline.as_ref(), variants);
                // A part that could not be read may have the variant.
                if !reading.has_gaps {
                    reading.findings.add(finding);
                }
            }
        }
    }
    root
}

fn name(variant: &Node) -> Option<&str> {
    Some(variant.get("name")?.text()?.trim())
}

/// The finding for a name that no variant above has.
fn unknown(
    wanted: &Node,
    word: &str,
    index: usize,
    baseline: Option<&Node>,
    variants: &[Node],
) -> Finding {
    if name(&variants[index]) == Some(word) {
        return Finding::new(wanted.place, "a variant cannot extend itself")
            .help("name the baseline, or a variant above this one");
    }
    if let Some(later) = variants[index..].iter().find(|it| name(it) == Some(word)) {
        return Finding::new(
            wanted.place,
            format!("`{word}` is below the variant that extends it"),
        )
        .related(later.place, "here")
        .help(format!("move `{word}` above this variant"));
    }
    let above = baseline.into_iter().chain(&variants[..index]);
    let names = above.filter_map(name);
    let help =
        did_you_mean(word, names.clone()).unwrap_or_else(|| list("the variants above are", names));
    Finding::new(
        wanted.place,
        format!("there is no variant `{word}` to extend"),
    )
    .help(help)
}

/// Returns a variant with the keys that it inherits.
fn extended(base: &Node, mut own: Node) -> Node {
    let Value::Map(entries) = &mut own.value else {
        return own;
    };
    for inherited in INHERITED.iter().filter_map(|key| base.entry(key)) {
        let Some(entry) = entries.iter_mut().find(|it| it.key == inherited.key) else {
            entries.push(inherited.clone());
            continue;
        };
        // A placeholder while the node is moved.
        let nothing = Node::reported(entry.node.place);
        let node = std::mem::replace(&mut entry.node, nothing);
        entry.node = match inherited.key.as_str() {
            "proof" => proofs(inherited, node),
            _ => merge(inherited.node.clone(), node),
        };
    }
    own
}

/// Returns the inherited proofs, except those with the name of an own proof, and then the own proofs.
fn proofs(inherited: &Entry, mut own: Node) -> Node {
    if let (Value::List(base), Value::List(own)) = (&inherited.node.value, &mut own.value) {
        let is_replaced = |proof: &Node| {
            let word = name(proof);
            word.is_some() && own.iter().any(|it| name(it) == word)
        };
        let kept: Vec<Node> = base.iter().filter(|it| !is_replaced(it)).cloned().collect();
        own.splice(0..0, kept);
    }
    own
}
