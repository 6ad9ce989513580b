//! Names and parameters: one meaning for a public type name, and no tuple as a parameter.

use std::collections::BTreeMap;

use super::{SYSTEMS, is_test_source, read, tracked};
use crate::rust_source::{Kind, Token, code, without_tests};

/// Most definitions of one public type name.
const DEFINITIONS_MAX: usize = 2;

/// Keywords that define a type.
const DEFINES: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

/// Sources of the product, without those of tests.
fn sources() -> impl Iterator<Item = (String, String)> {
    let folders = ["crates", "formats", "xtask"].into_iter().chain(SYSTEMS);
    let files = folders.flat_map(tracked);
    files
        .filter(|file| file.ends_with(".rs") && !is_test_source(file))
        .map(|file| {
            let text = read(&file);
            (file, text)
        })
}

/// Names of the types that are `pub` without a restriction.
fn public_types<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    tokens
        .windows(3)
        .filter(|three| three[0].text == "pub" && DEFINES.contains(&three[1].text))
        .map(|three| three[2].text)
        .collect()
}

/// Names of the functions that have a tuple as the pattern of a parameter.
fn with_tuples<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let starts = tokens
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0].text == "fn" && pair[1].kind == Kind::Word);
    starts
        .filter(|(at, _)| has_tuple(&tokens[*at..]))
        .map(|(_, pair)| pair[1].text)
        .collect()
}

/// True if a parameter of the function at the start of `tokens` begins with a parenthesis.
fn has_tuple(tokens: &[Token<'_>]) -> bool {
    let mut angles = 0_i32;
    let mut open = None;
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "<" => angles += 1,
            // An arrow within the bounds of a type parameter closes no bracket.
            ">" if index > 0 && tokens[index - 1].text != "-" => angles -= 1,
            "(" if angles == 0 => {
                open = Some(index);
                break;
            }
            _ => {}
        }
    }
    let Some(open) = open else {
        return false;
    };
    let mut depth = 0_i32;
    for pair in tokens[open..].windows(2) {
        let is_start = depth == 1 && pair[0].text == "," || depth == 0;
        match pair[0].text {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
        if is_start && pair[1].text == "(" {
            return true;
        }
    }
    false
}

#[test]
fn no_public_type_name_is_defined_a_third_time() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources() {
        let tokens = without_tests(&code(&text));
        for name in public_types(&tokens) {
            places
                .entry(name.to_owned())
                .or_default()
                .push(file.clone());
        }
    }
    places.retain(|_, files| files.len() > DEFINITIONS_MAX);
    assert!(
        places.is_empty(),
        "these public types share a name. Give each the name of its content:\n{places:#?}"
    );
}

#[test]
fn no_parameter_is_a_tuple() {
    let found: Vec<String> = sources()
        .flat_map(|(file, text)| {
            let tokens = without_tests(&code(&text));
            let names: Vec<String> = with_tuples(&tokens)
                .into_iter()
                .map(str::to_owned)
                .collect();
            names.into_iter().map(move |name| format!("{file}: {name}"))
        })
        .collect();
    assert!(
        found.is_empty(),
        "these functions take tuples. Make each element a parameter, or name the group in a struct:\n{}",
        found.join("\n")
    );
}

#[test]
fn tuples_and_names_are_found() {
    let text = "pub struct A; pub(crate) enum B {} pub trait C { type D; }
        fn one(a: u8, (b, c): (u8, u8)) {}
        fn two<F: Fn(u8) -> u8>(f: F, a: (u8, u8)) {}
        fn three((a, b): (u8, u8)) { let c = |(d, e)| d; }
        fn four(&self, map: &BTreeMap<u8, (u8, u8)>) {}";
    let tokens = code(text);
    assert_eq!(public_types(&tokens), ["A", "C"]);
    assert_eq!(with_tuples(&tokens), ["one", "three"]);
}
