//! Values of other tools as texts of URLs and forms.

use serde_json::Value;

use super::tree::without_mark;

/// A scalar as text. Empty for a list or a mapping.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => without_mark(text).to_owned(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => String::new(),
    }
}

/// Percent-encodes a text for a path or a query (RFC 3986, section 2.3). Placeholders of the lab stay.
pub(super) fn encoded(text: &str) -> String {
    let is_open = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~,".contains(&byte);
    with_encoded(text, is_open)
}

/// Percent-encodes characters that a path or a query cannot contain, as browsers do. Placeholders of the lab stay, and
/// the fragment is left out.
pub(super) fn url_text(text: &str) -> String {
    let text = text.split('#').next().unwrap_or_default();
    with_encoded(text, |byte| {
        byte.is_ascii_graphic() && !b"\"<>`{}".contains(&byte)
    })
}

/// Encodes names and values as a form: `a=1&b=2`. Placeholders of the lab get the notation for it.
pub(super) fn form(pairs: &[(String, String)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    with_notation("encoded", &pairs.collect::<Vec<_>>().join("&"))
}

/// Puts a notation before the name of each placeholder of the lab, except numbers.
pub(super) fn with_notation(notation: &str, text: &str) -> String {
    let mut noted = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let is_number = after.starts_with("index}}") || after.starts_with("random:");
        noted += before;
        noted += "{{";
        if !is_number {
            noted += notation;
            noted.push(':');
        }
        rest = after;
    }
    noted + rest
}

/// Puts the notation of unchanged values before the name of each placeholder in a path that `is_raw` selects.
/// A placeholder with a notation keeps it.
pub(super) fn with_raw(path: &str, is_raw: impl Fn(&str) -> bool) -> String {
    let mut raw = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once("{{") {
        let name = after.split("}}").next().unwrap_or_default();
        raw += before;
        raw += "{{";
        if is_raw(name) {
            raw += "raw:";
        }
        rest = after;
    }
    raw + rest
}

/// True if values have to stay unchanged in a path of a tool that encodes only characters that a URL cannot
/// contain. False if full encoding writes the same. `None` if neither is right for all values.
pub(super) fn is_raw_in_path(values: &[&str]) -> Option<bool> {
    let is_part = |text: &&str| url_text(text) == **text && !text.contains(['{', '}']);
    let is_same = |text: &&str| encoded_fully(text) == url_text(text);
    if values.iter().all(is_same) {
        return Some(false);
    }
    values.iter().all(is_part).then_some(true)
}

/// Percent-encodes all but unreserved characters, as a lab does with values in a path.
fn encoded_fully(text: &str) -> String {
    with_encoded(text, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    })
}

/// The name in a placeholder of the lab, without its notation.
pub(super) fn without_notation(word: &str) -> &str {
    let notations = ["json:", "escaped:", "encoded:", "raw:"];
    let mut names = notations
        .iter()
        .filter_map(|notation| word.strip_prefix(notation));
    names.next().unwrap_or(word)
}

/// Percent-encodes all bytes except open ones, outside of placeholders of the lab.
fn with_encoded(text: &str, is_open: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let place = rest.strip_prefix("{{").and_then(|after| after.find("}}"));
        if let Some(length) = place {
            encoded.push_str(&rest[..length + 4]);
            rest = &rest[length + 4..];
            continue;
        }
        let length = rest.chars().next().map_or(1, char::len_utf8);
        for byte in rest[..length].bytes() {
            match is_open(byte) {
                true => encoded.push(char::from(byte)),
                false => encoded.push_str(&format!("%{byte:02X}")),
            }
        }
        rest = &rest[length..];
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_not_encoded() {
        assert_eq!(encoded("a b/{{token}}{x}"), "a%20b%2F{{token}}%7Bx%7D");
        assert_eq!(
            url_text("/q?x=a b&y=ü&z=%20|{\"#f"),
            "/q?x=a%20b&y=%C3%BC&z=%20|%7B%22"
        );
        let pairs = [("a", "1 2"), ("b", "x&y=z")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(form(&pairs), "a=1%202&b=x%26y%3Dz");
        let pairs = [("a", "{{token}} {{index}}"), ("b", "{{random:1..2}}")];
        let pairs = pairs.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(
            form(&pairs),
            "a={{encoded:token}}%20{{index}}&b={{random:1..2}}"
        );
        assert_eq!(without_notation("encoded:token"), "token");
        assert_eq!(without_notation("raw:token"), "token");
    }

    #[test]
    fn a_value_in_a_path_stays_as_other_tools_send_it() {
        let path = "/{{id}}/{{encoded:id}}?{{random:1..2}}";
        assert_eq!(
            with_raw(path, |name| name == "id"),
            "/{{raw:id}}/{{encoded:id}}?{{random:1..2}}"
        );
        assert_eq!(is_raw_in_path(&["a", "b-1"]), Some(false));
        assert_eq!(is_raw_in_path(&["a b", "ü"]), Some(false));
        assert_eq!(is_raw_in_path(&["a/b", "c%20d?x=1"]), Some(true));
        assert_eq!(is_raw_in_path(&["a/b", "c d"]), None);
    }
}
