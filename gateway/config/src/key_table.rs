//! Builds the table of keys in `docs/gateway/apollo-router.md` from the schema and the list of keys without code.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fate::Fate;
use crate::original;
use crate::schema::{child, resolve, served};

/// The table of all keys in Markdown: keys that work, keys that are accepted without effect, and refused
/// keys. A `+` marks keys that Apollo Router does not have.
#[must_use]
pub fn key_table() -> String {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let served = served();
    for (key, schema) in properties(&served) {
        let row = rows.entry(key.clone()).or_default();
        for deepest in [4, 2] {
            row.works.clear();
            leaves(&served, schema, &mut Vec::new(), deepest, &mut row.works);
            if row.works.len() <= MANY {
                break;
            }
        }
        if row.works.is_empty() {
            row.works.push(mark("", schema));
        }
    }
    for unserved in original::unserved() {
        let (first, rest) = unserved.path.split_once('/').unwrap_or((unserved.path, ""));
        let row = rows.entry(first.to_owned()).or_default();
        let rest = rest.replace("/[]", "[]").replace('/', ".");
        let is_refused = matches!(unserved.fate, Fate::Refused(..));
        let cell = if is_refused {
            &mut row.refused
        } else {
            &mut row.idle
        };
        cell.push(rest.clone());
        // A key without effect appears in one column only, even if a struct contains it.
        row.works.retain(|key| key.trim_start_matches('+') != rest);
    }
    let unread = original::UNREAD
        .iter()
        .chain(original::UNREAD_BY_CONDITIONS);
    let unread = unread.map(|key| format!("condition.….{key}"));
    rows.entry("coprocessor".to_owned())
        .or_default()
        .refused
        .extend(unread);
    let unread = original::UNREAD.iter();
    let unread = unread.map(|key| format!("instrumentation.….{key}"));
    rows.entry("telemetry".to_owned())
        .or_default()
        .refused
        .extend(unread);
    let mut text =
        "| key | works | accepted without effect | refused |\n|---|---|---|---|\n".to_owned();
    for (key, row) in rows {
        let cells = [&row.works, &row.idle, &row.refused].map(|keys| cell(keys));
        text.push_str(&format!("| `{key}` | {} |\n", cells.join(" | ")));
    }
    text
}

#[derive(Default)]
struct Row {
    works: Vec<String>,
    idle: Vec<String>,
    refused: Vec<String>,
}

fn cell(keys: &[String]) -> String {
    let shown = keys.iter().map(|key| {
        let name = key.trim_start_matches('+');
        let plus = if key.starts_with('+') { "+" } else { "" };
        match name {
            "" => format!("all{plus}"),
            name => format!("`{name}`{plus}"),
        }
    });
    let shown: Vec<String> = shown.collect();
    shown.join(", ")
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// If a row would have more keys, the table contains only the upper levels.
const MANY: usize = 24;

/// The keys with values below a schema, as paths of at most `deepest` keys.
fn leaves(
    root: &Value,
    schema: &Value,
    path: &mut Vec<String>,
    deepest: usize,
    found: &mut Vec<String>,
) {
    let inner = inner(root, schema);
    let mut below: Vec<(String, &Value)> = properties(inner)
        .map(|(key, schema)| (key.clone(), schema))
        .collect();
    if inner["additionalProperties"].is_object()
        && let Some(any) = child(root, inner, "*")
    {
        below.push(("*".to_owned(), any));
    }
    if below.is_empty() || path.len() == deepest {
        if !path.is_empty() {
            found.push(mark(&path.join("."), schema));
        }
        return;
    }
    for (key, schema) in below {
        path.push(key);
        leaves(root, schema, path, deepest, found);
        path.pop();
    }
}

/// Resolves references and removes null from a schema.
fn inner<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = resolve(root, schema);
    let branches = schema["anyOf"].as_array();
    let branch = branches.and_then(|all| all.iter().find(|it| it["type"] != "null"));
    branch.map_or(schema, |branch| inner(root, branch))
}

fn mark(path: &str, schema: &Value) -> String {
    let description = schema["description"].as_str().unwrap_or_default();
    let plus = if description.contains("Not in Apollo Router") {
        "+"
    } else {
        ""
    };
    format!("{plus}{path}")
}
