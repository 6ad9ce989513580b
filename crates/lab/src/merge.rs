//! Merges two trees: mappings key by key, and other values as a whole. Each value keeps its place.
//!
//! The arrival of requests is one choice, and so is a setting with named values. A choice replaces the choice
//! of the base file.

use yaml_with_places::{Entry, Node, Value};

use crate::ways::WAYS;

/// Requests and a scenario are alternatives, too.
const EITHER: [(&str, &str); 2] = [("requests", "scenario"), ("scenario", "requests")];

/// Merges two trees. `over` takes precedence.
pub(crate) fn merge(base: Node, over: Node) -> Node {
    let place = over.place;
    match (base.value, over.value) {
        (Value::Map(base), Value::Map(over)) => Node {
            place,
            value: Value::Map(merge_entries(base, over)),
        },
        (_, value) => Node { place, value },
    }
}

fn merge_entries(base: Vec<Entry>, over: Vec<Entry>) -> Vec<Entry> {
    merge_each(base, over, |key, mut lower, upper| {
        if key == "load"
            && let Value::Map(inherited) = &mut lower.value
        {
            // A different choice in an included file would contradict this choice.
            for way in WAYS.iter().filter(|way| upper.entry(way.key).is_some()) {
                inherited.retain(|inherited| !way.excludes(&inherited.key));
            }
            for (own, other) in EITHER {
                inherited.retain(|inherited| inherited.key != other || upper.entry(own).is_none());
            }
        }
        match key {
            "settings" => merge_settings(lower, upper),
            _ => merge(lower, upper),
        }
    })
}

/// Merges the entries of two mappings, in the order of the first. `both` merges an entry that exists in both.
fn merge_each(
    base: Vec<Entry>,
    over: Vec<Entry>,
    both: impl Fn(&str, Node, Node) -> Node,
) -> Vec<Entry> {
    let mut merged = base;
    for entry in over {
        let Some(below) = merged.iter_mut().find(|below| below.key == entry.key) else {
            merged.push(entry);
            continue;
        };
        // Mistakes about the key are shown at the place of its value.
        below.key_place = entry.key_place;
        // A placeholder while the node is moved out of the list.
        let nothing = Node::reported(below.node.place);
        let lower = std::mem::replace(&mut below.node, nothing);
        below.node = both(&entry.key, lower, entry.node);
    }
    merged
}

/// Merges settings of two files. A name selects a choice. Other values are merged as usual.
fn merge_settings(base: Node, over: Node) -> Node {
    let place = over.place;
    match (base.value, over.value) {
        (Value::Map(base), Value::Map(over)) => Node {
            place,
            value: Value::Map(merge_each(base, over, |_, setting, wish| {
                chosen(setting, wish)
            })),
        },
        (_, value) => Node { place, value },
    }
}

/// Moves the choice with this name to the front. A value that names no choice becomes a choice without a
/// name.
fn chosen(setting: Node, wish: Node) -> Node {
    let (Value::Map(choices), Some(name)) = (&setting.value, wish.text()) else {
        return merge(setting, wish);
    };
    let mut choices = choices.clone();
    match choices.iter().position(|choice| choice.key == name) {
        // The first choice applies, so the named choice moves to the front. Other choices keep their order.
        Some(index) => choices[..=index].rotate_right(1),
        None => choices.insert(
            0,
            Entry {
                key: String::new(),
                key_place: wish.place,
                node: wish,
                is_guess: false,
            },
        ),
    }
    Node {
        place: setting.place,
        value: Value::Map(choices),
    }
}
