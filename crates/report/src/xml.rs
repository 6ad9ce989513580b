//! Text within XML documents.

/// Text as XML may hold it, in attributes too: control characters have no place in it.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\n' | '\r' | '\t' => out.push(' '),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            other => out.push(other),
        }
    }
    out
}
