//! What becomes of each key of a file: it works, is accepted without effect, or is refused.

use std::path::Path;

use serde_json::Value as Schema;
use yaml_with_places::{Document, Finding, Findings, Mistakes, Node, Value, line_and_column};

use crate::expansion::{self, Surroundings};
use crate::original::{self, Fate, On, Unserved};
use crate::relocation;
use crate::schema::{child, served};
use crate::sources::{ONE_DOCUMENT, sources};

/// The keys of a file, each in one of three lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Keys that do what they say.
    pub works: Vec<Told>,
    /// Keys that are accepted and have no effect.
    pub without_effect: Vec<Told>,
    /// Keys without which serving would be wrong, and which are not served.
    pub refused: Vec<Told>,
}

/// A key and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The line of the key, from 1.
    pub line: usize,
    /// The keys that lead to it, separated by dots.
    pub key: String,
    /// What happens instead, or what to do; empty for a key that works.
    pub note: String,
}

impl Survey {
    /// A sentence for each key without effect, with its line.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let told = self.without_effect.iter().map(|Told { line, key, note }| {
            format!("line {line}: `{key}` has no effect here: {note}")
        });
        told.collect()
    }
}

/// Looks at every key of a file. Mistakes of other kinds, such as wrong values, are left to
/// [`crate::read()`].
///
/// # Errors
/// When the text is not YAML.
pub fn survey(
    path: &Path,
    text: &str,
    surroundings: &dyn Surroundings,
) -> Result<Survey, Mistakes> {
    let mut findings = Findings::default();
    let document = yaml_with_places::read(0, text, ONE_DOCUMENT, &mut findings);
    let Document::Tree(tree) = document else {
        findings.settle(sources(path, text))?;
        return Ok(Survey::default());
    };
    let mut tree = expansion::expand(tree, surroundings, &mut Findings::default());
    relocation::relocate(&mut tree, &mut Findings::default());
    Ok(take(&mut tree, text, &mut Findings::default()))
}

/// Takes the keys without code behind them out of a tree, and reports those that are refused.
pub(crate) fn take(tree: &mut Node, text: &str, findings: &mut Findings) -> Survey {
    let served = served();
    let mut surveyor = Surveyor {
        served: &served,
        text,
        findings,
        survey: Survey::default(),
        path: Vec::new(),
    };
    surveyor.node(tree, Some(&served));
    surveyor.survey
}

struct Surveyor<'a> {
    /// The schema of the keys that work.
    served: &'a Schema,
    text: &'a str,
    findings: &'a mut Findings,
    survey: Survey,
    /// The keys that lead to where it is.
    path: Vec<String>,
}

impl<'a> Surveyor<'a> {
    fn node(&mut self, node: &mut Node, schema: Option<&'a Schema>) {
        match &mut node.value {
            Value::Map(entries) => {
                let mut kept = Vec::new();
                for mut entry in std::mem::take(entries) {
                    let known = schema.and_then(|it| child(self.served, it, &entry.key));
                    self.path.push(entry.key.clone());
                    let is_kept = self.entry(&mut entry, known);
                    self.path.pop();
                    if is_kept {
                        kept.push(entry);
                    }
                }
                *entries = kept;
            }
            Value::List(items) => {
                self.path.push("[]".to_owned());
                if original::leads_on(&self.path) {
                    let known = schema.and_then(|it| child(self.served, it, "[]"));
                    let works = self.survey.works.len();
                    items.iter_mut().for_each(|item| self.node(item, known));
                    // The list is one key; what is in it is not listed.
                    self.survey.works.truncate(works);
                }
                self.path.pop();
            }
            Value::Scalar { .. } | Value::Reported => {}
        }
    }

    /// Whether the entry stays in the tree.
    fn entry(&mut self, entry: &mut yaml_with_places::Entry, known: Option<&'a Schema>) -> bool {
        let found = original::find(&self.path);
        let leads_on = original::leads_on(&self.path);
        if let Some(unserved) = found {
            if !leads_on || entry.node.entries().is_empty() {
                self.tell(unserved, entry);
                return known.is_some();
            }
            // The keys below are more precise; the rest of it counts as this one.
            self.node(&mut entry.node, known);
            if !entry.node.entries().is_empty() {
                self.tell(unserved, entry);
            }
            return known.is_some();
        }
        let before = self.count();
        if known.is_some() || leads_on {
            self.node(&mut entry.node, known);
        }
        // A mapping counts by what is in it.
        if known.is_some() && self.count() == before {
            let told = self.told(entry, "");
            self.survey.works.push(told);
        }
        // A mapping of which nothing is left, and that the structs do not know, would be an unknown key.
        known.is_some() || self.count() == before || !entry.node.entries().is_empty()
    }

    fn count(&self) -> usize {
        let Survey {
            works,
            without_effect,
            refused,
        } = &self.survey;
        works.len() + without_effect.len() + refused.len()
    }

    fn told(&self, entry: &yaml_with_places::Entry, note: &str) -> Told {
        let (line, _) = line_and_column(self.text, entry.key_place.start);
        Told {
            line,
            key: self.path.join(".").replace(".[]", "[]"),
            note: note.to_owned(),
        }
    }

    fn tell(&mut self, unserved: &Unserved, entry: &yaml_with_places::Entry) {
        match unserved.fate {
            Fate::Idle(instead) => {
                // The value that asks for what the gateway always does needs no word.
                if entry.node.text() != Some("enforce") {
                    let told = self.told(entry, instead);
                    self.survey.without_effect.push(told);
                }
            }
            Fate::Refused(on, why) if on.is_on(&entry.node) => {
                let told = self.told(entry, why);
                let message = format!("`{}` cannot be served: {why}", told.key);
                let switch = entry.node.entry("enabled").map(|it| it.key_place);
                let place = switch.unwrap_or(entry.key_place);
                self.findings.add(Finding::new(place, message));
                self.survey.refused.push(told);
            }
            Fate::Refused(..) => {
                let told = self.told(entry, "it is off");
                self.survey.without_effect.push(told);
            }
        }
    }
}

impl On {
    /// Whether a key with this value asks for something.
    fn is_on(self, node: &Node) -> bool {
        let enabled = || node.get("enabled").and_then(Node::text);
        match self {
            On::Always => true,
            _ if node.is_null() => false,
            On::Filled => match &node.value {
                Value::Map(entries) => !entries.is_empty(),
                Value::List(items) => !items.is_empty(),
                Value::Scalar { text, .. } => text != "false",
                Value::Reported => false,
            },
            On::Enabled => enabled().is_some_and(|text| text != "false"),
        }
    }

    /// In words, after "refused".
    pub(crate) fn shown(self) -> &'static str {
        match self {
            On::Always => "always",
            On::Filled => "unless empty",
            On::Enabled => "when enabled",
        }
    }
}

#[cfg(test)]
mod tests;
