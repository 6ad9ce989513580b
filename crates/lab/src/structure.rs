//! Holds a tree against the JSON Schema: unknown keys, wrong types, values of a wrong form.
//!
//! What is wrong is reported and replaced by [`Value::Reported`], so that the checks after this one
//! see only what they can use, and nobody reports it twice. Only the words of JSON Schema that our
//! own schema uses are understood; a test in `schema` would notice others.

use serde_json::Value as Schema;

use crate::decode::{Kind, kind};
use crate::formats;
use crate::include::Reading;
use crate::mistake::{Finding, Findings, Place};
use crate::schema::{SCENARIO_SCHEMA, SCHEMA, required_of_labs};
use crate::wire::LAB_ONLY;
use crate::yaml::{Entry, Node, Value};

/// Which file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The lab itself.
    Lab,
    /// A file it includes.
    Included,
    /// A scenario, which is no part of a lab.
    Scenario,
}

/// Checks the values of one file. Keys that may come from another file are not missed yet; see
/// [`check_complete`].
pub(crate) fn check(root: Node, role: Role, findings: &mut Findings) -> Node {
    let root = match role {
        Role::Lab | Role::Scenario => root,
        Role::Included => without_lab_keys(root, findings),
    };
    let at = root.place;
    let schema = match role {
        Role::Lab | Role::Included => &SCHEMA,
        Role::Scenario => &SCENARIO_SCHEMA,
    };
    Checker { findings }.value(root, schema, at)
}

/// Checks that a lab has all it must have once its includes are merged.
pub(crate) fn check_complete(root: &Node, reading: &mut Reading<'_>) {
    if reading.has_gaps {
        return;
    }
    for key in required_of_labs() {
        if root.entry(key).is_none() {
            let description = SCHEMA["properties"][key]["description"].as_str();
            reading.findings.add(missing(key, root.place, description));
        }
    }
}

fn without_lab_keys(mut root: Node, findings: &mut Findings) -> Node {
    if let Value::Map(entries) = &mut root.value {
        entries.retain(|entry| {
            let belongs = !LAB_ONLY.contains(&entry.key.as_str());
            if !belongs {
                findings.add(
                    Finding::new(
                        entry.key_place,
                        format!("an included file cannot have `{}`", entry.key),
                    )
                    .help("move it to the lab; what several labs share is included by each"),
                );
            }
            belongs
        });
    }
    root
}

struct Checker<'a> {
    findings: &'a mut Findings,
}

impl Checker<'_> {
    /// A node as far as it fits its schema. `at` is where to point when a key is missing: the key
    /// of the mapping.
    fn value(&mut self, node: Node, schema: &Schema, at: Place) -> Node {
        if node.value == Value::Reported {
            return node;
        }
        if let Some(target) = reference(schema) {
            return self.value(node, target, at);
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            return self.any_of(node, branches, at);
        }
        if let Some(wrong) = self.mismatch(&node, schema) {
            self.findings.add(wrong);
            return Node::reported(node.place);
        }
        let place = node.place;
        let value = match node.value {
            Value::Map(entries) => Value::Map(self.entries(entries, schema, at)),
            Value::List(items) => Value::List(
                items
                    .into_iter()
                    .map(|item| {
                        let at = item.place;
                        self.value(item, &schema["items"], at)
                    })
                    .collect(),
            ),
            scalar => scalar,
        };
        Node { place, value }
    }

    /// The only branch that a node of this kind can mean decides.
    fn any_of(&mut self, node: Node, branches: &[Schema], at: Place) -> Node {
        let fitting = branches
            .iter()
            .find(|branch| fits(kind(&node), resolve(branch)));
        match fitting {
            Some(branch) => self.value(node, branch, at),
            None => {
                // A scalar of a wrong kind is nearest to the branch for text, whose format can say
                // more than "not this".
                let scalar = branches
                    .iter()
                    .map(resolve)
                    .find(|branch| branch["type"] != "object" && branch["type"] != "array");
                if let (Value::Scalar { .. }, Some(branch)) = (&node.value, scalar) {
                    return self.value(node, branch, at);
                }
                let expected: Vec<String> = branches
                    .iter()
                    .map(|branch| expected(resolve(branch)))
                    .collect();
                self.findings.add(wrong_kind(&node, &expected.join(" or ")));
                Node::reported(node.place)
            }
        }
    }

    /// What is wrong with a node itself, apart from its children.
    fn mismatch(&self, node: &Node, schema: &Schema) -> Option<Finding> {
        let kind = kind(node);
        if schema["enum"].is_array() {
            return choice(node, &schema["enum"]);
        }
        if let (Some(format), Some(text)) = (text_format(schema), node.text())
            && !node.is_null()
        {
            let wrong = formats::check(format, text).err()?;
            return Some(Finding::new(node.place, wrong.message).help(wrong.help));
        }
        if !fits(kind, schema) {
            let finding = wrong_kind(node, &expected(schema));
            let is_text = schema["type"] == "string" && node.text().is_some() && !node.is_null();
            return Some(match node.text() {
                Some(text) if is_text => finding.help(format!("write \"{text}\", in quotes")),
                _ => finding,
            });
        }
        match kind {
            Kind::Integer | Kind::Number => out_of_range(node, schema),
            Kind::Array => (schema["minItems"] == 1 && node.value == Value::List(Vec::new()))
                .then(|| Finding::new(node.place, "the list is empty").help("give at least one")),
            _ => None,
        }
    }

    fn entries(&mut self, entries: Vec<Entry>, schema: &Schema, at: Place) -> Vec<Entry> {
        let properties = schema["properties"].as_object();
        let mut kept = Vec::new();
        let mut guesses = Vec::new();
        for mut entry in entries {
            let property = properties.and_then(|properties| properties.get(&entry.key));
            let rule = property.unwrap_or(&schema["additionalProperties"]);
            if *rule == Schema::Bool(false) {
                let known = properties.into_iter().flat_map(|known| known.keys());
                guesses.extend(self.unknown(&entry, known.map(String::as_str)));
                continue;
            }
            let named = schema["propertyNames"]["format"].as_str();
            if let Some(Err(wrong)) = named.map(|format| formats::check(format, &entry.key)) {
                self.findings
                    .add(Finding::new(entry.key_place, wrong.message).help(wrong.help));
                continue;
            }
            let at = entry.key_place;
            entry.node = self.value(entry.node, rule, at);
            kept.push(entry);
        }
        // A mistyped key is one mistake and not also a missing key.
        guesses.retain(|guess| !kept.iter().any(|entry| entry.key == guess.key));
        kept.extend(guesses);
        for key in strings(&schema["required"]) {
            if !kept.iter().any(|entry| entry.key == key) {
                let description = schema["properties"][key]["description"].as_str();
                self.findings.add(missing(key, at, description));
            }
        }
        kept
    }

    /// Reports an unknown key, and gives the entry it was probably meant to be, without a value.
    fn unknown<'a>(
        &mut self,
        entry: &Entry,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<Entry> {
        let nearest = nearest(&entry.key, known.clone());
        let help = match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
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

/// The strings of a list of strings.
fn strings(list: &Schema) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Schema::as_str)
}

/// The schema that this one stands for, when it is a reference, bare or with a description.
fn reference(schema: &Schema) -> Option<&'static Schema> {
    let path = match &schema["allOf"][0]["$ref"] {
        Schema::Null => schema["$ref"].as_str(),
        inner => inner.as_str(),
    };
    SCHEMA.pointer(path?.strip_prefix('#')?)
}

fn resolve(schema: &Schema) -> &Schema {
    reference(schema).unwrap_or(schema)
}

/// The format of a text, which says more about a wrong value than its type can.
fn text_format(schema: &Schema) -> Option<&str> {
    schema["format"]
        .as_str()
        .filter(|format| formats::is_known(format))
}

/// Whether a node of this kind is of the schema's type.
fn fits(kind: Kind, schema: &Schema) -> bool {
    let one = |name: &str| match kind {
        Kind::Null => false,
        Kind::Boolean => name == "boolean",
        Kind::Integer => name == "integer" || name == "number",
        Kind::Number => name == "number",
        Kind::String => name == "string",
        Kind::Array => name == "array",
        Kind::Object => name == "object",
    };
    match &schema["type"] {
        Schema::String(name) => one(name),
        Schema::Array(names) => names.iter().filter_map(Schema::as_str).any(one),
        _ => match schema["anyOf"].as_array() {
            Some(branches) => branches.iter().any(|branch| fits(kind, resolve(branch))),
            None => true,
        },
    }
}

/// What a schema asks for, in words.
fn expected(schema: &Schema) -> String {
    let one = |name: &str| match name {
        "boolean" => "`true` or `false`",
        "integer" => "a whole number",
        "number" => "a number",
        "array" => "a list",
        "object" => "a mapping of keys to values",
        _ => "text",
    };
    if let Some(branches) = schema["anyOf"].as_array() {
        let branches: Vec<String> = branches.iter().map(|it| expected(resolve(it))).collect();
        return branches.join(" or ");
    }
    match (&schema["enum"], &schema["type"]) {
        (choices @ Schema::Array(_), _) => quoted(strings(choices)),
        (_, Schema::String(name)) => one(name).to_owned(),
        _ => "text or a number".to_owned(),
    }
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(" or ")
}

fn wrong_kind(node: &Node, expected: &str) -> Finding {
    let text = node.text().unwrap_or_default();
    let found = match kind(node) {
        Kind::Null => "nothing".to_owned(),
        Kind::Boolean => format!("`{text}`"),
        Kind::Integer | Kind::Number => format!("the number `{text}`"),
        Kind::String => format!("the text `{text}`"),
        Kind::Array => "a list".to_owned(),
        Kind::Object => "a mapping".to_owned(),
    };
    Finding::new(node.place, format!("expected {expected}, found {found}"))
}

fn choice(node: &Node, choices: &Schema) -> Option<Finding> {
    let words = || strings(choices);
    let Some(text) = node.text().filter(|_| !node.is_null()) else {
        return Some(wrong_kind(node, &quoted(words())));
    };
    if words().any(|word| word == text) {
        return None;
    }
    let message = format!("expected {}, found `{text}`", quoted(words()));
    Some(Finding::new(node.place, message).help_if(did_you_mean(text, words())))
}

fn out_of_range(node: &Node, schema: &Schema) -> Option<Finding> {
    let number: f64 = node.text()?.parse().ok()?;
    let at_most = schema["maximum"]
        .as_f64()
        .or(match schema["format"].as_str() {
            Some("uint16") => Some(f64::from(u16::MAX)),
            Some("uint32") => Some(f64::from(u32::MAX)),
            _ => None,
        });
    let at_least = schema["minimum"].as_f64();
    let text = node.text()?;
    if at_least.is_some_and(|least| number < least) {
        let least = &schema["minimum"];
        return Some(Finding::new(
            node.place,
            format!("expected at least {least}, found `{text}`"),
        ));
    }
    at_most.filter(|most| number > *most).map(|most| {
        Finding::new(
            node.place,
            format!("expected at most {most}, found `{text}`"),
        )
    })
}

fn missing(key: &str, at: Place, description: Option<&str>) -> Finding {
    let meaning = description.and_then(|text| text.split(". ").next());
    let help = meaning.map(|meaning| format!("`{key}`: {}", meaning.trim_end_matches('.')));
    Finding::new(at, format!("the key `{key}` is missing")).help_if(help)
}

/// The known word that a mistyped one is nearest to, when it is near.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .filter(|(distance, known)| *distance <= known.chars().count().max(3) / 3)
        .min()
        .map(|(_, known)| known)
}

/// A question that names the nearest of the known words, when it is near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|known| format!("did you mean `{known}`?"))
}
