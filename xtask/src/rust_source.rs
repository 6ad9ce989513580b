//! The tokens of a Rust source. They are precise enough to count lines, functions and calls, and to separate
//! tests from the rest. Literals and comments are one token each, so that their contents are not counted.

use std::ops::Range;

/// The kind of a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// An identifier, a keyword, a number or a lifetime.
    Word,
    /// A string or a character.
    Literal,
    /// One character of punctuation.
    Mark,
    /// A comment `//` or `/* */` that is not documentation.
    Comment,
    /// A documentation comment: `///`, `//!`, `/** */`, `/*! */`.
    Doc,
}

/// One token, with its line from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_code(&self) -> bool {
        !matches!(self.kind, Kind::Comment | Kind::Doc)
    }

    /// The last line of the token. A string may have several lines.
    pub(crate) fn last_line(&self) -> usize {
        self.line + self.text.matches('\n').count()
    }
}

/// Cuts a source into tokens, without white space.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 0);
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let (kind, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            '/' if rest.starts_with("//") => {
                let end = rest.find('\n').unwrap_or(rest.len());
                (Some(comment(&rest[..end])), end)
            }
            '/' if rest.starts_with("/*") => {
                let end = block_comment(rest);
                (Some(comment(&rest[..end])), end)
            }
            '"' => (Some(Kind::Literal), quoted(rest, 1)),
            '\'' => match character(rest) {
                Some(end) => (Some(Kind::Literal), end),
                None => (Some(Kind::Word), 1 + word(&rest[1..])),
            },
            _ if is_word(first) => match literal_with_prefix(rest) {
                Some(end) => (Some(Kind::Literal), end),
                None => (Some(Kind::Word), word(rest)),
            },
            _ => (Some(Kind::Mark), first.len_utf8()),
        };
        let text = &rest[..length];
        if let Some(kind) = kind {
            tokens.push(Token { kind, text, line });
        }
        line += text.matches('\n').count();
        at += length;
    }
    tokens
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn word(rest: &str) -> usize {
    rest.find(|character| !is_word(character))
        .unwrap_or(rest.len())
}

fn comment(text: &str) -> Kind {
    let is_doc = ["//!", "/*!"].iter().any(|start| text.starts_with(start))
        || text.starts_with("///") && !text.starts_with("////")
        || text.starts_with("/**") && !text.starts_with("/***") && text != "/**/";
    if is_doc { Kind::Doc } else { Kind::Comment }
}

/// The end of a block comment. Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The end of a string that may contain escapes. `start` is the first byte after its quote.
fn quoted(rest: &str, start: usize) -> usize {
    let mut is_escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(start) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The end of a character literal. `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut inner = rest.char_indices().skip(1);
    let (_, first) = inner.next()?;
    if first == '\\' {
        // The escaped character itself may be a quote.
        inner.next();
        return inner.find(|(_, one)| *one == '\'').map(|(at, _)| at + 1);
    }
    let (at, second) = inner.next()?;
    (second == '\'').then_some(at + 1)
}

/// The end of `b""`, `c""`, `r#""#`, `br""` or `b''`. `None` for anything else.
fn literal_with_prefix(rest: &str) -> Option<usize> {
    let prefix = word(rest);
    let after = &rest[prefix..];
    match &rest[..prefix] {
        "b" | "c" if after.starts_with('"') => Some(quoted(rest, prefix + 1)),
        "b" if after.starts_with('\'') => character(after).map(|end| prefix + end),
        "r" | "br" | "cr" => {
            let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
            // `r#type` is a word.
            let body = after[hashes..].strip_prefix('"')?;
            let close = format!("\"{}", "#".repeat(hashes));
            let end = body.find(&close).map_or(body.len(), |at| at + close.len());
            Some(prefix + hashes + 1 + end)
        }
        _ => None,
    }
}

/// The tokens of a source without comments.
pub(crate) fn code(source: &str) -> Vec<Token<'_>> {
    let mut found = tokens(source);
    found.retain(Token::is_code);
    found
}

/// True if the tokens from `at` on have these texts.
pub(crate) fn reads(tokens: &[Token<'_>], at: usize, texts: &[&str]) -> bool {
    let found = tokens.get(at..at + texts.len());
    found.is_some_and(|found| {
        found
            .iter()
            .zip(texts)
            .all(|(token, text)| token.text == *text)
    })
}

/// The items below `#[cfg(test)]`, as ranges of code tokens, each with its attribute.
pub(crate) fn tests(code: &[Token<'_>]) -> Vec<Range<usize>> {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if reads(code, at, &ATTRIBUTE) {
            let end = item_end(code, at + ATTRIBUTE.len());
            ranges.push(at..end);
            at = end;
        } else {
            at += 1;
        }
    }
    ranges
}

/// The first token after an item: after its `;` or after its braces.
fn item_end(code: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in code.iter().enumerate().skip(start) {
        match token.text {
            _ if token.kind != Kind::Mark => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                // A source that does not compile may have too many closing braces.
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The code tokens outside `#[cfg(test)]`.
pub(crate) fn without_tests<'a>(code: &[Token<'a>]) -> Vec<Token<'a>> {
    let tests = tests(code);
    let is_test = |at: &usize| tests.iter().any(|range| range.contains(at));
    let kept = (0..code.len()).filter(|at| !is_test(at));
    kept.map(|at| code[at]).collect()
}

/// Lines of each function that has a body, from `fn` to its last brace.
pub(crate) fn functions(code: &[Token<'_>]) -> Vec<usize> {
    let mut lengths = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let is_named = code.get(at + 1).is_some_and(|next| next.kind == Kind::Word);
        if token.kind != Kind::Word || token.text != "fn" || !is_named {
            continue;
        }
        let end = item_end(code, at);
        let last = &code[end - 1];
        if last.text == "}" {
            lengths.push(last.line - token.line + 1);
        }
    }
    lengths
}

#[cfg(test)]
mod tests_of_the_lexer {
    use super::*;

    #[test]
    fn literals_and_comments_are_one_token_each() {
        let source = r##"/// doc
// plain "
fn a<'b>(c: &'b str) { /* x /* y */ */ f('"', b'\'', "\"//", r#"" } fn"#, r#type) }"##;
        let found = tokens(source);
        let of = |kind: Kind| -> Vec<&str> {
            let own = found.iter().filter(|token| token.kind == kind);
            own.map(|token| token.text).collect()
        };
        assert_eq!(of(Kind::Doc), ["/// doc"]);
        assert_eq!(of(Kind::Comment), ["// plain \"", "/* x /* y */ */"]);
        assert_eq!(
            of(Kind::Literal),
            ["'\"'", "b'\\''", "\"\\\"//\"", "r#\"\" } fn\"#"]
        );
        assert!(of(Kind::Word).contains(&"'b"));
        assert_eq!(functions(&code(source)), [1]);
    }

    #[test]
    fn tests_are_told_from_the_rest() {
        let source = "fn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod c;\nfn d();";
        let code = code(source);
        assert_eq!(tests(&code).len(), 2);
        let kept: String = without_tests(&code)
            .iter()
            .map(|token| token.text)
            .collect();
        assert_eq!(kept, "fna(){}fnd();");
        assert_eq!(functions(&code), [2, 1]);
    }
}
