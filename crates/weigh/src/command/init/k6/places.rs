//! Placeholders of a lab for values that differ between iterations: captured values, columns and drawn numbers.

use std::collections::{BTreeMap, BTreeSet};

use k6_script::{AnswerForm, AnswerValue, Drawn, ScriptCall, ScriptRecording, TextPart};
use regex::Regex;

use super::super::requests::{Captured, CapturedFrom, Rows};

/// Number of rows for drawn numbers that a request contains more than once.
const ROWS: usize = 500;

/// Names that a lab uses for other values.
const TAKEN: [&str; 10] = [
    "name", "index", "addr", "port", "url", "socket", "host", "target", "baseline", "random",
];

/// The placeholders of a lab.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Names of captured values, by the call and the value.
    captures: BTreeMap<(usize, AnswerValue), String>,
    names: BTreeSet<String>,
    /// Ranges that are columns, because one number stands in several places.
    columns: BTreeSet<String>,
    ranges: Vec<Drawn>,
    pub(super) rows: Option<Rows>,
}

impl Places {
    /// Placeholders for the data and the ranges of a recording.
    pub(super) fn of(recording: &ScriptRecording) -> Places {
        let mut places = Places {
            ranges: recording.ranges.clone(),
            names: TAKEN.map(str::to_owned).into(),
            ..Places::default()
        };
        places.columns = repeated(recording);
        let mut rows = match &recording.data {
            Some(data) => {
                let columns: BTreeSet<&String> =
                    data.rows.iter().flat_map(|row| row.keys()).collect();
                let columns: Vec<String> = columns.into_iter().cloned().collect();
                let text = |value: Option<&serde_json::Value>| match value {
                    None => String::new(),
                    Some(serde_json::Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                let row = |row: &serde_json::Map<String, serde_json::Value>| {
                    columns.iter().map(|name| text(row.get(name))).collect()
                };
                Rows {
                    rows: data.rows.iter().map(row).collect(),
                    is_random: data.is_random,
                    columns: columns.iter().map(|name| column(name)).collect(),
                }
            }
            None => Rows::default(),
        };
        if rows.rows.is_empty() && !places.columns.is_empty() {
            rows.rows = vec![Vec::new(); ROWS];
        }
        for drawn in places
            .ranges
            .iter()
            .filter(|drawn| places.columns.contains(&drawn.name))
        {
            rows.columns.push(drawn.name.clone());
            for (index, row) in rows.rows.iter_mut().enumerate() {
                row.push(number(drawn, index).to_string());
            }
        }
        places.names.extend(rows.columns.iter().cloned());
        places.rows = (!rows.columns.is_empty()).then_some(rows);
        places
    }

    /// The placeholder for a part of a text, if a lab can fill it in.
    pub(super) fn word(&self, part: &TextPart) -> Option<String> {
        match part {
            TextPart::Column(name) => Some(column(name)),
            TextPart::Range(name) if self.columns.contains(name) => Some(name.clone()),
            TextPart::Range(name) => {
                let drawn = self.ranges.iter().find(|drawn| drawn.name == *name)?;
                Some(format!("random:{}..{}", drawn.from, drawn.to))
            }
            TextPart::Index => Some("index".to_owned()),
            TextPart::Answer {
                call, value, form, ..
            } => {
                let name = self.captures.get(&(*call, value.clone()))?;
                Some(match form {
                    AnswerForm::Text => name.clone(),
                    AnswerForm::Json => format!("json:{name}"),
                    AnswerForm::Escaped => format!("escaped:{name}"),
                    AnswerForm::Encoded => format!("encoded:{name}"),
                })
            }
            _ => None,
        }
    }

    /// Gives a captured value a name.
    ///
    /// # Errors
    /// The reason why a lab cannot capture it.
    pub(super) fn capture(&mut self, call: usize, value: &AnswerValue) -> Result<(), String> {
        if self.captures.contains_key(&(call, value.clone())) {
            return Ok(());
        }
        let own = match value {
            AnswerValue::Json(path) if path.is_empty() => {
                return Err("a lab captures members of a body only".to_owned());
            }
            AnswerValue::Json(path) => path
                .iter()
                .rev()
                .find(|it| !it.bytes().all(|byte| byte.is_ascii_digit())),
            AnswerValue::Header(name, None) => Some(name),
            AnswerValue::Header(_, Some(pattern)) | AnswerValue::Pattern(pattern) => {
                Regex::new(pattern)
                    .map_err(|_| format!("`{pattern}` is no regular expression of a lab"))?;
                None
            }
            AnswerValue::Body => return Err("a lab captures parts of a body only".to_owned()),
        };
        let plain = |it: char| {
            if it.is_ascii_alphanumeric() || it == '_' {
                it
            } else {
                '-'
            }
        };
        let own: String = own.map_or(String::new(), |name| name.chars().map(plain).collect());
        let own = match own.trim_start_matches(['-', '_']) {
            "" => "found",
            own => own,
        };
        let numbered = (2..).map(|number| format!("{own}-{number}"));
        let mut candidates = std::iter::once(own.to_owned()).chain(numbered);
        let free = candidates.find(|name| !self.names.contains(name));
        let name = free.unwrap_or_else(|| own.to_owned());
        self.names.insert(name.clone());
        self.captures.insert((call, value.clone()), name);
        Ok(())
    }

    /// The captured values of the answer to a call.
    pub(super) fn captures(&self, call: usize) -> Vec<Captured> {
        let own = self.captures.iter().filter(|((of, _), _)| *of == call);
        own.map(|((_, value), name)| {
            let (from, regex) = match value {
                AnswerValue::Json(path) => (CapturedFrom::Json(pointer(path)), None),
                AnswerValue::Header(header, pattern) => {
                    (CapturedFrom::Header(header.clone()), pattern.clone())
                }
                AnswerValue::Pattern(pattern) => (CapturedFrom::Body, Some(pattern.clone())),
                AnswerValue::Body => (CapturedFrom::Body, None),
            };
            Captured {
                name: name.clone(),
                from,
                regex,
            }
        })
        .collect()
    }
}

/// The name of a column. A lab has other values for some names.
fn column(name: &str) -> String {
    match TAKEN.contains(&name) {
        true => format!("own-{name}"),
        false => name.to_owned(),
    }
}

/// A JSON pointer (RFC 6901).
fn pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |pointer, name| {
        format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
    })
}

/// The ranges that occur more than once. Each `{{random:…}}` of a lab is a number of its own.
fn repeated(recording: &ScriptRecording) -> BTreeSet<String> {
    let (mut once, mut more) = (BTreeSet::new(), BTreeSet::new());
    let calls = recording
        .scenarios
        .iter()
        .flat_map(|scenario| &scenario.calls);
    for name in calls.flat_map(parts).filter_map(|part| match part {
        TextPart::Range(name) => Some(name.clone()),
        _ => None,
    }) {
        if !once.insert(name.clone()) {
            more.insert(name);
        }
    }
    more
}

/// All parts of a call.
pub(super) fn parts(call: &ScriptCall) -> impl Iterator<Item = &TextPart> {
    let body = match &call.body {
        Some(k6_script::CallBody::Text(parts)) => parts.as_slice(),
        _ => &[],
    };
    let headers = call.headers.iter().flat_map(|(_, value)| value);
    call.url.iter().chain(headers).chain(body)
}

/// A number of a range for a row. Each run of `weigh init` draws the same numbers.
fn number(drawn: &Drawn, row: usize) -> i64 {
    let row = u64::try_from(row).unwrap_or_default();
    // The finalizer of SplitMix64 spreads the numbers of rows.
    let mut mixed = row
        .wrapping_add(0x9E37_79B9_7F4A_7C15)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    let width = u64::try_from(drawn.to.saturating_sub(drawn.from))
        .unwrap_or_default()
        .saturating_add(1);
    drawn
        .from
        .saturating_add(i64::try_from(mixed % width).unwrap_or_default())
}
