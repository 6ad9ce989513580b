//! Finds keys of a mapping that exclude each other, and missing alternatives.

use serde_json::Value as Schema;

use super::strings;
use super::wording::quoted;

/// The reason why these keys exclude each other, or why one of several is missing. `oneOf`, `not`,
/// `minProperties` and `maxProperties` are supported only in the form that our schemas use.
pub(super) fn wrong_combination(
    schema: &Schema,
    is_there: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let alternatives = alternatives(schema);
    if !alternatives.is_empty() {
        let found = found(&alternatives, is_there);
        let is_unbounded = schema["oneOf"].is_null() && schema["maxProperties"].is_null();
        if found.len() == 1 || (is_unbounded && !found.is_empty()) {
            return None;
        }
        let expected = if is_unbounded { "at least" } else { "exactly" };
        let found = match found.len() {
            0 => "none".to_owned(),
            _ => found.join(" and "),
        };
        let alternatives = quoted(&alternatives);
        return Some(format!(
            "expected {expected} one of {alternatives}, found {found}"
        ));
    }
    let exclusive: Vec<&str> = strings(&schema["not"]["required"]).collect();
    let found = found(&exclusive, is_there);
    let is_wrong = !exclusive.is_empty() && found.len() == exclusive.len();
    is_wrong.then(|| format!("{} cannot be used together", found.join(" and ")))
}

/// The alternative keys. The mapping must contain one of them.
fn alternatives(schema: &Schema) -> Vec<&str> {
    if let Some(branches) = schema["oneOf"].as_array() {
        let keys = branches.iter();
        return keys
            .flat_map(|branch| strings(&branch["required"]))
            .collect();
    }
    let properties = schema["properties"].as_object();
    match properties.filter(|_| schema["minProperties"] == 1) {
        Some(properties) => properties.keys().map(String::as_str).collect(),
        None => Vec::new(),
    }
}

fn found(keys: &[&str], is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let keys = keys.iter().filter(|key| is_there(key));
    keys.map(|key| format!("`{key}`")).collect()
}
