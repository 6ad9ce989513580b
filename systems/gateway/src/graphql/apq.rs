//! Automatic persisted queries: clients send the hash of a text in place of the text, which they send
//! once, when the hash is not known.

use std::sync::Arc;

use bytes::Bytes;
use gateway_config::Apq;
use gateway_extensions::Exchange;
use graphql_http::{GraphqlRequest, Media, RawObject};
use http::StatusCode;
use http::header::{self, HeaderValue};
use operation_cache::{Bounds, CacheStats, Keep, Key, OperationCache};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::http::reply::{self, Refusal, Reply};

/// The context entries that stages find, as in the original.
const CACHE_HIT: &str = "apollo::apq::cache_hit";
const REGISTERED: &str = "apollo::apq::registered";

/// What stands in the body of every request that is one for [`Queries`], and the letter of it that is
/// rare elsewhere, with what stands before it.
const MARK: &[u8] = b"persistedQuery";
const RARE: u8 = b'Q';
const BEFORE_RARE: usize = b"persisted".len();

/// The texts that clients have sent with their hashes.
#[derive(Debug)]
pub(crate) struct Queries {
    /// By hash, in hexadecimal digits.
    texts: OperationCache<Arc<str>>,
    /// A longer text is not kept: one client could otherwise push out all others' with few requests.
    longest: usize,
}

/// How one text may compare with all.
const SHARE_MAX: usize = 16;

/// What clients send in `extensions`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extensions<'a> {
    #[serde(borrow)]
    persisted_query: Option<PersistedQuery<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PersistedQuery<'a> {
    version: u32,
    #[serde(borrow)]
    sha256_hash: std::borrow::Cow<'a, str>,
}

impl Queries {
    /// Nothing is known yet; nothing at all where clients must send texts.
    pub(crate) fn new(config: &Apq) -> Option<Self> {
        let limits = &config.router.cache.in_memory;
        config.enabled.then(|| Self {
            texts: OperationCache::new(Bounds {
                entries: limits.limit.get(),
                bytes: limits.max_bytes.0.0,
            }),
            longest: limits.max_bytes.0.0 / SHARE_MAX,
        })
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.texts.stats()
    }

    fn keep(&self, hash: &str, query: &str) {
        if query.len() <= self.longest {
            let bytes = query.len();
            let keep = || (Arc::from(query), Keep::Yes { bytes });
            self.texts.get_or_make(Key::new(hash, None), keep);
        }
    }
}

/// Whether [`MARK`] stands in a body. A search by its rare letter needs no tables for the whole word,
/// which would be made anew for each request.
fn is_marked(body: &[u8]) -> bool {
    memchr::memchr_iter(RARE, body).any(|at| {
        let start = at.checked_sub(BEFORE_RARE);
        start.is_some_and(|start| body[start..].starts_with(MARK))
    })
}

/// Puts the text in place of its hash, or remembers both. `known` is nothing where clients must send
/// texts.
///
/// # Errors
/// The answer that makes a client send the text, or that says that the hash is of another one.
pub(crate) fn supply(
    known: Option<&Queries>,
    exchange: &Exchange,
    media: Media,
    body: &mut Bytes,
) -> Result<(), Refusal> {
    // Most requests have none: they pay for a look at their bytes.
    if !is_marked(body) {
        return Ok(());
    }
    // A body that is not a request is refused where all are read.
    let read = graphql_http::from_checked_body_or_hash::<RawObject<'_>, RawObject<'_>>(body);
    let Ok(request) = read else {
        return Ok(());
    };
    let extensions = request.extensions.map(RawObject::text);
    let extensions = extensions.and_then(|text| serde_json::from_str::<Extensions<'_>>(text).ok());
    let asked = extensions
        .and_then(|it| it.persisted_query)
        .filter(|it| it.version == 1)
        .and_then(|it| digest(&it.sha256_hash));
    let Some(hash) = asked else {
        return Ok(());
    };
    let text = request.query.as_deref().filter(|text| !text.is_empty());
    let Some(known) = known else {
        // A client that also sends the text needs no persisted queries.
        return match text {
            Some(_) => Ok(()),
            None => Err(Box::new(unknown(media, NOT_SUPPORTED))),
        };
    };
    if let Some(text) = text {
        let own = hexadecimal(&Sha256::digest(text.as_bytes()));
        if own != hash {
            let mismatch = (
                "provided sha does not match query",
                "PERSISTED_QUERY_HASH_MISMATCH",
            );
            return Err(Box::new(refusal(StatusCode::BAD_REQUEST, media, mismatch)));
        }
        known.keep(&hash, text);
        exchange.context.insert(REGISTERED, true.into());
        return Ok(());
    }
    let found = known.texts.get(Key::new(&hash, None));
    exchange.context.insert(CACHE_HIT, found.is_some().into());
    let Some(text) = found else {
        return Err(Box::new(unknown(media, NOT_FOUND)));
    };
    *body = graphql_http::to_json(&GraphqlRequest {
        query: (&*text).into(),
        operation_name: request.operation_name,
        variables: request.variables,
        extensions: request.extensions,
    })
    .into();
    Ok(())
}

/// Message and code by which clients know that they have to send the text this time …
const NOT_FOUND: (&str, &str) = ("PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND");

/// … and every time.
const NOT_SUPPORTED: (&str, &str) = (
    "PersistedQueryNotSupported",
    "PERSISTED_QUERY_NOT_SUPPORTED",
);

fn unknown(media: Media, why: (&str, &str)) -> Reply {
    let mut reply = refusal(StatusCode::OK, media, why);
    // The next answer to the same URL may be another one.
    let never = HeaderValue::from_static("private, no-cache, must-revalidate");
    reply.headers.insert(header::CACHE_CONTROL, never);
    reply
}

fn refusal(status: StatusCode, media: Media, (message, code): (&str, &str)) -> Reply {
    let error = gateway_federation::GraphqlError::new(message, code);
    reply::errors(status, reply::content_type(media), &[error])
}

/// A hash in small letters, if it is one.
fn digest(text: &str) -> Option<String> {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| text.to_ascii_lowercase())
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_wherever_it_stands_and_nothing_else_is_taken_for_it() {
        for body in [
            "persistedQuery",
            r#"{"query":"query Q { Quote }","extensions":{"persistedQuery":{"version":1}}}"#,
            "QQpersistedpersistedQuery",
        ] {
            assert!(is_marked(body.as_bytes()), "{body}");
        }
        for body in [
            "",
            "Q",
            "{\"query\":\"query Q { a }\"}",
            "persistedQuer",
            "ersistedQuery",
        ] {
            assert!(!is_marked(body.as_bytes()), "{body}");
        }
    }
}
