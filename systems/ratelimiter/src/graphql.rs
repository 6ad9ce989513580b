//! The schema, and the execution of one request in the shapes of the original's answers.
//!
//! The library parses, validates and executes; what clients of the original rely on and the
//! library says otherwise is checked before it: variables, the literals of the enum, operations
//! that cannot be chosen.

mod literals;
mod schema;
mod variables;

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, OperationDefinition, OperationType,
};
use async_graphql::{ErrorExtensionValues, Pos, Request, ServerError, Value, Variables};
use hyper::StatusCode;
use serde::Serialize;

use crate::config::Config;
use crate::gate::Gate;

pub(crate) use schema::ErrorShape;

/// A request as it came by POST or GET.
#[derive(Debug, Default)]
pub(crate) struct GraphqlRequest {
    pub(crate) query: String,
    pub(crate) operation_name: Option<String>,
    pub(crate) variables: Variables,
}

/// The body of an answer and its status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

/// `extensions.code` of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Parse,
    Validation,
    Internal,
    BadRequest,
}

impl Code {
    fn text(self) -> &'static str {
        match self {
            Self::Parse => "GRAPHQL_PARSE_FAILED",
            Self::Validation => "GRAPHQL_VALIDATION_FAILED",
            // The original's word for mistakes of the client, too.
            Self::Internal => "INTERNAL_SERVER_ERROR",
            Self::BadRequest => "BAD_REQUEST",
        }
    }

    /// An error with this code.
    fn error(self, message: impl Into<String>, at: Option<Pos>) -> ServerError {
        self.mark(ServerError::new(message, at))
    }

    fn mark(self, mut error: ServerError) -> ServerError {
        let mut extensions = ErrorExtensionValues::default();
        extensions.set("code", self.text());
        error.extensions = Some(extensions);
        error
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [ServerError],
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

impl Answer {
    fn new(status: StatusCode, errors: &[ServerError], data: Option<&Value>) -> Self {
        let body = serde_json::to_vec(&Body { errors, data });
        Self {
            status,
            body: body.expect("answers have text for keys"),
        }
    }

    fn refused(errors: &[ServerError]) -> Self {
        Self::new(StatusCode::BAD_REQUEST, errors, None)
    }

    /// An answer to what is no GraphQL request.
    pub(crate) fn no_request(status: StatusCode, message: &str) -> Self {
        Self::new(status, &[Code::BadRequest.error(message, None)], None)
    }
}

/// The schema of a worker and how it answers.
pub(crate) struct Executor {
    schema: schema::Schema,
    has_introspection: bool,
}

impl Executor {
    pub(crate) fn new(gate: Gate, config: &Config) -> Self {
        Self {
            schema: schema::schema(gate, config.errors, config.hostname.clone()),
            has_introspection: config.has_introspection(),
        }
    }

    /// Executes a request.
    pub(crate) async fn execute(&self, request: GraphqlRequest) -> Answer {
        let document = match self.prepare(&request) {
            Ok(document) => document,
            Err(errors) => return Answer::refused(&errors),
        };
        let mut prepared = Request::new(request.query).variables(request.variables);
        prepared.operation_name = request.operation_name;
        prepared.set_parsed_query(document);
        let response = self.schema.execute(prepared).await;
        // Errors of the whole request have no path.
        if response.errors.iter().any(|error| error.path.is_empty()) {
            let errors: Vec<_> = response
                .errors
                .into_iter()
                .map(|error| Code::Validation.mark(error))
                .collect();
            return Answer::refused(&errors);
        }
        Answer::new(StatusCode::OK, &response.errors, Some(&response.data))
    }

    /// Parses, and checks what the library does not check or says otherwise.
    fn prepare(&self, request: &GraphqlRequest) -> Result<ExecutableDocument, Vec<ServerError>> {
        graphql_document::check_text(&request.query)
            .map_err(|error| vec![Code::Parse.error(error.to_string(), None)])?;
        let document =
            parse_query(&request.query).map_err(|error| vec![Code::Parse.mark(error.into())])?;
        graphql_document::check_fragments(&document)
            .map_err(|error| vec![Code::Validation.error(error.to_string(), None)])?;
        let mistakes = literals::check(&document, self.has_introspection);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let operation = selected(&document, request.operation_name.as_deref())
            .map_err(|message| vec![Code::Internal.error(message, None)])?;
        let unknown = match operation.ty {
            OperationType::Query => None,
            OperationType::Mutation => Some("Schema is not configured for mutations."),
            OperationType::Subscription => Some("Schema is not configured for subscriptions."),
        };
        if let Some(message) = unknown {
            return Err(vec![Code::Internal.error(message, None)]);
        }
        let mistakes = variables::check(operation, &request.variables);
        if mistakes.is_empty() {
            Ok(document)
        } else {
            Err(mistakes)
        }
    }
}

/// The operation that is to be executed.
fn selected<'a>(
    document: &'a ExecutableDocument,
    name: Option<&str>,
) -> Result<&'a OperationDefinition, String> {
    let found = match (&document.operations, name) {
        (DocumentOperations::Single(operation), None) => Some(operation),
        (DocumentOperations::Single(_), Some(_)) => None,
        (DocumentOperations::Multiple(operations), Some(name)) => operations.get(name),
        (DocumentOperations::Multiple(operations), None) => match operations.len() {
            1 => operations.values().next(),
            _ => {
                let message = "Must provide operation name if query contains multiple operations.";
                return Err(message.to_owned());
            }
        },
    };
    let unknown = || format!("Unknown operation named \"{}\".", name.unwrap_or_default());
    found.map(|operation| &operation.node).ok_or_else(unknown)
}
