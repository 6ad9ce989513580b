//! Compares the JSON scanner with `serde_json`. If both accept a text, no object in it has a key twice.
//! Strings stay equal after writing and reading.
#![no_main]

use std::collections::HashSet;
use std::fmt;

use json_text::{Cursor, check_unambiguous, is_plain, string_length, unescape, write_string};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// JSON without duplicate keys in its objects.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Unambiguous;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Unambiguous)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Unambiguous)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Unambiguous)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Unambiguous)
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Unambiguous)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Unambiguous)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<Unambiguous>()?.is_some() {}
                Ok(Unambiguous)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = HashSet::new();
                while let Some((key, _)) = map.next_entry::<String, Unambiguous>()? {
                    if !keys.insert(key) {
                        return Err(A::Error::custom("a key twice"));
                    }
                }
                Ok(Unambiguous)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

fuzz_target!(|text: &str| {
    let is_unambiguous = check_unambiguous(text).is_ok();
    // The check does not read escapes in string values. The next reader does.
    if is_unambiguous && serde_json::from_str::<Value>(text).is_ok() {
        assert!(serde_json::from_str::<Unambiguous>(text).is_ok());
    }
    let mut written = Vec::new();
    write_string(text, &mut written);
    let json = std::str::from_utf8(&written).expect("text is written as text");
    assert_eq!(serde_json::from_str::<String>(json).expect("a string"), text);
    assert_eq!(unescape(&json[1..json.len() - 1]).expect("whole"), text);
    let mut cursor = Cursor::new(0, json.len());
    let span = cursor.string(&written).expect("a string");
    assert!(cursor.is_at_end());
    assert_eq!((span.start, span.end), (1, json.len() - 1));
    assert_eq!(span.is_escaped, json[1..].contains('\\'));
    assert_eq!(string_length(&written, 0), (json.len(), span.is_escaped));
    assert_eq!(is_plain(text), json.len() == text.len() + 2);
});
