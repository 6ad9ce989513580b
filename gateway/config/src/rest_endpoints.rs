//! `query_collections` and `rest_endpoints`: stored operations as REST endpoints.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::graphql_text::StoredText;
use crate::written::{RestPath, Written};

/// Stored operations under a common name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryCollection {
    /// The unique name of the collection.
    pub name: String,
    /// The operations of the collection.
    pub queries: Vec<StoredQuery>,
    /// A note for readers, without effect.
    #[serde(default)]
    pub comment: Option<String>,
}

/// An operation for REST endpoints.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredQuery {
    /// The name of the operation, unique in its collection.
    pub name: String,
    /// The text of the operation, with one query or mutation.
    pub query: Written<StoredText>,
}

/// A stored operation at a path below `/api/rest/`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestEndpoint {
    /// The unique name of the endpoint.
    pub name: String,
    /// The path, such as `product/:id`. A segment that begins with `:` is a variable of the operation.
    pub url: Written<RestPath>,
    /// The methods that clients may use.
    #[schemars(length(min = 1))]
    pub methods: Vec<RestMethod>,
    /// The operation that the endpoint executes.
    pub query: StoredQueryName,
    /// A note for readers, without effect.
    #[serde(default)]
    pub comment: Option<String>,
}

/// The reference to a stored operation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredQueryName {
    /// The name of the collection.
    pub collection_name: String,
    /// The name of the operation in the collection.
    pub query_name: String,
}

/// A method of a REST endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum RestMethod {
    /// The method for reading.
    Get,
    /// The method for creating, or for actions.
    Post,
    /// The method for replacing.
    Put,
    /// The method for changing.
    Patch,
    /// The method for removing.
    Delete,
}

impl RestMethod {
    /// The method's name in upper case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}
