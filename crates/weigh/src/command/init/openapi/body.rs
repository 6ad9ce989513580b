//! The body of an operation, in one of its media types.

use serde_json::Value;

use super::example::Description;
use crate::command::init::multipart::{self, Part};
use crate::command::init::placeholders::flat;
use crate::command::init::tree::json_text;
use crate::command::init::values::form;

/// The kinds of media types, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Json,
    Form,
    Text,
    Multipart,
}

/// The kind of a media type, without its parameters.
fn kind(media_type: &str) -> Option<Kind> {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    let plain = plain.to_ascii_lowercase();
    match plain.as_str() {
        "application/json" | "text/json" | "*/*" | "application/*" => Some(Kind::Json),
        "application/x-www-form-urlencoded" => Some(Kind::Form),
        "multipart/form-data" => Some(Kind::Multipart),
        json if json.ends_with("+json") => Some(Kind::Json),
        text if text.starts_with("text/") || text.ends_with("xml") || text.ends_with("yaml") => {
            Some(Kind::Text)
        }
        _ => None,
    }
}

/// The media type and the bytes of a body.
///
/// # Errors
/// A sentence, if no media type has a value.
pub(super) fn written(
    description: &Description<'_>,
    body: &Value,
    invented: &mut Vec<String>,
) -> Result<(String, Vec<u8>), String> {
    let content = body.get("content").and_then(Value::as_object);
    let content = content.into_iter().flatten();
    let mut known: Vec<(Kind, &String, &Value)> = content
        .clone()
        .filter_map(|(media_type, media)| Some((kind(media_type)?, media_type, media)))
        .collect();
    known.sort_by_key(|(kind, ..)| *kind);
    let mut why = match content.map(|(media_type, _)| media_type.as_str()).next() {
        Some(other) if known.is_empty() => {
            format!("its body has the media type `{other}`, which is not known here")
        }
        _ => "its body has no example".to_owned(),
    };
    for (kind, media_type, media) in known {
        if description.is_outside(media) {
            why = "its body refers to an object outside of this file".to_owned();
            continue;
        }
        let mut own = Vec::new();
        let Some(value) = description.value_of(media, "body", &mut own) else {
            continue;
        };
        match bytes(kind, media_type, &value) {
            Ok(found) => {
                invented.extend(own);
                return Ok(found);
            }
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

fn bytes(kind: Kind, media_type: &str, value: &Value) -> Result<(String, Vec<u8>), String> {
    let own = || match media_type.contains('*') {
        true => "application/json".to_owned(),
        false => media_type.to_owned(),
    };
    match (kind, value) {
        // Some descriptions contain the text of a body as its example.
        (Kind::Json, Value::String(text)) if text.trim_start().starts_with(['{', '[']) => {
            Ok((own(), text.clone().into_bytes()))
        }
        (Kind::Json, value) => Ok((own(), json_text(value).into_bytes())),
        (Kind::Text, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
            Ok((own(), flat(value).into_bytes()))
        }
        (Kind::Text, _) => Err("its body is text, but its example is not".to_owned()),
        (Kind::Form, Value::String(text)) => Ok((own(), text.clone().into_bytes())),
        (Kind::Form, Value::Object(members)) => {
            let mut pairs = Vec::new();
            for (name, value) in members {
                match value {
                    Value::Array(items) => {
                        pairs.extend(items.iter().map(|item| (name.clone(), flat(item))));
                    }
                    scalar => pairs.push((name.clone(), flat(scalar))),
                }
            }
            Ok((own(), form(&pairs).into_bytes()))
        }
        (Kind::Multipart, Value::Object(members)) => {
            let part = |(name, value): (&String, &Value)| Part {
                name: name.clone(),
                content_type: value.is_object().then(|| "application/json".to_owned()),
                content: flat(value).into_bytes(),
                ..Part::default()
            };
            let parts: Vec<Part> = members.iter().map(part).collect();
            multipart::body(&parts)
        }
        _ => Err("its body is a form, but its example has no members".to_owned()),
    }
}
