//! Reads a GraphQL request, and checks its document against the limits of [`graphql_document`].

use graphql_document::DocumentError;
use graphql_http::{DecodeError, GraphqlRequest, Media};
use serde::de::DeserializeOwned;

use crate::reply::{self, GraphqlError, Outcome, Reply, Status};

/// The reason why a request cannot be executed.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The request is not a GraphQL request.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The document exceeds a limit.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// The response to an invalid request.
#[must_use]
pub fn not_a_request(media: Media, error: WireError) -> Reply {
    match error {
        // Well-formed, but refused like a document that does not parse.
        WireError::Document(error) => {
            let errors = vec![GraphqlError::of_request(error)];
            reply::of(media, Outcome::Refused(errors))
        }
        WireError::Decode(error) => reply::error(media, Status::BadRequest, error),
    }
}

/// Reads a body.
///
/// # Errors
/// Fails if the body is not a request, or if the document exceeds a limit.
pub fn from_body<V: DeserializeOwned>(body: &[u8]) -> Result<GraphqlRequest<'_, V>, WireError> {
    within_limits(graphql_http::from_body(body)?)
}

/// Reads the query string of a URL, without the question mark.
///
/// # Errors
/// Like [`from_body`].
pub fn from_parameters<V: DeserializeOwned>(
    parameters: &str,
) -> Result<GraphqlRequest<'_, V>, WireError> {
    within_limits(graphql_http::from_parameters(parameters)?)
}

fn within_limits<V>(request: GraphqlRequest<'_, V>) -> Result<GraphqlRequest<'_, V>, WireError> {
    graphql_document::check_text(&request.query)?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_document_over_a_limit_is_answered_like_one_that_does_not_parse() {
        type Variables = BTreeMap<String, serde_json::Value>;
        let text = format!(
            r#"{{"query":"{}"}}"#,
            "{a".repeat(graphql_document::DEPTH_MAX + 1)
        );
        let statuses = [Media::Json, Media::GraphqlResponse].map(|media| {
            let error = from_body::<Variables>(text.as_bytes()).unwrap_err();
            not_a_request(media, error).status.code()
        });
        assert_eq!(statuses, [200, 400]);
    }
}
