//! Limits on a GraphQL document, before and after it is parsed.
//!
//! The parser is recursive, and the validator follows every spread of a fragment. A hostile document of 100
//! KB could exhaust the stack or take seconds. One scan of the bytes limits the parser. One visit to each
//! fragment limits the validator.
//!
//! The scan is looser than the grammar. It accepts every valid document within the limits, and leaves the
//! rejection of invalid documents to the parser.

mod answer;
mod bounds;
mod error;
mod extent;
mod limits;

use async_graphql::parser::types::ExecutableDocument;

pub use answer::{AnswerLimits, SchemaSize, selected};
pub use bounds::{DEPTH_MAX, FIELDS_MAX, NAME_BYTES_MAX, NESTING_MAX, TOKENS_MAX};
pub use error::DocumentError;
use extent::Measuring;
pub use extent::{FieldPlace, Size};
pub use limits::DocumentLimits;

/// Checks every operation, including its fragments, against [`FIELDS_MAX`].
///
/// # Errors
/// Fails if an operation selects more fields, or if fragments are nested deeper than [`NESTING_MAX`].
pub fn check_fragments(document: &ExecutableDocument) -> Result<(), DocumentError> {
    if document.fragments.is_empty() {
        // Each field is a token, and the number of tokens is already limited.
        return Ok(());
    }
    let mut measuring = Measuring::new(document, |_, _| Size::ONE);
    for (_, operation) in document.operations.iter() {
        let extent = measuring.operation(&operation.node.selection_set.node)?;
        if extent.selections > FIELDS_MAX as u64 {
            return Err(DocumentError::Selections(FIELDS_MAX as u64));
        }
    }
    Ok(())
}

/// Checks the text against [`DEPTH_MAX`], [`TOKENS_MAX`] and [`NAME_BYTES_MAX`].
///
/// # Errors
/// The first exceeded limit.
pub fn check_text(text: &str) -> Result<(), DocumentError> {
    scan(text, DEPTH_MAX, TOKENS_MAX)
}

/// Scans a text once.
fn scan(text: &str, depth_max: usize, tokens_max: usize) -> Result<(), DocumentError> {
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
                // The parser refuses surplus closing brackets.
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'"' => at = after_string(bytes, at),
            // A name or number is one token, as in the parser.
            byte if is_word(byte) => {
                let end = skip_while(bytes, at, is_word);
                let found = end - at;
                if found > NAME_BYTES_MAX && !byte.is_ascii_digit() {
                    return Err(DocumentError::Name { found });
                }
                at = end;
            }
            _ => at += 1,
        }
        tokens += 1;
        // Checked at each token, so that the scan of a hostile text stops at the limit.
        if depth > depth_max {
            return Err(DocumentError::Nesting(depth_max));
        }
        if tokens > tokens_max {
            return Err(DocumentError::Tokens(tokens_max));
        }
    }
    Ok(())
}

/// True for a byte of a name or a number. All bytes outside ASCII count too, because only strings and
/// comments may contain them.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn skip_while(bytes: &[u8], from: usize, holds: impl Fn(u8) -> bool) -> usize {
    let rest = &bytes[from..];
    let length = rest.iter().position(|byte| !holds(*byte));
    from + length.unwrap_or(rest.len())
}

/// The place after the string that starts at `from`. The end of the text if the string is not closed.
fn after_string(bytes: &[u8], from: usize) -> usize {
    const BLOCK: &[u8] = b"\"\"\"";
    let is_block = bytes[from..].starts_with(BLOCK);
    let mut at = from + if is_block { BLOCK.len() } else { 1 };
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' if !is_block => return at + 1,
            b'"' if bytes[at..].starts_with(BLOCK) => return at + BLOCK.len(),
            b'\\' if !is_block => at += 2,
            // An escaped triple quote is part of the text.
            b'\\' if bytes[at + 1..].starts_with(BLOCK) => at += 1 + BLOCK.len(),
            // A line break ends a plain string in error. The text after it must still be counted.
            b'\n' | b'\r' if !is_block => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nesting_is_refused_one_level_beyond_the_limit() {
        let nested = |depth: usize| "{a".repeat(depth) + &"}".repeat(depth);
        assert_eq!(check_text(&nested(DEPTH_MAX)), Ok(()));
        let refused = Err(DocumentError::Nesting(DEPTH_MAX));
        assert_eq!(check_text(&nested(DEPTH_MAX + 1)), refused);
        assert_eq!(check_text(&"[".repeat(1_000_000)), refused);
    }

    #[test]
    fn length_is_refused_one_token_beyond_the_limit() {
        // Two braces and the fields.
        let wide = |fields: usize| format!("{{{}}}", "id ".repeat(fields));
        assert_eq!(check_text(&wide(TOKENS_MAX - 2)), Ok(()));
        let refused = Err(DocumentError::Tokens(TOKENS_MAX));
        assert_eq!(check_text(&wide(TOKENS_MAX - 1)), refused);
    }

    #[test]
    fn a_name_is_refused_one_byte_beyond_the_limit() {
        let aliased = |length: usize| format!("{{ {}: id }}", "a".repeat(length));
        assert_eq!(check_text(&aliased(NAME_BYTES_MAX)), Ok(()));
        let found = NAME_BYTES_MAX + 1;
        let refused = Err(DocumentError::Name { found });
        assert_eq!(check_text(&aliased(found)), refused);
        // Strings, comments and numbers have other limits.
        let long = "1".repeat(found);
        let others = format!("{{ echo(text: \"{long}\", n: {long}) }} # {long}");
        assert_eq!(check_text(&others), Ok(()));
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_nest() {
        let brackets = "{".repeat(DEPTH_MAX + 1);
        let escaped = format!(r#"{{ echo(text: "\"{brackets}") }}"#);
        let block = format!(r#"{{ echo(text: """\"""{brackets}""") }}"#);
        let comment = format!("# {brackets}\n{{ test {{ id }} }}");
        for text in [escaped, block, comment] {
            assert_eq!(check_text(&text), Ok(()), "{text}");
        }
    }

    #[test]
    fn brackets_after_a_string_count_again() {
        let brackets = "{".repeat(DEPTH_MAX + 1);
        for before in ["\"\"", "\"\"\"\"\"\"", "\"open\n", "\"\\\\\"", "# x\r"] {
            let text = format!("{before}{brackets}");
            let refused = Err(DocumentError::Nesting(DEPTH_MAX));
            assert_eq!(check_text(&text), refused, "{before}");
        }
    }

    fn followed(text: &str) -> Result<(), DocumentError> {
        check_fragments(&parse_query(text).unwrap())
    }

    const TOO_MANY: Result<(), DocumentError> = Err(DocumentError::Selections(FIELDS_MAX as u64));

    #[test]
    fn fragments_that_multiply_are_refused_in_linear_time() {
        let mut text = "{ ...F0 }".to_owned();
        for level in 0..50 {
            let next = level + 1;
            text += &format!(" fragment F{level} on Query {{ ...F{next} ...F{next} }}");
        }
        let with_end = |end: &str| format!("{text} fragment F50 on Query {{ {end} }}");
        for end in ["total", "...Missing", "...F0"] {
            assert_eq!(followed(&with_end(end)), TOO_MANY);
        }
    }

    #[test]
    fn the_limit_counts_each_spread() {
        let spreads = |times: usize| {
            let fields = "total ".repeat(9);
            let spread = "...F ".repeat(times);
            format!("{{ {spread} }} fragment F on Query {{ {fields} }}")
        };
        // A spread and its nine fields count as ten.
        assert_eq!(followed(&spreads(FIELDS_MAX / 10)), Ok(()));
        assert_eq!(followed(&spreads(FIELDS_MAX / 10 + 1)), TOO_MANY);
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_to_its_end(text in "\\PC*[\"\\\\#{}. \n]*\\PC*") {
            let _ = check_text(&text);
        }
    }
}
