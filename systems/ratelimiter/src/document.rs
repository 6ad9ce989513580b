//! Limits on a GraphQL document, before and after it is parsed.
//!
//! The parser is recursive, and the validator follows fragments wherever they are spread, so a
//! hostile document of 100 KB could cost the stack or seconds. One pass over the bytes bounds the
//! one, one look at each fragment the other.
//!
//! The scan is looser than the grammar: it accepts every valid document within the limits, and
//! leaves it to the parser to refuse invalid ones.

use std::collections::HashMap;

use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};

/// Deepest nesting of brackets; the introspection query of GraphiQL needs 15.
pub(crate) const DEPTH_MAX: usize = 32;

/// Most tokens in a document, and most fields of an operation once fragments are followed.
const TOKENS_MAX: usize = 4_000;

/// Why a document is not executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("the document nests deeper than {DEPTH_MAX} levels")]
    Depth,
    #[error("the document has more than {TOKENS_MAX} tokens")]
    Length,
    #[error("an operation of the document selects more than {TOKENS_MAX} fields")]
    Fields,
}

/// Checks the text.
pub(crate) fn check_text(text: &str) -> Result<(), DocumentError> {
    let bytes = text.as_bytes();
    let (mut at, mut tokens, mut depth) = (0, 0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {
                at += 1;
                continue;
            }
            b'#' => {
                at = skip_while(bytes, at, |byte| !matches!(byte, b'\n' | b'\r'));
                continue;
            }
            b'{' | b'[' | b'(' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' | b')' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'"' => at = after_string(bytes, at),
            byte if is_word(byte) => at = skip_while(bytes, at, is_word),
            _ => at += 1,
        }
        tokens += 1;
        if depth > DEPTH_MAX {
            return Err(DocumentError::Depth);
        }
        if tokens > TOKENS_MAX {
            return Err(DocumentError::Length);
        }
    }
    Ok(())
}

/// A byte of a name or a number; everything outside ASCII counts as one, as only strings and
/// comments may hold it.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn skip_while(bytes: &[u8], from: usize, holds: impl Fn(u8) -> bool) -> usize {
    let rest = &bytes[from..];
    let length = rest.iter().position(|byte| !holds(*byte));
    from + length.unwrap_or(rest.len())
}

/// The place after the string that starts at `from`; the end of the text when it is not closed.
fn after_string(bytes: &[u8], from: usize) -> usize {
    const BLOCK: &[u8] = b"\"\"\"";
    let is_block = bytes[from..].starts_with(BLOCK);
    let mut at = from + if is_block { BLOCK.len() } else { 1 };
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' if !is_block => return at + 1,
            b'"' if bytes[at..].starts_with(BLOCK) => return at + BLOCK.len(),
            b'\\' if !is_block => at += 2,
            b'\\' if bytes[at + 1..].starts_with(BLOCK) => at += 1 + BLOCK.len(),
            // A line break ends a plain string in error; what follows must still be counted.
            b'\n' | b'\r' if !is_block => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Checks how much each operation becomes when fragments are followed; spreads count like fields.
pub(crate) fn check_fragments(document: &ExecutableDocument) -> Result<(), DocumentError> {
    if document.fragments.is_empty() {
        // Each field is a token, and those are bounded already.
        return Ok(());
    }
    let mut expansion = Expansion {
        document,
        known: HashMap::new(),
    };
    for (_, operation) in document.operations.iter() {
        if expansion.selections(&operation.node.selection_set.node) > TOKENS_MAX {
            return Err(DocumentError::Fields);
        }
    }
    Ok(())
}

struct Expansion<'a> {
    document: &'a ExecutableDocument,
    /// Size by fragment; 0 while a fragment is being counted, which ends cycles. The validator
    /// reports those.
    known: HashMap<&'a str, usize>,
}

impl<'a> Expansion<'a> {
    fn selections(&mut self, set: &'a SelectionSet) -> usize {
        let sizes = set.items.iter().map(|selection| match &selection.node {
            Selection::Field(field) => self.selections(&field.node.selection_set.node),
            Selection::InlineFragment(inline) => self.selections(&inline.node.selection_set.node),
            Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node),
        });
        sizes.fold(0, |sum, size| sum.saturating_add(1).saturating_add(size))
    }

    fn fragment(&mut self, name: &'a str) -> usize {
        if let Some(size) = self.known.get(name) {
            return *size;
        }
        let Some(fragment) = self.document.fragments.get(name) else {
            return 0;
        };
        self.known.insert(name, 0);
        let size = self.selections(&fragment.node.selection_set.node);
        self.known.insert(name, size);
        size
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nesting_and_length_are_refused_one_beyond_the_limit() {
        let nested = |depth: usize| "{a".repeat(depth) + &"}".repeat(depth);
        assert_eq!(check_text(&nested(DEPTH_MAX)), Ok(()));
        assert_eq!(
            check_text(&nested(DEPTH_MAX + 1)),
            Err(DocumentError::Depth)
        );
        let wide = |fields: usize| format!("{{{}}}", "id ".repeat(fields));
        assert_eq!(check_text(&wide(TOKENS_MAX - 2)), Ok(()));
        assert_eq!(
            check_text(&wide(TOKENS_MAX - 1)),
            Err(DocumentError::Length)
        );
    }

    #[test]
    fn brackets_count_outside_of_strings_and_comments_only() {
        let brackets = "{".repeat(DEPTH_MAX + 1);
        for text in [
            format!(r#"{{ a(b: "\"{brackets}") }}"#),
            format!(r#"{{ a(b: """\"""{brackets}""") }}"#),
            format!("# {brackets}\n{{ a }}"),
        ] {
            assert_eq!(check_text(&text), Ok(()), "{text}");
        }
        for before in ["\"\"", "\"\"\"\"\"\"", "\"open\n", "\"\\\\\"", "# x\r"] {
            let text = format!("{before}{brackets}");
            assert_eq!(check_text(&text), Err(DocumentError::Depth), "{before}");
        }
    }

    #[test]
    fn fragments_that_multiply_are_refused() {
        let mut text = "{ ...F0 }".to_owned();
        for level in 0..300 {
            let next = level + 1;
            text += &format!(" fragment F{level} on Query {{ ...F{next} ...F{next} }}");
        }
        text += " fragment F300 on Query { __typename }";
        let checked = check_fragments(&parse_query(text).unwrap());
        assert_eq!(checked, Err(DocumentError::Fields));
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_to_its_end(text in "\\PC*[\"\\\\#{}. \n]*\\PC*") {
            let _ = check_text(&text);
        }
    }
}
