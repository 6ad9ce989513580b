//! The media types of GraphQL responses.

/// The media type of a response, which also determines the meaning of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// `application/graphql-response+json`: the status reports the result.
    GraphqlResponse,
    /// `application/json` to a client that also accepts the newer type, or does not exclude it.
    Json,
    /// `application/json` to a client that does not accept the newer type.
    JsonOnly,
}

impl Media {
    /// The `Content-Type` with its charset.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::GraphqlResponse => "application/graphql-response+json; charset=utf-8",
            Self::Json | Self::JsonOnly => "application/json; charset=utf-8",
        }
    }

    /// The media type without parameters.
    #[must_use]
    pub const fn essence(self) -> &'static str {
        match self {
            Self::GraphqlResponse => "application/graphql-response+json",
            Self::Json | Self::JsonOnly => "application/json",
        }
    }

    /// The status of a well-formed request with an invalid document or invalid variables.
    ///
    /// Clients that support only `application/json` expect errors in the body, so the draft requires 200 for
    /// them.
    #[must_use]
    pub const fn status_of_refused_document(self) -> u16 {
        match self {
            Self::GraphqlResponse => 400,
            Self::Json | Self::JsonOnly => 200,
        }
    }
}
