//! Values from an OpenAPI description: examples, defaults and constants. Others are invented on request.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::command::init::values::plain;

/// Maximum number of references in a row. They may form a circle.
const REFERENCES_MAX: usize = 8;
/// Maximum depth of nested schemas.
const DEPTH_MAX: usize = 16;
/// Maximum number of visited schemas for one value. Each schema may appear in many other schemas.
const SCHEMAS_MAX: usize = 10_000;
/// Maximum number of items of an invented list.
const ITEMS_MAX: u64 = 10;

/// A description that resolves references.
pub(super) struct Description<'a> {
    pub(super) root: &'a Value,
    /// True if values are invented if the description has no value.
    pub(super) is_inventing: bool,
}

/// The walk through the schemas of one value.
struct Walk<'a> {
    /// The schemas that contain the current one.
    open: Vec<&'a Value>,
    looked_at: usize,
    /// The names of the current member and of the members around it.
    names: Vec<String>,
    /// The places of invented values.
    invented: Vec<String>,
}

/// The schemas that one value must fulfill: a schema with all parts of its `allOf`.
struct Parts<'a> {
    all: Vec<&'a Value>,
    required: BTreeSet<&'a str>,
}

impl<'a> Description<'a> {
    /// The value itself, or the target of its reference within the file.
    pub(super) fn resolve(&self, value: &'a Value) -> Option<&'a Value> {
        let mut value = value;
        for _ in 0..REFERENCES_MAX {
            let Some(Value::String(reference)) = value.get("$ref") else {
                return Some(value);
            };
            let pointer = decoded(reference.strip_prefix('#')?);
            value = self.root.pointer(&pointer)?;
        }
        None
    }

    /// True if the schema of a media type is not in this file.
    pub(super) fn is_outside(&self, media: &'a Value) -> bool {
        let schema = media.get("schema");
        schema.is_some_and(|schema| self.resolve(schema).is_none())
    }

    /// An example. Some descriptions have a reference in its place.
    fn example(&self, example: &Value) -> Value {
        let is_reference = example.as_object().is_some_and(|members| {
            let target = members.get("$ref").and_then(Value::as_str);
            members.len() == 1 && target.is_some_and(|target| target.starts_with("#/"))
        });
        match is_reference {
            true => self.resolve(example).unwrap_or(example).clone(),
            false => example.clone(),
        }
    }

    /// The value of a parameter or of a media type. The places of invented values are added to the list.
    pub(super) fn value_of(
        &self,
        parameter: &'a Value,
        name: &str,
        invented: &mut Vec<String>,
    ) -> Option<Value> {
        if let Some(example) = parameter.get("example").filter(|it| !it.is_null()) {
            return Some(self.example(example));
        }
        let examples = parameter.get("examples").and_then(Value::as_object);
        let mut examples = examples.into_iter().flatten();
        let named = examples.find_map(|(_, example)| {
            let example = self.resolve(example)?;
            // OpenAPI 3.2 separates the data from its text.
            example.get("value").or_else(|| example.get("dataValue"))
        });
        if let Some(named) = named {
            return Some(self.example(named));
        }
        // A parameter may have a media type instead of a schema.
        let content = parameter.get("content").and_then(Value::as_object);
        if let Some((_, media)) = content.and_then(|content| content.iter().next()) {
            return self.value_of(media, name, invented);
        }
        let mut walk = Walk {
            open: Vec::new(),
            looked_at: 0,
            names: vec![name.to_owned()],
            invented: Vec::new(),
        };
        let value = self.of_schema(parameter.get("schema")?, &mut walk)?;
        invented.extend(walk.invented);
        Some(value)
    }

    /// A value of a schema.
    fn of_schema(&self, schema: &'a Value, walk: &mut Walk<'a>) -> Option<Value> {
        let schema = self.resolve(schema)?;
        // A schema may contain itself endlessly.
        let is_open = walk.open.iter().any(|open| std::ptr::eq(*open, schema));
        walk.looked_at += 1;
        if is_open || walk.open.len() == DEPTH_MAX || walk.looked_at > SCHEMAS_MAX {
            return None;
        }
        walk.open.push(schema);
        let invented = walk.invented.len();
        let value = self.of_open_schema(schema, walk);
        if value.is_none() {
            walk.invented.truncate(invented);
        }
        walk.open.pop();
        value
    }

    fn of_open_schema(&self, schema: &'a Value, walk: &mut Walk<'a>) -> Option<Value> {
        if let Some(given) = given(schema) {
            return Some(given.clone());
        }
        let mut parts = Parts {
            all: Vec::new(),
            required: BTreeSet::new(),
        };
        self.collect(schema, &mut parts, 0)?;
        let is_object = parts.all.iter().any(|part| {
            let has_members = |key: &str| part.get(key).is_some_and(Value::is_object);
            has_members("properties") || given(part).is_some_and(Value::is_object)
        });
        let chosen = self.of_alternatives(&parts, walk).ok()?;
        let value = match (is_object, chosen) {
            (true, chosen) => self.of_members(&parts, chosen, walk),
            // The requirements may lie in another part than the alternatives.
            (false, Some(Value::Object(members))) => {
                let is_there = |name: &&str| members.contains_key(*name);
                parts
                    .required
                    .iter()
                    .all(is_there)
                    .then_some(Value::Object(members))
            }
            (false, Some(chosen)) => Some(chosen),
            (false, None) => self.of_parts(&parts, walk),
        }?;
        parts.has_required(&value).then_some(value)
    }

    /// Adds a schema with all parts of its `allOf`. `None` if a part is not in this file.
    fn collect(&self, schema: &'a Value, parts: &mut Parts<'a>, depth: usize) -> Option<()> {
        let schema = self.resolve(schema)?;
        if depth > DEPTH_MAX || parts.all.len() > SCHEMAS_MAX {
            return None;
        }
        for part in schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.collect(part, parts, depth + 1)?;
        }
        // After its parts, because its own properties win.
        parts.all.push(schema);
        let required = schema.get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        parts.required.extend(names);
        Some(())
    }

    /// The value of the alternatives of all parts. `Ok(None)` without alternatives, and an error if no
    /// alternative has a value.
    fn of_alternatives(&self, parts: &Parts<'a>, walk: &mut Walk<'a>) -> Result<Option<Value>, ()> {
        let mut whole: Option<Value> = None;
        for part in &parts.all {
            let lists = [part.get("oneOf"), part.get("anyOf")];
            for list in lists.into_iter().flatten().filter_map(Value::as_array) {
                let is_null = |it: &&Value| it.get("type") != Some(&Value::from("null"));
                let mut alternatives = list.iter().filter(is_null);
                if list.iter().all(is_requirement) {
                    continue;
                }
                let value = alternatives
                    .find_map(|it| self.of_schema(it, walk))
                    .ok_or(())?;
                whole = Some(match (whole, value) {
                    (Some(Value::Object(mut known)), Value::Object(more)) => {
                        known.extend(more);
                        Value::Object(known)
                    }
                    (_, value) => value,
                });
            }
        }
        Ok(whole)
    }

    /// All properties that have a value. `None` if a required property lacks one.
    fn of_members(
        &self,
        parts: &Parts<'a>,
        chosen: Option<Value>,
        walk: &mut Walk<'a>,
    ) -> Option<Value> {
        let mut members = match chosen {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let mut read_only = BTreeSet::new();
        for part in &parts.all {
            // An example of one part has its members only.
            if let Some(Value::Object(example)) = given(part) {
                members.extend(example.clone());
                continue;
            }
            let properties = part.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                let is_read_only = self
                    .resolve(property)
                    .is_some_and(|it| it.get("readOnly") == Some(&Value::Bool(true)));
                if is_read_only {
                    read_only.insert(name.as_str());
                    continue;
                }
                let is_required = parts.required.contains(name.as_str());
                walk.names.push(name.clone());
                let value = self.of_property(property, is_required, walk);
                walk.names.pop();
                if let Some(value) = value {
                    members.insert(name.clone(), value);
                }
            }
        }
        let is_there = |name: &&str| members.contains_key(*name) || read_only.contains(name);
        let is_whole = parts.required.iter().all(is_there);
        let is_empty = members.is_empty() && !self.is_inventing;
        (is_whole && !is_empty).then_some(Value::Object(members))
    }

    /// The value of a property. An optional one is not invented.
    fn of_property(
        &self,
        property: &'a Value,
        is_required: bool,
        walk: &mut Walk<'a>,
    ) -> Option<Value> {
        if is_required || !self.is_inventing {
            return self.of_schema(property, walk);
        }
        let fixed = Description {
            root: self.root,
            is_inventing: false,
        };
        fixed.of_schema(property, walk)
    }

    /// The value of parts without properties: a list, an example of one part, or an invented value.
    fn of_parts(&self, parts: &Parts<'a>, walk: &mut Walk<'a>) -> Option<Value> {
        if let Some(example) = parts.all.iter().find_map(|part| given(part)) {
            return Some(example.clone());
        }
        let own = parts.all.last().copied();
        // A part that is a reference to a list or to another value.
        for part in &parts.all {
            let least = part.get("minItems").and_then(Value::as_u64).unwrap_or(1);
            if let Some(items) = part.get("items").filter(|it| it.is_object()) {
                let item = self.of_schema(items, walk)?;
                let count = usize::try_from(least.clamp(1, ITEMS_MAX)).unwrap_or(1);
                return (least <= ITEMS_MAX).then(|| Value::Array(vec![item; count]));
            }
            if let Some(items) = part.get("prefixItems").and_then(Value::as_array) {
                let items = items.iter().map(|item| self.of_schema(item, walk));
                return Some(Value::Array(items.collect::<Option<Vec<_>>>()?));
            }
        }
        if !self.is_inventing || !parts.required.is_empty() {
            return None;
        }
        for part in &parts.all {
            if let Some(values) = part.get("additionalProperties").filter(|it| it.is_object()) {
                let value = self.of_schema(values, walk)?;
                walk.invented.push(walk.names.join("."));
                return Some(Value::Object(Map::from_iter([("key".to_owned(), value)])));
            }
        }
        let typed = parts
            .all
            .iter()
            .copied()
            .find(|part| part.get("type").is_some());
        let value = invented(typed.or(own)?)?;
        walk.invented.push(walk.names.join("."));
        Some(value)
    }
}

impl Parts<'_> {
    /// True if the value has the members of one alternative of each list that only requires members.
    fn has_required(&self, value: &Value) -> bool {
        let fulfills = |alternative: &Value| {
            let names = alternative.get("required").and_then(Value::as_array);
            let mut names = names.into_iter().flatten().filter_map(Value::as_str);
            names.all(|name| value.get(name).is_some())
        };
        let lists = self
            .all
            .iter()
            .flat_map(|part| [part.get("oneOf"), part.get("anyOf")]);
        let mut lists = lists.flatten().filter_map(Value::as_array);
        lists.all(|list| !list.iter().all(is_requirement) || list.iter().any(fulfills))
    }
}

/// True if an alternative only requires members that are described elsewhere.
fn is_requirement(alternative: &Value) -> bool {
    let members = alternative.as_object();
    members.is_some_and(|it| {
        it.contains_key("required") && !it.contains_key("properties") && !it.contains_key("allOf")
    })
}

/// The value that a schema itself names.
fn given(schema: &Value) -> Option<&Value> {
    let first = |key: &str| schema.get(key).and_then(|list| list.get(0));
    let named = schema.get("example").or_else(|| first("examples"));
    let named = named.filter(|it| !it.is_null());
    let fixed = || schema.get("default").filter(|it| !it.is_null());
    let constant = || schema.get("const");
    named
        .or_else(fixed)
        .or_else(constant)
        .or_else(|| first("enum"))
}

/// A value that fulfills the type and the format of a schema. `None` if it has rules that are not known here.
fn invented(schema: &Value) -> Option<Value> {
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().map(plain).find(|kind| kind != "null")?,
        Some(kind) => plain(kind),
        None => return None,
    };
    let format = schema.get("format").map(plain).unwrap_or_default();
    match kind.as_str() {
        "boolean" => Some(Value::Bool(true)),
        "integer" | "number" => invented_number(schema),
        "object" => Some(Value::Object(Map::new())),
        "string" if schema.get("pattern").is_some() => None,
        "string" => {
            let text = match format.as_str() {
                "date" => "2026-01-02",
                "date-time" => "2026-01-02T03:04:05Z",
                "time" => "03:04:05Z",
                "duration" => "PT1S",
                "uuid" => "7b2a4c10-5d3e-4f6a-8b9c-0123456789ab",
                "email" | "idn-email" => "ann@example.com",
                "uri" | "url" | "iri" => "https://example.com/",
                "uri-reference" => "/",
                "hostname" => "example.com",
                "ipv4" => "192.0.2.1",
                "ipv6" => "2001:db8::1",
                "byte" => "AA==",
                "binary" => return None,
                "int32" | "int64" => "1",
                _ => "text",
            };
            let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
            let least = usize::try_from(limit("minLength").unwrap_or(0)).ok()?;
            let most =
                usize::try_from(limit("maxLength").unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
            let is_free = text == "text";
            match text.len() {
                length if length < least && is_free && least <= 1000 => Some(Value::String(
                    "text".repeat(least.div_ceil(4))[..least].to_owned(),
                )),
                length if length > most && is_free => Some(Value::String(text[..most].to_owned())),
                length if length < least || length > most => None,
                _ => Some(Value::String(text.to_owned())),
            }
        }
        _ => None,
    }
}

/// A number within the limits of a schema.
fn invented_number(schema: &Value) -> Option<Value> {
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let is_on = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let step = limit("multipleOf")
        .filter(|step| *step > 0.0)
        .unwrap_or(1.0);
    let least = limit("minimum").or(limit("exclusiveMinimum"));
    let is_above = limit("exclusiveMinimum").is_some() || is_on("exclusiveMinimum");
    let most = limit("maximum").or(limit("exclusiveMaximum"));
    let is_below = limit("exclusiveMaximum").is_some() || is_on("exclusiveMaximum");
    let fits = |number: f64| {
        let is_low = least.is_some_and(|it| number < it || (is_above && number <= it));
        let is_high = most.is_some_and(|it| number > it || (is_below && number >= it));
        !is_low && !is_high
    };
    let lowest = least.map(|it| (it / step).ceil() * step);
    let candidates = [
        Some(step),
        lowest,
        lowest.map(|it| it + step),
        most.map(|it| (it / step).floor() * step),
        Some(0.0),
    ];
    let number = candidates.into_iter().flatten().find(|it| fits(*it))?;
    let is_whole = (number - number.round()).abs() < f64::EPSILON;
    match is_whole {
        true => format!("{number:.0}").parse::<i64>().ok().map(Value::from),
        false => serde_json::Number::from_f64(number).map(Value::Number),
    }
}

/// A pointer of a reference, which is percent-encoded as a part of a URL.
fn decoded(pointer: &str) -> String {
    let bytes = pointer.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = pointer.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
