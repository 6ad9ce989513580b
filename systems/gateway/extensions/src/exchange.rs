//! What passes through the stages.

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

/// The head of the client's request, as the stages behind the router see it.
#[derive(Clone, Debug, Default)]
pub struct ClientHead {
    /// The method.
    pub method: Method,
    /// The target of the request; usually only path and query.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
}

/// What belongs to one client request from its first stage to its last.
#[derive(Debug, Default)]
pub struct Exchange {
    /// Notes of the stages.
    pub context: Context,
    /// The client's request. Set it anew when the router stage changed headers.
    pub client: Rc<ClientHead>,
    /// The name of the operation, once it is known.
    pub operation_name: Option<String>,
    /// `query` or `mutation`, once it is known.
    pub operation_kind: Option<&'static str>,
    /// The query plan; only asked for when [`crate::Worker::wants_query_plan`].
    pub query_plan: Option<QueryPlan>,
    /// The client's GraphQL request as JSON, once it is known.
    pub client_body: Rc<ClientBody>,
    /// The trace that the request belongs to; nothing where requests are not traced.
    pub trace: Option<Active>,
    id: Rc<OnceCell<String>>,
    /// Made when a rule for response headers is first carried out.
    gathered: OnceCell<Box<Gathered>>,
}

/// The plan of an operation, as stages see it.
#[derive(Clone, Debug, Default)]
pub struct QueryPlan {
    /// Indented, for scripts.
    pub text: Arc<str>,
    /// The text of a JSON object, for coprocessors.
    pub json: Arc<str>,
}

impl Exchange {
    /// An exchange that starts with this request.
    pub fn new(client: Rc<ClientHead>) -> Self {
        // Each by itself: a default one would be made with a client of its own.
        Self {
            context: Context::default(),
            client,
            operation_name: None,
            operation_kind: None,
            query_plan: None,
            client_body: Rc::default(),
            trace: None,
            id: Rc::default(),
            gathered: OnceCell::new(),
        }
    }

    /// One for an operation of a request with several: the entries of its context are its own.
    #[must_use]
    pub fn for_operation(&self) -> Self {
        Self {
            context: self.context.apart(),
            id: Rc::clone(&self.id),
            trace: self.trace.clone(),
            ..Self::new(Rc::clone(&self.client))
        }
    }

    /// The same request once more, for what of its answer comes later.
    #[must_use]
    pub fn shared(&self) -> Self {
        Self {
            context: self.context.clone(),
            client: Rc::clone(&self.client),
            operation_name: self.operation_name.clone(),
            operation_kind: self.operation_kind,
            query_plan: self.query_plan.clone(),
            client_body: Rc::clone(&self.client_body),
            trace: self.trace.clone(),
            id: Rc::clone(&self.id),
            gathered: OnceCell::new(),
        }
    }

    /// Gives the client the headers that rules have gathered so far; what they gather later is lost.
    pub fn give_headers_so_far(&self, answer: &mut HeaderMap) {
        if let Some(gathered) = self.gathered.get() {
            gathered.give(answer);
        }
    }

    /// The id of the request, a UUID; made when it is first asked for.
    pub fn id(&self) -> &str {
        self.id.get_or_init(identifier::uuid_v4)
    }

    /// Moves the headers that rules have gathered from the answers of subgraphs into the client's.
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
/// At the router, `body` is what the client sent. At supergraph and execution it
/// is the GraphQL request as JSON, at the subgraph service the outgoing one.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The target.
    pub uri: Uri,
    /// The headers; at the subgraph service those of the outgoing request.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response at one of the four services; apart from the router's, `body` is a
/// GraphQL response as JSON.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Which part of an answer it is; nothing when it is all of it.
    pub part: Option<PartOf>,
}

/// Which part of an answer a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// Whether it is the first, which alone has a status and headers.
    pub is_first: bool,
    /// Whether there are more.
    pub has_next: bool,
}

impl Response {
    /// Whether it comes behind the first part of an answer.
    pub(crate) fn is_further(&self) -> bool {
        self.part.is_some_and(|part| !part.is_first)
    }
}

/// Whether a request goes on.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// With the next stage.
    Continue,
    /// Not: this is the response.
    Break(Response),
}
