use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::mistake::Source;
use crate::reader::{Document, read};

/// A check for the format `word`, which allows only letters.
fn formats(format: &str, text: &str) -> Option<Result<(), Misspelling>> {
    (format == "word").then(|| {
        if text.chars().all(char::is_alphabetic) {
            return Ok(());
        }
        Err(Misspelling::new(
            format!("`{text}` is not a word"),
            "write letters",
        ))
    })
}

/// Returns messages and advice with their lines, and the JSON of the valid part.
fn check(schema: &Schema, blank: Blank, text: &str) -> String {
    let mut findings = Findings::default();
    let Document::Tree(root) = read(0, text, "", &mut findings) else {
        panic!("not a tree: {text}");
    };
    let formats = formats;
    let rules = Structure {
        schema,
        formats,
        blank,
    };
    let kept = rules.check(root, &mut findings);
    let sources = vec![Source {
        path: "x".into(),
        text: text.to_owned(),
    }];
    let mut lines = String::new();
    if let Err(mistakes) = findings.settle(sources) {
        for mistake in &mistakes {
            let (line, column) = (mistake.line, mistake.column);
            lines += &format!("{line}:{column} {}", mistake.message);
            lines += &mistake
                .help
                .as_ref()
                .map_or(String::new(), |help| format!(" ({help})"));
            lines.push('\n');
        }
    }
    lines + &kept.json().to_string()
}

fn strict(properties: Schema) -> Schema {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

#[test]
fn an_unknown_key_is_cut_out_and_a_mistyped_one_is_not_missing() {
    let mut schema = strict(json!({"name": {"description": "Its name. Any text."}, "size": {}}));
    schema["required"] = json!(["name", "size"]);
    assert_snapshot!(check(&schema, Blank::Null, "nmae: a\ncolour: b\n"), @r#"
    1:1 unknown key `nmae` (did you mean `name`?)
    1:1 the key `size` is missing
    2:1 unknown key `colour` (the keys here are name, size)
    {"name":null}
    "#);
}

#[test]
fn a_blank_key_is_left_out_only_where_the_caller_says_so() {
    let mut schema = strict(json!({"size": {"type": "integer"}}));
    assert_snapshot!(check(&schema, Blank::LeftOut, "size:\n"), @"{}");
    assert_snapshot!(check(&schema, Blank::Null, "size:\n"), @r#"
    1:5 expected a whole number, found nothing
    {"size":null}
    "#);
    schema["required"] = json!(["size"]);
    assert_snapshot!(check(&schema, Blank::LeftOut, "size:\n"), @"
    1:1 the key `size` is missing
    {}
    ");
    assert_snapshot!(check(&schema, Blank::LeftOut, "size: null\n"), @r#"
    1:7 expected a whole number, found nothing
    {"size":null}
    "#);
}

#[test]
fn a_form_says_more_than_a_type() {
    let word = json!({"type": "string", "format": "word"});
    let schema = strict(json!({
        "a": word,
        "b": {"anyOf": [word, {"type": "object"}]},
        "c": {"anyOf": [{"type": "integer"}, {"type": "array"}, {"type": "null"}]},
        "d": {"type": ["string", "number", "boolean"]},
        "e": {"type": "string"},
    }));
    let text = "a: 1\nb: 2\nc: x\nd: []\ne: true\n";
    assert_snapshot!(check(&schema, Blank::Null, text), @r#"
    1:4 `1` is not a word (write letters)
    2:4 `2` is not a word (write letters)
    3:4 expected a whole number or a list, found the text `x`
    4:4 expected text or a number, found a list
    5:4 expected text, found `true` (write "true", in quotes)
    {"a":null,"b":null,"c":null,"d":null,"e":null}
    "#);
}

#[test]
fn names_of_a_mapping_have_a_form() {
    let schema = json!({
        "type": "object",
        "propertyNames": {"format": "word"},
        "additionalProperties": {"type": "integer"},
    });
    assert_snapshot!(check(&schema, Blank::Null, "a: 1\nb-c: 2\nd: x\n"), @r#"
    2:1 `b-c` is not a word (write letters)
    3:4 expected a whole number, found the text `x`
    {"a":1,"d":null}
    "#);
}

#[test]
fn choices_are_words_whether_enum_or_constants() {
    let schema = strict(json!({
        "a": {"enum": ["left", "right"]},
        "b": {"oneOf": [{"const": "up"}, {"const": "down"}]},
        "c": {"enum": ["left", null]},
        "d": {"anyOf": [{"oneOf": [{"const": "up"}]}, {"type": "null"}]},
        "e": {"enum": ["left"]},
    }));
    let text = "a: lef\nb: 5\nc: null\nd: null\ne: null\n";
    assert_snapshot!(check(&schema, Blank::Null, text), @r#"
    1:4 expected `left` or `right`, found `lef` (did you mean `left`?)
    2:4 expected `up` or `down`, found `5`
    5:4 expected `left`, found nothing
    {"a":null,"b":null,"c":null,"d":null,"e":null}
    "#);
}

#[test]
fn numbers_and_lists_have_bounds() {
    let schema = strict(json!({
        "a": {"type": "integer", "minimum": 1, "maximum": 9},
        "b": {"type": "integer", "maximum": 9},
        "c": {"type": "integer", "format": "uint16"},
        "d": {"type": "array", "minItems": 1},
        "e": {"type": "array", "minItems": 2, "maxItems": 2},
        "f": {"type": "array", "items": {"type": "integer"}},
    }));
    let text = "a: 0\nb: 10\nc: 65536\nd: []\ne: [1]\nf: [1, x]\n";
    assert_snapshot!(check(&schema, Blank::Null, text), @r#"
    1:4 expected at least 1, found `0`
    2:4 expected at most 9, found `10`
    3:4 expected at most 65535, found `65536`
    4:4 the list is empty (give at least one)
    5:4 expected a list of 2 values, found 1
    6:8 expected a whole number, found the text `x`
    {"a":null,"b":null,"c":null,"d":null,"e":null,"f":[1,null]}
    "#);
}

#[test]
fn keys_that_exclude_or_need_each_other_are_told() {
    let one = json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let any = json!({"minProperties": 1, "properties": {"a": {}, "b": {}}});
    let not = json!({"not": {"required": ["a", "b"]}});
    let schema = strict(json!({"x": one, "y": one, "z": any, "n": not}));
    let text = "x: {a: 1, b: 2}\ny: {}\nz: {}\nn: {a: 1, b: 2}\n";
    assert_snapshot!(check(&schema, Blank::Null, text), @r#"
    1:1 expected exactly one of `a` or `b`, found `a` and `b`
    2:1 expected exactly one of `a` or `b`, found none
    3:1 expected at least one of `a` or `b`, found none
    4:1 `a` and `b` cannot be used together
    {"n":{"a":1,"b":2},"x":{"a":1,"b":2},"y":{},"z":{}}
    "#);
}

#[test]
fn references_are_followed_bare_and_with_a_description() {
    let mut schema = strict(json!({
        "a": {"$ref": "#/definitions/small"},
        "b": {"description": "B.", "allOf": [{"$ref": "#/definitions/small"}]},
    }));
    schema["definitions"] = json!({"small": {"type": "integer", "maximum": 3}});
    assert_snapshot!(check(&schema, Blank::Null, "a: 4\nb: 5\n"), @r#"
    1:4 expected at most 3, found `4`
    2:4 expected at most 3, found `5`
    {"a":null,"b":null}
    "#);
}
