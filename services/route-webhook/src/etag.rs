//! Entity tags of answers to hooks. metacontroller keeps an answer with its tag.
//!
//! metacontroller sends `If-None-Match` with a POST, and takes 304 for "as before". HTTP itself defines 304
//! for GET alone.

use data_encoding::HEXLOWER;
use hyper::header::{HeaderMap, IF_NONE_MATCH};
use sha2::{Digest as _, Sha256};

/// The strong tag of an answer: half of its SHA-256, in quotes.
pub(crate) fn of(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    format!("\"{}\"", HEXLOWER.encode(&digest[..16]))
}

/// True if the client already has the answer with this tag. `*` names no answer, so it never matches.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter();
    let mut known = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    known.any(|it| {
        let it = it.trim_ascii();
        // A proxy that compresses makes the tag weak, which `If-None-Match` ignores.
        it.strip_prefix(b"W/").unwrap_or(it) == tag.as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_tag_depends_on_every_byte() {
        let tag = of(b"{}");
        assert_eq!(tag, "\"44136fa355b3678a1146ad16f7e8649e\"");
        assert_ne!(tag, of(b"{} "));
    }

    #[test]
    fn a_tag_is_found_in_a_list() {
        let is_known = |line: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static(line));
            is_known(&headers, "\"a\"")
        };
        assert!(is_known("\"a\"") && is_known("W/\"a\"") && is_known("\"b\", \"a\""));
        assert!(!is_known("a") && !is_known("*") && !is_known("\"ab\"") && !is_known(""));
    }
}
