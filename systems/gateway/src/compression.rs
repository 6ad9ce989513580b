//! Compression of answers, for clients that accept it.
//!
//! Bodies are complete before they are compressed, so that each is one call. Small ones stay as
//! they are: the header of a compressed stream costs more than it saves.

use std::io::Write as _;

use bytes::Bytes;
use graphql_http::parse_weight;
use http::HeaderMap;
use http::header::{self, HeaderValue};

use crate::reply::Reply;

/// Smallest body that is compressed, in bytes.
const BODY_MIN: usize = 1024;

/// The codings that the gateway can write, preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Zstd,
    Brotli,
    Gzip,
    Deflate,
}

const CODINGS: [(&str, Coding); 5] = [
    ("zstd", Coding::Zstd),
    ("br", Coding::Brotli),
    ("gzip", Coding::Gzip),
    ("x-gzip", Coding::Gzip),
    ("deflate", Coding::Deflate),
];

/// Compresses the body of an answer if the client accepts it and the body is long enough.
pub(crate) fn compress(accept: Option<&HeaderValue>, reply: &mut Reply) {
    let Some(accept) = accept.and_then(|value| value.to_str().ok()) else {
        return;
    };
    if reply.body.len() < BODY_MIN || reply.headers.contains_key(header::CONTENT_ENCODING) {
        return;
    }
    // Before the choice: that the body stays plain depends on the client's header as well.
    add_to_vary(&mut reply.headers);
    let Some(coding) = choose(accept) else {
        return;
    };
    match coding.encode(&reply.body) {
        Ok(body) => {
            reply.body = Bytes::from(body);
            let name = HeaderValue::from_static(coding.name());
            reply.headers.insert(header::CONTENT_ENCODING, name);
        }
        // The plain body is still a right answer, but writing to memory should not fail.
        Err(error) => log::error!("an answer could not be compressed: {error}"),
    }
}

fn add_to_vary(headers: &mut HeaderMap) {
    let value = match headers.get(header::VARY) {
        Some(vary) if vary.as_bytes() != b"origin" => return,
        _ => HeaderValue::from_static("origin, accept-encoding"),
    };
    headers.insert(header::VARY, value);
}

/// The coding with the highest weight; among equals the first of [`CODINGS`].
fn choose(accept: &str) -> Option<Coding> {
    let mut best: Option<(u16, usize)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts
            .find_map(|it| it.strip_prefix("q="))
            // No weight means 1. A malformed one counts as 0, so that it cannot choose a coding.
            .map_or(Some(1000), parse_weight)
            .unwrap_or(0);
        let place = match name.as_str() {
            // Gzip: every client that takes anything takes it.
            "*" => Some(2),
            name => CODINGS.iter().position(|(known, _)| *known == name),
        };
        if let Some(place) = place
            && weight > 0
            && best.is_none_or(|(had, at)| weight > had || (weight == had && place < at))
        {
            best = Some((weight, place));
        }
    }
    best.map(|(_, place)| CODINGS[place].1)
}

impl Coding {
    const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    fn encode(self, body: &[u8]) -> std::io::Result<Vec<u8>> {
        let out = Vec::with_capacity(body.len() / 2);
        match self {
            // zstd's own default level.
            Self::Zstd => zstd::bulk::compress(body, 3),
            Self::Brotli => {
                // Quality 4 with the default window: about gzip's time, a tenth smaller.
                let mut writer = brotli::CompressorWriter::new(out, 4096, 4, 22);
                writer.write_all(body)?;
                Ok(writer.into_inner())
            }
            Self::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(out, flate2::Compression::new(4));
                writer.write_all(body)?;
                writer.finish()
            }
            Self::Deflate => {
                let mut writer = flate2::write::ZlibEncoder::new(out, flate2::Compression::new(4));
                writer.write_all(body)?;
                writer.finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn reply(length: usize) -> Reply {
        Reply {
            body: Bytes::from("abcdefgh".repeat(length / 8)),
            ..Reply::default()
        }
    }

    fn compressed(accept: &'static str, length: usize) -> Reply {
        let mut reply = reply(length);
        compress(Some(&HeaderValue::from_static(accept)), &mut reply);
        reply
    }

    #[test]
    fn each_coding_can_be_read_back() {
        for name in ["zstd", "br", "gzip", "deflate"] {
            let reply = compressed(name, 8192);
            assert_eq!(reply.headers[header::CONTENT_ENCODING], name);
            let mut plain = Vec::new();
            match name {
                "zstd" => plain = zstd::decode_all(&reply.body[..]).unwrap(),
                "br" => {
                    brotli::Decompressor::new(&reply.body[..], 4096)
                        .read_to_end(&mut plain)
                        .unwrap();
                }
                "gzip" => {
                    flate2::read::GzDecoder::new(&reply.body[..])
                        .read_to_end(&mut plain)
                        .unwrap();
                }
                _ => {
                    flate2::read::ZlibDecoder::new(&reply.body[..])
                        .read_to_end(&mut plain)
                        .unwrap();
                }
            }
            assert_eq!(plain, reply_body(8192), "{name}");
        }
    }

    fn reply_body(length: usize) -> Bytes {
        reply(length).body
    }

    #[test]
    fn the_client_chooses_and_we_choose_among_equals() {
        assert_eq!(choose("gzip, deflate, br, zstd"), Some(Coding::Zstd));
        assert_eq!(choose("gzip, br;q=0.9"), Some(Coding::Gzip));
        assert_eq!(choose("*"), Some(Coding::Gzip));
        assert_eq!(choose("identity"), None);
        assert_eq!(choose("gzip;q=0"), None);
    }

    #[test]
    fn small_bodies_stay_as_they_are() {
        let reply = compressed("gzip", 512);
        assert!(!reply.headers.contains_key(header::CONTENT_ENCODING));
        assert_eq!(reply.body, reply_body(512));
    }

    #[test]
    fn caches_are_told_that_the_answer_depends_on_the_coding() {
        assert_eq!(
            compressed("gzip", 2048).headers[header::VARY],
            "origin, accept-encoding"
        );
    }
}
