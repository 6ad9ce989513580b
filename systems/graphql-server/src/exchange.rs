//! GraphQL over HTTP: what a request to `/graphql` asks for, decided from its head alone.
//!
//! The rules are those of the GraphQL-over-HTTP specification (draft of graphql.github.io). They
//! are pure functions on plain types, so that both servers share them and tests need no socket.
//!
//! Absent on purpose: batches, file uploads and subscriptions.

mod accept;

use crate::reply::{self, Media, Reply, Status};
use accept::Wish;

/// The parts of a request's head that decide what happens to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The `Accept` header.
    pub accept: Option<&'a str>,
    /// The `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// The `Content-Length` header, in bytes; `None` for a chunked body.
    pub content_length: Option<u64>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The request is in the body: read it, execute it, answer with this media type.
    ReadBody(Media),
    /// The request is in the parameters of the URL.
    ReadParameters(Media),
    /// There is nothing to execute.
    Reply(Reply),
}

/// The methods of `/graphql`.
const METHODS: &str = "GET, POST";

/// Decides what a request to `/graphql` asks for. `body_limit` is in bytes.
#[must_use]
pub fn admit(head: &Head<'_>, body_limit: u64) -> Step {
    let is_get = match head.method {
        "POST" => false,
        "GET" => true,
        _ => return Step::Reply(reply::method_not_allowed(METHODS)),
    };
    let media = match accept::wish(head.accept, is_get) {
        Some(Wish::Response(media)) => media,
        Some(Wish::Page) => return Step::Reply(reply::page()),
        None => {
            return Step::Reply(Media::Json.refusal(
                Status::NotAcceptable,
                "the response is application/graphql-response+json or application/json; accept one of them",
            ));
        }
    };
    if is_get {
        return Step::ReadParameters(media);
    }
    if !is_json_in_utf8(head.content_type) {
        return Step::Reply(unsupported(head.content_type, media));
    }
    match head.content_length {
        Some(length) if length > body_limit => Step::Reply(media.too_large(body_limit)),
        _ => Step::ReadBody(media),
    }
}

/// The answer of a path that only shows something, such as `/health`.
#[must_use]
pub fn show(method: &str, page: impl FnOnce() -> Reply) -> Reply {
    match method {
        "GET" | "HEAD" => page(),
        _ => reply::method_not_allowed("GET, HEAD"),
    }
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More bytes than the limit.
    #[error("the body is larger than the limit")]
    TooLarge,
    /// The client took too long to send it.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke or the chunks are malformed.
    #[error("the body ended early or is malformed")]
    Broken,
}

impl Media {
    /// The answer to a body that could not be read.
    #[must_use]
    pub fn unread(self, error: BodyError, body_limit: u64) -> Reply {
        match error {
            BodyError::TooLarge => self.too_large(body_limit),
            BodyError::TooSlow => Reply {
                close: true,
                ..self.refusal(Status::RequestTimeout, error)
            },
            BodyError::Broken => Reply {
                close: true,
                ..self.refusal(Status::BadRequest, error)
            },
        }
    }

    fn too_large(self, body_limit: u64) -> Reply {
        let message = format!("the body is larger than the limit of {body_limit} bytes");
        Reply {
            close: true,
            ..self.refusal(Status::ContentTooLarge, message)
        }
    }
}

fn unsupported(found: Option<&str>, media: Media) -> Reply {
    const EXPECTED: &str = "the content type of a POST must be application/json in utf-8";
    let message = match found {
        Some(found) => format!("{EXPECTED}, found `{found}`"),
        None => format!("{EXPECTED}, found none"),
    };
    media.refusal(Status::UnsupportedMediaType, message)
}

/// Whether the body is said to be JSON in UTF-8, which JSON is when no charset is given.
fn is_json_in_utf8(content_type: Option<&str>) -> bool {
    let Some(content_type) = content_type else {
        return false;
    };
    let mut parts = content_type.split(';').map(str::trim);
    let is_json = parts
        .next()
        .is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    is_json && parts.all(accept::is_not_another_charset)
}

#[cfg(test)]
mod tests;
