//! Writes JSON member by member, in the spelling of the contract.
//!
//! Input is passed on as text. Numbers keep their spelling and members keep their order. Only the space
//! between tokens and the escapes within texts follow the style. No tree is built, so a body cannot take a
//! multiple of its size in memory. A text that contains JSON is written directly into the output and escaped
//! at the same time. Constant parts are literals in their final form.
//!
//! This module is specific to the service because of that text. Its quotes and backslashes are escaped twice,
//! its tokens have spaces between them, and its letters are ASCII. Code for several services is in
//! [`json_text`].

use std::fmt::Write as _;

/// The spelling of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// No space between tokens, and unescaped letters beyond ASCII. Used for responses.
    Compact,
    /// A text within a response: a space after commas and colons, ASCII only, and every quote and backslash
    /// escaped once more.
    Quoted,
}

/// The name of one of our members in each style. It needs no escape. See [`key!`](crate::key).
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The compact spelling, with a leading comma and the colon.
    compact: &'static str,
    /// The same for the quoted style.
    quoted: &'static str,
}

impl Key {
    /// Only [`key!`](crate::key) calls it, with both spellings of a name.
    #[doc(hidden)]
    #[must_use]
    pub const fn spelled(compact: &'static str, quoted: &'static str) -> Self {
        Self { compact, quoted }
    }
}

/// A [`Key`] from a literal.
#[macro_export]
macro_rules! key {
    ($name:literal) => {
        $crate::json::Key::spelled(
            concat!(",\"", $name, "\":"),
            concat!(", \\\"", $name, "\\\": "),
        )
    };
}

/// Writes JSON. The caller ensures that objects contain keys with values.
#[derive(Debug)]
pub struct Writer {
    text: String,
    style: Style,
    /// True if the next value needs no comma before it.
    is_first: bool,
}

impl Writer {
    /// Starts with an empty text of this capacity, in bytes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            style: Style::Compact,
            is_first: true,
        }
    }

    /// Returns the written JSON.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    /// Writes an object. `fill` writes its members.
    pub fn object(&mut self, fill: impl FnOnce(&mut Self)) {
        self.between('{', fill, '}');
    }

    /// Writes a list. `fill` writes its items.
    pub fn list(&mut self, fill: impl FnOnce(&mut Self)) {
        self.between('[', fill, ']');
    }

    /// Writes a text that contains JSON. `fill` writes that JSON. Such texts cannot be nested.
    pub fn quoted(&mut self, fill: impl FnOnce(&mut Self)) {
        let fill = |writer: &mut Self| {
            writer.style = Style::Quoted;
            fill(writer);
            writer.style = Style::Compact;
        };
        self.between('"', fill, '"');
    }

    /// Writes a value that contains other values.
    #[inline]
    fn between(&mut self, open: char, fill: impl FnOnce(&mut Self), close: char) {
        self.separate();
        self.text.push(open);
        self.is_first = true;
        fill(self);
        self.text.push(close);
        self.is_first = false;
    }

    /// Writes the name of a member. Its value comes next.
    #[inline(always)]
    pub fn key(&mut self, name: Key) -> &mut Self {
        match (self.style, self.is_first) {
            (Style::Compact, false) => self.text.push_str(name.compact),
            // Without the leading comma of the spelling.
            (Style::Compact, true) => self.text.push_str(&name.compact[1..]),
            (Style::Quoted, false) => self.text.push_str(name.quoted),
            (Style::Quoted, true) => self.text.push_str(&name.quoted[2..]),
        }
        self.is_first = true;
        self
    }

    /// Writes an arbitrary name of a member. Its value comes next.
    pub fn named(&mut self, name: &str) -> &mut Self {
        self.text(name);
        self.colon();
        self
    }

    /// Writes a member with a text.
    #[inline]
    pub fn member(&mut self, name: Key, text: &str) {
        self.key(name).text(text);
    }

    /// Writes a member with a constant text that needs no escape.
    #[inline(always)]
    pub fn fixed(&mut self, name: Key, word: &'static str) {
        self.key(name).word(word);
    }

    /// Writes constant members, items or a constant value, in this style's spelling.
    #[inline]
    pub fn constant(&mut self, json: &'static str) {
        debug_assert!(self.is_well_written(json), "{json} is not in this style");
        self.separate();
        self.text.push_str(json);
    }

    /// True if [`Writer::json`] would write the constant in the same way.
    fn is_well_written(&self, json: &str) -> bool {
        let mut plain = match self.style {
            Style::Compact => json.to_owned(),
            Style::Quoted => json.replace("\\\"", "\""),
        };
        if plain.starts_with('"') {
            plain = format!("{{{plain}}}");
        }
        let mut anew = Self {
            text: String::new(),
            style: self.style,
            is_first: true,
        };
        anew.json(&plain);
        let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&plain).is_ok();
        is_json && anew.text.contains(json)
    }

    /// Writes a constant text that needs no escape.
    #[inline(always)]
    pub fn word(&mut self, word: &'static str) {
        debug_assert!(
            Style::Quoted.is_plain_throughout(word),
            "{word} needs an escape"
        );
        self.separate();
        self.quote();
        self.text.push_str(word);
        self.quote();
    }

    /// Writes a text, with quotes and escapes.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.quote();
        self.characters(text);
        self.quote();
    }

    /// Writes a text from several parts.
    pub fn joined(&mut self, parts: &[&str]) {
        self.separate();
        self.quote();
        for part in parts {
            self.characters(part);
        }
        self.quote();
    }

    /// Writes `true` or `false`.
    pub fn truth(&mut self, is_true: bool) {
        self.separate();
        self.text.push_str(if is_true { "true" } else { "false" });
    }

    /// Writes JSON from another program, in this style. The input must be JSON.
    pub fn json(&mut self, json: &str) {
        self.separate();
        // Kubernetes already sends its objects in this form, so most are copied as a whole.
        if self.style == Style::Compact && is_compact(json) {
            self.text.push_str(json);
        } else {
            self.tokens(json);
        }
    }

    fn tokens(&mut self, mut rest: &str) {
        while let Some(first) = rest.bytes().next() {
            let length = match first {
                b'"' => {
                    let (length, _) = json_text::string_length(rest.as_bytes(), 0);
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
                    // A number, a word, or brackets: unchanged up to the next comma, colon, quote or space.
                    let length = rest.bytes().skip(1).position(is_structure);
                    let length = length.map_or(rest.len(), |position| position + 1);
                    self.text.push_str(&rest[..length]);
                    length
                }
            };
            rest = &rest[length..];
        }
        self.is_first = false;
    }

    /// Writes a comma, unless this is the first value in its container or the value of a key.
    #[inline]
    fn separate(&mut self) {
        if !self.is_first {
            self.comma();
        }
        self.is_first = false;
    }

    #[inline]
    fn comma(&mut self) {
        match self.style {
            Style::Compact => self.text.push(','),
            Style::Quoted => self.text.push_str(", "),
        }
    }

    #[inline]
    fn colon(&mut self) {
        match self.style {
            Style::Compact => self.text.push(':'),
            Style::Quoted => self.text.push_str(": "),
        }
        self.is_first = true;
    }

    #[inline]
    fn quote(&mut self) {
        match self.style {
            Style::Compact => self.text.push('"'),
            Style::Quoted => self.text.push_str("\\\""),
        }
    }

    /// Writes a text from another program, which still has its quotes.
    fn string_token(&mut self, token: &str) {
        self.quote();
        let inside = &token[1..token.len() - 1];
        if self.style.is_plain_throughout(inside) {
            self.text.push_str(inside);
        } else {
            let text = serde_json::from_str::<String>(token);
            debug_assert!(text.is_ok(), "{token} must be JSON");
            self.characters(&text.unwrap_or_default());
        }
        self.quote();
    }

    fn characters(&mut self, text: &str) {
        let style = self.style;
        if style.is_plain_throughout(text) {
            self.text.push_str(text);
            return;
        }
        let mut rest = text;
        while let Some(plain) = rest.bytes().position(|byte| !style.is_plain(byte)) {
            // A byte that is not plain is the first byte of a character, so this is a boundary.
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
            '"' | '\\' => letter,
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{8}' => 'b',
            '\u{c}' => 'f',
            ' '..='~' => return self.text.push(letter),
            _ if letter >= ' ' && self.style == Style::Compact => return self.text.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    self.backslash();
                    // Writing to a `String` cannot fail.
                    let _ = write!(self.text, "u{unit:04x}");
                }
                return;
            }
        };
        self.backslash();
        // The escape is itself within a text, so the escaped character is escaped again.
        if self.style == Style::Quoted && matches!(short, '"' | '\\') {
            self.text.push('\\');
        }
        self.text.push(short);
    }

    /// Writes the beginning of an escape.
    fn backslash(&mut self) {
        self.text.push_str(match self.style {
            Style::Compact => "\\",
            Style::Quoted => "\\\\",
        });
    }
}

impl Style {
    /// True if a text contains this byte unescaped.
    fn is_plain(self, byte: u8) -> bool {
        let last = match self {
            Style::Compact => 0xff,
            Style::Quoted => 0x7e,
        };
        // `&` and not `&&`, to avoid branches between the comparisons.
        (byte >= b' ') & (byte <= last) & (byte != b'"') & (byte != b'\\')
    }

    /// True if the text needs no escape.
    fn is_plain_throughout(self, text: &str) -> bool {
        match self {
            Style::Compact => json_text::is_plain(text),
            Style::Quoted => json_text::is_plain_ascii(text),
        }
    }
}

/// True if a scan of the bytes shows that the JSON is already in [`Style::Compact`]: no space between tokens,
/// and no escape.
fn is_compact(json: &str) -> bool {
    // Most texts have no space at all. `fold` with `&` does not stop early, so the compiler can compare many
    // bytes at once.
    let is_plain = |byte: u8| (byte > b' ') & (byte != b'\\');
    if json.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        return true;
    }
    let mut is_inside = false;
    json.bytes().all(|byte| {
        // No string has an escaped quote here, because any backslash returns `false`.
        is_inside ^= byte == b'"';
        byte != b'\\' && (is_inside || byte > b' ')
    })
}

fn is_structure(byte: u8) -> bool {
    matches!(byte, b'"' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(json: &str) -> String {
        let mut writer = Writer::new(0);
        writer.json(json);
        writer.finish()
    }

    /// The content of a text after the JSON was written into it.
    fn quoted(json: &str) -> String {
        let mut writer = Writer::new(0);
        writer.quoted(|writer| writer.json(json));
        serde_json::from_str(&writer.finish()).unwrap()
    }

    #[test]
    fn what_somebody_else_wrote_keeps_its_order_and_its_numbers() {
        let json = "{ \"b\" : [1.50 , -2e3,\ttrue, null ],\r\n\"a\":{},\"c\":[ ] }";
        assert_eq!(
            compact(json),
            r#"{"b":[1.50,-2e3,true,null],"a":{},"c":[]}"#
        );
        let spaced = quoted(json);
        assert_eq!(
            spaced,
            r#"{"b": [1.50, -2e3, true, null], "a": {}, "c": []}"#
        );
        assert_eq!(compact(&spaced), compact(json));
    }

    #[test]
    fn texts_are_escaped_as_the_style_says() {
        let json = r#""\u00e9é \ud83d\ude00 \/ \"\\ \u0007\t\u007f, : {""#;
        assert_eq!(compact(json), "\"éé 😀 / \\\"\\\\ \\u0007\\t\u{7f}, : {\"");
        assert_eq!(
            quoted(json),
            r#""\u00e9\u00e9 \ud83d\ude00 / \"\\ \u0007\t\u007f, : {""#
        );
    }

    #[test]
    fn what_stands_as_it_is_written_is_passed_on_whole() {
        for json in [r#"{"a":[1,"b c","é"],"d":null}"#, "-1.5e3", "\" \"", "[]"] {
            assert!(is_compact(json), "{json}");
            assert_eq!(compact(json), json);
        }
        for json in [r#"{"a": 1}"#, "[1,\n2]", r#""\u0041""#, r#"["\"", " "]"#] {
            assert!(!is_compact(json), "{json}");
        }
    }

    #[test]
    fn commas_stand_between_values_only() {
        let fill = |writer: &mut Writer| {
            writer.object(|writer| {
                writer.key(key!("a")).list(|_| {});
                writer
                    .named("b\"")
                    .object(|writer| writer.key(key!("c")).json("1"));
                writer.key(key!("d")).list(|writer| {
                    writer.text("x ");
                    writer.truth(true);
                    writer.json(r#""{""#);
                    writer.json("[ ]");
                    writer.joined(&["", "y"]);
                });
                writer.fixed(key!("e"), "f");
            });
        };
        let mut writer = Writer::new(0);
        fill(&mut writer);
        assert_eq!(
            writer.finish(),
            r#"{"a":[],"b\"":{"c":1},"d":["x ",true,"{",[],"y"],"e":"f"}"#
        );
        let mut writer = Writer::new(0);
        writer.list(|writer| {
            writer.quoted(fill);
            writer.quoted(|writer| writer.list(|_| {}));
        });
        assert_eq!(
            writer.finish(),
            r#"["{\"a\": [], \"b\\\"\": {\"c\": 1}, \"d\": [\"x \", true, \"{\", [], \"y\"], \"e\": \"f\"}","[]"]"#
        );
    }

    proptest::proptest! {
        #[test]
        fn eight_at_a_time_are_as_one_by_one(text in "[ -~]{0,40}|[ -~\\x00-\u{100}]{0,40}") {
            for style in [Style::Compact, Style::Quoted] {
                let one_by_one = text.bytes().all(|byte| style.is_plain(byte));
                proptest::prop_assert_eq!(style.is_plain_throughout(&text), one_by_one);
            }
        }

        #[test]
        fn a_text_in_a_text_comes_back(text in "\\PC*|[\\x00-\\x7f]{0,20}") {
            let mut writer = Writer::new(0);
            writer.quoted(|writer| writer.list(|writer| writer.text(&text)));
            let outer: String = serde_json::from_str(&writer.finish()).unwrap();
            proptest::prop_assert!(outer.is_ascii());
            let inner: Vec<String> = serde_json::from_str(&outer).unwrap();
            proptest::prop_assert_eq!(&inner[0], &text);
        }
    }
}
