//! The parts of a request of a test: its body, its forms, and notes about the rest.

use std::time::Duration;

use serde_json::Value;

use crate::command::init::placeholders::{Filling, flat};
use crate::command::init::requests::Given;
use crate::command::init::tree::json_text;
use crate::command::init::values::{encoded, plain, with_notation};

/// Keys of a request that are read, or that do not change its bytes.
const READ: [&str; 21] = [
    "url",
    "uri",
    "name",
    "headers",
    "qs",
    "json",
    "form",
    "formData",
    "body",
    "capture",
    "expect",
    "auth",
    "cookie",
    "ifTrue",
    "beforeRequest",
    "match",
    "probability",
    "followRedirect",
    "gzip",
    "afterResponse",
    "timeout",
];

/// The time of a pause: a number of seconds, or a number with a unit.
pub(super) fn think(content: &Value) -> Option<Duration> {
    let text = plain(content);
    let text = text.trim();
    let begin = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..begin].parse().ok()?;
    let unit = match text[begin..].trim() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

/// Notes about the parts of a request that a lab does not have.
pub(super) fn notes(step: &Value, expectations: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    for (key, note) in [
        ("ifTrue", "sent always, without its condition"),
        ("probability", "sent always, without its probability"),
        ("beforeRequest", "without the function before it"),
        ("afterResponse", "without the function after it"),
        ("match", "without its check of values in the answer"),
    ] {
        if step.get(key).is_some() {
            notes.push(note.to_owned());
        }
    }
    if !expectations.is_empty() {
        notes.push(format!("without its checks: {}", expectations.join(", ")));
    }
    for key in step.as_object().into_iter().flat_map(serde_json::Map::keys) {
        if !READ.contains(&key.as_str()) {
            notes.push(format!(
                "without its `{key}`, which `weigh init` does not know"
            ));
        }
    }
    notes
}

/// Adds the body of a request.
pub(super) fn add_body(
    given: &mut Given,
    step: &Value,
    filling: &mut Filling<'_>,
) -> Result<(), String> {
    let is_there = |key: &str| step.get(key).filter(|it| !it.is_null());
    let (kind, body) = if let Some(json) = is_there("json") {
        let before = filling.places.len();
        let json = filling.value(json)?;
        if filling.places.len() > before {
            given.json = Some(json);
            ("application/json", None)
        } else {
            ("application/json", Some(json_text(&json)))
        }
    } else if let Some(form) = is_there("form") {
        let form = with_notation("encoded", &pairs(Some(form), filling, Lists::Joined)?);
        ("application/x-www-form-urlencoded", Some(form))
    } else if let Some(body) = is_there("body") {
        ("", Some(filling.text(&flat(body))?))
    } else if is_there("formData").is_some() {
        return Err("its body is in parts (multipart)".to_owned());
    } else {
        return Ok(());
    };
    let mut names = given.headers.iter().map(|(name, _)| name);
    if !kind.is_empty() && !names.any(|name| name.eq_ignore_ascii_case("content-type")) {
        given
            .headers
            .push(("Content-Type".to_owned(), kind.to_owned()));
    }
    given.body = body.map(String::into_bytes);
    Ok(())
}

/// The form of a list in a query or a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// `a=1&a=2`
    Repeated,
    /// `a=1,2`
    Joined,
}

/// Encodes a mapping as `a=1&b=2`.
pub(super) fn pairs(
    pairs: Option<&Value>,
    filling: &mut Filling<'_>,
    lists: Lists,
) -> Result<String, String> {
    let mut encoded_pairs = Vec::new();
    for (name, value) in pairs.and_then(Value::as_object).into_iter().flatten() {
        let value = filling.value(value)?;
        let name = filling.text(name)?;
        let values: Vec<String> = match &value {
            Value::Array(items) => items.iter().map(plain).collect(),
            Value::Null if lists == Lists::Joined => vec!["null".to_owned()],
            scalar => vec![plain(scalar)],
        };
        let values = match lists {
            Lists::Repeated => values,
            Lists::Joined => vec![values.join(",")],
        };
        let pair = |value: &String| format!("{}={}", encoded(&name), encoded(value));
        encoded_pairs.extend(values.iter().map(pair));
    }
    Ok(encoded_pairs.join("&"))
}

/// The headers of a mapping.
pub(super) fn headers(written: Option<&Value>) -> impl Iterator<Item = (String, String)> {
    let headers = written.and_then(Value::as_object).into_iter().flatten();
    headers.map(|(name, value)| (name.clone(), plain(value)))
}
