//! Checks a tree against a JSON Schema: unknown keys, wrong types, malformed values.
//!
//! A wrong value is reported and replaced by [`Value::Reported`]. Later checks see only valid values, and
//! each mistake is reported once. Only the JSON Schema keywords in our callers' schemas are supported.

mod combination;
mod wording;

use serde_json::Value as Schema;

use crate::mistake::{Finding, Findings};
use crate::suggestion::{did_you_mean, nearest};
use crate::tree::{Entry, Kind, Node, Place, Value};
use combination::wrong_combination;
use wording::{of_type, quoted, wrong_kind};

/// Checks a text against the `format` of a schema. Returns `None` if the format is unknown.
pub type FormatCheck = fn(format: &str, text: &str) -> Option<Result<(), Misspelling>>;

/// The reason why a text does not match a format, and a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misspelling {
    /// The expected and the actual text.
    pub message: String,
    /// Advice for the author of the file.
    pub help: Option<String>,
}

impl Misspelling {
    /// Creates a misspelling with a message and advice.
    #[must_use]
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Misspelling {
        Misspelling {
            message: message.into(),
            help: Some(help.into()),
        }
    }
}

/// The meaning of a key without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blank {
    /// The key counts as missing.
    LeftOut,
    /// A mistake, unless the schema allows null.
    Null,
}

/// The rules for the structure of a file.
#[derive(Clone, Copy, Debug)]
pub struct Structure<'a> {
    /// The JSON Schema, including its definitions.
    pub schema: &'a Schema,
    /// The check for the formats in the schema.
    pub formats: FormatCheck,
    /// The meaning of a key without a value.
    pub blank: Blank,
}

/// Returns the finding for a missing key. `at` is the place to mark, the key of the mapping. `description`
/// comes from the schema of the missing key.
#[must_use]
pub fn missing(key: &str, at: Place, description: Option<&str>) -> Finding {
    let meaning = description.and_then(|text| text.split(". ").next());
    let help = meaning.map(|meaning| format!("`{key}`: {}", meaning.trim_end_matches('.')));
    Finding::new(at, format!("the key `{key}` is missing")).help_if(help)
}

/// Maximum number of keys that the error about a list in place of a mapping names.
const KEYS_SHOWN: usize = 4;

impl<'a> Structure<'a> {
    /// Returns the valid part of the tree, and reports the rest. An unknown key is left out. If it is
    /// probably a misspelling of a known key, that key replaces it, with a reported value.
    pub fn check(&self, root: Node, findings: &mut Findings) -> Node {
        let at = root.place;
        let rules = *self;
        Checker { rules, findings }.value(root, self.schema, at)
    }

    /// The target of a schema that is a reference, with or without a description.
    fn resolve(&self, schema: &'a Schema) -> &'a Schema {
        // schemars wraps a reference into `allOf` when the field has a description of its own.
        let path = match &schema["allOf"][0]["$ref"] {
            Schema::Null => schema["$ref"].as_str(),
            inner => inner.as_str(),
        };
        match path.and_then(|path| self.schema.pointer(path.strip_prefix('#')?)) {
            Some(target) => self.resolve(target),
            None => schema,
        }
    }

    /// The branches of a choice between schemas.
    fn branches(&self, schema: &'a Schema) -> Option<Vec<&'a Schema>> {
        let branches = schema["anyOf"].as_array()?.iter();
        Some(branches.map(|branch| self.resolve(branch)).collect())
    }

    fn is_left_out(&self, entry: &Entry) -> bool {
        self.blank == Blank::LeftOut && entry.node.is_blank()
    }

    /// The schema's format, if the caller supports it. Its message is more precise than a type error.
    fn form(&self, schema: &'a Schema) -> Option<&'a str> {
        let format = schema["format"].as_str()?;
        // Only checks if the format is supported. The empty text need not match it.
        (self.formats)(format, "").map(|_| format)
    }

    /// Returns the mistake of a node itself, without its children.
    fn mismatch(&self, node: &Node, schema: &'a Schema) -> Option<Finding> {
        let kind = node.kind();
        if let Some(choices) = choices(schema) {
            // `strings` has removed null from the choices.
            let is_fine = kind == Kind::Null && admits_null(&schema["enum"]);
            return wrong_choice(node, &choices).filter(|_| !is_fine);
        }
        if let (Some(form), Some(text)) = (self.form(schema), node.text())
            && kind != Kind::Null
        {
            let wrong = (self.formats)(form, text)?.err()?;
            return Some(Finding::new(node.place, wrong.message).help_if(wrong.help));
        }
        if !self.fits(kind, schema) {
            let wrong = wrong_kind(node, &self.expected(schema));
            // The list belongs below one of the keys. A long list of keys would not help to choose one.
            let keys = schema["properties"].as_object();
            let keys = keys.filter(|keys| kind == Kind::Array && keys.len() <= KEYS_SHOWN);
            let keys: Option<Vec<&str>> =
                keys.map(|keys| keys.keys().map(String::as_str).collect());
            return Some(
                wrong.help_if(keys.map(|keys| format!("the keys here are {}", keys.join(", ")))),
            );
        }
        match &node.value {
            Value::Scalar { text, .. } if matches!(kind, Kind::Integer | Kind::Number) => {
                out_of_range(text, node.place, schema)
            }
            Value::List(items) => wrong_length(items.len(), node.place, schema),
            _ => None,
        }
    }

    /// True if a node of this kind matches the schema's type.
    fn fits(&self, kind: Kind, schema: &'a Schema) -> bool {
        match &schema["type"] {
            Schema::String(name) => kind.is(name),
            names @ Schema::Array(_) => strings(names).any(|name| kind.is(name)),
            _ => match self.branches(schema) {
                Some(branches) => branches.iter().any(|branch| self.fits(kind, branch)),
                None => choices(schema).is_none() || kind == Kind::String,
            },
        }
    }

    /// Describes the values that a schema accepts.
    fn expected(&self, schema: &'a Schema) -> String {
        if let Some(choices) = choices(schema) {
            return quoted(&choices);
        }
        match self.branches(schema) {
            Some(branches) => self.one_of(&branches),
            None => of_type(&schema["type"]),
        }
    }

    fn one_of(&self, branches: &[&'a Schema]) -> String {
        let branches: Vec<String> = branches
            .iter()
            .filter(|branch| branch["type"] != "null")
            .map(|branch| self.expected(branch))
            .collect();
        branches.join(" or ")
    }
}

struct Checker<'a> {
    rules: Structure<'a>,
    findings: &'a mut Findings,
}

impl<'a> Checker<'a> {
    /// Returns the valid part of a node, and reports the rest. `at` is the place to mark if a key is missing:
    /// the key of the mapping.
    fn value(&mut self, node: Node, schema: &'a Schema, at: Place) -> Node {
        if node.value == Value::Reported {
            return node;
        }
        let schema = self.rules.resolve(schema);
        if let Some(branches) = self.rules.branches(schema) {
            return self.any_of(node, &branches, at);
        }
        if let Some(wrong) = self.rules.mismatch(&node, schema) {
            self.findings.add(wrong);
            return Node::reported(node.place);
        }
        let place = node.place;
        let value = match node.value {
            Value::Map(entries) => Value::Map(self.entries(entries, schema, at)),
            Value::List(items) => {
                let items = items.into_iter().map(|item| {
                    let at = item.place;
                    self.value(item, &schema["items"], at)
                });
                Value::List(items.collect())
            }
            scalar => scalar,
        };
        Node { place, value }
    }

    /// Checks a node against the first branch that accepts its kind.
    fn any_of(&mut self, node: Node, branches: &[&'a Schema], at: Place) -> Node {
        let rules = self.rules;
        // Selected by the kind alone: a mapping with a wrong key must be reported for that key, and not
        // because no branch matches.
        let fitting = branches
            .iter()
            .find(|branch| rules.fits(node.kind(), branch));
        // A scalar that fits no branch, such as a number, is most likely meant for the text branch. The
        // message of its format is more helpful than "not this".
        let fitting = fitting.or_else(|| {
            let is_scalar = node.text().is_some() && !node.is_null();
            branches
                .iter()
                .find(|branch| is_scalar && rules.form(branch).is_some())
        });
        match fitting {
            Some(branch) => self.value(node, branch, at),
            None => {
                self.findings
                    .add(wrong_kind(&node, &rules.one_of(branches)));
                Node::reported(node.place)
            }
        }
    }

    fn entries(&mut self, entries: Vec<Entry>, schema: &'a Schema, at: Place) -> Vec<Entry> {
        let mut kept = Vec::new();
        let mut guesses = Vec::new();
        for mut entry in entries {
            let property = schema["properties"].get(&entry.key);
            let rule = property.unwrap_or(&schema["additionalProperties"]);
            if *rule == Schema::Bool(false) {
                // Added again below, once all existing keys are collected.
                guesses.extend(self.unknown(&entry, schema));
                continue;
            }
            if let Some(wrong) = self.wrong_name(&entry.key, schema) {
                self.findings
                    .add(Finding::new(entry.key_place, wrong.message).help_if(wrong.help));
                continue;
            }
            if !self.rules.is_left_out(&entry) {
                entry.node = self.value(entry.node, rule, entry.key_place);
            }
            kept.push(entry);
        }
        // A mistyped key is one mistake. It must not also count as a missing key.
        guesses.retain(|guess| !kept.iter().any(|entry| entry.key == guess.key));
        kept.extend(guesses);
        let rules = self.rules;
        let is_there = |key: &str| {
            let entry = kept.iter().find(|entry| entry.key == key);
            entry.is_some_and(|entry| !rules.is_left_out(entry))
        };
        for key in strings(&schema["required"]).filter(|key| !is_there(key)) {
            let description = schema["properties"][key]["description"].as_str();
            self.findings.add(missing(key, at, description));
        }
        if let Some(message) = wrong_combination(schema, &is_there) {
            self.findings.add(Finding::new(at, message));
        }
        kept
    }

    /// The reason why a key is not a valid name, if the schema restricts the names of keys.
    fn wrong_name(&self, key: &str, schema: &'a Schema) -> Option<Misspelling> {
        let format = schema["propertyNames"]["format"].as_str()?;
        (self.rules.formats)(format, key)?.err()
    }

    /// Reports an unknown key. Returns an entry for the key that was probably meant, without a value.
    fn unknown(&mut self, entry: &Entry, schema: &'a Schema) -> Option<Entry> {
        let known = schema["properties"].as_object().into_iter();
        let known = known.flat_map(|known| known.keys().map(String::as_str));
        let nearest = nearest(&entry.key, known.clone());
        // A key in the wrong place is more likely than a misspelling of another key.
        let at_top = self.rules.schema["properties"].get(&entry.key);
        let is_elsewhere = at_top.is_some_and(|rule| *rule != Schema::Bool(false));
        let nearest = nearest.filter(|_| !is_elsewhere);
        let help = match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None if is_elsewhere => format!("`{}` is a key at the top of the file", entry.key),
            None => {
                let known: Vec<&str> = known.collect();
                format!("the keys here are {}", known.join(", "))
            }
        };
        let finding = Finding::new(entry.key_place, format!("unknown key `{}`", entry.key));
        self.findings.add(finding.help(help));
        Some(Entry {
            key: nearest?.to_owned(),
            key_place: entry.key_place,
            node: Node::reported(entry.node.place),
            is_guess: true,
        })
    }
}

/// The strings of a list. The lists in our schemas contain only strings, and null in an `enum`.
fn strings(list: &Schema) -> impl Iterator<Item = &str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Schema::as_str)
}

/// The words of a choice, written as `enum` or as described constants.
fn choices(schema: &Schema) -> Option<Vec<&str>> {
    if schema["enum"].is_array() {
        return Some(strings(&schema["enum"]).collect());
    }
    let branches = schema["oneOf"].as_array()?;
    branches
        .iter()
        .map(|branch| branch["const"].as_str())
        .collect()
}

/// True if null is one of the values of an `enum`.
fn admits_null(values: &Schema) -> bool {
    values
        .as_array()
        .is_some_and(|values| values.contains(&Schema::Null))
}

fn wrong_choice(node: &Node, choices: &[&str]) -> Option<Finding> {
    let Some(text) = node.text().filter(|_| !node.is_null()) else {
        return Some(wrong_kind(node, &quoted(choices)));
    };
    if choices.contains(&text) {
        return None;
    }
    let message = format!("expected {}, found `{text}`", quoted(choices));
    let help = did_you_mean(text, choices.iter().copied());
    Some(Finding::new(node.place, message).help_if(help))
}

fn out_of_range(text: &str, place: Place, schema: &Schema) -> Option<Finding> {
    // The kind was checked before. Only a number beyond the range of floats fails here, and serde reports it.
    let number: f64 = text.parse().ok()?;
    if schema["minimum"]
        .as_f64()
        .is_some_and(|least| number < least)
    {
        let least = &schema["minimum"];
        let message = format!("expected at least {least}, found `{text}`");
        return Some(Finding::new(place, message));
    }
    // schemars writes these formats for Rust types, and `maximum` only if an attribute requests it.
    let most_of_type = match schema["format"].as_str() {
        Some("uint16") => Some(f64::from(u16::MAX)),
        Some("uint32") => Some(f64::from(u32::MAX)),
        _ => None,
    };
    let most = schema["maximum"].as_f64().or(most_of_type)?;
    (number > most).then(|| Finding::new(place, format!("expected at most {most}, found `{text}`")))
}

fn wrong_length(length: usize, place: Place, schema: &Schema) -> Option<Finding> {
    let bound = |key: &str| schema[key].as_u64().and_then(|it| usize::try_from(it).ok());
    let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems"));
    if length >= least && most.is_none_or(|most| length <= most) {
        return None;
    }
    if length == 0 && least == 1 {
        return Some(Finding::new(place, "the list is empty").help("give at least one"));
    }
    let expected = match most {
        Some(most) if most == least => format!("{least} values"),
        Some(most) => format!("{least} to {most} values"),
        None => format!("at least {least} values"),
    };
    let message = format!("expected a list of {expected}, found {length}");
    Some(Finding::new(place, message))
}

#[cfg(test)]
mod tests;
