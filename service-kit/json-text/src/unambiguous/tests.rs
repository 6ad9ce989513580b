use std::fmt;

use proptest::prelude::*;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::*;

fn told(json: &str) -> String {
    match check_unambiguous(json) {
        Ok(()) => "fine".to_owned(),
        Err(ambiguity) => ambiguity.to_string(),
    }
}

#[test]
fn a_key_is_given_once_in_each_object() {
    assert_eq!(told(r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#), "fine");
    let twice = |key: &str, at: usize| {
        format!("the key `{key}` is given twice in one object, at byte {at}; give it once")
    };
    assert_eq!(told(r#"{"a":1,"a":2}"#), twice("a", 7));
    assert_eq!(told(r#" {"b":[ {"a" : 1 , "a":2}]}"#), twice("a", 19));
    assert_eq!(told(r#"{"":1,"":2}"#), twice("", 6));
    // The keys are equal without escapes. Either of them may have the escape.
    assert_eq!(told(r#"{"id":1,"\u0069d":2}"#), twice("id", 8));
    assert_eq!(told(r#"{"\u0069d":1,"id":2}"#), twice("id", 13));
    assert_eq!(told(r#"{"\u0069d":1,"i\u0064":2}"#), twice("id", 13));
    assert_eq!(told(r#"{"\ud83d\ude00":1,"😀":2}"#), twice("😀", 18));
    assert_eq!(told(r#"{"id":1,"ID":2,"i\\u0064":3}"#), "fine");
    let long = "k".repeat(1000);
    let shown = "k".repeat(60);
    let text = format!(r#"{{"{long}":1,"{long}":2}}"#);
    assert_eq!(told(&text), twice(&format!("{shown}…"), 1006));
}

#[test]
fn what_some_readers_refuse_is_refused() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(told(&nested(DEPTH_MAX)), "fine");
    assert_eq!(
        told(&nested(DEPTH_MAX + 1)),
        "lists and objects are nested deeper than 100 levels, at byte 100"
    );
    assert!(check_unambiguous_part(&nested(DEPTH_MAX - 1), 1).is_ok());
    assert!(check_unambiguous_part(&nested(DEPTH_MAX), 1).is_err());
    assert_eq!(told(&"[".repeat(1_000_000)), told(&nested(101)));
    assert_eq!(
        told(r#"{"a":"x\ud800"}"#),
        "a string has half a surrogate pair, at byte 13; send both halves or the character"
    );
    assert_eq!(told(r#"["\\ud800", "\ud83d\ude00"]"#), "fine");
    let large = "a number is larger than any 64-bit float, at byte 1; send it as a string";
    assert_eq!(told("[1e999]"), large);
    assert_eq!(told("[-1E309,1]"), large);
    assert_eq!(told(&format!("[{}]", "9".repeat(400))), large);
    assert_eq!(told("[1e308,1e-999,12345678901234567890123,-0.5]"), "fine");
}

#[test]
fn text_that_is_not_json_says_so() {
    for (text, at) in [
        ("", 0),
        ("{", 1),
        (r#"{"a" 1}"#, 5),
        (r#"{"a":1,}"#, 7),
        ("[1,]", 3),
        ("[1 2]", 3),
        ("1 2", 2),
        ("nul", 0),
        ("{a:1}", 1),
        ("{\"a\n\":1}", 3),
        (r#"["a\"#, 1),
        (r#"["a\"]"#, 1),
        (r#"["\u12"]"#, 6),
    ] {
        assert_eq!(told(text), format!("it is not JSON at byte {at}"), "{text}");
    }
}

#[test]
fn an_object_of_many_keys_is_checked_to_its_end() {
    // Comparing each key with all other keys would take hours.
    let members: Vec<String> = (0..300_000).map(|n| format!(r#""key{n}":{n}"#)).collect();
    let members = members.join(",");
    assert_eq!(told(&format!("{{{members}}}")), "fine");
    let again = told(&format!(r#"{{{members},"key7":0}}"#));
    assert!(
        again.starts_with("the key `key7` is given twice"),
        "{again}"
    );
}

/// JSON with all members of objects, including duplicates, as serde reads them.
enum Tree {
    Leaf,
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    fn has_double_keys(&self) -> bool {
        match self {
            Self::Leaf => false,
            Self::List(items) => items.iter().any(Self::has_double_keys),
            Self::Object(members) => members.iter().enumerate().any(|(index, (key, value))| {
                value.has_double_keys() || members[..index].iter().any(|(it, _)| it == key)
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Tree;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }

            fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Tree::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
                let mut object = Vec::new();
                while let Some(member) = members.next_entry()? {
                    object.push(member);
                }
                Ok(Tree::Object(object))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// The text of a tree with few different keys, some of them with escapes.
fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null"),
        Just("7"),
        Just(r#""a\n""#),
        Just("[ ]"),
        Just("{}")
    ];
    let key = prop_oneof![
        "[a-d]",
        "[a-m]",
        Just(r"\u0061".to_owned()),
        Just(r"\u0062".to_owned())
    ];
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 64, 12, move |inner| {
            let member =
                (key.clone(), inner.clone()).prop_map(|(key, it)| format!("\"{key}\" :{it}"));
            let joined = |parts: Vec<String>| parts.join(" , ");
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(move |it| format!("[{}]", joined(it))),
                prop::collection::vec(member, 0..12)
                    .prop_map(move |it| format!("{{{}}}", joined(it))),
            ]
        })
}

proptest! {
    #[test]
    fn double_keys_are_found_wherever_they_are(text in text()) {
        let tree: Tree = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(check_unambiguous(&text).is_err(), tree.has_double_keys(), "{}", text);
    }

    #[test]
    fn what_passes_is_read_by_all_or_by_none(text in "[\\[\\]{}:,\"0-9eE.\\\\ud8+-]{0,30}|\\PC*") {
        let read = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        let skipped = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        if skipped && check_unambiguous(&text).is_ok() {
            prop_assert!(read, "{}", text);
        }
    }

    #[test]
    fn the_end_of_a_string_is_found(inside: String, rest in "[a\\\\\"]{0,12}") {
        let text = serde_json::to_string(&[inside, rest, String::new()]).unwrap();
        prop_assert_eq!(check_unambiguous(&text), Ok(()));
    }
}

#[test]
fn members_are_told_with_their_places() {
    let json = r#" {"a": "x\n", "\u0062":[1, {"c":2}] , "d":null} "#;
    let mut told = Vec::new();
    let checked = check_members(json, |Member { key, value }| {
        let (text, is_escaped) = match value {
            MemberValue::String(span) => (&json[span.start..span.end], span.is_escaped),
            MemberValue::Other(range) => (&json[range], false),
        };
        told.push((key.into_owned(), text, is_escaped));
    });
    assert_eq!(checked, Ok(()));
    let told: Vec<_> = told
        .iter()
        .map(|(key, text, is_escaped)| (&**key, *text, *is_escaped))
        .collect();
    assert_eq!(
        told,
        [
            ("a", r"x\n", true),
            ("b", r#"[1, {"c":2}]"#, false),
            ("d", "null", false)
        ]
    );
    for json in [r#"{"a":1,"a":2}"#, "[]", "{} {}", "", "{\"a\":\"\n\"}"] {
        assert!(check_members(json, drop).is_err(), "{json}");
    }
}
