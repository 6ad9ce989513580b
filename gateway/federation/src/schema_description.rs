//! The description of a schema, which the parser does not know.
//!
//! `"""text""" schema {…}` is valid since the specification of October 2021, and composition keeps it.

use std::borrow::Cow;
use std::ops::Range;

use graphql_tools::parser::schema::{Definition, TypeDefinition, parse_schema};

use crate::tokens::Tokens;

/// A schema in GraphQL's definition language, in a form that the parser accepts.
pub(crate) struct Described<'a> {
    /// The text, with blanks instead of the description. Lines and columns stay the same.
    pub(crate) sdl: Cow<'a, str>,
    pub(crate) description: Option<String>,
}

impl<'a> Described<'a> {
    pub(crate) fn read(sdl: &'a str) -> Self {
        let Some(place) = place_of_description(sdl) else {
            return Described {
                sdl: Cow::Borrowed(sdl),
                description: None,
            };
        };
        let description = text_of(&sdl[place.clone()]);
        let blank = |letter: char| match letter {
            '\n' | '\r' => String::from(letter),
            _ => " ".repeat(letter.len_utf8()),
        };
        let blanks: String = sdl[place.clone()].chars().map(blank).collect();
        let mut sdl = sdl.to_owned();
        sdl.replace_range(place, &blanks);
        Described {
            sdl: Cow::Owned(sdl),
            description,
        }
    }
}

/// The bytes of the string before the keyword `schema`.
fn place_of_description(sdl: &str) -> Option<Range<usize>> {
    let mut tokens = Tokens::of(sdl);
    while let Some(token) = tokens.next() {
        match token {
            "{" | "(" | "[" => tokens.skip_group(),
            _ if token.starts_with('"') && tokens.peek() == Some("schema") => {
                let end = tokens.position();
                return Some(end - token.len()..end);
            }
            _ => {}
        }
    }
    None
}

/// The value of a string or a block string.
fn text_of(token: &str) -> Option<String> {
    // The parser knows the rules of indentation and of escapes.
    let definition = format!("{token} scalar Described");
    let document = parse_schema::<String>(&definition).ok()?;
    match document.definitions.first()? {
        Definition::TypeDefinition(TypeDefinition::Scalar(scalar)) => scalar.description.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_leaves_blanks_and_everything_else_stays() {
        for (text, wanted, description) in [
            ("schema{query:Q}", "schema{query:Q}", None),
            ("\"a\" schema{query:Q}", "    schema{query:Q}", Some("a")),
            (
                "\"\"\"\n  é {\n\"\"\"\nschema @a(b: \"c\") {query:Q}",
                "   \n      \n   \nschema @a(b: \"c\") {query:Q}",
                Some("é {"),
            ),
            (
                "\"a\" type schema {a: Int}",
                "\"a\" type schema {a: Int}",
                None,
            ),
            (
                "type T {\"a\" schema: Int}",
                "type T {\"a\" schema: Int}",
                None,
            ),
            (
                "\"t\" type T {a: Int} \"s\" schema {query: T}",
                "\"t\" type T {a: Int}     schema {query: T}",
                Some("s"),
            ),
        ] {
            let read = Described::read(text);
            assert_eq!(read.sdl, wanted, "{text}");
            assert_eq!(read.description.as_deref(), description, "{text}");
        }
    }
}
