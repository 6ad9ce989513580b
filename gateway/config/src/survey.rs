//! Sorts the keys of a file into three lists: keys that work, keys without effect, and refused keys.

use std::path::Path;

use serde_json::Value as Schema;
use yaml_with_places::{Document, Finding, Findings, Mistakes, Node, Value, line_and_column};

use crate::expansion::{self, Surroundings};
use crate::fate::{Fate, On, Unserved};
use crate::original;
use crate::relocation;
use crate::schema::{child, served};
use crate::sources::{ONE_DOCUMENT, sources};

/// The keys of a file, each in one of three lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Keys that work.
    pub works: Vec<SurveyedKey>,
    /// Keys that are accepted and have no effect.
    pub without_effect: Vec<SurveyedKey>,
    /// Unsupported keys that must not be ignored, because the gateway would then behave wrongly.
    pub refused: Vec<SurveyedKey>,
}

/// A key with a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedKey {
    /// Line of the key, from 1.
    pub line: usize,
    /// Path of the key, separated by dots.
    pub key: String,
    /// The gateway's behavior instead, or the action to take. Empty for a key that works.
    pub note: String,
}

impl Survey {
    /// One sentence for each key without effect, with its line.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self
            .without_effect
            .iter()
            .map(|SurveyedKey { line, key, note }| {
                format!("line {line}: `{key}` has no effect here: {note}")
            });
        warnings.collect()
    }
}

/// Sorts every key of a file. [`crate::read()`] reports all other mistakes, such as wrong values.
///
/// # Errors
/// Fails if the text is not YAML.
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

/// Removes the keys without code behind them from a tree, and reports the refused keys.
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
    /// Path of keys to the current node.
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
                    // The list counts as one key, so its contents are not listed.
                    self.survey.works.truncate(works);
                }
                self.path.pop();
            }
            Value::Scalar { .. } | Value::Reported => {}
        }
    }

    /// Returns true if the entry stays in the tree.
    fn entry(&mut self, entry: &mut yaml_with_places::Entry, known: Option<&'a Schema>) -> bool {
        let found = original::find(&self.path);
        let leads_on = original::leads_on(&self.path);
        if let Some(unserved) = found {
            if !leads_on || entry.node.entries().is_empty() {
                self.add_unserved(unserved, entry);
                return known.is_some();
            }
            // The list has more precise keys below this one. All other keys below count as this key.
            self.node(&mut entry.node, known);
            if !entry.node.entries().is_empty() {
                self.add_unserved(unserved, entry);
            }
            return known.is_some();
        }
        let before = self.count();
        if known.is_some() || leads_on {
            self.node(&mut entry.node, known);
        }
        // A mapping with listed keys is not listed itself.
        if known.is_some() && self.count() == before {
            let key = self.surveyed(entry, "");
            self.survey.works.push(key);
        }
        // A mapping that is now empty, and that the structs lack, would be reported as unknown.
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

    fn surveyed(&self, entry: &yaml_with_places::Entry, note: &str) -> SurveyedKey {
        let (line, _) = line_and_column(self.text, entry.key_place.start);
        SurveyedKey {
            line,
            key: self.path.join(".").replace(".[]", "[]"),
            note: note.to_owned(),
        }
    }

    fn add_unserved(&mut self, unserved: &Unserved, entry: &yaml_with_places::Entry) {
        match unserved.fate {
            Fate::IdleUnless(value, _) if entry.node.text() == Some(value) => {}
            Fate::Idle(instead) | Fate::IdleUnless(_, instead) => {
                let key = self.surveyed(entry, instead);
                self.survey.without_effect.push(key);
            }
            Fate::Refused(on, why) if on.is_on(&entry.node) => {
                let key = self.surveyed(entry, why);
                let message = format!("`{}` cannot be served: {why}", key.key);
                let switch = entry.node.entry("enabled").map(|it| it.key_place);
                let place = switch.unwrap_or(entry.key_place);
                self.findings.add(Finding::new(place, message));
                self.survey.refused.push(key);
            }
            Fate::Refused(..) => {
                let key = self.surveyed(entry, "it is off");
                self.survey.without_effect.push(key);
            }
        }
    }
}

impl On {
    /// True if a key with this value is in use.
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

    /// The condition as text, for a place after the word "refused".
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
