//! Settings with named choices, and settings of the command line.
//!
//! Under `settings`, `database: {sqlite: a, postgres: b}` is a setting with two named values. Its value is
//! the first, unless an including file, a variant's `with` or the command line selects another name. After
//! this pass every setting is one value.

use std::collections::HashMap;
use std::path::Path;

use yaml_with_places::{Entry, Finding, Node, Place, Value, did_you_mean};

use crate::merge::merge;
use crate::reading::Reading;
use crate::structure::{self, Role};

/// The name of the source for mistakes of the command line.
const COMMAND_LINE: &str = "--with";

/// Returns the tree with these settings, each `NAME` or `SYSTEM.NAME`, which replace its own. A variant with
/// a value for a setting keeps it.
pub(crate) fn with(mut root: Node, wanted: &[(String, String)], reading: &mut Reading<'_>) -> Node {
    let lines: Vec<String> = wanted
        .iter()
        .map(|(path, value)| format!("{path}={value}"))
        .collect();
    let said = lines.join("\n");
    let mut start = 0;
    for ((path, value), line) in wanted.iter().zip(&lines) {
        let source = reading.source(Path::new(COMMAND_LINE), said.clone()).source;
        let place = Place {
            source,
            start,
            end: start + line.len(),
        };
        // After the line break: all settings of the command line are one source, with a line each.
        start = place.end + 1;
        if !settings(&root).any(|(known, _)| known == *path) {
            // A file that could not be read may declare it.
            if !reading.has_gaps {
                reading.findings.add(unknown(&root, path, place));
            }
            continue;
        }
        let value = Node {
            place,
            value: Value::Scalar {
                text: value.clone(),
                plain: false,
            },
        };
        // Checked and merged like a file, so that both have the same meaning and the same mistakes.
        let tree = structure::check(
            tree(path, value, place),
            Role::Included,
            &mut reading.findings,
        );
        root = merge(root, tree);
    }
    root
}

/// Returns a lab that only contains this value.
fn tree(path: &str, value: Node, place: Place) -> Node {
    let (system, setting) = match path.split_once('.') {
        Some((system, setting)) => (Some(system), setting),
        None => (None, path),
    };
    let under = |key: &str, node: Node| Node {
        place,
        value: Value::Map(vec![Entry {
            key: key.to_owned(),
            key_place: place,
            node,
            is_guess: false,
        }]),
    };
    let settings = under("settings", under(setting, value));
    match system {
        Some(system) => under("systems", under(system, settings)),
        None => settings,
    }
}

fn unknown(root: &Node, path: &str, place: Place) -> Finding {
    let known: Vec<String> = settings(root).map(|(path, _)| path).collect();
    let help = match known.as_slice() {
        [] => "it has no settings".to_owned(),
        _ => format!("the settings are {}", known.join(", ")),
    };
    Finding::new(place, format!("the lab has no setting `{path}`"))
        .help(help)
        .help_if(did_you_mean(path, known.iter().map(String::as_str)))
}

/// Iterates over all settings, lab-wide settings first, by their path in `with`.
fn settings(root: &Node) -> impl Iterator<Item = (String, &Node)> {
    let lab_wide = entries(root.get("settings")).iter();
    let lab_wide = lab_wide.map(|it| (it.key.clone(), &it.node));
    let own = entries(root.get("systems")).iter().flat_map(|system| {
        let settings = entries(system.node.get("settings"));
        let path = |it: &Entry| format!("{}.{}", system.key, it.key);
        settings.iter().map(move |it| (path(it), &it.node))
    });
    lab_wide.chain(own)
}

/// Returns the tree with every setting as one value.
pub(crate) fn settle(mut root: Node, reading: &mut Reading<'_>) -> Node {
    let choices: HashMap<String, Vec<Entry>> = settings(&root)
        .filter_map(|(path, node)| match &node.value {
            Value::Map(choices) => Some((path, choices.clone())),
            _ => None,
        })
        .collect();
    // Most labs have no choices, and their tree stays as it is.
    if choices.is_empty() {
        return root;
    }
    // A root with settings is always a mapping.
    let Value::Map(entries) = &mut root.value else {
        return root;
    };
    for entry in entries {
        match entry.key.as_str() {
            "settings" => first_choices(&mut entry.node, reading),
            "systems" => {
                for system in entries_of(&mut entry.node) {
                    for part in entries_of(&mut system.node) {
                        if part.key == "settings" {
                            first_choices(&mut part.node, reading);
                        }
                    }
                }
            }
            "baseline" => chosen_by(&mut entry.node, &choices, reading),
            "variants" => {
                if let Value::List(variants) = &mut entry.node.value {
                    for variant in variants {
                        chosen_by(variant, &choices, reading);
                    }
                }
            }
            "proof" => chosen_by_proofs(&mut entry.node, &choices),
            _ => {}
        }
    }
    root
}

fn entries(node: Option<&Node>) -> &[Entry] {
    node.map_or(&[], Node::entries)
}

fn entries_of(node: &mut Node) -> &mut [Entry] {
    match &mut node.value {
        Value::Map(entries) => entries,
        _ => &mut [],
    }
}

fn first_choices(settings: &mut Node, reading: &mut Reading<'_>) {
    for setting in entries_of(settings) {
        let Value::Map(choices) = &setting.node.value else {
            continue;
        };
        setting.node = match choices.first() {
            Some(first) => first.node.clone(),
            None => {
                let message = format!("the setting `{}` has no choices", setting.key);
                let help = "give a value, or choices such as `{small: 1, large: 100}`";
                let place = setting.key_place;
                reading
                    .findings
                    .add(Finding::new(place, message).help(help));
                Node::reported(place)
            }
        };
    }
}

/// Replaces the names of choices in the `of` of proofs, so that they equal the values of variants.
fn chosen_by_proofs(proofs: &mut Node, choices: &HashMap<String, Vec<Entry>>) {
    let Value::List(proofs) = &mut proofs.value else {
        return;
    };
    let parts = proofs.iter_mut().flat_map(entries_of);
    for of in parts.filter(|part| part.key == "of") {
        for entry in entries_of(&mut of.node) {
            let Some(choices) = choices.get(&entry.key) else {
                continue;
            };
            let levels = match &mut entry.node.value {
                Value::List(levels) => levels.as_mut_slice(),
                _ => std::slice::from_mut(&mut entry.node),
            };
            for level in levels {
                let chosen = choices.iter().find(|it| level.text() == Some(&it.key));
                if let Some(chosen) = chosen {
                    // With the place of the name, where a mistake is shown.
                    level.value = chosen.node.value.clone();
                }
            }
        }
    }
}

/// Replaces the names of choices in the `with` of a baseline or variant, and in the `of` of its proofs.
fn chosen_by(setup: &mut Node, choices: &HashMap<String, Vec<Entry>>, reading: &mut Reading<'_>) {
    let mut parts = entries_of(setup).iter_mut();
    if let Some(proof) = parts.find(|part| part.key == "proof") {
        chosen_by_proofs(&mut proof.node, choices);
    }
    let with = entries_of(setup).iter_mut().find(|part| part.key == "with");
    for entry in with.map_or(&mut [][..], |with| entries_of(&mut with.node)) {
        let (Some(choices), Some(text)) = (choices.get(&entry.key), entry.node.text()) else {
            continue;
        };
        if let Some(choice) = choices.iter().find(|choice| choice.key == text) {
            entry.node = choice.node.clone();
        // Names of variants are filled in later, when the choices are gone.
        } else if text.contains("{{name}}") {
            let names = choices.iter().map(|choice| choice.key.as_str());
            let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
            reading.findings.add(
                Finding::new(
                    entry.node.place,
                    format!("`{{{{name}}}}` cannot name a choice of `{}`", entry.key),
                )
                .help(format!(
                    "write a variant for each, with one of {}",
                    names.join(", ")
                )),
            );
        }
    }
}
