//! Responses to requests that never reach a schema.
//!
//! `graphql_http` decides how a request to `/graphql` is handled. Here the result becomes a [`Reply`].

use graphql_http::body::BodyError;
use graphql_http::{Head, Media, RequestRefusal};

use crate::reply::{self, Reply};

/// The next step for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The request is in the body. Read it, execute it, and respond in this media type.
    ReadBody(Media),
    /// The request is in the parameters of the URL.
    ReadParameters(Media),
    /// Send this response. The request has no operation to execute.
    Reply(Reply),
}

/// Decides the next step for a request to `/graphql`. `body_limit` is in bytes.
pub fn admit<'a, Lines>(head: Head<'a, Lines>, body_limit: u64) -> NextStep
where
    Lines: Iterator<Item = &'a [u8]>,
{
    match graphql_http::admit(head, body_limit, true) {
        graphql_http::Admission::ReadBody(media) => NextStep::ReadBody(media),
        graphql_http::Admission::ReadParameters(media) => NextStep::ReadParameters(media),
        graphql_http::Admission::Page => NextStep::Reply(reply::page()),
        graphql_http::Admission::Refuse(media, refusal) => {
            NextStep::Reply(reply::refused(media, &refusal))
        }
    }
}

/// The response to an unreadable body.
#[must_use]
pub fn unread(media: Media, error: BodyError, body_limit: u64) -> Reply {
    reply::refused(media, &RequestRefusal::of_body(error, body_limit))
}

/// The response of a read-only path, such as `/health`.
#[must_use]
pub fn show(method: &str, page: impl FnOnce() -> Reply) -> Reply {
    match method {
        "GET" | "HEAD" => page(),
        _ => reply::method_not_allowed("GET, HEAD"),
    }
}
