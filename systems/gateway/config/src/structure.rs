//! Holds a tree against the JSON Schema: unknown keys, wrong types, values of a wrong form.
//!
//! Only the words of JSON Schema that our own schema uses are understood; a test of this crate
//! would notice others.

use serde_json::{Map, Value as Schema};

use crate::mistake::{Finding, Findings, Place};
use crate::schema::schema;
use crate::written;
use crate::yaml::{Entry, Node, Value, scalar};

/// Reports everything that does not fit.
pub(crate) fn check(root: &Node, findings: &mut Findings) {
    let schema = schema();
    let at = root.place;
    Checker {
        root: &schema,
        findings,
    }
    .value(root, &schema, at);
}

struct Checker<'a> {
    root: &'a Schema,
    findings: &'a mut Findings,
}

impl<'a> Checker<'a> {
    /// `at` is where to point when a key is missing: the key of the mapping.
    fn value(&mut self, node: &Node, schema: &'a Schema, at: Place) {
        if node.value == Value::Reported {
            return;
        }
        let schema = self.resolve(schema);
        if let Some(branches) = schema["anyOf"].as_array() {
            return self.any_of(node, branches, at);
        }
        if let Some(wrong) = self.mismatch(node, schema) {
            self.findings.add(wrong);
            return;
        }
        match &node.value {
            Value::Map(entries) => self.entries(entries, schema, at),
            Value::List(items) => {
                if let Some(finding) = wrong_length(items.len(), node.place, schema) {
                    self.findings.add(finding);
                }
                for item in items {
                    self.value(item, &schema["items"], item.place);
                }
            }
            Value::Scalar { .. } | Value::Reported => {}
        }
    }

    /// The branch that a node of this kind can mean decides.
    fn any_of(&mut self, node: &Node, branches: &'a [Schema], at: Place) {
        let kind = kind(node);
        let branches: Vec<&'a Schema> = branches.iter().map(|it| self.resolve(it)).collect();
        let fitting = branches
            .iter()
            .find(|branch| self.fits(kind, branch))
            // A number where text of a form is expected is best told about by that form.
            .or_else(|| {
                let is_scalar = matches!(node.value, Value::Scalar { .. }) && kind != "null";
                branches
                    .iter()
                    .find(|branch| is_scalar && form(branch).is_some())
            });
        match fitting {
            Some(branch) => self.value(node, branch, at),
            None => {
                let expected: Vec<String> = branches
                    .iter()
                    .filter(|branch| branch["type"] != "null")
                    .map(|branch| self.expected(branch))
                    .collect();
                self.findings.add(wrong_kind(node, &expected.join(" or ")));
            }
        }
    }

    /// What is wrong with a node itself, apart from its children.
    fn mismatch(&self, node: &Node, schema: &Schema) -> Option<Finding> {
        if let Some(choices) = self.choices(schema) {
            return choice(node, &choices);
        }
        if let (Some(form), Value::Scalar { text, .. }) = (form(schema), &node.value)
            && kind(node) != "null"
        {
            let wrong = written::check(form, text)?.err()?;
            return Some(Finding::new(node.place, wrong));
        }
        if !self.fits(kind(node), schema) {
            return Some(wrong_kind(node, &self.expected(schema)));
        }
        match &node.value {
            Value::Scalar { text, .. } => out_of_range(text, node.place, schema),
            _ => None,
        }
    }

    fn entries(&mut self, entries: &[Entry], schema: &'a Schema, at: Place) {
        let none = Map::new();
        let properties = schema["properties"].as_object();
        let known = || properties.unwrap_or(&none).keys().map(String::as_str);
        let mut guesses = Vec::new();
        for entry in entries {
            let rule = properties
                .and_then(|properties| properties.get(&entry.key))
                .unwrap_or(&schema["additionalProperties"]);
            if *rule == Schema::Bool(false) {
                let nearest = nearest(&entry.key, known());
                guesses.extend(nearest.map(str::to_owned));
                let help = match nearest {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => {
                        let known: Vec<&str> = known().collect();
                        format!("the keys here are {}", known.join(", "))
                    }
                };
                let message = format!("unknown key `{}`", entry.key);
                self.findings
                    .add(Finding::new(entry.place, message).help(help));
            } else if !entry.node.is_blank() {
                self.value(&entry.node, rule, entry.place);
            }
        }
        let is_there = |key: &str| {
            let written = entries
                .iter()
                .any(|entry| entry.key == key && !entry.node.is_blank());
            // A mistyped key is one mistake and not also a missing key.
            written || guesses.iter().any(|guess| guess == key)
        };
        for key in strings(&schema["required"]).filter(|key| !is_there(key)) {
            let help = schema["properties"][key]["description"].as_str();
            let finding = Finding::new(at, format!("the key `{key}` is missing"));
            self.findings.add(match help {
                Some(meaning) => {
                    finding.help(format!("`{key}`: {}", meaning.trim_end_matches('.')))
                }
                None => finding,
            });
        }
        if let Some(finding) = wrong_combination(schema, at, &is_there) {
            self.findings.add(finding);
        }
    }

    /// The schema that this one stands for, when it is a reference, bare or with a description.
    fn resolve(&self, schema: &'a Schema) -> &'a Schema {
        let path = match &schema["allOf"][0]["$ref"] {
            Schema::Null => schema["$ref"].as_str(),
            inner => inner.as_str(),
        };
        match path.and_then(|path| self.root.pointer(path.strip_prefix('#')?)) {
            Some(target) => self.resolve(target),
            None => schema,
        }
    }

    /// The words of a choice, whether written as `enum` or as described constants.
    fn choices(&self, schema: &'a Schema) -> Option<Vec<&'a str>> {
        if schema["enum"].is_array() {
            return Some(strings(&schema["enum"]).collect());
        }
        let branches = schema["oneOf"].as_array()?;
        branches
            .iter()
            .map(|branch| branch["const"].as_str())
            .collect()
    }

    /// Whether a node of this kind is of the schema's type.
    fn fits(&self, kind: &str, schema: &'a Schema) -> bool {
        let one = |name: &str| name == kind || (name == "number" && kind == "integer");
        match &schema["type"] {
            Schema::String(name) => one(name),
            Schema::Array(names) => names.iter().filter_map(Schema::as_str).any(one),
            _ => match schema["anyOf"].as_array() {
                Some(branches) => branches
                    .iter()
                    .any(|branch| self.fits(kind, self.resolve(branch))),
                None => self.choices(schema).is_none() || kind == "string",
            },
        }
    }

    /// What a schema asks for, in words.
    fn expected(&self, schema: &'a Schema) -> String {
        if let Some(choices) = self.choices(schema) {
            return quoted(&choices);
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            let branches = branches.iter().map(|it| self.expected(self.resolve(it)));
            return branches.collect::<Vec<_>>().join(" or ");
        }
        let names = match &schema["type"] {
            Schema::String(name) => vec![name.as_str()],
            list => strings(list).filter(|name| *name != "null").collect(),
        };
        let words: Vec<&str> = names
            .into_iter()
            .map(|name| match name {
                "boolean" => "`true` or `false`",
                "integer" => "a whole number",
                "number" => "a number",
                "array" => "a list",
                "object" => "a mapping of keys to values",
                _ => "text",
            })
            .collect();
        words.join(" or ")
    }
}

/// The kind of value a node holds, in the words of JSON Schema.
fn kind(node: &Node) -> &'static str {
    match &node.value {
        Value::Reported => "null",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        Value::Scalar { text, plain } => match scalar(text, *plain) {
            Schema::Null => "null",
            Schema::Bool(_) => "boolean",
            Schema::Number(number) if number.is_f64() => "number",
            Schema::Number(_) => "integer",
            _ => "string",
        },
    }
}

/// The form of a text, which says more about a wrong value than its type can.
fn form(schema: &Schema) -> Option<&str> {
    schema["format"]
        .as_str()
        .filter(|form| written::check(form, "").is_some())
}

fn strings(list: &Schema) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Schema::as_str)
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(" or ")
}

fn wrong_kind(node: &Node, expected: &str) -> Finding {
    let text = match &node.value {
        Value::Scalar { text, .. } => text.as_str(),
        _ => "",
    };
    let found = match kind(node) {
        "null" => "nothing".to_owned(),
        "boolean" => format!("`{text}`"),
        "integer" | "number" => format!("the number `{text}`"),
        "string" => format!("the text `{text}`"),
        "array" => "a list".to_owned(),
        _ => "a mapping".to_owned(),
    };
    let finding = Finding::new(node.place, format!("expected {expected}, found {found}"));
    match kind(node) {
        "boolean" | "integer" | "number" if expected == "text" => {
            finding.help(format!("write \"{text}\", in quotes"))
        }
        _ => finding,
    }
}

fn choice(node: &Node, choices: &[&str]) -> Option<Finding> {
    let Value::Scalar { text, .. } = &node.value else {
        return Some(wrong_kind(node, &quoted(choices)));
    };
    if choices.contains(&text.as_str()) || kind(node) == "null" {
        return None;
    }
    let message = format!("expected {}, found `{text}`", quoted(choices));
    let finding = Finding::new(node.place, message);
    Some(match nearest(text, choices.iter().copied()) {
        Some(nearest) => finding.help(format!("did you mean `{nearest}`?")),
        None => finding,
    })
}

fn out_of_range(text: &str, place: Place, schema: &Schema) -> Option<Finding> {
    let least = schema["minimum"].as_f64()?;
    let number: f64 = text.parse().ok()?;
    (number < least).then(|| {
        Finding::new(
            place,
            format!("expected at least {}, found `{text}`", schema["minimum"]),
        )
    })
}

fn wrong_length(length: usize, place: Place, schema: &Schema) -> Option<Finding> {
    let bound = |key: &str| schema[key].as_u64().and_then(|it| usize::try_from(it).ok());
    let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems"));
    if length >= least && most.is_none_or(|most| length <= most) {
        return None;
    }
    let expected = match most {
        Some(most) if most == least => format!("{least} values"),
        _ => format!("at least {least} value"),
    };
    Some(Finding::new(
        place,
        format!("expected a list of {expected}, found {length}"),
    ))
}

/// What is wrong with the keys of a mapping together: `oneOf`, `not`, `minProperties` and
/// `maxProperties` are used in one way each.
fn wrong_combination(
    schema: &Schema,
    at: Place,
    is_there: &dyn Fn(&str) -> bool,
) -> Option<Finding> {
    let found = |keys: &[&str]| -> Vec<String> {
        let keys = keys.iter().filter(|key| is_there(key));
        keys.map(|key| format!("`{key}`")).collect()
    };
    let alternatives: Vec<&str> = match schema["oneOf"].as_array() {
        Some(branches) => branches
            .iter()
            .flat_map(|branch| strings(&branch["required"]))
            .collect(),
        None if schema["minProperties"] == 1 => schema["properties"]
            .as_object()
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default(),
        None => Vec::new(),
    };
    if !alternatives.is_empty() {
        let found = found(&alternatives);
        let is_unbounded = schema["oneOf"].is_null() && schema["maxProperties"].is_null();
        if found.len() == 1 || (is_unbounded && !found.is_empty()) {
            return None;
        }
        let expected = if is_unbounded { "at least" } else { "exactly" };
        let found = match found.len() {
            0 => "none".to_owned(),
            _ => found.join(" and "),
        };
        return Some(Finding::new(
            at,
            format!(
                "expected {expected} one of {}, found {found}",
                quoted(&alternatives)
            ),
        ));
    }
    let together: Vec<&str> = strings(&schema["not"]["required"]).collect();
    (!together.is_empty() && together.iter().all(|key| is_there(key))).then(|| {
        Finding::new(
            at,
            format!("{} cannot be used together", found(&together).join(" and ")),
        )
    })
}

/// The known word that a mistyped one is nearest to, when it is near.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .filter(|(distance, known)| *distance <= known.chars().count().max(3) / 3)
        .min()
        .map(|(_, known)| known)
}
