//! Builds the JSON Schema of the file from the structs. The structure check and editors use it.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::config::Config;
use crate::fate::Fate;
use crate::original;

/// The JSON Schema of the file, as committed at `schemas/gateway.schema.json`. It contains the keys that
/// work, and the keys of the original that are accepted or refused.
#[must_use]
pub fn schema() -> Value {
    let mut schema = served();
    for unserved in original::unserved() {
        let description = match unserved.fate {
            Fate::Idle(instead) | Fate::IdleUnless(_, instead) => {
                format!("Accepted without effect: {instead}.")
            }
            Fate::Refused(on, why) => format!("Refused {}: {why}.", on.shown()),
        };
        add(&mut schema, unserved.path, &description);
    }
    for (from, to) in original::MOVED {
        let to = to.replace('/', ".");
        add(&mut schema, from, &format!("Another name for `{to}`."));
    }
    schema
}

/// Description of keys that only contain keys without code.
const PARENT: &str = "Keys of Apollo Router that this gateway does not support.";

/// Adds a property of any type at `path`.
fn add(root: &mut Value, path: &str, description: &str) {
    let mut keys: Vec<&str> = path.split('/').collect();
    let last = keys.pop().unwrap_or_default();
    let mut at = String::new();
    for key in keys {
        at = target(root, &at);
        let child = match key {
            "*" => "additionalProperties".to_owned(),
            "[]" => "items".to_owned(),
            key => format!("properties/{key}"),
        };
        let child = format!("{at}/{child}");
        if root.pointer(&child).is_none() {
            let parent = json!({"type": "object", "description": PARENT});
            insert(root, &at, key, parent);
        }
        at = child;
    }
    let at = target(root, &at);
    let known = format!("{at}/properties/{last}");
    if root.pointer(&known).is_none() {
        insert(root, &at, last, json!({"description": description}));
    }
}

fn insert(root: &mut Value, at: &str, key: &str, schema: Value) {
    let Some(Value::Object(object)) = root.pointer_mut(at) else {
        return;
    };
    if key == "*" {
        object.insert("additionalProperties".to_owned(), schema);
        return;
    }
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    properties[key] = schema;
}

/// The actual position of the schema at a path. Follows references, and selects the form with keys if there
/// are several forms.
fn target(root: &Value, at: &str) -> String {
    let Some(schema) = root.pointer(at) else {
        return at.to_owned();
    };
    let reference = schema["$ref"]
        .as_str()
        .or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        return target(root, reference.trim_start_matches('#'));
    }
    let branches = schema["anyOf"].as_array();
    let branch = branches.and_then(|all| {
        let has_keys = |it: &Value| resolve(root, it)["type"] == "object";
        let with_keys = all.iter().position(has_keys);
        with_keys.or_else(|| all.iter().position(|it| it["type"] != "null"))
    });
    match branch {
        Some(index) => target(root, &format!("{at}/anyOf/{index}")),
        None => at.to_owned(),
    }
}

/// The schema of a key, for keys with code behind them.
pub(crate) fn child<'a>(root: &'a Value, schema: &'a Value, key: &str) -> Option<&'a Value> {
    let schema = resolve(root, schema);
    if let Some(branches) = schema["anyOf"].as_array() {
        return branches.iter().find_map(|branch| child(root, branch, key));
    }
    let rest = |name: &str| Some(&schema[name]).filter(|it| it.is_object());
    match key {
        "[]" => rest("items"),
        key => schema["properties"]
            .get(key)
            .or_else(|| rest("additionalProperties")),
    }
}

/// Follows a schema's references.
pub(crate) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"]
        .as_str()
        .or_else(|| schema["allOf"][0]["$ref"].as_str());
    match reference.and_then(|it| root.pointer(it.trim_start_matches('#'))) {
        Some(there) => resolve(root, there),
        None => schema,
    }
}

/// The JSON Schema that is built from the structs: the keys that work.
pub(crate) fn served() -> Value {
    // Draft 7, because YAML plugins of editors support it best.
    let settings = SchemaSettings::draft07().with_transform(JoinLines);
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<Config>();
    schema.insert("title".to_owned(), json!("Weighbridge gateway"));
    schema.to_value()
}

/// Replaces the line breaks of doc comments in descriptions by spaces.
#[derive(Clone)]
struct JoinLines;

impl Transform for JoinLines {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = description.replace('\n', " ");
        }
        transform_subschemas(self, schema);
    }
}
