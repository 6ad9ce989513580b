//! The body of a request of a collection.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::parts::{enabled, member, pairs};
use crate::command::init::multipart::{self, Part};
use crate::command::init::placeholders::Filling;
use crate::command::init::requests::Given;
use crate::command::init::tree;
use crate::command::init::values::{form, with_notation};

/// True if the body has no content.
pub(super) fn is_empty(body: &Value) -> bool {
    let mode = member(body, "mode").unwrap_or_default();
    match body.get(&mode) {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(entries)) => entries.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        _ => true,
    }
}

/// Adds the body to a request.
pub(super) fn add(
    given: &mut Given,
    body: &Value,
    folder: &Path,
    filling: &mut Filling<'_>,
) -> Result<(), String> {
    let mode = member(body, "mode").unwrap_or_default();
    let content = body.get(&mode);
    let (kind, bytes) = match mode.as_str() {
        "" | "none" => return Ok(()),
        "raw" => {
            let text = member(body, "raw").unwrap_or_default();
            if text.is_empty() {
                return Ok(());
            }
            (language(body), filling.text(&text)?.into_bytes())
        }
        "urlencoded" => {
            let pairs = match content {
                Some(Value::String(text)) => return raw_form(given, text, filling),
                other => pairs(other),
            };
            let mut filled = Vec::new();
            for (name, value) in pairs {
                filled.push((filling.text(&name)?, filling.text(&value)?));
            }
            let kind = "application/x-www-form-urlencoded";
            (Some(kind.to_owned()), form(&filled).into_bytes())
        }
        "formdata" => {
            let (kind, bytes) = parts(content, folder, filling)?;
            given
                .headers
                .retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            (Some(kind), bytes)
        }
        "graphql" => {
            let bytes = graphql(content.unwrap_or(&Value::Null), filling)?;
            (Some("application/json".to_owned()), bytes)
        }
        "file" => {
            let source = content.and_then(|it| member(it, "src").or_else(|| member(it, "content")));
            let source = source.ok_or("its body is a file that the collection does not name")?;
            (None, file(&source, folder)?)
        }
        other => return Err(format!("its body has the unknown mode `{other}`")),
    };
    let mut names = given.headers.iter().map(|(name, _)| name);
    if let Some(kind) = kind
        && !names.any(|name| name.eq_ignore_ascii_case("content-type"))
    {
        given.headers.push(("Content-Type".to_owned(), kind));
    }
    given.body = Some(bytes);
    Ok(())
}

fn raw_form(given: &mut Given, text: &str, filling: &mut Filling<'_>) -> Result<(), String> {
    given.body = Some(filling.text(text)?.into_bytes());
    let kind = "application/x-www-form-urlencoded";
    given
        .headers
        .push(("Content-Type".to_owned(), kind.to_owned()));
    Ok(())
}

/// The content type of a raw body, by its language.
fn language(body: &Value) -> Option<String> {
    let language = body.pointer("/options/raw/language")?.as_str()?;
    let kind = match language {
        "json" => "application/json",
        "xml" => "application/xml",
        "html" => "text/html",
        "javascript" => "application/javascript",
        "text" => "text/plain",
        _ => return None,
    };
    Some(kind.to_owned())
}

fn parts(
    entries: Option<&Value>,
    folder: &Path,
    filling: &mut Filling<'_>,
) -> Result<(String, Vec<u8>), String> {
    let mut parts = Vec::new();
    for entry in entries.and_then(Value::as_array).into_iter().flatten() {
        if !enabled(entry) {
            continue;
        }
        let mut part = Part {
            name: filling.text(&member(entry, "key").unwrap_or_default())?,
            content_type: member(entry, "contentType").filter(|it| !it.is_empty()),
            ..Part::default()
        };
        if member(entry, "type").as_deref() == Some("file") {
            let sources = match entry.get("src") {
                Some(Value::Array(sources)) => sources
                    .iter()
                    .map(crate::command::init::values::plain)
                    .collect(),
                Some(Value::String(source)) => vec![source.clone()],
                _ => Vec::new(),
            };
            if sources.is_empty() {
                return Err(format!("the file of its part `{}` is not named", part.name));
            }
            for source in sources {
                let name = Path::new(&source).file_name().unwrap_or_default();
                part.file_name = Some(name.to_string_lossy().into_owned());
                part.content = file(&source, folder)?;
                parts.push(part.clone());
            }
            continue;
        }
        part.content = filling
            .text(&member(entry, "value").unwrap_or_default())?
            .into_bytes();
        parts.push(part);
    }
    multipart::body(&parts)
}

fn file(source: &str, folder: &Path) -> Result<Vec<u8>, String> {
    fs::read(folder.join(source))
        .map_err(|error| format!("its file `{source}` cannot be read: {error}"))
}

fn graphql(content: &Value, filling: &mut Filling<'_>) -> Result<Vec<u8>, String> {
    let query = filling.text(&member(content, "query").unwrap_or_default())?;
    let query = with_notation("escaped", &Value::from(query).to_string());
    let variables = match content.get("variables") {
        Some(Value::String(text)) => filling.text(text)?,
        Some(value @ Value::Object(_)) => {
            with_notation("escaped", &tree::json_text(&filling.value(value)?))
        }
        _ => String::new(),
    };
    let mut body = format!("{{\"query\":{query}");
    if let Some(name) = member(content, "operationName").filter(|name| !name.is_empty()) {
        body.push_str(&format!(",\"operationName\":{}", Value::from(name)));
    }
    if !variables.trim().is_empty() {
        if !variables.contains("{{") && tree::json(&variables).is_err() {
            return Err("its GraphQL variables are no JSON".to_owned());
        }
        body.push_str(&format!(",\"variables\":{}", variables.trim()));
    }
    body.push('}');
    Ok(body.into_bytes())
}
