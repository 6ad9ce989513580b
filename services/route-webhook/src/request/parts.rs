//! The parts of valid JSON: the bounds of each value, and the next value.
//!
//! [`json_text::Cursor`] checks each token. Here the text is already checked: it is valid JSON. One more pass
//! over a body finds its [`Parts`]. After that, unneeded members are skipped in one step, even if their
//! object is read several times.

/// A value, the name of a member, or the end of an object or list.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Position of the first byte.
    start: u32,
    /// For an object or list, the index of its end among the parts. Otherwise the length in bytes. The bits
    /// that neither needs hold marks.
    rest: u32,
}

impl Part {
    const IS_CONTAINER: u32 = 1 << 31;
    /// Marks a text with an escape.
    const IS_ESCAPED: u32 = 1 << 30;
    const MARKS: u32 = Self::IS_CONTAINER | Self::IS_ESCAPED;

    fn is(self, mark: u32) -> bool {
        self.rest & mark != 0
    }

    fn value(self) -> u32 {
        self.rest & !Self::MARKS
    }
}

/// All values of a text of less than 1 GiB, in the order of their beginnings, including names and ends.
///
/// A part has 8 bytes. A text has at most one part per byte.
#[derive(Debug)]
pub(super) struct Parts(Vec<Part>);

/// The index of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index(u32);

impl Index {
    /// The value of the whole text.
    pub(super) const ROOT: Self = Self(0);
}

impl Parts {
    /// The parts of valid JSON. `None` if there are more than `most`, or the text is too long for the bits of
    /// a part.
    pub(super) fn of(text: &str, most: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() >= LENGTH_END {
            return None;
        }
        // Each part has at least one byte of the text. Unused capacity takes no memory.
        let mut parts: Vec<Part> = Vec::with_capacity(bytes.len().min(most));
        // The innermost open object or list. Until it ends, its `rest` holds the index of the container
        // around it. This is a stack without memory of its own.
        let mut around = 0;
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let (length, rest) = match byte {
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {
                    at += 1;
                    continue;
                }
                b'}' | b']' => {
                    let end = narrow(parts.len());
                    // The open container gets its end, and the container around it is open again.
                    if let Some(ended) = parts.get_mut(around as usize) {
                        around = std::mem::replace(&mut ended.rest, end | Part::IS_CONTAINER);
                    }
                    (1, 1)
                }
                b'{' | b'[' => (1, std::mem::replace(&mut around, narrow(parts.len()))),
                b'"' => {
                    let (length, is_escaped) = json_text::string_length(bytes, at);
                    let mark = if is_escaped { Part::IS_ESCAPED } else { 0 };
                    (length, narrow(length) | mark)
                }
                _ => {
                    let length = json_text::bare_length(bytes, at);
                    (length, narrow(length))
                }
            };
            if parts.len() == most {
                return None;
            }
            let start = narrow(at);
            parts.push(Part { start, rest });
            at += length;
        }
        Some(Self(parts))
    }

    fn part(&self, index: u32) -> Option<Part> {
        self.0.get(index as usize).copied()
    }

    /// The JSON of a value.
    pub(super) fn text<'a>(&self, text: &'a str, index: Index) -> &'a str {
        let span = self.part(index.0).and_then(|part| {
            let start = part.start as usize;
            if !part.is(Part::IS_CONTAINER) {
                return text.get(start..start + part.value() as usize);
            }
            let end = self.part(part.value())?.start as usize;
            text.get(start..=end)
        });
        debug_assert!(span.is_some(), "an index is made from these parts only");
        span.unwrap_or_default()
    }

    /// True if the value is a text with an escape.
    pub(super) fn is_escaped(&self, index: Index) -> bool {
        self.part(index.0)
            .is_some_and(|part| part.is(Part::IS_ESCAPED))
    }

    /// All items of a list. For an object, names and values in turn.
    pub(super) fn items(&self, index: Index) -> Items<'_> {
        let list = self.part(index.0).filter(|it| it.is(Part::IS_CONTAINER));
        debug_assert!(list.is_some(), "the caller has checked what stands there");
        Items {
            parts: self,
            at: index.0 + 1,
            end: list.map_or(0, Part::value),
        }
    }

    /// All members of an object: each name with its quotes, and each value.
    pub(super) fn members(&self, index: Index) -> Members<'_> {
        Members(self.items(index))
    }
}

/// The iterator of [`Parts::members`].
pub(super) struct Members<'p>(Items<'p>);

/// The iterator of [`Parts::items`].
pub(super) struct Items<'p> {
    parts: &'p Parts,
    at: u32,
    end: u32,
}

impl Iterator for Members<'_> {
    type Item = (Index, Index);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.0.next()?))
    }
}

impl Iterator for Items<'_> {
    type Item = Index;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.at;
        let part = self.parts.part(index).filter(|_| index < self.end)?;
        let last = if part.is(Part::IS_CONTAINER) {
            part.value()
        } else {
            index
        };
        // After the end of a container, regardless of its content. `rest` makes this single step possible.
        self.at = last + 1;
        Some(Index(index))
    }
}

/// The first text length with positions that would overlap the marks.
const LENGTH_END: usize = Part::IS_ESCAPED as usize;

/// Converts a position, length or index of a text shorter than [`LENGTH_END`].
fn narrow(number: usize) -> u32 {
    debug_assert!(number < LENGTH_END, "the length of the text was checked");
    // The mask prevents a defect from changing marks. It costs no branch in the loop.
    u32::try_from(number).map_or(!Part::MARKS, |number| number & !Part::MARKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(&str, &str)> {
        let parts = Parts::of(text, usize::MAX).unwrap();
        let members = parts.members(Index::ROOT);
        members
            .map(|(name, value)| (parts.text(text, name), parts.text(text, value)))
            .collect()
    }

    fn items(text: &str) -> Vec<&str> {
        let parts = Parts::of(text, usize::MAX).unwrap();
        let items = parts.items(Index::ROOT);
        items.map(|item| parts.text(text, item)).collect()
    }

    #[test]
    fn members_and_items_are_as_they_came() {
        let json = r#"{ "a" : "x,\"}]" , "\u0062":[1, {"c":[]}],"d":-1.5e3 ,"e":null}"#;
        let expected = [
            (r#""a""#, r#""x,\"}]""#),
            (r#""\u0062""#, r#"[1, {"c":[]}]"#),
            (r#""d""#, "-1.5e3"),
            (r#""e""#, "null"),
        ];
        assert_eq!(members(json), expected);
        assert_eq!(items(expected[1].1), ["1", r#"{"c":[]}"#]);
        assert!(members("{ }").is_empty());
        assert!(items("[\n]").is_empty());
        assert_eq!(items(r#"["\\","\\\""]"#).len(), 2);
    }

    #[test]
    fn escapes_and_depth_are_seen() {
        let text = r#"["a\"b", "c", "\\"]"#;
        let parts = Parts::of(text, usize::MAX).unwrap();
        let escaped = parts.items(Index::ROOT).map(|it| parts.is_escaped(it));
        assert_eq!(escaped.collect::<Vec<_>>(), [true, false, true]);
        let deep = format!("[{}1{}, 2]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(items(&deep).len(), 2);
        assert_eq!(items(&deep)[1], "2");
        let wide = format!("[{}[]]", "[{}],".repeat(1000));
        let many = 2 + 4 * 1000 + 2;
        assert_eq!(Parts::of(&wide, many).unwrap().0.len(), many);
        assert!(Parts::of(&wide, many - 1).is_none());
    }

    proptest::proptest! {
        #[test]
        fn they_are_those_of_a_reader(value in json(), is_pretty in proptest::bool::ANY) {
            let text = if is_pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
            let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            match &value {
                serde_json::Value::Object(object) => {
                    let found: Vec<_> = members(&text)
                        .into_iter()
                        .map(|(name, value)| (read(name), read(value)))
                        .collect();
                    let expected: Vec<_> = object
                        .iter()
                        .map(|(name, value)| (name.as_str().into(), value.clone()))
                        .collect();
                    proptest::prop_assert_eq!(found, expected);
                }
                serde_json::Value::Array(list) => {
                    let found: Vec<_> = items(&text).into_iter().map(read).collect();
                    proptest::prop_assert_eq!(&found, list);
                }
                _ => {}
            }
        }
    }

    fn json() -> impl proptest::strategy::Strategy<Value = serde_json::Value> {
        use proptest::prelude::*;
        use serde_json::Value;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[\\PC\"\\\\\\n\\]}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[\\PC\"\\\\]{0,4}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }
}
