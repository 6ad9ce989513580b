//! Checks of a request before it becomes a part of a lab.

use experiment::secrets::is_secret;
use serde_json::Value;

use super::Given;
use crate::command::init::tree::json_text;

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
    if !given.path.starts_with('/') || !given.path.bytes().all(is_of_path) {
        return Err("its path is not in the form of HTTP".to_owned());
    }
    let json = given.json.as_ref().map(json_text);
    let body = given.body.as_deref().unwrap_or_default();
    // Binary bytes have no placeholders.
    let body = std::str::from_utf8(body).unwrap_or_default();
    let texts = [
        given.path.as_str(),
        body,
        json.as_deref().unwrap_or_default(),
    ];
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
        if !places.iter().any(|place| place == word.trim()) {
            return false;
        }
        rest = after;
    }
    true
}

/// The first name of a credential in a JSON or form body.
pub(super) fn secret_in(body: &[u8]) -> Option<String> {
    if let Ok(json) = serde_json::from_slice::<Value>(body) {
        return secret_key(&json);
    }
    let text = std::str::from_utf8(body).ok()?;
    let names = text.split('&').filter_map(|pair| pair.split_once('='));
    let mut names = names.map(|(name, _)| name);
    names.find(|name| is_secret(name)).map(str::to_owned)
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
