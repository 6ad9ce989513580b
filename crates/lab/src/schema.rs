//! The JSON Schema of lab files, generated from the structs of `wire`.
//!
//! Its three readers are the structural check, editors, and the manual.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::wire::{LAB_ONLY, LabFile, ScenarioFile};

/// Returns the JSON Schema of lab files and of the files they include, as committed at
/// `schemas/lab.schema.json`.
#[must_use]
pub fn schema() -> Value {
    SCHEMA.clone()
}

/// Returns the JSON Schema of scenarios in their own files, as committed at `schemas/scenario.schema.json`.
#[must_use]
pub fn scenario_schema() -> Value {
    SCENARIO_SCHEMA.clone()
}

/// References in it are resolved among the definitions of labs, which include its definitions.
pub(crate) static SCENARIO_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft07().with_transform(Polish);
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<ScenarioFile>();
    schema.insert("title".to_owned(), json!("Weighbridge scenario"));
    schema.to_value()
});

/// Built once, because every check of a lab reads it.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    // YAML plugins of editors support draft 7 best.
    let settings = SchemaSettings::draft07().with_transform(Polish);
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<LabFile>();
    schema.insert("title".to_owned(), json!("Weighbridge lab"));
    let mut schema = schema.to_value();
    require_of_labs_only(&mut schema);
    schema
});

/// Requires keys only of labs. An included file has the keys of a lab, but all of them are optional. A lab
/// has a `question`, and the keys that its includes provide are only available after they are read.
fn require_of_labs_only(schema: &mut Value) {
    let required = schema
        .as_object_mut()
        .and_then(|root| root.remove("required"));
    if let Some(Value::Array(required)) = required {
        let (own, shared): (Vec<Value>, Vec<Value>) = required
            .into_iter()
            .partition(|key| LAB_ONLY.iter().any(|own| key == own));
        // The first levels of `factors` are a baseline.
        schema["if"] = json!({"required": ["question"], "not": {"required": ["factors"]}});
        schema["then"] = json!({
            "required": own,
            "anyOf": [{"required": ["include"]}, {"required": shared}],
        });
    }
}

/// Iterates over the keys that a lab must have once its includes are merged.
pub(crate) fn required_of_labs() -> impl Iterator<Item = &'static str> {
    let then = &SCHEMA["then"];
    [&then["required"], &then["anyOf"][1]["required"]]
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_str)
}

/// Removes `null` from optional fields, because an optional key is left out and not set to `null`. Also
/// removes the line breaks of this source from descriptions.
#[derive(Clone)]
struct Polish;

impl Transform for Polish {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(object) = schema.as_object_mut() {
            if let Some(Value::String(description)) = object.get_mut("description") {
                *description = unwrap_lines(description);
            }
            for list in ["type", "enum"] {
                if let Some(Value::Array(items)) = object.get_mut(list) {
                    items.retain(|item| *item != json!("null") && !item.is_null());
                    if list == "type" && items.len() == 1 {
                        let only = items.remove(0);
                        object.insert(list.to_owned(), only);
                    }
                }
            }
            if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
                // An optional field is generated as "this or null".
                branches.retain(|branch| *branch != json!({"type": "null"}));
                if branches.len() == 1 {
                    let only = branches.remove(0);
                    object.remove("anyOf");
                    inline(object, only);
                }
            }
        }
        // Last, so that the replacements of an `anyOf` are polished, too.
        transform_subschemas(self, schema);
    }
}

/// Replaces an `anyOf` with its only branch.
fn inline(object: &mut Map<String, Value>, only: Value) {
    if only.get("$ref").is_some() && !object.is_empty() {
        // Next to a `$ref`, draft 7 ignores all other keys.
        object.insert("allOf".to_owned(), json!([only]));
    } else if let Value::Object(only) = only {
        for (key, value) in only {
            // The field's own keys, such as its description, take precedence over the keys of its type.
            object.entry(key).or_insert(value);
        }
    }
}

/// Joins the lines of each paragraph.
fn unwrap_lines(description: &str) -> String {
    let paragraphs: Vec<String> = description
        .split("\n\n")
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect();
    paragraphs.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers;

    /// Calls `look` with every object of a JSON value.
    fn each(value: &Value, look: &mut dyn FnMut(&Map<String, Value>)) {
        match value {
            Value::Object(object) => {
                look(object);
                object.values().for_each(|child| each(child, look));
            }
            Value::Array(items) => items.iter().for_each(|child| each(child, look)),
            _ => {}
        }
    }

    #[test]
    fn a_lab_must_have_what_its_includes_cannot_give() {
        assert_eq!(schema()["then"]["required"], json!(LAB_ONLY[..2]));
        let required: Vec<&str> = required_of_labs().collect();
        assert_eq!(
            required,
            ["question", "baseline", "load", "target", "systems"]
        );
    }

    #[test]
    fn every_text_format_has_a_reader() {
        let numbers = ["uint16", "uint32", "uint64", "double"];
        each(&schema(), &mut |object| {
            if let Some(Value::String(format)) = object.get("format") {
                assert!(
                    readers::read(format, "").is_some() || numbers.contains(&format.as_str()),
                    "{format}"
                );
            }
        });
    }

    #[test]
    fn what_a_scenario_consists_of_means_the_same_in_a_lab() {
        let scenario = scenario_schema();
        for (name, definition) in scenario["definitions"].as_object().unwrap() {
            assert_eq!(schema()["definitions"][name], *definition, "{name}");
        }
    }

    #[test]
    fn no_key_may_be_set_to_nothing() {
        assert!(!schema().to_string().contains("null"));
    }

    #[test]
    fn every_key_is_described() {
        each(&schema(), &mut |object| {
            if let Some(Value::Object(properties)) = object.get("properties") {
                for (key, property) in properties {
                    assert!(property.get("description").is_some(), "{key}");
                }
            }
        });
    }
}
