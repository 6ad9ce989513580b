//! Escaping of users' text in HTML.

use crate::terminal::shown;

/// Escapes a user's text for elements and attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // HTML accepts only breaks and tabs as control characters, like a terminal.
            other => out.push(shown(other)),
        }
    }
    out
}
