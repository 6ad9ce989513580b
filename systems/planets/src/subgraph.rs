//! Requests to a subgraph: decoding, execution and the answers that are known already.
//!
//! Data never change, so equal bodies have equal answers: each worker keeps those it has sent.
//! What is looked up is the whole body, never an operation's name or anything else that could
//! stand for two different questions.

use std::borrow::Cow;
use std::collections::HashMap;

use async_graphql::{Request, Response, Variables};
use bytes::Bytes;
use graphql_http::GraphqlRequest;

use crate::locations::{self, Locations};
use crate::reviews::{self, Reviews};

/// Answers that one worker keeps for one subgraph; one more, and it starts over.
const KNOWN_MAX: usize = 512;

/// The largest body and the largest answer that are kept, in bytes.
const KNOWN_BYTES_MAX: usize = 64 << 10;

/// The subgraphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Locations,
    Reviews,
}

impl Name {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 2] = [Self::Locations, Self::Reviews];

    /// As in the supergraph.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Locations => "locations",
            Self::Reviews => "reviews",
        }
    }
}

/// A request with its variables.
pub(crate) type Question<'a> = GraphqlRequest<'a, Variables>;

fn into_request(question: Question<'_>) -> Request {
    let mut request =
        Request::new(question.query).variables(question.variables.unwrap_or_default());
    // An empty name is what some clients send for none.
    let name = question.operation_name.filter(|name| !name.is_empty());
    request.operation_name = name.map(Cow::into_owned);
    request
}

/// What a subgraph answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// JSON.
    pub(crate) body: Bytes,
    /// Whether the operation was executed; else the document or a variable is wrong.
    pub(crate) is_executed: bool,
}

impl Answer {
    fn of(response: &Response) -> Self {
        // A wrong document or variable leaves no `data`; an error while executing has a path.
        let is_executed = response.errors.is_empty()
            || response.data != async_graphql::Value::Null
            || response.errors.iter().any(|error| !error.path.is_empty());
        let body = if is_executed {
            serde_json::to_vec(response)
        } else {
            // Without `data`, as the specification asks of a request that was not executed; the
            // library would write null.
            serde_json::to_vec(&serde_json::json!({ "errors": response.errors }))
        };
        Self {
            body: body.expect("a response has string keys only").into(),
            is_executed,
        }
    }
}

/// Both schemas and what one worker knows about them.
pub(crate) struct Subgraphs {
    locations: Locations,
    reviews: Reviews,
    known: [HashMap<Bytes, Answer>; Name::ALL.len()],
}

impl Subgraphs {
    /// Knows nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            locations: locations::schema(),
            reviews: reviews::schema(),
            known: Default::default(),
        }
    }

    /// The answer to a body that was sent before.
    pub(crate) fn known(&self, name: Name, body: &[u8]) -> Option<Answer> {
        // The clone shares the bytes, and it ends the borrow of what is known.
        self.known[name as usize].get(body).cloned()
    }

    /// Remembers the answer to a body.
    pub(crate) fn keep(&mut self, name: Name, body: &[u8], answer: &Answer) {
        if body.len() > KNOWN_BYTES_MAX || answer.body.len() > KNOWN_BYTES_MAX {
            return;
        }
        let known = &mut self.known[name as usize];
        if known.len() >= KNOWN_MAX {
            // As a whole: labs send a handful of bodies, and an order of eviction would cost every
            // request something.
            known.clear();
        }
        // A copy, so that a small body does not keep the buffer of a connection alive.
        known.insert(Bytes::copy_from_slice(body), answer.clone());
    }

    /// The schemas. Both are handles, which are cheap to copy.
    pub(crate) fn schemas(&self) -> (Locations, Reviews) {
        (self.locations.clone(), self.reviews.clone())
    }
}

/// Executes a question.
pub(crate) async fn execute(
    (locations, reviews): &(Locations, Reviews),
    name: Name,
    question: Question<'_>,
) -> Answer {
    let request = into_request(question);
    let response = match name {
        Name::Locations => locations.execute(request).await,
        Name::Reviews => reviews.execute(request).await,
    };
    Answer::of(&response)
}

#[cfg(test)]
mod tests;
