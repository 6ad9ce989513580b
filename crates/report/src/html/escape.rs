//! Text of the user as text in HTML.

use crate::terminal::shown;

/// Text of the user as text, in elements and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // HTML knows breaks and tabs as the only control characters, as a terminal does.
            other => out.push(shown(other)),
        }
    }
    out
}
