//! Automatic persisted queries. Clients send the hash of a text instead of the text. They send the text once,
//! when the gateway does not have it yet.

use std::sync::Arc;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use gateway_config::Apq;
use gateway_extensions::Exchange;
use graphql_http::{GraphqlRequest, Media, RawObject};
use http::StatusCode;
use http::header::{self, HeaderValue};
use operation_cache::{Bounds, CacheStats, Keep, Key, OperationCache};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::http::reply::{self, Refusal, Reply};

/// Context entries for stages, as in the original.
const CACHE_HIT: &str = "apollo::apq::cache_hit";
const REGISTERED: &str = "apollo::apq::registered";

/// Text in the body of every request with a persisted query. `RARE` is a letter of it that is rare in other
/// text, and `BEFORE_RARE` is the length of the text before this letter.
const MARK: &[u8] = b"persistedQuery";
const RARE: u8 = b'Q';
const BEFORE_RARE: usize = b"persisted".len();

/// The cached texts of all clients, by their hashes.
#[derive(Debug)]
pub(crate) struct Queries {
    /// Texts by hash in hexadecimal digits.
    texts: OperationCache<Arc<str>>,
    /// Maximum length of a cached text. Otherwise one client could evict all other texts with few requests.
    longest: usize,
}

/// One text may use at most this fraction of the cache (1/16).
const SHARE_MAX: usize = 16;

/// The `extensions` member of a client's request.
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
    /// Creates an empty cache. `None` if persisted queries are off.
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

/// True if the body contains [`MARK`]. A search for one rare letter needs no lookup tables, which a search
/// for the whole word would build for each request.
fn is_marked(body: &[u8]) -> bool {
    memchr::memchr_iter(RARE, body).any(|at| {
        let start = at.checked_sub(BEFORE_RARE);
        start.is_some_and(|start| body[start..].starts_with(MARK))
    })
}

/// Replaces a hash by its text, or stores both. `known` is `None` if persisted queries are off.
///
/// # Errors
/// Returns a response that makes the client send the text, or that reports a wrong hash.
pub(crate) fn supply(
    known: Option<&Queries>,
    exchange: &Exchange,
    media: Media,
    body: &mut Bytes,
) -> Result<(), Refusal> {
    // Most requests have no hash. For them, this search is the only cost.
    if !is_marked(body) {
        return Ok(());
    }
    // Invalid requests pass here. The parser rejects them later.
    let read = graphql_http::from_checked_body_or_hash::<RawObject<'_>, RawObject<'_>>(body);
    let Ok(request) = read else {
        return Ok(());
    };
    let extensions = request.extensions.map(RawObject::text);
    let extensions = extensions.and_then(|text| serde_json::from_str::<Extensions<'_>>(text).ok());
    let Some(asked) = extensions.and_then(|it| it.persisted_query) else {
        return Ok(());
    };
    let text = request.query.as_deref().filter(|text| !text.is_empty());
    let hash = digest(&asked.sha256_hash).filter(|_| asked.version == 1);
    let Some(hash) = hash else {
        // A text with a hash that cannot be its hash is a mistake of the client.
        return match (known, text) {
            (Some(_), Some(_)) => Err(Box::new(mismatch(media))),
            _ => Ok(()),
        };
    };
    let Some(known) = known else {
        // A client that also sends the text needs no persisted queries.
        return match text {
            Some(_) => Ok(()),
            None => Err(Box::new(unknown(media, NOT_SUPPORTED))),
        };
    };
    if let Some(text) = text {
        let own = HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
        if own != hash {
            return Err(Box::new(mismatch(media)));
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

/// Message and code of a rejection.
pub(crate) struct Reason<'a> {
    pub(crate) message: &'a str,
    pub(crate) code: &'a str,
}

/// Message and code that make a client send the text of this operation.
const NOT_FOUND: Reason<'_> = Reason {
    message: "PersistedQueryNotFound",
    code: "PERSISTED_QUERY_NOT_FOUND",
};

/// Message and code that make a client send the text of every operation.
const NOT_SUPPORTED: Reason<'_> = Reason {
    message: "PersistedQueryNotSupported",
    code: "PERSISTED_QUERY_NOT_SUPPORTED",
};

fn unknown(media: Media, why: Reason<'_>) -> Reply {
    let mut reply = refusal(StatusCode::OK, media, why);
    // The next response to this URL may be different.
    let never = HeaderValue::from_static("private, no-cache, must-revalidate");
    reply.headers.insert(header::CACHE_CONTROL, never);
    reply
}

fn mismatch(media: Media) -> Reply {
    let why = Reason {
        message: "provided sha does not match query",
        code: "PERSISTED_QUERY_HASH_MISMATCH",
    };
    refusal(StatusCode::BAD_REQUEST, media, why)
}

fn refusal(status: StatusCode, media: Media, why: Reason<'_>) -> Reply {
    let error = gateway_federation::GraphqlError::new(why.message, why.code);
    reply::errors(status, reply::content_type(media), &[error])
}

/// Returns a valid hash in lower-case letters.
fn digest(text: &str) -> Option<String> {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| text.to_ascii_lowercase())
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
