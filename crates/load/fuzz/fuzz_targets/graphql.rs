//! For every JSON object, the scanner for GraphQL errors returns the result of a real parser, and it never
//! panics.
#![no_main]

use std::fmt;

use libfuzzer_sys::fuzz_target;
use load::{Answer, Expectation, check};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// True if an object has an `errors` member that is neither `null` nor `[]`.
struct HasErrors(bool);

impl<'de> Deserialize<'de> for HasErrors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HasErrors, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = HasErrors;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HasErrors, A::Error> {
                let mut found = false;
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    let is_none = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                    found |= key == "errors" && !is_none;
                }
                Ok(HasErrors(found))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

fuzz_target!(|body: &[u8]| {
    let expect = Expectation {
        graphql: true,
        ..Expectation::default()
    };
    let answer = Answer {
        status: 200,
        headers: Vec::new(),
        body: body.to_vec(),
    };
    let verdict = check(&expect, &answer);
    if let Ok(HasErrors(expected)) = serde_json::from_slice(body) {
        assert_eq!(verdict.is_err(), expected, "{verdict:?}");
    }
});
