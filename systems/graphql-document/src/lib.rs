//! Limits on a GraphQL document, before and after it is parsed.
//!
//! The parser is recursive, and the validator follows fragments wherever they are spread, so a
//! hostile document of 100 KB could cost the stack or seconds. One pass over the bytes bounds the
//! one, one look at each fragment the other.
//!
//! The scan is looser than the grammar: it accepts every valid document within the limits, and
//! leaves it to the parser to refuse invalid ones.

mod fragments;

pub use fragments::check_fragments;

/// Deepest nesting: of brackets in the text, and of selection sets with fragments followed.
///
/// The introspection query of GraphiQL needs 15.
pub const DEPTH_MAX: usize = 32;

/// Most tokens in one document.
pub const TOKENS_MAX: usize = 4_000;

/// Most fields in one operation, fragments counted once for each place that spreads them.
pub const FIELDS_MAX: usize = 4_000;

/// Why a document is not executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Brackets or selection sets nest too deeply.
    #[error("the document nests deeper than {DEPTH_MAX} levels")]
    Depth,
    /// The text has too many tokens.
    #[error("the document has more than {TOKENS_MAX} tokens")]
    Length,
    /// Fragments multiply the fields beyond the limit.
    #[error("an operation of the document selects more than {FIELDS_MAX} fields")]
    Fields,
}

/// Checks the text against [`DEPTH_MAX`] and [`TOKENS_MAX`].
///
/// # Errors
/// The first limit that is crossed.
pub fn check_text(text: &str) -> Result<(), DocumentError> {
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
                // More closing than opening brackets are the parser's to refuse.
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'"' => at = after_string(bytes, at),
            // A name or number is one token, as for the parser.
            byte if is_word(byte) => at = skip_while(bytes, at, is_word),
            _ => at += 1,
        }
        tokens += 1;
        // Checked at each token, so that the scan of a hostile text ends at the limit.
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
            // An escaped triple quote is part of the text.
            b'\\' if bytes[at + 1..].starts_with(BLOCK) => at += 1 + BLOCK.len(),
            // A line break ends a plain string in error; what follows must still be counted.
            b'\n' | b'\r' if !is_block => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nesting_is_refused_one_level_beyond_the_limit() {
        let nested = |depth: usize| "{a".repeat(depth) + &"}".repeat(depth);
        assert_eq!(check_text(&nested(DEPTH_MAX)), Ok(()));
        assert_eq!(
            check_text(&nested(DEPTH_MAX + 1)),
            Err(DocumentError::Depth)
        );
        assert_eq!(
            check_text(&"[".repeat(1_000_000)),
            Err(DocumentError::Depth)
        );
    }

    #[test]
    fn length_is_refused_one_token_beyond_the_limit() {
        // Two braces and the fields.
        let wide = |fields: usize| format!("{{{}}}", "id ".repeat(fields));
        assert_eq!(check_text(&wide(TOKENS_MAX - 2)), Ok(()));
        assert_eq!(
            check_text(&wide(TOKENS_MAX - 1)),
            Err(DocumentError::Length)
        );
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
            assert_eq!(check_text(&text), Err(DocumentError::Depth), "{before}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_to_its_end(text in "\\PC*[\"\\\\#{}. \n]*\\PC*") {
            let _ = check_text(&text);
        }
    }
}
