//! Places in requests. Values that the lab defines are filled in while it is checked. Values that differ from
//! request to request are left to the load.
//!
//! A name in braces is first looked up among the names of the load: columns, ranges, captured values,
//! `index`, `random:1..9`. Then it is looked up among the names of the variant: `name`, its factors, the
//! settings. A name without a match is a mistake, so that a typo is not sent a million times.
//!
//! A notation can stand before the name of a value of the load: `{{json:id}}` is a captured value as JSON with
//! its kind, `{{escaped:id}}` a value within a text of JSON, `{{encoded:id}}` a percent-encoded value, and
//! `{{raw:id}}` an unchanged value in a path.

use model::Data;
use yaml_with_places::{Finding, Place, did_you_mean, quote};

use crate::data;
use crate::formats::is_name;
use crate::reading::Reading;
use crate::scope::Scope;
use crate::systems::list;
use crate::table::is_bare;
use crate::template::Template;

/// Notations of values of the load: as JSON, within a text of JSON, percent-encoded, unchanged in a path.
const NOTATIONS: [&str; 4] = ["json", "escaped", "encoded", "raw"];

/// The kind of text around a place, which decides the notation of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// A path and its query: values of the load are percent-encoded.
    Path,
    /// A header, a file, a message: values are written unchanged.
    Text,
    /// JSON made from YAML. Values are escaped. If a text is only one place and all its values are numbers,
    /// `true` or `false`, it becomes such a value.
    Json,
    /// A message of gRPC as JSON made from YAML. Values are escaped and stay texts, because their fields decide
    /// their types. Only `{{json:id}}` keeps the kind of its value.
    Message,
    /// A text that becomes a text of JSON later, such as a query of GraphQL. Values of the load are escaped.
    Quoted,
}

/// The names that places of one request may use.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The names of the variant. `None` for a scenario with a file of its own, which has no variant.
    pub(crate) scope: Option<&'a Scope<'a>>,
    pub(crate) data: Option<&'a Data>,
    /// Values captured by earlier steps.
    pub(crate) captured: &'a [String],
}

impl Places<'_> {
    /// Returns a text with the values of the lab filled in. Text in braces that cannot be a place stays
    /// unchanged, unless it may be a misspelled name.
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
            // Counted even if it is no place, because the error message finds it by its number in the text.
            let at = reading.reference(place, index);
            index += 1;
            // If the text is only this place, its quotes are removed for a number. A quote after a backslash
            // is part of the text.
            let is_alone = matches!(within, Within::Json | Within::Message)
                && filled.ends_with('"')
                && !filled.ends_with("\\\"")
                && after.starts_with('"');
            if within != Within::Path && word.starts_with("raw:") && self.later(word).is_some() {
                reading.findings.add(
                    Finding::new(at, format!("`{{{{{word}}}}}` is for paths only")).help(format!(
                        "elsewhere, write `{{{{{}}}}}`",
                        &word["raw:".len()..]
                    )),
                );
            }
            match self.value(word, at, reading) {
                Some(Value::Known(value))
                    if is_alone && within == Within::Json && is_bare(&value) =>
                {
                    filled.pop();
                    filled.push_str(&value);
                    after = &after[1..];
                }
                Some(Value::Known(value)) if matches!(within, Within::Json | Within::Message) => {
                    let quoted = quote(&value);
                    // Escaped, without its own quotes, because it is within a JSON text.
                    filled.push_str(&quoted[1..quoted.len() - 1]);
                }
                Some(Value::Known(value)) => filled.push_str(&value),
                Some(Value::Later { is_bare: true, .. })
                    if is_alone && (within == Within::Json || word.starts_with("json:")) =>
                {
                    filled.pop();
                    filled.push_str(&format!("{{{{{word}}}}}"));
                    after = &after[1..];
                }
                Some(Value::Later {
                    needs_escapes: true,
                    ..
                }) if !matches!(within, Within::Text | Within::Path) => {
                    filled.push_str(&format!("{{{{escaped:{word}}}}}"));
                }
                Some(Value::Later { .. }) => filled.push_str(&format!("{{{{{word}}}}}")),
                // A place may begin within the text that looked like a place.
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

    /// Returns the value of a name in braces. `None` for plain text.
    fn value(&self, word: &str, place: Place, reading: &mut Reading<'_>) -> Option<Value> {
        // First, because a column must not become a setting with the same name, which `check_sent` reports.
        if let Some(later) = self.later(word) {
            return Some(later);
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
                // Empty, because `None` would look inside it again.
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
            // The mistake is reported. An empty value lets the rest of the text be checked.
            return Some(Value::Known(String::new()));
        };
        let template = Template::of_reference(system, name);
        let text = scope.lab_text(&template, place, &known, reading);
        // Addresses do not exist while a lab is checked, so only a text without addresses can be rendered.
        let Ok(value) = text.render(&|_| None) else {
            reading.findings.add(
                Finding::new(place, format!("`{{{{{word}}}}}` is an address"))
                    .help("requests go to the target. Use addresses in systems and in `proof`"),
            );
            return Some(Value::Known(String::new()));
        };
        Some(Value::Known(value))
    }

    /// Returns `Some` if the load fills in the name.
    fn later(&self, word: &str) -> Option<Value> {
        const NUMBER: Value = Value::Later {
            is_bare: true,
            needs_escapes: false,
        };
        // Both are numbers, which JSON writes without quotes.
        if word == "index" || word.starts_with("random:") {
            return Some(NUMBER);
        }
        let is_captured = |word: &str| self.captured.iter().any(|name| name == word);
        let column = |word: &str| {
            let data = self.data?;
            data.columns.iter().position(|name| name == word)
        };
        // The place contains its notation, and the load follows it.
        let noted = word.split_once(':');
        if let Some((notation, name)) = noted {
            let is_bare = notation == "json";
            let known = is_captured(name) || !is_bare && column(name).is_some();
            return (known && NOTATIONS.contains(&notation)).then_some(Value::Later {
                is_bare,
                needs_escapes: false,
            });
        }
        // The content of a response is unknown, so it stays a text with quotes.
        if is_captured(word) {
            return Some(Value::Later {
                is_bare: false,
                needs_escapes: true,
            });
        }
        let data = self.data?;
        if data.ranges.iter().any(|range| range.name == word) {
            return Some(NUMBER);
        }
        let column = column(word)?;
        // All rows, because the text is written once and its quotes apply to every row.
        let mut values = data.rows.iter().map(|row| row[column].as_str());
        Some(Value::Later {
            is_bare: values.clone().all(is_bare),
            needs_escapes: values.any(|value| quote(value).len() != value.len() + 2),
        })
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

/// The value of a place.
enum Value {
    Known(String),
    /// Filled in for each request.
    Later {
        /// True if JSON writes all values without quotes.
        is_bare: bool,
        /// True if a value may contain a quote, a backslash or a control character.
        needs_escapes: bool,
    },
}
