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

/// The name in a placeholder of the lab, without its notation.
pub(super) fn without_notation(word: &str) -> &str {
    let notations = ["json:", "escaped:", "encoded:"];
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
    }
}
