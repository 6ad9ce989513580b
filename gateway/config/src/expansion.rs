//! `${env.NAME:-default}` and `${file.path}` in values. `$$` is a literal `$`.
//!
//! Expansion can change the type of a value. The text `true`, a number or `null` gets its own type, even if
//! it was in quotes.

use std::path::Path;

use serde_json::Value as Json;
use yaml_with_places::{Finding, Findings, Node, Value, scalar};

/// Access to the environment and to files.
pub trait Surroundings {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The content of a file. `None` if it cannot be read as text.
    fn file(&self, path: &Path) -> Option<String>;
}

/// Expands every value of the tree, and reports values that cannot be expanded.
pub fn expand(node: Node, surroundings: &dyn Surroundings, findings: &mut Findings) -> Node {
    let value = match node.value {
        Value::Scalar { text, plain } => match fill_in(&text, surroundings) {
            Ok(None) => Value::Scalar { text, plain },
            Ok(Some(text)) => {
                // The `$` required the quotes, so they do not decide the type. An empty text stays text. As a
                // plain scalar it would mean that the key has no value.
                let plain = !matches!(scalar(&text, true), Json::String(_)) && !text.is_empty();
                Value::Scalar { text, plain }
            }
            Err(reason) => {
                findings.add(
                    Finding::new(node.place, format!("could not expand variable: {reason}"))
                        .help("write `${env.NAME}`, `${env.NAME:-default}` or `${file.path}`; `$$` is a literal `$`"),
                );
                Value::Reported
            }
        },
        Value::Reported => Value::Reported,
        Value::List(items) => Value::List(
            items
                .into_iter()
                .map(|item| expand(item, surroundings, findings))
                .collect(),
        ),
        Value::Map(entries) => {
            let mut entries = entries;
            for entry in &mut entries {
                // Takes the node out of its entry, so that the tree is changed in place and keys keep their
                // places.
                let nothing = Node::reported(entry.node.place);
                let inner = std::mem::replace(&mut entry.node, nothing);
                entry.node = expand(inner, surroundings, findings);
            }
            Value::Map(entries)
        }
    };
    Node {
        place: node.place,
        value,
    }
}

/// The expanded text. `None` if it did not change.
fn fill_in(text: &str, surroundings: &dyn Surroundings) -> Result<Option<String>, String> {
    if !text.contains('$') {
        return Ok(None);
    }
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        // First, so that `$${` is a literal `${`.
        if let Some(after) = rest.strip_prefix('$') {
            filled.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let end = after
                // The first `}` ends it, because expressions do not nest, as in Apollo Router.
                .find('}')
                .ok_or_else(|| format!("`${{{after}` has no `}}`"))?;
            filled.push_str(&look_up(&after[..end], surroundings)?);
            rest = &after[end + 1..];
        } else {
            // A single `$` is common in texts such as patterns, and stays.
            filled.push('$');
        }
    }
    filled.push_str(rest);
    // A single `$` changes no text. Then the type must not change either.
    Ok((filled != text).then_some(filled))
}

fn look_up(expression: &str, surroundings: &dyn Surroundings) -> Result<String, String> {
    // Before the mode, because a default may contain a dot.
    let (name, default) = match expression.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (expression, None),
    };
    let (value, missing) = match name.split_once('.') {
        Some(("env", name)) => (
            surroundings.variable(name),
            format!("the environment has no `{name}`"),
        ),
        Some(("file", path)) => (
            surroundings.file(Path::new(path)),
            format!("there is no readable file `{path}`"),
        ),
        _ => {
            return Err(format!(
                "`{name}` must begin with one of the allowed modes `env|file`"
            ));
        }
    };
    match (value, default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(missing),
    }
}
