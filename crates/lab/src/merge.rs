//! Two trees as one: mappings key by key, everything else replaced, each value with its place.
//!
//! How requests arrive is one choice, and so is a setting with named values: what is chosen replaces
//! the choice of the file below.

use yaml_with_places::{Entry, Node, Value};

use crate::ways::WAYS;

/// What is sent is a choice, too.
const EITHER: [(&str, &str); 2] = [("requests", "scenario"), ("scenario", "requests")];

/// Two trees as one. Where both say something, `over` wins.
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
            // What an included file says of another choice would contradict the one made here.
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

/// The entries of both, in the order of the first; `both` makes one node of an entry that both have.
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
        // Mistakes about the key are shown where its value comes from.
        below.key_place = entry.key_place;
        // A stand-in for the moment in which the node is moved out of the list.
        let nothing = Node::reported(below.node.place);
        let lower = std::mem::replace(&mut below.node, nothing);
        below.node = both(&entry.key, lower, entry.node);
    }
    merged
}

/// What two files say of settings: a name chooses, everything else is merged as usual.
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

/// With the choice of this name first; a value that names no choice becomes one without a name.
fn chosen(setting: Node, wish: Node) -> Node {
    let (Value::Map(choices), Some(name)) = (&setting.value, wish.text()) else {
        return merge(setting, wish);
    };
    let mut choices = choices.clone();
    match choices.iter().position(|choice| choice.key == name) {
        // The first choice holds, so the one that is named moves to the front; the others keep
        // their order.
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
