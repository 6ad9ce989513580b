//! Checks of a request before it becomes a part of a lab.

use experiment::secrets::is_secret;
use serde_json::Value;

use super::{Given, Wire};
use crate::command::init::tree::json_text;
use crate::command::init::values::without_notation;

/// Checks that a lab can send the request.
pub(super) fn check(given: &Given) -> Result<(), String> {
    let is_of_method = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
    if given.method.is_empty() || !given.method.bytes().all(is_of_method) {
        return Err("its method does not consist of capital letters".to_owned());
    }
    if given.method == "CONNECT" {
        return Err("it asks for a tunnel".to_owned());
    }
    let is_of_path = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    // A value of an answer at the begin has the slash of the path.
    let has_begin = given.path.starts_with('/') || given.path.starts_with("{{");
    if !has_begin || !given.path.bytes().all(is_of_path) {
        return Err("its path is not in the form of HTTP".to_owned());
    }
    let json = given.json.as_ref().map(json_text);
    let body = given.body.as_deref().unwrap_or_default();
    // Binary bytes have no placeholders.
    let body = std::str::from_utf8(body).unwrap_or_default();
    if let Wire::WebSocket(conversation) = &given.wire {
        conversation.check()?;
    }
    let mut texts = given.wire.texts();
    texts.extend([
        given.path.as_str(),
        body,
        json.as_deref().unwrap_or_default(),
    ]);
    if !texts.iter().all(|text| has_only(text, &given.places)) {
        return Err("`{{` in a path or a body would be a placeholder of the lab".to_owned());
    }
    Ok(())
}

/// True if two braces begin only placeholders of the lab. A lab has no escape for other braces.
pub(super) fn has_only(text: &str, places: &[String]) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((word, after)) = after.split_once("}}") else {
            return false;
        };
        let name = without_notation(word.trim());
        let mut names = places.iter().map(|place| without_notation(place));
        if !names.any(|place| place == name) {
            return false;
        }
        rest = after;
    }
    true
}

/// The first name of a credential in a JSON or form body.
pub(super) fn secret_in(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    if let Ok(json) = serde_json::from_str::<Value>(&without_places(text)) {
        return secret_key(&json);
    }
    let names = text.split('&').filter_map(|pair| pair.split_once('='));
    let mut names = names.map(|(name, _)| name);
    names.find(|name| is_secret(name)).map(str::to_owned)
}

/// The text with a number instead of each placeholder, so that JSON stays JSON.
fn without_places(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, (_, after))) = rest
        .split_once("{{")
        .and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        plain += before;
        plain.push('0');
        rest = after;
    }
    plain + rest
}

fn secret_key(json: &Value) -> Option<String> {
    match json {
        Value::Object(members) => members
            .iter()
            .find_map(|(name, value)| match is_secret(name) {
                true => Some(name.clone()),
                false => secret_key(value),
            }),
        Value::Array(items) => items.iter().find_map(secret_key),
        _ => None,
    }
}
