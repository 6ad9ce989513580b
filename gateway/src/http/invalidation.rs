//! The endpoint that invalidates cached responses of subgraphs (`response_cache.invalidation`).

use gateway_extensions::AnswerCache;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::http::reply::{self, Reply};
use crate::process::generation::Generation;

/// Maximum size of a body in bytes.
const BODY_MAX: usize = 64 << 10;

/// One item of an invalidation request.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Stale {
    /// All responses of a subgraph.
    Subgraph { subgraph: String },
    /// All entities of one type. `Query` means all responses that are not entities.
    Type {
        subgraph: String,
        #[serde(rename = "type")]
        of: String,
    },
    /// One entity. It invalidates its whole type, because cache keys distinguish only types.
    Entity {
        subgraph: String,
        #[serde(rename = "type")]
        of: String,
    },
}

impl Stale {
    fn parts(&self) -> (&str, Option<&str>) {
        match self {
            Self::Subgraph { subgraph } => (subgraph, None),
            Self::Type { subgraph, of } | Self::Entity { subgraph, of } => (subgraph, Some(of)),
        }
    }
}

/// Handles an invalidation request. It applies either the whole list or no item.
pub(crate) async fn answer(generation: &Generation, parts: Parts, body: Incoming) -> Reply {
    if parts.method != Method::POST {
        let mut reply = reply::empty(StatusCode::METHOD_NOT_ALLOWED);
        let allow = HeaderValue::from_static("POST");
        reply.headers.insert(header::ALLOW, allow);
        return reply;
    }
    let Some(answers) = generation.extensions.answers() else {
        return reply::empty(StatusCode::NOT_FOUND);
    };
    let key = parts.headers.get(header::AUTHORIZATION);
    let Some(key) = key.map(HeaderValue::as_bytes) else {
        return refusal(StatusCode::UNAUTHORIZED, "Missing authorization header");
    };
    let limit = generation.config.traffic_shaping.router.timeout.0;
    let read = tokio::time::timeout(limit, Limited::new(body, BODY_MAX).collect());
    let Ok(Ok(body)) = read.await else {
        let told = "the body is too large, too slow or malformed";
        return refusal(StatusCode::BAD_REQUEST, told);
    };
    let list: Vec<Stale> = match serde_json::from_slice(&body.to_bytes()) {
        Ok(list) => list,
        Err(error) => {
            let told = format!("Invalid body payload: {error}");
            return refusal(StatusCode::BAD_REQUEST, &told);
        }
    };
    carry_out(answers, &list, key).await
}

async fn carry_out(answers: &AnswerCache, list: &[Stale], key: &[u8]) -> Reply {
    let digest = |key: &[u8]| Sha256::digest(key);
    // Compares hashes, so that the time of a comparison reveals no part of the key.
    let may = |stale: &Stale| {
        let own = answers.shared_key(stale.parts().0);
        own.is_some_and(|own| digest(own.as_bytes()) == digest(key))
    };
    if !list.iter().all(may) {
        return refusal(StatusCode::UNAUTHORIZED, "Invalid authorization header");
    }
    for stale in list {
        let (subgraph, of) = stale.parts();
        if let Err(error) = answers.invalidate(subgraph, of).await {
            log::error!("an invalidation is not carried out: {error}");
            let told = "Redis did not take the invalidation; send the list again";
            return refusal(StatusCode::SERVICE_UNAVAILABLE, told);
        }
    }
    let body = json!({ "count": list.len() }).to_string();
    reply::with_body(StatusCode::ACCEPTED, reply::JSON, body)
}

fn refusal(status: StatusCode, message: &str) -> Reply {
    let body = json!({"error": message}).to_string();
    reply::with_body(status, reply::JSON, body)
}
