//! Values from an OpenAPI description: examples, defaults and constants.

use serde_json::{Map, Value};

/// Maximum number of references in a row. They may form a circle.
const REFERENCES_MAX: usize = 8;
/// Maximum depth of nested schemas.
const DEPTH_MAX: usize = 16;
/// Maximum number of visited schemas for one value. Each schema may appear in many other schemas.
const SCHEMAS_MAX: usize = 10_000;

/// A description that resolves references.
pub(super) struct Description<'a> {
    pub(super) root: &'a Value,
}

/// The walk through the schemas of one value.
struct Walk<'a> {
    /// The schemas that contain the current one.
    open: Vec<&'a Value>,
    looked_at: usize,
}

impl<'a> Description<'a> {
    /// The value itself, or the target of its reference within the file.
    pub(super) fn resolve(&self, value: &'a Value) -> Option<&'a Value> {
        let mut value = value;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = value.get("$ref") else {
                return Some(value);
            };
            value = self.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
        }
        None
    }

    /// The value of a parameter or of a media type.
    pub(super) fn of_parameter(&self, parameter: &'a Value) -> Option<Value> {
        if let Some(example) = parameter.get("example") {
            return Some(example.clone());
        }
        let examples = parameter.get("examples").and_then(Value::as_object);
        let mut examples = examples.into_iter().flatten();
        let named = examples.find_map(|(_, example)| self.resolve(example)?.get("value"));
        let mut walk = Walk {
            open: Vec::new(),
            looked_at: 0,
        };
        named
            .cloned()
            .or_else(|| self.of_schema(parameter.get("schema")?, &mut walk))
    }

    /// A value of a schema, made only of values in the description.
    fn of_schema(&self, schema: &'a Value, walk: &mut Walk<'a>) -> Option<Value> {
        let schema = self.resolve(schema)?;
        // A schema may contain itself endlessly.
        let is_open = walk.open.iter().any(|open| std::ptr::eq(*open, schema));
        walk.looked_at += 1;
        if is_open || walk.open.len() == DEPTH_MAX || walk.looked_at > SCHEMAS_MAX {
            return None;
        }
        walk.open.push(schema);
        let value = self.of_open_schema(schema, walk);
        walk.open.pop();
        value
    }

    fn of_open_schema(&self, schema: &'a Value, walk: &mut Walk<'a>) -> Option<Value> {
        let first = |key: &str| schema.get(key).and_then(|list| list.get(0));
        let given = schema.get("example").or_else(|| first("examples"));
        let given = given
            .or_else(|| schema.get("default"))
            .or_else(|| schema.get("const"));
        if let Some(given) = given.or_else(|| first("enum")) {
            return Some(given.clone());
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let mut whole = Map::new();
            for part in parts {
                match self.of_schema(part, walk)? {
                    Value::Object(members) => whole.extend(members),
                    other => return Some(other),
                }
            }
            return Some(Value::Object(whole));
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            return self.of_properties(schema, properties, walk);
        }
        let items = schema.get("items")?;
        Some(Value::Array(vec![self.of_schema(items, walk)?]))
    }

    /// All properties that have a value. `None` if a required property lacks one.
    fn of_properties(
        &self,
        schema: &'a Value,
        properties: &'a Map<String, Value>,
        walk: &mut Walk<'a>,
    ) -> Option<Value> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            let mut names = required.into_iter().flatten();
            names.any(|required| required.as_str() == Some(name))
        };
        let mut members = Map::new();
        for (name, property) in properties {
            let is_read_only = self
                .resolve(property)
                .is_some_and(|it| it.get("readOnly") == Some(&Value::Bool(true)));
            if is_read_only {
                continue;
            }
            match self.of_schema(property, walk) {
                Some(value) => drop(members.insert(name.clone(), value)),
                None if is_required(name) => return None,
                None => {}
            }
        }
        (!members.is_empty()).then_some(Value::Object(members))
    }
}
