//! The requests and responses that pass through the stages.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use gateway_telemetry::Active;
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::context::Context;
use crate::header_rules::ClientBody;
use crate::identifier;
use crate::response_headers::Gathered;

/// The head of the client's request, as the stages after the router see it.
#[derive(Clone, Debug, Default)]
pub struct ClientHead {
    /// The request method.
    pub method: Method,
    /// The request target. It usually contains only path and query.
    pub uri: Uri,
    /// The request headers.
    pub headers: HeaderMap,
}

/// The state of one client request from its first stage to its last.
#[derive(Debug, Default)]
pub struct Exchange {
    /// Entries that stages share with each other.
    pub context: Context,
    /// The client's request. Replace it if the router stage changed headers.
    pub client: Rc<ClientHead>,
    /// The name of the operation, or `None` before parsing.
    pub operation_name: Option<String>,
    /// `query` or `mutation`, or `None` before parsing.
    pub operation_kind: Option<&'static str>,
    /// The size of the operation, or `None` before planning.
    pub operation_size: Option<OperationSize>,
    /// The query plan. It is present only if [`crate::ExtensionsWorker::wants_query_plan`] returns true.
    pub query_plan: Option<QueryPlan>,
    /// The client's GraphQL request as JSON, empty before parsing.
    pub client_body: Rc<ClientBody>,
    /// The trace of the request, or `None` if requests are not traced.
    pub trace: Option<Active>,
    /// The start of the operation. `None` without instrumentation of operations.
    pub started: Option<std::time::Instant>,
    id: Rc<OnceCell<String>>,
    /// Created when the first rule for response headers runs.
    gathered: OnceCell<Box<Gathered>>,
}

/// The size of an operation, as `limits` counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationSize {
    /// Number of aliased fields.
    pub aliases: u64,
    /// Nesting of fields.
    pub depth: u64,
    /// Number of fields.
    pub height: u64,
    /// Number of root fields.
    pub root_fields: u64,
}

/// The query plan of an operation, as stages see it.
#[derive(Clone, Debug, Default)]
pub struct QueryPlan {
    /// Indented text, for scripts.
    pub text: Arc<str>,
    /// Text of a JSON object, for coprocessors.
    pub json: Arc<str>,
}

impl Exchange {
    /// Creates an exchange that starts with this request.
    pub fn new(client: Rc<ClientHead>) -> Self {
        // Field by field: `..Self::default()` would create a second client head.
        Self {
            context: Context::default(),
            client,
            operation_name: None,
            operation_kind: None,
            operation_size: None,
            query_plan: None,
            client_body: Rc::default(),
            trace: None,
            started: None,
            id: Rc::default(),
            gathered: OnceCell::new(),
        }
    }

    /// Creates an exchange for one operation of a batch. It has its own copy of the context.
    #[must_use]
    pub fn for_operation(&self) -> Self {
        Self {
            context: self.context.apart(),
            id: Rc::clone(&self.id),
            trace: self.trace.clone(),
            ..Self::new(Rc::clone(&self.client))
        }
    }

    /// Creates an exchange of this request for the later parts of its response.
    #[must_use]
    pub fn shared(&self) -> Self {
        Self {
            context: self.context.clone(),
            client: Rc::clone(&self.client),
            operation_name: self.operation_name.clone(),
            operation_kind: self.operation_kind,
            operation_size: self.operation_size,
            query_plan: self.query_plan.clone(),
            client_body: Rc::clone(&self.client_body),
            trace: self.trace.clone(),
            started: self.started,
            id: Rc::clone(&self.id),
            gathered: OnceCell::new(),
        }
    }

    /// Adds the headers that rules have gathered until now to the client's response. Headers that rules
    /// gather later are lost.
    pub fn give_headers_so_far(&self, answer: &mut HeaderMap) {
        if let Some(gathered) = self.gathered.get() {
            gathered.give(answer);
        }
    }

    /// The request id, a UUID. The first call generates it.
    pub fn id(&self) -> &str {
        self.id.get_or_init(identifier::uuid_v4)
    }

    /// Moves the headers that rules gathered from subgraph responses into the client's response.
    pub fn give_headers(&mut self, answer: &mut HeaderMap) {
        if let Some(gathered) = self.gathered.take() {
            gathered.into_answer(answer);
        }
    }

    pub(crate) fn gathered(&self) -> &Gathered {
        self.gathered.get_or_init(Box::default)
    }

    pub(crate) fn shared_id(&self) -> Rc<OnceCell<String>> {
        Rc::clone(&self.id)
    }
}

/// A request at one of the four services.
///
/// At the router, `body` is the client's body. At supergraph and execution, it is the GraphQL request as
/// JSON. At the subgraph service, it is the body of the outgoing request.
#[derive(Clone, Debug, Default)]
pub struct StageRequest {
    /// The request method.
    pub method: Method,
    /// The request target.
    pub uri: Uri,
    /// The request headers. At the subgraph service, they are the headers of the outgoing request.
    pub headers: HeaderMap,
    /// The request body, not parsed.
    pub body: Bytes,
}

/// A response at one of the four services. `body` is a GraphQL response as JSON, except at the router.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The HTTP status.
    pub status: StatusCode,
    /// The response headers.
    pub headers: HeaderMap,
    /// The response body, not parsed.
    pub body: Bytes,
    /// The position in a response of several parts, or `None` if the response is complete.
    pub part: Option<PartOf>,
}

/// The position of a part in a response of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// True for the first part. Only the first part has a status and headers.
    pub is_first: bool,
    /// True if more parts follow.
    pub has_next: bool,
}

impl Response {
    /// True if this is not the first part of a response.
    pub(crate) fn is_further(&self) -> bool {
        self.part.is_some_and(|part| !part.is_first)
    }
}

/// The decision of a stage: continue with the request, or end it.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Continue with the next stage.
    Continue,
    /// Stop, and return this response.
    Break(Response),
}
