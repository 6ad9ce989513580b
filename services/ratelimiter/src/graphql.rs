//! The schema, and the execution of one request with responses in the original's form.
//!
//! The library parses, validates and executes. Some of its errors differ from errors that clients of the
//! original rely on. So this module checks these cases first: variables, the literals of the enum, and
//! operations that cannot be selected.

mod document;
mod literals;
mod schema;
mod variables;

use async_graphql::{
    ErrorExtensionValues, Pos, Request, ServerError, ValidationMode, Value, Variables,
};
use hyper::StatusCode;
use serde::Serialize;

use crate::advice::{Advice, Tally};
use crate::config::Config;
use crate::gate::Gate;

use document::Documents;

/// A request by POST or GET.
#[derive(Debug, Default)]
pub(crate) struct GraphqlRequest {
    pub(crate) query: String,
    pub(crate) operation_name: Option<String>,
    pub(crate) variables: Variables,
}

/// The body and the status of a response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    /// When the client may try again.
    pub(crate) advice: Advice,
}

/// The `extensions.code` of an error.
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
            // The original uses this code also for mistakes of the client.
            Self::Internal => "INTERNAL_SERVER_ERROR",
            Self::BadRequest => "BAD_REQUEST",
        }
    }

    /// Creates an error with this code.
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
            advice: Advice::default(),
        }
    }

    fn refused(errors: &[ServerError]) -> Self {
        Self::new(StatusCode::BAD_REQUEST, errors, None)
    }

    /// A response to an invalid GraphQL request.
    pub(crate) fn no_request(status: StatusCode, message: &str) -> Self {
        Self::new(status, &[Code::BadRequest.error(message, None)], None)
    }
}

/// The schemas and cached documents of a worker.
pub(crate) struct Executor {
    /// The schema with validation before execution.
    schema: schema::Schema,
    /// The schema without validation, for documents that have passed validation.
    validated: schema::Schema,
    documents: Documents,
    /// True if a GET may change the state of an address, as in the original.
    get_may_change: bool,
}

impl Executor {
    pub(crate) fn new(gate: Gate, config: &Config) -> Self {
        let schema =
            |mode| schema::schema(gate.clone(), config.errors, config.hostname.clone(), mode);
        Self {
            schema: schema(ValidationMode::Strict),
            validated: schema(ValidationMode::Fast),
            documents: Documents::new(config.has_introspection()),
            get_may_change: config.is_original(),
        }
    }

    /// Executes a request, after all checks.
    pub(crate) async fn execute(&self, request: GraphqlRequest, is_get: bool) -> Answer {
        let name = request.operation_name.as_deref();
        let document = match self.documents.get(&request.query, name) {
            Ok(document) => document,
            Err(errors) => return Answer::refused(&errors),
        };
        // A link or an image on any web page causes a GET.
        if is_get && document.changes_state() && !self.get_may_change {
            let message = "`ratelimit` counts, so it must be sent with POST and content-type \
                           application/json, found GET";
            return Answer::no_request(StatusCode::METHOD_NOT_ALLOWED, message);
        }
        let mistakes = variables::check(document.operation(), &request.variables);
        if !mistakes.is_empty() {
            return Answer::refused(&mistakes);
        }
        let schema = if document.is_valid() {
            &self.validated
        } else {
            &self.schema
        };
        let mut prepared = Request::new(request.query).variables(request.variables);
        prepared.operation_name = request.operation_name;
        // A copy of the tree, which costs less than parsing the text again.
        prepared.set_parsed_query(document.parsed().clone());
        let tally = Tally::default();
        let response = schema.execute(prepared.data(tally.clone())).await;
        // Errors of the whole request have no path.
        if response.errors.iter().any(|error| error.path.is_empty()) {
            let errors: Vec<_> = response
                .errors
                .into_iter()
                .map(|error| Code::Validation.mark(error))
                .collect();
            return Answer::refused(&errors);
        }
        // Only here, because a refused document must be validated again.
        document.was_executed();
        Answer {
            advice: tally.advice(),
            ..Answer::new(StatusCode::OK, &response.errors, Some(&response.data))
        }
    }
}
