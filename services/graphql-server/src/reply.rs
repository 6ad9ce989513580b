//! Responses as plain types: status, media type, body.
//!
//! Each library serializes the data inside a response itself, because this is part of the measurement.
//! Everything around it is written here, so that both servers write it equally.

use graphql_http::{Media, RequestRefusal};
use serde::Serialize;

/// The statuses of these servers, in the order of `/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the HTTP standard")]
pub enum Status {
    Ok,
    NoContent,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    RequestTimeout,
    ContentTooLarge,
    UnsupportedMediaType,
}

impl Status {
    /// All statuses, in the order of the enum.
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::NoContent,
        Self::BadRequest,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::RequestTimeout,
        Self::ContentTooLarge,
        Self::UnsupportedMediaType,
    ];

    /// The status with this code, which must be one of these.
    fn of(code: u16) -> Self {
        let found = Self::ALL.into_iter().find(|status| status.code() == code);
        found.expect("every status of a refusal is listed")
    }

    /// The numeric code of the status.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::NoContent => 204,
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::RequestTimeout => 408,
            Self::ContentTooLarge => 413,
            Self::UnsupportedMediaType => 415,
        }
    }
}

/// The body of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Built for this response.
    Made(Vec<u8>),
    /// A constant of the program.
    Fixed(&'static str),
}

impl Body {
    /// Length of the body in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Made(bytes) => bytes.len(),
            Self::Fixed(text) => text.len(),
        }
    }
}

/// A whole response, except for the headers that HTTP libraries add themselves (date, length).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status of the response.
    pub status: Status,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The `Allow` header for status 405.
    pub allow: Option<&'static str>,
    /// True if the connection must end, because the request was not read to its end.
    pub close: bool,
    /// The body of the response.
    pub body: Body,
}

/// A place in the document. Line and column start at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// One step from `data` to a field: a response key or an index in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PathSegment {
    /// A response key in an object.
    Key(String),
    /// An index in a list, from 0.
    Index(usize),
}

/// One entry of `errors` in a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphqlError {
    /// Description of the error.
    pub message: String,
    /// Places in the document, may be empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// Path in the data. Empty for errors of the whole request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathSegment>,
}

impl GraphqlError {
    /// An error of the whole request.
    #[must_use]
    pub fn of_request(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            locations: Vec::new(),
            path: Vec::new(),
        }
    }
}

/// The result of an execution.
#[derive(Debug)]
pub enum Outcome {
    /// Data without errors. Contains the whole body, see [`data_alone`].
    Data(Vec<u8>),
    /// Data, possibly null, and errors of fields. Contains the whole body, see [`with_errors`].
    Partial(Vec<u8>),
    /// The document or the variables are wrong, so no field was executed.
    Refused(Vec<GraphqlError>),
    /// A GET must not change data, so no field was executed.
    MutationByGet,
}

const JSON: &str = Media::Json.content_type();

/// The response to a well-formed request.
#[must_use]
pub fn of(media: Media, outcome: Outcome) -> Reply {
    let (status, body) = match outcome {
        Outcome::Data(body) | Outcome::Partial(body) => (Status::Ok, body),
        Outcome::Refused(errors) => {
            let status = Status::of(media.status_of_refused_document());
            (status, errors_alone(&errors))
        }
        Outcome::MutationByGet => return refused(media, &RequestRefusal::MutationByGet),
    };
    Reply {
        status,
        content_type: media.content_type(),
        allow: None,
        close: false,
        body: Body::Made(body),
    }
}

/// The response to a request that is already invalid by HTTP.
#[must_use]
pub fn refused(media: Media, refusal: &RequestRefusal) -> Reply {
    Reply {
        allow: refusal.allow(),
        close: refusal.closes(),
        ..error(media, Status::of(refusal.status()), refusal)
    }
}

/// A response with one error of the whole request.
#[must_use]
pub fn error(media: Media, status: Status, message: impl ToString) -> Reply {
    Reply {
        status,
        content_type: media.content_type(),
        allow: None,
        close: false,
        body: Body::Made(errors_alone(&[GraphqlError::of_request(message)])),
    }
}

/// A response with status 200.
fn fine(content_type: &'static str, body: Body) -> Reply {
    Reply {
        status: Status::Ok,
        content_type,
        allow: None,
        close: false,
        body,
    }
}

/// The response with the page for browsers.
#[must_use]
pub fn page() -> Reply {
    fine(graphiql::CONTENT_TYPE, Body::Fixed(graphiql::PAGE))
}

/// The response of `/health`.
#[must_use]
pub fn health() -> Reply {
    fine(JSON, Body::Fixed("{\"status\":\"ok\"}\n"))
}

/// The response of `/metrics`.
#[must_use]
pub fn metrics(text: String) -> Reply {
    let body = Body::Made(text.into_bytes());
    fine(telemetry::metrics::CONTENT_TYPE, body)
}

/// The response to a preflight.
#[must_use]
pub fn no_content() -> Reply {
    Reply {
        status: Status::NoContent,
        content_type: Media::Json.content_type(),
        allow: None,
        close: false,
        body: Body::Fixed(""),
    }
}

/// The response for every other path.
#[must_use]
pub fn not_found() -> Reply {
    error(
        Media::Json,
        Status::NotFound,
        "nothing is served here; try /graphql, /health or /metrics",
    )
}

/// The response for a method that a path does not support.
#[must_use]
pub fn method_not_allowed(allow: &'static str) -> Reply {
    let message = format!("this path serves {allow} only");
    Reply {
        allow: Some(allow),
        ..error(Media::Json, Status::MethodNotAllowed, message)
    }
}

/// The body of a response with data and without errors.
#[must_use]
pub fn data_alone(data: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct DataAlone<'a, D> {
        data: &'a D,
    }

    to_json(&DataAlone { data })
}

/// The body of a response with data and errors.
///
/// Errors are sorted by their place in the document, because the libraries find them in different orders.
#[must_use]
pub fn with_errors(data: &impl Serialize, mut errors: Vec<GraphqlError>) -> Vec<u8> {
    #[derive(Serialize)]
    struct WithErrors<'a, D> {
        data: &'a D,
        errors: &'a [GraphqlError],
    }

    // A stable sort: errors without a place come first and keep their order.
    errors.sort_by_key(|error| error.locations.first().map(|at| (at.line, at.column)));
    to_json(&WithErrors {
        data,
        errors: &errors,
    })
}

fn errors_alone(errors: &[GraphqlError]) -> Vec<u8> {
    #[derive(Serialize)]
    struct ErrorsAlone<'a> {
        errors: &'a [GraphqlError],
    }

    to_json(&ErrorsAlone { errors })
}

/// Serializes into a buffer that is large enough for small responses.
fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut body = Vec::with_capacity(256);
    serde_json::to_writer(&mut body, value)
        .expect("responses have string keys and no failing parts");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: &Reply) -> String {
        match &reply.body {
            Body::Made(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            Body::Fixed(text) => (*text).to_owned(),
        }
    }

    #[test]
    fn a_refused_document_has_no_data_entry_and_a_status_by_media_type() {
        let refused = || Outcome::Refused(vec![GraphqlError::of_request("no")]);
        let legacy = of(Media::Json, refused());
        let modern = of(Media::GraphqlResponse, refused());
        assert_eq!(legacy.status.code(), 200);
        assert_eq!(modern.status.code(), 400);
        assert_eq!(text(&legacy), r#"{"errors":[{"message":"no"}]}"#);
        assert_eq!(text(&legacy), text(&modern));
    }

    #[test]
    fn a_mutation_by_get_is_told_to_use_post() {
        for media in [Media::Json, Media::GraphqlResponse] {
            let reply = of(media, Outcome::MutationByGet);
            assert_eq!((reply.status.code(), reply.allow), (405, Some("POST")));
        }
    }

    #[test]
    fn errors_are_sorted_by_their_place_in_the_document() {
        let error = |line, key: &str| GraphqlError {
            message: "no".to_owned(),
            locations: vec![Location { line, column: 1 }],
            path: vec![PathSegment::Key(key.to_owned()), PathSegment::Index(0)],
        };
        let body = with_errors(&Some(1), vec![error(2, "b"), error(1, "a")]);
        insta::assert_snapshot!(String::from_utf8(body).unwrap(), @r#"{"data":1,"errors":[{"message":"no","locations":[{"line":1,"column":1}],"path":["a",0]},{"message":"no","locations":[{"line":2,"column":1}],"path":["b",0]}]}"#);
    }

    #[test]
    fn every_status_is_listed_at_its_own_place() {
        for (place, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, place);
        }
    }
}
