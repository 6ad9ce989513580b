//! Requests that follow one another: the steps of a scenario, and the values from their responses.
//!
//! An iteration of a scenario is a slot that lasts longer. It has one place among the connections from its
//! first request to its last response. It has one row of the data, and the values of its own responses. Two
//! iterations share no state.

use std::collections::HashMap;

pub use model::{Capture, CaptureFrom, Step};
use regex::Regex;
use serde_json::value::RawValue;

use crate::error::RequestError;
use crate::mismatch::Mismatch;
use crate::raw_place::RawPlace;

/// A capture, ready for many responses.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    capture: Capture,
    pattern: Option<Regex>,
    /// Index of the value among the values of an iteration.
    slot: usize,
    /// The strictest place of the value in paths that contain it raw.
    raw: Option<RawPlace>,
}

impl Wanted {
    /// Prepares a capture. `raw` contains the values of iterations that stand raw in paths.
    pub(crate) fn new(
        capture: &Capture,
        names: &[String],
        raw: &[(usize, RawPlace)],
    ) -> Result<Wanted, RequestError> {
        let pattern = capture.pattern.as_ref().map(|pattern| {
            Regex::new(pattern).map_err(|error| RequestError::Pattern {
                pattern: pattern.clone(),
                reason: error.to_string(),
            })
        });
        let slot = names
            .iter()
            .position(|name| *name == capture.name)
            .expect("the names are those of all captures");
        let own = raw.iter().filter(|(value, _)| *value == slot);
        Ok(Wanted {
            pattern: pattern.transpose()?,
            slot,
            raw: own.map(|(_, place)| *place).max(),
            capture: capture.clone(),
        })
    }

    /// Returns the name of its header, if it captures from a header.
    pub(crate) fn header(&self) -> Option<&str> {
        match &self.capture.from {
            CaptureFrom::Header(name) => Some(name),
            CaptureFrom::Json(_) | CaptureFrom::Body => None,
        }
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the value from a response with this value of the header.
    pub(crate) fn find(
        &self,
        header: Option<&str>,
        body: &[u8],
    ) -> Result<CapturedValue, Mismatch> {
        let found = match &self.capture.from {
            CaptureFrom::Header(_) => header.map(|text| CapturedValue::of_text(text.to_owned())),
            CaptureFrom::Body => Some(CapturedValue::of_text(
                String::from_utf8_lossy(body).into_owned(),
            )),
            CaptureFrom::Json(pointer) => {
                member(body, pointer).and_then(|value| CapturedValue::of_json(value.get()))
            }
        };
        let missing = |found: &str| Mismatch::Capture {
            name: self.capture.name.clone(),
            from: self.capture.from.clone(),
            pattern: self.capture.pattern.clone(),
            found: found.to_owned(),
        };
        let whole = found.ok_or_else(|| missing("none"))?;
        let value = match &self.pattern {
            None => whole,
            Some(pattern) => {
                let groups = pattern
                    .captures(&whole.text)
                    .ok_or_else(|| missing("no match"))?;
                // The first group if there is one, so that a pattern may include the text around it.
                let part = groups.get(1).or(groups.get(0));
                CapturedValue::of_text(part.expect("a match has its whole").as_str().to_owned())
            }
        };
        // It may be meant for a header, and these characters would end the header.
        if value
            .text
            .bytes()
            .any(|byte| matches!(byte, b'\r' | b'\n' | 0))
        {
            return Err(missing("a value of several lines"));
        }
        match self.raw.and_then(|place| place.problem(&value.text)) {
            Some(problem) => Err(missing(&problem)),
            None => Ok(value),
        }
    }
}

/// A value from a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CapturedValue {
    /// The value as text. A text of JSON has no quotes.
    pub(crate) text: String,
    /// True if the text is JSON: a number, `true`, `false`, a list or an object.
    pub(crate) is_json: bool,
}

impl CapturedValue {
    pub(crate) fn of_text(text: String) -> CapturedValue {
        CapturedValue {
            text,
            is_json: false,
        }
    }

    /// Returns a value in JSON with its kind. `None` for `null`.
    fn of_json(json: &str) -> Option<CapturedValue> {
        match json.as_bytes() {
            b"null" => None,
            [b'"', ..] => serde_json::from_str(json).ok().map(CapturedValue::of_text),
            // The text of the response, so that a number keeps all its digits.
            _ => Some(CapturedValue {
                text: without_spaces(json),
                is_json: true,
            }),
        }
    }
}

/// Returns the value at a pointer (RFC 6901) as the text of the body.
fn member<'a>(body: &'a [u8], pointer: &str) -> Option<&'a RawValue> {
    let mut value: &RawValue = serde_json::from_slice(body).ok()?;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        value = if value.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            *items.get(index(&token)?)?
        } else {
            let members: HashMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
            *members.get(&token)?
        };
    }
    Some(value)
}

/// Returns the index of an item. Only `0` begins with a zero.
fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| is_plain)
}

/// Returns JSON without the white space between its parts.
fn without_spaces(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let keep = |it: &char| {
        let was_text = is_text;
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_text = !is_text,
            _ => {}
        }
        was_text || !it.is_ascii_whitespace()
    };
    json.chars().filter(keep).collect()
}

/// Returns the names of all captures, each once, in the order of their first steps.
pub(crate) fn names(steps: &[Step]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for capture in steps.iter().flat_map(|step| &step.captures) {
        if !names.contains(&capture.name) {
            names.push(capture.name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(from: CaptureFrom, pattern: Option<&str>, header: Option<&str>, body: &str) -> String {
        let capture = Capture {
            name: "id".to_owned(),
            from,
            pattern: pattern.map(str::to_owned),
        };
        let wanted = Wanted::new(&capture, &["id".to_owned()], &[]).unwrap();
        match wanted.find(header, body.as_bytes()) {
            Ok(value) => value.text,
            Err(mismatch) => mismatch.to_string(),
        }
    }

    #[test]
    fn a_value_is_found_by_pointer_header_and_pattern() {
        let json = |pointer: &str| CaptureFrom::Json(pointer.to_owned());
        let body = r#"{"a":[{"b/c":"x y"}],"n":12,"o":{"k": [1]}}"#;
        assert_eq!(find(json("/a/0/b~1c"), None, None, body), "x y");
        assert_eq!(find(json("/n"), None, None, body), "12");
        assert_eq!(find(json("/o"), None, None, body), r#"{"k":[1]}"#);
        let spaced = "{\"o\":{ \"k \\\" \" :\n[1 , 2e400]}}";
        assert_eq!(
            find(json("/o"), None, None, spaced),
            r#"{"k \" ":[1,2e400]}"#
        );
        for number in [
            "12345678901234567890123",
            "0.1234567890123456789",
            "1e400",
            "-0.50",
        ] {
            let body = format!(r#"[{{"id": {number} }}]"#);
            assert_eq!(find(json("/0/id"), None, None, &body), number);
        }
        let header = CaptureFrom::Header("Location".to_owned());
        assert_eq!(
            find(header, Some(r"/users/(\d+)"), Some("/users/77?a"), ""),
            "77"
        );
        assert_eq!(find(CaptureFrom::Body, Some("x ."), None, body), "x y");
    }

    #[test]
    fn what_is_not_there_is_said_with_where_it_should_be() {
        let json = |pointer: &str| CaptureFrom::Json(pointer.to_owned());
        insta::assert_snapshot!(
            find(json("/n"), None, None, r#"{"n":null}"#),
            @"expected a value at `/n` of the body to capture as `id`, found none"
        );
        insta::assert_snapshot!(
            find(CaptureFrom::Header("X".to_owned()), None, None, ""),
            @"expected a value in the header `X` to capture as `id`, found none"
        );
        insta::assert_snapshot!(
            find(CaptureFrom::Body, Some("a+"), None, "bb"),
            @"expected a value in the body that matches `a+` to capture as `id`, found no match"
        );
        insta::assert_snapshot!(
            find(json("/n"), None, None, r#"{"n":"a\r\nb"}"#),
            @"expected a value at `/n` of the body to capture as `id`, found a value of several lines"
        );
    }
}
