//! The `Content-Encoding` of a response, by name.

use std::borrow::Cow;

use model::IDENTITY;

use crate::coding;
use crate::parser::Head;
use crate::recorder::encodings::Encoding;

/// Codings that nearly all servers use, so that their names need no memory.
const USUAL: [&str; 4] = ["gzip", "br", "zstd", "deflate"];

/// Returns the content coding of a response, or `identity` without a coding.
#[inline]
pub(crate) fn encoding_of(head: &Head<'_>) -> Encoding {
    // The length of the name excludes nearly all headers at the price of one comparison.
    let is_encoding =
        |name: &str| name.len() == 16 && name.eq_ignore_ascii_case("content-encoding");
    let mut values = head.headers().filter(|(name, _)| is_encoding(name));
    let Some((_, first)) = values.next() else {
        return Cow::Borrowed(IDENTITY);
    };
    let rest: Vec<&[u8]> = values.map(|(_, value)| value).collect();
    if rest.is_empty()
        && let Some(usual) = USUAL
            .iter()
            .find(|usual| usual.as_bytes().eq_ignore_ascii_case(first))
    {
        return Cow::Borrowed(usual);
    }
    named([first].into_iter().chain(rest))
}

#[cold]
fn named<'a>(values: impl Iterator<Item = &'a [u8]>) -> Encoding {
    coding::joined(values).map_or(Cow::Borrowed(IDENTITY), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use httparse::Header;

    use super::*;

    fn of(values: &[&str]) -> Encoding {
        let headers: Vec<Header<'_>> = values
            .iter()
            .map(|value| Header {
                name: "Content-Encoding",
                value: value.as_bytes(),
            })
            .collect();
        encoding_of(&Head::new(200, &headers))
    }

    #[test]
    fn responses_are_named_by_their_content_coding() {
        assert_eq!(of(&[]), "identity");
        assert_eq!(of(&["gzip"]), "gzip");
        assert_eq!(of(&["GZip "]), "gzip");
        assert_eq!(of(&["deflate", "br"]), "deflate, br");
        assert_eq!(of(&["identity"]), "identity");
    }
}
