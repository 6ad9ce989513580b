//! Moves keys that have another path in other versions of the original.

use yaml_with_places::{Entry, Finding, Findings, Node, Place, Value};

use crate::original::{MOVED, ON_BY_PRESENCE};

/// Moves each key of [`MOVED`] to its new path. If a key exists at both paths, it is a mistake, because one
/// of them would have no effect.
pub(crate) fn relocate(tree: &mut Node, findings: &mut Findings) {
    for path in ON_BY_PRESENCE {
        let path: Vec<&str> = path.split('/').collect();
        switch_on(tree, &path);
    }
    for (from, to) in MOVED {
        let from: Vec<&str> = from.split('/').collect();
        let to: Vec<&str> = to.split('/').collect();
        let Some(any) = from.iter().position(|key| *key == "*") else {
            move_one(tree, &from, &to, findings);
            continue;
        };
        for name in names(tree, &from[..any]) {
            let [from, to] = [&from, &to].map(|path| -> Vec<&str> {
                let keys = path.iter().copied();
                keys.map(|key| if key == "*" { name.as_str() } else { key })
                    .collect()
            });
            move_one(tree, &from, &to, findings);
        }
    }
}

/// Adds `enabled: true` to the mapping at a path, unless the mapping has the key. An empty mapping is there, too.
fn switch_on(node: &mut Node, path: &[&str]) {
    let place = node.place;
    let Value::Map(entries) = &mut node.value else {
        return;
    };
    let Some((first, rest)) = path.split_first() else {
        let is_known = entries.iter().any(|entry| entry.key == "enabled");
        if !is_known {
            let place = entries.first().map_or(place, |entry| entry.key_place);
            let mut enabled = empty("enabled", place);
            enabled.node.value = Value::Scalar {
                text: "true".to_owned(),
                plain: true,
            };
            entries.push(enabled);
        }
        return;
    };
    if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *first) {
        switch_on(&mut entry.node, rest);
    }
}

fn move_one(tree: &mut Node, from: &[&str], to: &[&str], findings: &mut Findings) {
    let Some(entry) = remove(tree, from) else {
        return;
    };
    if !entry.node.is_blank() {
        put(tree, to, entry, &to.join("."), findings);
    }
}

/// The keys of the mapping at a path.
fn names(tree: &Node, path: &[&str]) -> Vec<String> {
    let there = path.iter().try_fold(tree, |node, key| node.get(key));
    let entries = there.map(Node::entries).unwrap_or_default();
    entries.iter().map(|entry| entry.key.clone()).collect()
}

fn remove(node: &mut Node, path: &[&str]) -> Option<Entry> {
    let Value::Map(entries) = &mut node.value else {
        return None;
    };
    let (first, rest) = path.split_first()?;
    let index = entries.iter().position(|entry| entry.key == *first)?;
    if rest.is_empty() {
        return Some(entries.remove(index));
    }
    let removed = remove(&mut entries[index].node, rest)?;
    // The mapping is empty now, and its own key may be unknown.
    if entries[index].node.entries().is_empty() {
        entries.remove(index);
    }
    Some(removed)
}

fn put(node: &mut Node, path: &[&str], entry: Entry, name: &str, findings: &mut Findings) {
    let Some((first, rest)) = path.split_first() else {
        return merge(node, entry, name, findings);
    };
    if node.is_blank() {
        node.value = Value::Map(Vec::new());
    }
    let Value::Map(entries) = &mut node.value else {
        // Not a mapping. The structure check reports it.
        return;
    };
    let index = entries.iter().position(|known| known.key == *first);
    let index = index.unwrap_or_else(|| {
        entries.push(empty(first, entry.key_place));
        entries.len() - 1
    });
    put(&mut entries[index].node, rest, entry, name, findings);
}

fn empty(key: &str, place: Place) -> Entry {
    let value = Value::Scalar {
        text: String::new(),
        plain: true,
    };
    Entry {
        key: key.to_owned(),
        key_place: place,
        node: Node { place, value },
        is_guess: false,
    }
}

fn merge(there: &mut Node, entry: Entry, name: &str, findings: &mut Findings) {
    if there.is_blank() {
        *there = entry.node;
        return;
    }
    match (&mut there.value, entry.node.value) {
        (Value::Map(known), Value::Map(added)) => {
            for one in added {
                match known.iter_mut().find(|it| it.key == one.key) {
                    Some(same) => {
                        let name = format!("{name}.{}", one.key);
                        merge(&mut same.node, one, &name, findings);
                    }
                    None => known.push(one),
                }
            }
        }
        _ => findings.add(
            Finding::new(entry.key_place, format!("`{name}` is there twice"))
                .label("read as the same key")
                .related(there.place, "and here")
                .help("remove one of the two"),
        ),
    }
}
