//! Decides from its head how a request to a GraphQL endpoint is handled.

use http::Method;
use http::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
};

use crate::accept::{Negotiated, negotiate};
use crate::content_type::is_json;
use crate::media::Media;
use crate::refusal::RequestRefusal;

/// The relevant parts of a request's head.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head<'a, Lines> {
    /// The method in its original case.
    pub method: &'a str,
    /// The lines of the `Accept` header.
    pub accept: Lines,
    /// The value of `Content-Type`.
    pub content_type: Option<&'a [u8]>,
    /// The value of `Content-Encoding`.
    pub content_encoding: Option<&'a [u8]>,
    /// The `Content-Length` header, in bytes. `None` for a chunked body.
    pub content_length: Option<u64>,
}

impl<'a> Head<'a, ()> {
    /// Reads the relevant parts of a hyper request's head.
    #[must_use]
    pub fn of(
        method: &'a Method,
        headers: &'a HeaderMap,
    ) -> Head<'a, impl Iterator<Item = &'a [u8]>> {
        let length = headers.get(CONTENT_LENGTH);
        // hyper has refused a length that is not a number. Without a length, `body` counts the bytes as it
        // reads them.
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        Head {
            method: method.as_str(),
            accept: headers.get_all(ACCEPT).iter().map(HeaderValue::as_bytes),
            content_type: headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes),
            content_encoding: headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes),
            content_length: length,
        }
    }
}

/// The next step for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request is in the body. Read it, execute it, and respond in this media type.
    ReadBody(Media),
    /// The request is in the parameters of the URL.
    ReadParameters(Media),
    /// The client is a browser that wants the page.
    Page,
    /// Send this refusal in this media type. The request has no operation to execute.
    Refuse(Media, RequestRefusal),
}

/// Decides the next step for a request to a GraphQL endpoint. `body_limit` is in bytes.
pub fn admit<'a, Lines>(head: Head<'a, Lines>, body_limit: u64, page_is_offered: bool) -> Admission
where
    Lines: Iterator<Item = &'a [u8]>,
{
    let is_get = match head.method {
        "POST" => false,
        "GET" => true,
        _ => return Admission::Refuse(Media::Json, RequestRefusal::Method),
    };
    // Before the body, so that a refusal already has a media type that the client accepts.
    let media = match negotiate(head.accept, is_get && page_is_offered) {
        Some(Negotiated::Response(media)) => media,
        Some(Negotiated::Page) => return Admission::Page,
        None => return Admission::Refuse(Media::Json, RequestRefusal::NotAcceptable),
    };
    if is_get {
        return Admission::ReadParameters(media);
    }
    if !is_json(head.content_type, &["application/json"]) {
        let found = head.content_type.map(String::from_utf8_lossy);
        let refusal = RequestRefusal::ContentType(found.map(std::borrow::Cow::into_owned));
        return Admission::Refuse(media, refusal);
    }
    if let Some(refusal) = RequestRefusal::of_coding(head.content_encoding) {
        return Admission::Refuse(media, refusal);
    }
    // Only the announced length: a refusal then needs no read of the body.
    match head.content_length {
        Some(length) if length > body_limit => {
            Admission::Refuse(media, RequestRefusal::TooLarge(body_limit))
        }
        _ => Admission::ReadBody(media),
    }
}

#[cfg(test)]
mod tests;
