//! The parts of JSON that is known to be valid: what lies between them is stepped over, not read.
//!
//! A body is checked once, as a whole; after that an object is taken apart as often as somebody asks
//! for members of it, and each time costs one look at its bytes.

/// Every member of an object: the name with its quotes, as it came, and the value.
pub(super) struct Members<'a>(Parts<'a>);

/// Every item of a list.
pub(super) struct Items<'a>(Parts<'a>);

/// Where in the inside of an object or a list.
struct Parts<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Members<'a> {
    /// Of an object that is valid JSON.
    pub(super) fn of(json: &'a str) -> Self {
        Self(Parts { json, at: 1 })
    }
}

impl<'a> Items<'a> {
    /// Of a list that is valid JSON.
    pub(super) fn of(json: &'a str) -> Self {
        Self(Parts { json, at: 1 })
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.value()?, self.0.value()?))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.value()
    }
}

impl<'a> Parts<'a> {
    /// The next value, or name, behind whatever separates it from the one before.
    fn value(&mut self) -> Option<&'a str> {
        let bytes = self.json.as_bytes();
        let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
        let gap = bytes
            .get(self.at..)?
            .iter()
            .position(|it| !is_between(it))?;
        let start = self.at + gap;
        let end = match bytes.get(start)? {
            b'}' | b']' => return None,
            b'"' => text_end(bytes, start),
            b'{' | b'[' => container_end(bytes, start),
            _ => bare_end(bytes, start),
        };
        self.at = end;
        self.json.get(start..end)
    }
}

/// Behind the closing quote of the text that begins here.
fn text_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Behind the bracket that closes the one that stands here.
fn container_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = text_end(bytes, at);
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

    #[test]
    fn members_and_items_are_as_they_came() {
        let json = r#"{ "a" : "x,\"}]" , "\u0062":[1, {"c":[]}],"d":-1.5e3 ,"e":null}"#;
        let members: Vec<_> = Members::of(json).collect();
        let expected = [
            (r#""a""#, r#""x,\"}]""#),
            (r#""\u0062""#, r#"[1, {"c":[]}]"#),
            (r#""d""#, "-1.5e3"),
            (r#""e""#, "null"),
        ];
        assert_eq!(members, expected);
        let items: Vec<_> = Items::of(expected[1].1).collect();
        assert_eq!(items, ["1", r#"{"c":[]}"#]);
        assert_eq!(Members::of("{ }").count(), 0);
        assert_eq!(Items::of("[\n]").count(), 0);
        assert_eq!(Items::of(r#"["\\","\\\""]"#).count(), 2);
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
                    let found: Vec<_> = Members::of(&text)
                        .map(|(name, value)| (read(name), read(value)))
                        .collect();
                    let expected: Vec<_> = object
                        .iter()
                        .map(|(name, value)| (name.as_str().into(), value.clone()))
                        .collect();
                    proptest::prop_assert_eq!(found, expected);
                }
                serde_json::Value::Array(list) => {
                    let found: Vec<_> = Items::of(&text).map(read).collect();
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
