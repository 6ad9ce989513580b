//! JSON written member by member, in the two styles of the contract.
//!
//! What was read is passed on as text: numbers stay as they were written, members keep their order,
//! and only the space between them and the escapes within texts follow the style. No tree is built,
//! so that a body cannot take a multiple of its size in memory.

use std::fmt::Write as _;

/// How JSON is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No space between tokens, and letters beyond ASCII as they are: answers.
    Compact,
    /// A space after commas and colons, and ASCII only: JSON that is a text within JSON.
    Spaced,
}

/// JSON in the making. Whoever writes takes care that objects hold keys with values.
#[derive(Debug)]
pub struct Writer {
    text: String,
    style: Style,
}

impl Writer {
    /// Nothing yet.
    #[must_use]
    pub fn new(style: Style, capacity: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            style,
        }
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    /// An object; `fill` writes its members.
    pub fn object(&mut self, fill: impl FnOnce(&mut Self)) {
        self.separate();
        self.text.push('{');
        fill(self);
        self.text.push('}');
    }

    /// A list; `fill` writes its items.
    pub fn list(&mut self, fill: impl FnOnce(&mut Self)) {
        self.separate();
        self.text.push('[');
        fill(self);
        self.text.push(']');
    }

    /// The name of a member; its value comes next.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.text(name);
        self.colon();
        self
    }

    /// A member that is a text.
    pub fn member(&mut self, name: &str, text: &str) {
        self.key(name).text(text);
    }

    /// A text.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.text.push('"');
        self.characters(text);
        self.text.push('"');
    }

    /// A text of several parts.
    pub fn joined(&mut self, parts: &[&str]) {
        self.separate();
        self.text.push('"');
        for part in parts {
            self.characters(part);
        }
        self.text.push('"');
    }

    /// A whole number.
    pub fn number(&mut self, number: u32) {
        self.separate();
        // Writing to a `String` cannot fail.
        let _ = write!(self.text, "{number}");
    }

    /// `true` or `false`.
    pub fn truth(&mut self, is_true: bool) {
        self.separate();
        self.text.push_str(if is_true { "true" } else { "false" });
    }

    /// JSON as somebody else wrote it, in this style. It must be JSON.
    pub fn json(&mut self, mut rest: &str) {
        self.separate();
        while let Some(first) = rest.bytes().next() {
            let length = match first {
                b'"' => {
                    let length = string_length(rest);
                    self.string_token(&rest[..length]);
                    length
                }
                b',' => {
                    self.comma();
                    1
                }
                b':' => {
                    self.colon();
                    1
                }
                b' ' | b'\t' | b'\n' | b'\r' => 1,
                _ => {
                    let length = rest.bytes().skip(1).position(is_structure);
                    let length = length.map_or(rest.len(), |position| position + 1);
                    self.text.push_str(&rest[..length]);
                    length
                }
            };
            rest = &rest[length..];
        }
    }

    /// A comma, unless this is the first value of what contains it or the value of a key.
    fn separate(&mut self) {
        if !matches!(
            self.text.as_bytes().last(),
            None | Some(b'{' | b'[' | b':' | b' ')
        ) {
            self.comma();
        }
    }

    fn comma(&mut self) {
        self.text.push_str(match self.style {
            Style::Compact => ",",
            Style::Spaced => ", ",
        });
    }

    fn colon(&mut self) {
        self.text.push_str(match self.style {
            Style::Compact => ":",
            Style::Spaced => ": ",
        });
    }

    /// A text with its quotes, as somebody else wrote it.
    fn string_token(&mut self, token: &str) {
        let inside = &token[1..token.len() - 1];
        if self.style.is_plain_throughout(inside) {
            self.text.push_str(token);
            return;
        }
        let text: String = serde_json::from_str(token).unwrap_or_default();
        self.text.push('"');
        self.characters(&text);
        self.text.push('"');
    }

    fn characters(&mut self, text: &str) {
        let style = self.style;
        if style.is_plain_throughout(text) {
            self.text.push_str(text);
            return;
        }
        let mut rest = text;
        while let Some(plain) = rest.bytes().position(|byte| !style.is_plain(byte)) {
            // What is not plain begins a letter.
            let (before, from) = rest.split_at(plain);
            self.text.push_str(before);
            let mut letters = from.chars();
            letters.next().into_iter().for_each(|it| self.character(it));
            rest = letters.as_str();
        }
        self.text.push_str(rest);
    }

    fn character(&mut self, letter: char) {
        let short = match letter {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            ' '..='~' => return self.text.push(letter),
            _ if letter >= ' ' && self.style == Style::Compact => return self.text.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    // Writing to a `String` cannot fail.
                    let _ = write!(self.text, "\\u{unit:04x}");
                }
                return;
            }
        };
        self.text.push_str(short);
    }
}

impl Style {
    /// Whether a text holds this byte as it is.
    fn is_plain(self, byte: u8) -> bool {
        let last = match self {
            Style::Compact => 0xff,
            Style::Spaced => 0x7e,
        };
        (byte >= b' ') & (byte <= last) & (byte != b'"') & (byte != b'\\')
    }

    /// Whether it holds all of them so. All are looked at, without a way out, so that many are at once.
    fn is_plain_throughout(self, text: &str) -> bool {
        text.bytes()
            .fold(true, |all, byte| all & self.is_plain(byte))
    }
}

fn is_structure(byte: u8) -> bool {
    matches!(byte, b'"' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r')
}

/// The length of the text with its quotes that stands at the beginning.
fn string_length(text: &str) -> usize {
    let mut is_escaped = true; // The first quote ends nothing.
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(style: Style, json: &str) -> String {
        let mut writer = Writer::new(style, 0);
        writer.json(json);
        writer.finish()
    }

    #[test]
    fn what_somebody_else_wrote_keeps_its_order_and_its_numbers() {
        let json = "{ \"b\" : [1.50 , -2e3,\ttrue, null ],\r\n\"a\":{},\"c\":[ ] }";
        let compact = again(Style::Compact, json);
        assert_eq!(compact, r#"{"b":[1.50,-2e3,true,null],"a":{},"c":[]}"#);
        let spaced = again(Style::Spaced, json);
        assert_eq!(
            spaced,
            r#"{"b": [1.50, -2e3, true, null], "a": {}, "c": []}"#
        );
        assert_eq!(again(Style::Compact, &spaced), compact);
    }

    #[test]
    fn texts_are_escaped_as_the_style_says() {
        let json = r#""\u00e9é \ud83d\ude00 \/ \"\\ \u0007\t\u007f, : {""#;
        assert_eq!(
            again(Style::Compact, json),
            "\"éé 😀 / \\\"\\\\ \\u0007\\t\u{7f}, : {\""
        );
        assert_eq!(
            again(Style::Spaced, json),
            r#""\u00e9\u00e9 \ud83d\ude00 / \"\\ \u0007\t\u007f, : {""#
        );
    }

    #[test]
    fn commas_stand_between_values_only() {
        for (style, expected) in [
            (
                Style::Compact,
                r#"{"a":[],"b":{"c":1},"d":["x ",true,"{","y"]}"#,
            ),
            (
                Style::Spaced,
                r#"{"a": [], "b": {"c": 1}, "d": ["x ", true, "{", "y"]}"#,
            ),
        ] {
            let mut writer = Writer::new(style, 0);
            writer.object(|writer| {
                writer.key("a").list(|_| {});
                writer.key("b").object(|writer| writer.key("c").number(1));
                writer.key("d").list(|writer| {
                    writer.text("x ");
                    writer.truth(true);
                    writer.json(r#""{""#);
                    writer.joined(&["", "y"]);
                });
            });
            assert_eq!(writer.finish(), expected);
        }
    }
}
