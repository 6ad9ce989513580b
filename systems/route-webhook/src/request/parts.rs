//! The parts of JSON that is known to be valid: what lies between them is stepped over, not read.
//!
//! A body is checked once, as a whole. [`Ends`] remembers where its objects and lists end, so that a
//! member that nobody asks for is stepped over at once, however often its object is taken apart.

/// From the first byte of something to behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    /// It is a text with an escape.
    pub(super) is_escaped: bool,
}

impl Span {
    pub(super) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Where the objects and lists of a text end: those that are not too deep in others, and not too many,
/// so that a body cannot take a multiple of its size in memory. The ends of others are looked for.
#[derive(Debug)]
pub(super) struct Ends(Vec<Span>);

impl Ends {
    const DEPTH_MAX: usize = 16;
    const MOST: usize = 1024;

    /// Of valid JSON.
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut spans: Vec<Span> = Vec::with_capacity(64);
        // Which of them the open ones are, from outside.
        let mut open = [Self::MOST; Self::DEPTH_MAX];
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at = text_at(bytes, at).end;
                    continue;
                }
                b'{' | b'[' => {
                    if let Some(place) = open.get_mut(depth) {
                        *place = spans.len();
                        if spans.len() < Self::MOST {
                            spans.push(plain(at, bytes.len()));
                        }
                    }
                    depth += 1;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    let span = open.get(depth).and_then(|place| spans.get_mut(*place));
                    if let Some(span) = span {
                        span.end = at + 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Self(spans)
    }

    /// Behind the object or list that begins here.
    fn end(&self, bytes: &[u8], start: usize) -> usize {
        match self.0.binary_search_by_key(&start, |span| span.start) {
            Ok(place) => self.0[place].end,
            Err(_) => container_end(bytes, start),
        }
    }
}

/// Every member of an object: the name with its quotes, as it came, and the value.
pub(super) struct Members<'a>(Items<'a>);

/// Every item of a list; of an object, names and values in turn.
pub(super) struct Items<'a> {
    text: &'a str,
    ends: &'a Ends,
    at: usize,
}

impl<'a> Members<'a> {
    /// Of the object that begins here in a text that is valid JSON.
    pub(super) fn of(text: &'a str, ends: &'a Ends, start: usize) -> Self {
        Self(Items::of(text, ends, start))
    }
}

impl<'a> Items<'a> {
    /// Of the list that begins here in a text that is valid JSON.
    pub(super) fn of(text: &'a str, ends: &'a Ends, start: usize) -> Self {
        let at = start + 1;
        Self { text, ends, at }
    }
}

impl Iterator for Members<'_> {
    type Item = (Span, Span);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.0.next()?))
    }
}

impl Iterator for Items<'_> {
    type Item = Span;

    /// The next one, behind whatever separates it from the one before.
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let mut start = self.at;
        while matches!(
            bytes.get(start)?,
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r'
        ) {
            start += 1;
        }
        let span = match bytes.get(start)? {
            b'}' | b']' => return None,
            b'"' => text_at(bytes, start),
            b'{' | b'[' => plain(start, self.ends.end(bytes, start)),
            _ => plain(start, bare_end(bytes, start)),
        };
        self.at = span.end;
        Some(span)
    }
}

/// All of a text that is one value.
pub(super) fn whole(json: &str) -> Span {
    let bytes = json.as_bytes();
    match bytes.first() {
        Some(b'"') => text_at(bytes, 0),
        _ => plain(0, bytes.len()),
    }
}

fn plain(start: usize, end: usize) -> Span {
    let is_escaped = false;
    Span {
        start,
        end,
        is_escaped,
    }
}

/// The text that begins here, with its quotes.
fn text_at(bytes: &[u8], start: usize) -> Span {
    let mut span = plain(start, bytes.len());
    let mut at = start + 1;
    while let Some(rest) = bytes.get(at..)
        && let Some(length) = memchr::memchr2(b'"', b'\\', rest)
    {
        if rest[length] == b'"' {
            span.end = at + length + 1;
            break;
        }
        span.is_escaped = true;
        at += length + 2;
    }
    span
}

/// Behind the bracket that closes the one that stands here.
fn container_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = text_at(bytes, at).end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Behind the number or word that begins here.
fn bare_end(bytes: &[u8], start: usize) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
    let length = bytes[start..].iter().position(is_end);
    length.map_or(bytes.len(), |length| start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(&str, &str)> {
        Members::of(text, &Ends::of(text), 0)
            .map(|(name, value)| (name.of(text), value.of(text)))
            .collect()
    }

    fn items(text: &str) -> Vec<&str> {
        Items::of(text, &Ends::of(text), 0)
            .map(|item| item.of(text))
            .collect()
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
    fn what_is_too_deep_or_too_much_to_remember_is_looked_for() {
        let deep = format!("[{}1{}, 2]", "[".repeat(40), "]".repeat(40));
        let ends = Ends::of(&deep);
        let inside = Items::of(&deep, &ends, 30);
        assert_eq!(inside.map(|it| it.end - it.start).collect::<Vec<_>>(), [21]);
        assert_eq!(items(&deep).len(), 2);
        let many = format!("[{}[3]]", "{\"a\":[]},".repeat(Ends::MOST));
        let items = items(&many);
        assert_eq!(items.len(), Ends::MOST + 1);
        assert_eq!(items.last(), Some(&"[3]"));
        assert_eq!(Ends::of(&many).0.len(), Ends::MOST);
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
