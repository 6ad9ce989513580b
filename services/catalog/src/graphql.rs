//! Decodes a GraphQL request from a JSON body or a URL, and executes it.

mod filter;
mod schema;
mod size;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, OperationType};
use async_graphql::{
    Error, ErrorExtensionValues, Request, Response, ServerError, Value, Variables,
};
use chassis::ClientNetwork;
use graphql_document::DocumentError;
use graphql_http::GraphqlRequest;
use serde_json::json;

use crate::store::{Store, StoreError};

/// Maximum number of rows in all lists of one request together.
const ROWS_MAX: u32 = 10_000;
/// Minimum cost of a statement, in rows. It limits a request to a hundred statements.
const STATEMENT_ROWS: u32 = 100;

/// The error code if the database is overloaded.
const BUSY: &str = "busy";

/// A request with its variables.
pub(crate) type Question<'a> = GraphqlRequest<'a, Variables>;

/// The result of a request. The texts are JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The operation was executed. Fields may have errors.
    Executed(Vec<u8>),
    /// The operation was not executed, because the database is overloaded.
    Busy(Vec<u8>),
    /// The document or a variable is invalid.
    Refused(Vec<u8>),
    /// A GET must not execute a mutation.
    MutationByGet,
}

/// The response body for a request that is not GraphQL.
pub(crate) fn refusal(message: &str) -> Vec<u8> {
    let error = json!({"message": message, "extensions": {"path": "$", "code": "bad-request"}});
    json!({"errors": [error]}).to_string().into_bytes()
}

/// The reason why a field has no value.
///
/// It has no `Display` on purpose: async-graphql would convert it to a text and lose the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldError {
    Store(StoreError),
    /// An invalid argument. The text describes the expected value.
    Argument(String),
    /// The request needs more rows or statements than the limit.
    TooMuch,
    /// The product of a line item was deleted.
    Gone,
}

impl From<StoreError> for FieldError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        let (code, message) = match error {
            FieldError::Store(error @ (StoreError::Duplicate | StoreError::Reference)) => {
                ("constraint-violation", error.to_string())
            }
            FieldError::Store(error @ StoreError::Busy) => (BUSY, error.to_string()),
            FieldError::Store(error) => ("unexpected", error.to_string()),
            FieldError::Argument(message) => ("validation-failed", message),
            FieldError::TooMuch => {
                let most = ROWS_MAX / STATEMENT_ROWS;
                let message = format!(
                    "the lists of a request may have {ROWS_MAX} rows together, and a request {most} \
                     statements; ask for less at once"
                );
                ("validation-failed", message)
            }
            FieldError::Gone => {
                let message = "the product was deleted in the meantime".to_owned();
                ("unexpected", message)
            }
        };
        let mut extensions = ErrorExtensionValues::default();
        extensions.set("code", code);
        let mut error = Self::new(message);
        error.extensions = Some(extensions);
        error
    }
}

/// Rows that a request may still request from the database.
pub(crate) struct Allowance(AtomicU32);

impl Allowance {
    fn new() -> Self {
        Self(AtomicU32::new(ROWS_MAX))
    }

    /// Spends the cost of a statement that returns up to `rows` rows.
    pub(crate) fn spend(&self, rows: u32) -> Result<(), FieldError> {
        // A statement without results also costs the database some work.
        let rows = rows.max(STATEMENT_ROWS);
        let less = |left: u32| left.checked_sub(rows);
        let spent = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        spent.map(|_| ()).map_err(|_| FieldError::TooMuch)
    }
}

/// The schema of a worker, with its database.
pub(crate) struct Executor {
    store: Store,
    schema: schema::Schema,
    /// Maximum number of rows in one list.
    limit_max: u32,
}

impl Executor {
    pub(crate) fn new(store: Store, limit_max: u32) -> Self {
        let limit_max = limit_max.min(ROWS_MAX);
        let schema = schema::schema(store.clone(), limit_max);
        Self {
            store,
            schema,
            limit_max,
        }
    }

    /// Executes a request of `client`.
    pub(crate) async fn execute(
        &self,
        question: Question<'_>,
        client: ClientNetwork,
        is_get: bool,
    ) -> Answer {
        // Some clients send an empty name for an unnamed operation.
        let name = question.operation_name.filter(|name| !name.is_empty());
        let document = match checked(&question.query) {
            Ok(document) => document,
            Err(error) => return refused(&[error]),
        };
        let operation = graphql_document::selected(&document, name.as_deref());
        if is_get && operation.is_some_and(|it| it.ty == OperationType::Mutation) {
            return Answer::MutationByGet;
        }
        let values = question.variables.unwrap_or_default();
        if let Some(operation) = operation
            && let Err(error) = size::check(&document, operation, &values, self.limit_max)
        {
            return refused(&[wrong(error)]);
        }
        let mut request = Request::new(question.query)
            .variables(values)
            .data(Allowance::new())
            .data(self.store.visitor(client));
        request.operation_name = name.map(Cow::into_owned);
        request.set_parsed_query(document);
        let response = self.schema.execute(request).await;
        // An invalid document or variable leaves no `data`. An error during execution has a path.
        let is_refused = response.data == Value::Null
            && !response.errors.is_empty()
            && response.errors.iter().all(|error| error.path.is_empty());
        if is_refused {
            return refused(&response.errors);
        }
        let body = serde_json::to_vec(&response).expect("a response has text for keys");
        if is_busy(&response) {
            Answer::Busy(body)
        } else {
            Answer::Executed(body)
        }
    }
}

/// True if the database executed no part of the request, so that the client can repeat the whole request.
/// After a mutation with several fields, one field may have been executed.
fn is_busy(response: &Response) -> bool {
    let has_nothing = match &response.data {
        Value::Object(fields) => fields.values().all(|value| *value == Value::Null),
        data => *data == Value::Null,
    };
    let busy = Value::from(BUSY);
    let has_code = |error: &ServerError| {
        let extensions = error.extensions.as_ref();
        extensions.and_then(|extensions| extensions.get("code")) == Some(&busy)
    };
    has_nothing && response.errors.iter().any(has_code)
}

fn checked(query: &str) -> Result<ExecutableDocument, ServerError> {
    graphql_document::check_text(query).map_err(wrong)?;
    let document = parse_query(query)?;
    graphql_document::check_fragments(&document).map_err(wrong)?;
    Ok(document)
}

/// The code of errors in documents and variables.
const REFUSED: &str = "validation-failed";

fn refused(errors: &[ServerError]) -> Answer {
    // The library leaves the code of its own errors out.
    let coded = errors.iter().cloned().map(|mut error| {
        let extensions = error.extensions.get_or_insert_default();
        if extensions.get("code").is_none() {
            extensions.set("code", REFUSED);
        }
        error
    });
    let errors: Vec<ServerError> = coded.collect();
    let body = serde_json::to_vec(&json!({ "errors": errors }));
    Answer::Refused(body.expect("errors have text for keys"))
}

fn wrong(error: DocumentError) -> ServerError {
    ServerError::new(error.to_string(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_have_so_many_rows_and_statements() {
        let allowance = Allowance::new();
        assert_eq!(allowance.spend(9_000), Ok(()));
        for _ in 0..10 {
            assert_eq!(allowance.spend(1), Ok(()));
        }
        assert_eq!(allowance.spend(0), Err(FieldError::TooMuch));
    }
}
