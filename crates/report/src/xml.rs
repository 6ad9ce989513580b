//! Escaping of text in XML documents.

use crate::terminal::shown;

/// Escapes text for elements and attributes. It replaces control characters, which XML does not allow.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            // A parser would normalize line breaks in attributes to spaces in any case.
            '\n' | '\r' | '\t' => out.push(' '),
            // XML 1.0 cannot hold these characters, not even escaped.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(shown(other)),
        }
    }
    out
}
