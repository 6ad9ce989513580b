use proptest::prelude::*;

use crate::store::{Store, Value};

/// Reads a JSON text into the store and writes it again.
fn again(text: &str) -> Result<String, String> {
    let mut store = Store::default();
    let value = store.parse(text.as_bytes()).map_err(|error| error.0)?;
    let mut out = Vec::new();
    store.write(value, &mut out);
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn values_come_back_as_they_were_written() {
    for text in [
        "null",
        "true",
        "-0.5e+10",
        r#""a \"b\" \u00e9 é""#,
        r#"[1,[],{"a":{},"b":[null,false]}]"#,
        r#"{"key \" with quote":1}"#,
    ] {
        assert_eq!(again(text).as_deref(), Ok(text));
    }
}

#[test]
fn malformed_text_names_the_place() {
    insta::assert_snapshot!(again("{\"a\":tru}").unwrap_err(), @"expected `true`, `false` or `null` at byte 5, found `t`");
    insta::assert_snapshot!(again("{\"a\":1").unwrap_err(), @"expected `,` or `}` at byte 6, found the end of the body");
    insta::assert_snapshot!(again("[1 2]").unwrap_err(), @"expected `,` or `]` at byte 3, found `2`");
    insta::assert_snapshot!(again("\"a\nb\"").unwrap_err(), @r"expected the rest of a string at byte 2, found `\n`");
    insta::assert_snapshot!(again("01").unwrap_err(), @"expected the end of the body at byte 1, found `1`");
    insta::assert_snapshot!(again(r#""\x""#).unwrap_err(), @"expected an escape at byte 2, found `x`");
    insta::assert_snapshot!(again("").unwrap_err(), @"expected a JSON value at byte 0, found the end of the body");
}

#[test]
fn nesting_is_bounded() {
    let deep = "[".repeat(100_000);
    assert_eq!(
        again(&deep),
        Err("lists and objects are nested deeper than 256".to_owned())
    );
}

#[test]
fn invalid_utf8_is_refused() {
    let mut store = Store::default();
    assert!(store.parse(b"\"\xff\"").is_err());
}

#[test]
fn keys_are_compared_unescaped() {
    let mut store = Store::default();
    let Ok(Value::Object(object)) = store.parse(br#"{"\u0061b":1}"#) else {
        panic!("the text is an object");
    };
    assert!(store.get(object, b"ab").is_some());
}

proptest! {
    #[test]
    fn what_serde_reads_is_read_alike(value in json_value()) {
        let text = serde_json::to_string(&value).unwrap();
        let read: serde_json::Value = serde_json::from_str(&again(&text).unwrap()).unwrap();
        prop_assert_eq!(read, value);
    }

    #[test]
    fn garbage_is_refused_exactly_where_serde_refuses_it(text in r#"[\[\]{}:,"\\ntrue0-9.eE+ \-]{0,12}"#) {
        // `IgnoredAny` checks only the syntax, not the range of numbers.
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(again(&text).is_ok(), theirs, "{}", text);
    }
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "\\PC{0,20}".prop_map(serde_json::Value::from),
        "[a-z\"\\\\\n\t]{0,20}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::btree_map("[a-z\"\\\\é]{1,6}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}
