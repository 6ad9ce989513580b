//! Refusals of requests that are already invalid by HTTP.

use crate::body::BodyError;

/// The reason why no operation is executed. Displays as the message for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// The method is neither GET nor POST.
    #[error("this path serves GET, POST only")]
    Method,
    /// A GET must not execute a mutation.
    #[error("a mutation must be sent with POST, found GET")]
    MutationByGet,
    /// The client accepts no available media type.
    #[error(
        "the response is application/graphql-response+json or application/json; accept one of them"
    )]
    NotAcceptable,
    /// The body is not declared as JSON. Contains the declared type.
    #[error("the content type of a POST must be application/json in utf-8, found {}", found(.0.as_deref()))]
    ContentType(Option<String>),
    /// The body has a content coding. Contains its name (RFC 9110, section 15.5.16).
    #[error("the body has the content coding `{0}`; send it without one")]
    ContentEncoding(String),
    /// The body is larger than the limit, in bytes.
    #[error("the body is larger than the limit of {0} bytes")]
    TooLarge(u64),
    /// The body was not read to its end for another reason.
    #[error(transparent)]
    Unread(BodyError),
}

fn found(content_type: Option<&str>) -> String {
    content_type.map_or_else(|| "none".to_owned(), |found| format!("`{found}`"))
}

impl RequestRefusal {
    /// The refusal of an unreadable body. `limit` is in bytes.
    #[must_use]
    pub fn of_body(error: BodyError, limit: u64) -> Self {
        match error {
            BodyError::TooLarge => Self::TooLarge(limit),
            error => Self::Unread(error),
        }
    }

    /// The refusal of a body with a content coding, from the value of `Content-Encoding`. `None` if the body has
    /// no coding.
    #[must_use]
    pub fn of_coding(content_encoding: Option<&[u8]>) -> Option<Self> {
        let coding = content_encoding?.trim_ascii();
        let is_plain = coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
        (!is_plain).then(|| Self::ContentEncoding(String::from_utf8_lossy(coding).into_owned()))
    }

    /// The HTTP status of the response.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::Method | Self::MutationByGet => 405,
            Self::NotAcceptable => 406,
            Self::ContentType(_) | Self::ContentEncoding(_) => 415,
            Self::TooLarge(_) | Self::Unread(BodyError::TooLarge) => 413,
            Self::Unread(BodyError::TooSlow) => 408,
            Self::Unread(BodyError::Broken) => 400,
        }
    }

    /// The `Allow` header for status 405.
    #[must_use]
    pub const fn allow(&self) -> Option<&'static str> {
        match self {
            Self::Method => Some("GET, POST"),
            Self::MutationByGet => Some("POST"),
            _ => None,
        }
    }

    /// True if the connection must end, because the request was not read to its end.
    #[must_use]
    pub const fn closes(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Unread(_))
    }
}
