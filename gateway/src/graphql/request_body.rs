//! Reads a client's GraphQL request from the body or from the URL's parameters. The JSON text is checked once
//! and then split into its members.

use bytes::Bytes;
use gateway_extensions::ClientHead;
use graphql_http::{DecodeError, Entries, GraphqlRequest, Incomplete, RawObject, RawObjectBuf};
use http::header::{self, HeaderValue};
use http::{Method, StatusCode};

use crate::http::reply::{self, Refusal as Refused, Reply};

/// The media types of bodies that count as JSON.
const JSON_TYPES: [&str; 2] = ["application/json", "application/graphql+json"];

/// A body with the result of its check.
pub(crate) struct Checked {
    body: Bytes,
    entries: Entries,
}

impl Checked {
    /// True if `text` is the checked body itself. A stage or a list of operations may have replaced it.
    /// `self` keeps the body alive, so its memory cannot contain another text.
    fn is(&self, text: &Bytes) -> bool {
        self.body.as_ptr_range() == text.as_ptr_range()
    }
}

/// The GraphQL request as JSON.
pub(crate) fn read(head: &ClientHead, body: Bytes) -> Result<(Bytes, Option<Checked>), Refused> {
    if head.method == Method::GET {
        let parameters = head.uri.query().unwrap_or_default();
        let read = graphql_http::from_parameters_or_hash::<RawObjectBuf, RawObjectBuf>(parameters);
        return match read {
            // The extensions may contain a hash instead of the query.
            Ok(read)
                if read.extensions.is_none()
                    && read.query.as_deref().unwrap_or_default().is_empty() =>
            {
                Err(Box::new(not_a_request(&DecodeError::NoQueryParameter)))
            }
            Ok(read) => {
                let graphql = GraphqlRequest {
                    query: read.query.unwrap_or_default(),
                    operation_name: read.operation_name,
                    variables: read.variables,
                    extensions: read.extensions,
                };
                // JSON from here on, so that all stages see one form for GET and POST.
                Ok((graphql_http::to_json(&graphql).into(), None))
            }
            Err(error) => Err(Box::new(not_a_request(&error))),
        };
    }
    let content_type = head.headers.get(header::CONTENT_TYPE);
    if !graphql_http::is_json(content_type.map(HeaderValue::as_bytes), &JSON_TYPES) {
        return Err(Box::new(reply::error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "'content-type' header must be one of: \"application/json\", \"application/graphql+json\"",
            "INVALID_CONTENT_TYPE_HEADER",
        )));
    }
    // Checked once for all stages, so that the executed text is the text that scripts and coprocessors
    // checked.
    let entries = graphql_http::check_entries(&body);
    let entries = entries.map_err(|error| Box::new(not_a_request(&error)))?;
    let text = body.clone();
    Ok((text, Some(Checked { body, entries })))
}

/// A request with variables and extensions as text. Executor and extensions parse them only if needed.
pub(crate) type RawRequest<'a> = GraphqlRequest<'a, RawObject<'a>, RawObject<'a>>;

/// Parses a request that has been checked already. An empty query counts as missing.
pub(crate) fn decode(text: &[u8]) -> Result<RawRequest<'_>, Refused> {
    with_query(graphql_http::from_checked_body_or_hash(text))
}

/// Like [`decode`], but uses the entries that the check has found, if any.
pub(crate) fn decode_found<'a>(
    text: &'a Bytes,
    checked: Option<&Checked>,
) -> Result<RawRequest<'a>, Refused> {
    match checked.filter(|checked| checked.is(text)) {
        Some(checked) => with_query(checked.entries.read(text)),
        None => decode(text),
    }
}

fn with_query<'a>(
    read: Result<Incomplete<'a, RawObject<'a>, RawObject<'a>>, DecodeError>,
) -> Result<RawRequest<'a>, Refused> {
    let request = read.and_then(|read| read.complete(DecodeError::NoQuery));
    let request = match request {
        Ok(RawRequest { query, .. }) if query.is_empty() => Err(DecodeError::NoQuery),
        request => request,
    };
    request.map_err(|error| Box::new(not_a_request(&error)))
}

pub(crate) fn not_a_request(error: &DecodeError) -> Reply {
    let bad = StatusCode::BAD_REQUEST;
    match error {
        DecodeError::Batch => reply::error(
            bad,
            "Batching not enabled: send one request at a time",
            "BATCHING_NOT_ENABLED",
        ),
        DecodeError::NoQuery => {
            reply::error(bad, "Must provide query string.", "MISSING_QUERY_STRING")
        }
        _ => reply::invalid_request(bad, &error.to_string()),
    }
}
