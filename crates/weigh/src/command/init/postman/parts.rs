//! The parts of an item of a collection: members in their several forms.

use serde_json::Value;

use crate::command::init::values::plain;

/// A member of a mapping as text. `None` without the member, and for a list or a mapping.
pub(super) fn member(value: &Value, name: &str) -> Option<String> {
    match value.get(name)? {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        scalar => Some(plain(scalar)),
    }
}

/// True unless the entry is disabled.
pub(super) fn enabled(entry: &Value) -> bool {
    entry.get("disabled") != Some(&Value::Bool(true))
}

/// Names and values in a list of `key` and `value` (v2.1), or in a mapping (v2.0).
pub(super) fn pairs(written: Option<&Value>) -> Vec<(String, String)> {
    match written {
        Some(Value::Array(entries)) => entries
            .iter()
            .filter(|entry| enabled(entry))
            .filter_map(|entry| {
                Some((
                    member(entry, "key")?,
                    member(entry, "value").unwrap_or_default(),
                ))
            })
            .collect(),
        Some(Value::Object(members)) => members
            .iter()
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        _ => Vec::new(),
    }
}

/// The headers of a request: a list, or lines of text.
pub(super) fn headers(written: Option<&Value>) -> Vec<(String, String)> {
    match written {
        Some(Value::String(text)) => text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect(),
        other => {
            let named = pairs(other).into_iter();
            named.filter(|(name, _)| !name.is_empty()).collect()
        }
    }
}

/// The text of the scripts that listen to an event.
pub(super) fn script(item: &Value, event: &str) -> String {
    let events = item.get("event").and_then(Value::as_array);
    let mut text = String::new();
    for entry in events.into_iter().flatten() {
        if member(entry, "listen").as_deref() != Some(event) || !enabled(entry) {
            continue;
        }
        match entry.get("script").and_then(|it| it.get("exec")) {
            Some(Value::Array(lines)) => {
                for line in lines {
                    text.push_str(&plain(line));
                    text.push('\n');
                }
            }
            Some(line) => text.push_str(&plain(line)),
            None => {}
        }
    }
    text
}

/// A URL in its parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// Without the query.
    pub(super) base: String,
    /// The enabled parameters.
    pub(super) query: Vec<(String, String)>,
    /// The values of `:name` in the path.
    pub(super) path_variables: Vec<(String, String)>,
}

/// Reads a URL: a text, or a mapping with its parts.
pub(super) fn url(written: Option<&Value>) -> Result<Address, String> {
    let written = written.ok_or("it has no URL")?;
    let raw = match written {
        Value::String(text) => text.clone(),
        other => member(other, "raw").unwrap_or_default(),
    };
    let raw = raw.trim();
    let (base, raw_query) = raw.split_once('?').unwrap_or((raw, ""));
    let mut address = Address {
        base: match base {
            "" => assembled(written),
            base => base.split('#').next().unwrap_or_default().to_owned(),
        },
        ..Address::default()
    };
    if address.base.is_empty() {
        return Err("it has no URL".to_owned());
    }
    address.query = match written.get("query") {
        Some(Value::Array(entries)) => pairs(Some(&Value::Array(entries.clone()))),
        _ => raw_query
            .split('#')
            .next()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    };
    address.path_variables = pairs(written.get("variable"));
    Ok(address)
}

/// The URL of its protocol, host, port and path.
fn assembled(written: &Value) -> String {
    let joined = |name: &str, separator: &str| match written.get(name) {
        Some(Value::Array(parts)) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| member(part, "value").unwrap_or_else(|| plain(part)))
                .collect();
            parts.join(separator)
        }
        Some(text) => plain(text),
        None => String::new(),
    };
    let host = joined("host", ".");
    if host.is_empty() {
        return String::new();
    }
    let mut url = match member(written, "protocol") {
        Some(protocol) => format!("{protocol}://{host}"),
        None => host,
    };
    if let Some(port) = member(written, "port") {
        url = format!("{url}:{port}");
    }
    let path = joined("path", "/");
    format!("{url}/{}", path.trim_start_matches('/'))
}

/// The URL with the value of a segment `:name`.
pub(super) fn with_path_variable(url: &str, name: &str, value: &str) -> String {
    let wanted = format!(":{name}");
    let segments = url.split('/');
    let segments = segments.map(|segment| if segment == wanted { value } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

/// The first segment `:name` of a path.
pub(super) fn open_path_variable(url: &str) -> Option<&str> {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    // The first segment is the server.
    let mut segments = path.split('/').skip(1);
    segments.find_map(|segment| {
        let name = segment.strip_prefix(':')?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name.then_some(name)
    })
}
