//! Several operations in one request: a list in the body. The response is a list, too.

use std::fmt;
use std::num::NonZeroUsize;

use bytes::Bytes;
use gateway_config::Batching;
use gateway_extensions::ClientHead;
use gateway_federation::GraphqlError;
use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::http::reply::{self, JSON, Refusal, Reply};

/// Number of operations of one request that run at a time. Each operation has a memory limit for subgraph
/// responses of its own.
pub(crate) const AT_A_TIME: usize = 8;

/// The operations of a request. `None` if the request is not a list or lists are off.
///
/// # Errors
/// Returns the response to a list that is empty, too long, or invalid.
pub(crate) fn operations(
    batching: &Batching,
    head: &ClientHead,
    body: &Bytes,
) -> Option<Result<Vec<Bytes>, Refusal>> {
    if !batching.enabled || head.method != Method::POST {
        return None;
    }
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    (first == Some(&b'[')).then(|| split(batching, body))
}

fn split(batching: &Batching, body: &Bytes) -> Result<Vec<Bytes>, Refusal> {
    let invalid = |reason: &str| Box::new(reply::invalid_request(StatusCode::BAD_REQUEST, reason));
    let most = batching.maximum_size.map_or(usize::MAX, NonZeroUsize::get);
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = Items { most }.deserialize(&mut reader);
    let (items, count) = read
        .and_then(|read| reader.end().map(|()| read))
        .map_err(|error| invalid(&format!("the body is not a list of operations: {error}")))?;
    if count == 0 {
        return Err(invalid(
            "failed to decode a valid GraphQL request from path: empty array",
        ));
    }
    if count > most {
        let details = format!(
            "Batch limits exceeded: you provided a batch with {count} entries, but the configured maximum router batch size is {most}"
        );
        let error = GraphqlError::new("Invalid GraphQL request", "BATCH_LIMIT_EXCEEDED")
            .with("details", details);
        return Err(Box::new(reply::errors(
            StatusCode::UNPROCESSABLE_ENTITY,
            JSON,
            &[error],
        )));
    }
    let items = items.iter();
    Ok(items
        .map(|item| body.slice_ref(item.get().as_bytes()))
        .collect())
}

/// Reads a list. Keeps at most the allowed number of items and only counts the rest, because an item needs
/// only two bytes of the body.
struct Items {
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Items {
    type Value = (Vec<&'de RawValue>, usize);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items {
    type Value = (Vec<&'de RawValue>, usize);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        let mut count = 0;
        loop {
            let is_more = if count < self.most {
                let item: Option<&RawValue> = list.next_element()?;
                let is_more = item.is_some();
                items.extend(item);
                is_more
            } else {
                list.next_element::<IgnoredAny>()?.is_some()
            };
            if !is_more {
                return Ok((items, count));
            }
            count += 1;
        }
    }
}

/// The list of the responses until now.
pub(crate) struct AnswerList {
    body: Vec<u8>,
    limit: usize,
    status: Option<StatusCode>,
    headers: HeaderMap,
}

impl AnswerList {
    /// Creates an empty list with at most `limit` bytes of responses.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            body: b"[".to_vec(),
            limit,
            status: None,
            headers: HeaderMap::new(),
        }
    }

    /// Adds a response. A response beyond the limit becomes an error.
    pub(crate) fn push(&mut self, reply: Reply) {
        if self.body.len() > 1 {
            self.body.push(b',');
        }
        // Each response has a limit of its own, but the list would be as large as all of them together.
        if self.body.len() + reply.body.len() > self.limit {
            let error = GraphqlError::new(
                "the answers to this list exceed `limits.response_max_bytes`",
                "RESPONSE_TOO_LARGE",
            );
            let body = gateway_federation::errors_body(&[error]);
            self.body.extend_from_slice(&body);
        } else if reply.body.is_empty() {
            self.body.extend_from_slice(b"null");
        } else {
            self.body.extend_from_slice(&reply.body);
        }
        // A list with one successful response is successful, because clients read it only then.
        match self.status {
            Some(status) if status == StatusCode::OK => {}
            Some(_) if reply.status != StatusCode::OK => {}
            _ => self.status = Some(reply.status),
        }
        for (name, value) in &reply.headers {
            let is_told = *name == header::CONTENT_TYPE || *name == header::CONTENT_LENGTH;
            let is_first = !self.headers.contains_key(name);
            if !is_told && (is_first || *name == header::SET_COOKIE) {
                self.headers.append(name.clone(), value.clone());
            }
        }
    }

    /// Builds the reply with the list.
    pub(crate) fn reply(mut self) -> Reply {
        self.body.push(b']');
        self.headers.insert(header::CONTENT_TYPE, JSON);
        Reply {
            status: self.status.unwrap_or(StatusCode::OK),
            headers: self.headers,
            body: self.body.into(),
            part: None,
        }
    }
}
