//! Places in requests: what a lab knows is filled in while it is checked, and what differs from
//! request to request is left for the load.
//!
//! A word in braces is looked up in the names of the load first (columns, ranges, captured values,
//! `index`, `random:1..9`), then in what the variant knows: `name`, its factors, the settings. What is
//! in neither is a mistake, so a typo is not sent a million times.

use model::Data;
use yaml_with_places::{Finding, Place, did_you_mean};

use crate::data;
use crate::formats::is_name;
use crate::reading::Reading;
use crate::scope::Scope;
use crate::systems::list;
use crate::table::is_bare;
use crate::template::Template;

/// Where a text stands, which decides how a value is written into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// A path, a header, a query, a file: values stand as they are.
    Text,
    /// JSON made from YAML: values are escaped, and a text that is nothing but one place becomes a
    /// number, `true` or `false` where every value of it is one.
    Json,
}

/// What places of one request may stand for.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    /// What the variant knows; a scenario of its own file has no variant.
    pub(crate) scope: Option<&'a Scope<'a>>,
    pub(crate) data: Option<&'a Data>,
    /// Values captured by earlier steps.
    pub(crate) captured: &'a [String],
}

impl Places<'_> {
    /// A text with what is known filled in. Text in braces that cannot be a place stays, unless
    /// there are names that it might have been meant for.
    pub(crate) fn fill(
        &self,
        text: &str,
        within: Within,
        place: Place,
        reading: &mut Reading<'_>,
    ) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        let mut index = 0;
        while let Some(begin) = rest.find("{{") {
            let Some(end) = rest[begin..].find("}}").map(|length| begin + length + 2) else {
                break;
            };
            let word = rest[begin + 2..end - 2].trim();
            filled.push_str(&rest[..begin]);
            let mut after = &rest[end..];
            // Counted whether or not it is a place: the mistake is found again by its number in the
            // text.
            let at = reading.reference(place, index);
            index += 1;
            // A text of nothing but this place: its quotes go, where the value is a number. A quote
            // behind a backslash is part of the text.
            let is_alone = within == Within::Json
                && filled.ends_with('"')
                && !filled.ends_with("\\\"")
                && after.starts_with('"');
            match self.value(word, at, reading) {
                Some(Value::Known(value)) if is_alone && is_bare(&value) => {
                    filled.pop();
                    filled.push_str(&value);
                    after = &after[1..];
                }
                Some(Value::Known(value)) if within == Within::Json => {
                    let quoted = yaml_with_places::quote(&value);
                    // Escaped, without quotes of its own: it stands within a JSON text.
                    filled.push_str(&quoted[1..quoted.len() - 1]);
                }
                Some(Value::Known(value)) => filled.push_str(&value),
                Some(Value::Later { is_bare: true }) if is_alone => {
                    filled.pop();
                    filled.push_str(&format!("{{{{{word}}}}}"));
                    after = &after[1..];
                }
                Some(Value::Later { .. }) => filled.push_str(&format!("{{{{{word}}}}}")),
                // It may begin within what looked like a place.
                None => {
                    filled.push_str("{{");
                    after = &rest[begin + 2..];
                }
            }
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// What a word in braces stands for; `None` when it is plain text.
    fn value(&self, word: &str, place: Place, reading: &mut Reading<'_>) -> Option<Value> {
        // First: a column must not turn into a setting of the same name, which `check_sent`
        // reports.
        if let Some(is_bare) = self.later(word) {
            return Some(Value::Later { is_bare });
        }
        let (system, name) = match word.split_once('.') {
            Some((system, name)) => (Some(system), name),
            None => (None, word),
        };
        if !is_name(name) || !system.is_none_or(is_name) {
            if self.has_names() {
                reading.findings.add(
                    Finding::new(place, format!("`{{{{{word}}}}}` is not a placeholder"))
                        .help(list("the placeholders here are", self.names().into_iter())),
                );
                // Empty, because `None` would look at its inside again.
                return Some(Value::Known(String::new()));
            }
            return None;
        }
        let known = self.names();
        let Some(scope) = self.scope else {
            let help = did_you_mean(word, known.iter().copied())
                .unwrap_or_else(|| list("the names here are", known.iter().copied()));
            reading.findings.add(
                Finding::new(place, format!("`{{{{{word}}}}}` is not defined here")).help(help),
            );
            // The mistake is reported; an empty value keeps the rest of the text checkable.
            return Some(Value::Known(String::new()));
        };
        let template = Template::of_reference(system, name);
        let text = scope.lab_text(&template, place, &known, reading);
        // No addresses are known while a lab is checked, so only a text without any can be
        // rendered.
        let Ok(value) = text.render(&|_| None) else {
            reading.findings.add(
                Finding::new(place, format!("`{{{{{word}}}}}` is an address"))
                    .help("requests go to the target. Use addresses in systems and in `proof`"),
            );
            return Some(Value::Known(String::new()));
        };
        Some(Value::Known(value))
    }

    /// Whether a word is filled in by the load, and then whether all its values are numbers.
    fn later(&self, word: &str) -> Option<bool> {
        // Both are numbers, which JSON writes without quotes.
        if word == "index" || word.starts_with("random:") {
            return Some(true);
        }
        // What an answer will hold is unknown, so it stays a text, quotes included.
        if self.captured.iter().any(|name| name == word) {
            return Some(false);
        }
        let data = self.data?;
        if data.ranges.iter().any(|range| range.name == word) {
            return Some(true);
        }
        let column = data.columns.iter().position(|name| name == word)?;
        // All rows, because the text is written once and its quotes stand or fall for every row.
        Some(data.rows.iter().all(|row| is_bare(&row[column])))
    }

    fn has_names(&self) -> bool {
        !self.captured.is_empty() || self.data.is_some()
    }

    fn names(&self) -> Vec<&str> {
        let data = self.data.into_iter();
        let mut names: Vec<&str> = data.flat_map(data::names).collect();
        names.extend(self.captured.iter().map(String::as_str));
        names.extend(["index", "random:1..9"]);
        names
    }
}

/// What a place stands for.
enum Value {
    Known(String),
    /// Filled in for each request; `is_bare` when JSON writes all values without quotes.
    Later {
        is_bare: bool,
    },
}
