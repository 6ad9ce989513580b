//! Requests to a subgraph: decoding, execution and cached responses.
//!
//! The data never change, so equal bodies have equal responses, and each worker caches its responses. The
//! cache key is the whole body. An operation's name or another part could stand for two different queries.

mod objects;

use std::borrow::Cow;
use std::collections::HashMap;

use async_graphql::parser::parse_query;
use async_graphql::parser::types::Field;
use async_graphql::{ErrorExtensionValues, Request, Response, ServerError, Variables};
use bytes::Bytes;
use graphql_document::{DocumentError, DocumentLimits};
use graphql_http::GraphqlRequest;

use crate::locations::{self, Locations};
use crate::reviews::{self, Reviews};

/// Maximum of cached responses for one subgraph and worker. A full cache is cleared.
const KNOWN_MAX: usize = 512;

/// The largest body and the largest response that are cached, in bytes.
const KNOWN_BYTES_MAX: usize = 64 << 10;

/// The subgraphs of the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Locations,
    Reviews,
}

impl Name {
    /// All subgraphs, in the order of their numbers.
    pub(crate) const ALL: [Self; 2] = [Self::Locations, Self::Reviews];

    /// The name in the supergraph.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Locations => "locations",
            Self::Reviews => "reviews",
        }
    }
}

/// A request with its variables.
pub(crate) type Question<'a> = GraphqlRequest<'a, Variables>;

/// A response of a subgraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The body as JSON.
    pub(crate) body: Bytes,
    /// True if the operation was executed. False if the document or a variable is wrong.
    pub(crate) is_executed: bool,
}

impl Answer {
    fn of(response: &Response) -> Self {
        // A wrong document or variable leaves no `data`. An error during execution has a path.
        let is_executed = response.errors.is_empty()
            || response.data != async_graphql::Value::Null
            || response.errors.iter().any(|error| !error.path.is_empty());
        let body = if is_executed {
            serde_json::to_vec(response)
        } else {
            // Without `data`, as the specification requires for a request that was not executed. The library
            // would write null.
            serde_json::to_vec(&serde_json::json!({ "errors": response.errors }))
        };
        Self {
            body: body.expect("a response has string keys only").into(),
            is_executed,
        }
    }
}

/// Both schemas, and the limits for operations. A handle, which is cheap to copy.
#[derive(Clone)]
pub(crate) struct Schemas {
    locations: Locations,
    reviews: Reviews,
    limits: DocumentLimits,
}

/// The schemas and one worker's cached responses.
pub(crate) struct Subgraphs {
    schemas: Schemas,
    known: [HashMap<Bytes, Answer>; Name::ALL.len()],
}

impl Subgraphs {
    /// Starts with an empty cache.
    pub(crate) fn new(limits: DocumentLimits) -> Self {
        Self {
            schemas: Schemas {
                locations: locations::schema(),
                reviews: reviews::schema(),
                limits,
            },
            known: Default::default(),
        }
    }

    /// The cached response to a body.
    pub(crate) fn known(&self, name: Name, body: &[u8]) -> Option<Answer> {
        // The clone shares the bytes, and ends the borrow of the cache.
        self.known[name as usize].get(body).cloned()
    }

    /// Caches the response to a body.
    pub(crate) fn keep(&mut self, name: Name, body: &[u8], answer: &Answer) {
        if body.len() > KNOWN_BYTES_MAX || answer.body.len() > KNOWN_BYTES_MAX {
            return;
        }
        let known = &mut self.known[name as usize];
        if known.len() >= KNOWN_MAX {
            // As a whole: labs send a handful of bodies, and an eviction order would add a cost to every
            // request.
            known.clear();
        }
        // A copy, so that a small body does not keep the buffer of a connection alive.
        known.insert(Bytes::copy_from_slice(body), answer.clone());
    }

    /// A handle on both schemas.
    pub(crate) fn schemas(&self) -> Schemas {
        self.schemas.clone()
    }
}

impl Schemas {
    /// Executes a query, if it is within the limits.
    pub(crate) async fn execute(&self, name: Name, question: Question<'_>) -> Answer {
        let request = match self.checked(question) {
            Ok(request) => request,
            Err(error) => return Answer::of(&Response::from_errors(vec![error])),
        };
        let response = match name {
            Name::Locations => self.locations.execute(request).await,
            Name::Reviews => self.reviews.execute(request).await,
        };
        Answer::of(&response)
    }

    /// Checks the limits before the parser, the validator and the execution, because they bound the time of
    /// each.
    fn checked(&self, question: Question<'_>) -> Result<Request, ServerError> {
        let variables = question.variables.unwrap_or_default();
        self.limits.check_text(&question.query).map_err(refused)?;
        let document = parse_query(&question.query)?;
        let objects = |field: &Field| objects::most(field, &document, &variables);
        self.limits.check(&document, objects).map_err(refused)?;
        let mut request = Request::new(question.query).variables(variables);
        // Some clients send an empty name for an unnamed operation.
        let name = question.operation_name.filter(|name| !name.is_empty());
        request.operation_name = name.map(Cow::into_owned);
        request.set_parsed_query(document);
        Ok(request)
    }
}

fn refused(error: DocumentError) -> ServerError {
    let mut extensions = ErrorExtensionValues::default();
    extensions.set("code", error.code());
    ServerError {
        extensions: Some(extensions),
        ..ServerError::new(error.to_string(), None)
    }
}

#[cfg(test)]
mod tests;
