//! Keys that stand where other versions of the original have them.

use yaml_with_places::{Entry, Finding, Findings, Node, Place, Value};

use crate::original::MOVED;

/// Puts each key of [`MOVED`] into its place. A key that is there as well is a mistake: one of the two
/// would be without effect.
pub(crate) fn relocate(tree: &mut Node, findings: &mut Findings) {
    for (from, to) in MOVED {
        let Some(entry) = remove(tree, &from.split('/').collect::<Vec<_>>()) else {
            continue;
        };
        if !entry.node.is_blank() {
            let to: Vec<&str> = to.split('/').collect();
            put(tree, &to, entry, &to.join("."), findings);
        }
    }
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
    // Nothing is left below: the key itself may be one that is not known.
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
        // Not a mapping: reported where its kind is checked.
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
