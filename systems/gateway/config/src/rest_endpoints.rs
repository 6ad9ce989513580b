//! `query_collections` and `rest_endpoints`: stored operations as REST endpoints.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::graphql_text::StoredText;
use crate::written::{RestPath, Written};

/// Stored operations under a common name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryCollection {
    /// Its name; unique.
    pub name: String,
    /// The operations.
    pub queries: Vec<StoredQuery>,
    /// A note for people.
    #[serde(default)]
    pub comment: Option<String>,
}

/// A stored operation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredQuery {
    /// Its name; unique within its collection.
    pub name: String,
    /// Its text: one query or mutation.
    pub query: Written<StoredText>,
}

/// A stored operation at a path below `/api/rest/`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestEndpoint {
    /// Its name; unique.
    pub name: String,
    /// Its path: `product/:id`; a segment that begins with `:` is a variable of the operation.
    pub url: Written<RestPath>,
    /// The methods it answers.
    #[schemars(length(min = 1))]
    pub methods: Vec<RestMethod>,
    /// The operation.
    pub query: StoredQueryName,
    /// A note for people.
    #[serde(default)]
    pub comment: Option<String>,
}

/// Which stored operation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredQueryName {
    /// The collection.
    pub collection_name: String,
    /// The operation in it.
    pub query_name: String,
}

/// A method of a REST endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum RestMethod {
    /// Reads.
    Get,
    /// Creates or acts.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
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
