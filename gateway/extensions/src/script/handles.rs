//! The `request` and `response` objects of scripts.
//!
//! A script may keep a handle for longer than its callback, so handles own their data. The message is moved
//! in before the callbacks and out after them.

use std::cell::{OnceCell, RefCell};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use rhai::{Dynamic, EvalAltResult, Position};

use super::Place;
use super::uri::ScriptUri;
use super::values::{Headers, RequestBody, ResponseBody, ScriptMethod, ScriptStatus};
use crate::context::Context;
use crate::exchange::{ClientHead, Response, StageRequest};
use crate::header_rules::ClientBody;
use crate::identifier;

type Thrown<T> = Result<T, Box<EvalAltResult>>;

/// One of the four services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Router,
    Supergraph,
    Execution,
    Subgraph,
}

impl Kind {
    /// The service of a script function such as `router_service`.
    pub(super) fn of_entry(entry: &str) -> Self {
        match entry {
            "router_service" => Self::Router,
            "supergraph_service" => Self::Supergraph,
            "execution_service" => Self::Execution,
            _ => Self::Subgraph,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Router => "router_service",
            Self::Supergraph => "supergraph_service",
            Self::Execution => "execution_service",
            Self::Subgraph => "subgraph_service",
        }
    }
}

/// The error that Rhai raises for a missing property. When Rhai writes a changed element back to its owner,
/// it ignores this error and no other.
fn no_property<T>(name: &str, kind: Kind) -> Thrown<T> {
    Err(Box::new(EvalAltResult::ErrorDotExpr(
        format!("unknown property '{name}' at {}", kind.as_str()),
        Position::NONE,
    )))
}

/// The exchange of a handle. Request and response handles both use it.
struct Owner {
    kind: Kind,
    context: Context,
    id: Rc<OnceCell<String>>,
    subgraph_request_id: String,
}

impl Owner {
    fn new(kind: Kind, place: &Place<'_>) -> Self {
        Self {
            kind,
            context: place.exchange.context.clone(),
            id: place.exchange.shared_id(),
            subgraph_request_id: place.subgraph_request_id.to_owned(),
        }
    }

    fn id(&self) -> String {
        self.id.get_or_init(identifier::uuid_v4).clone()
    }

    fn subgraph_request_id(&self) -> Thrown<String> {
        match self.kind {
            Kind::Subgraph => Ok(self.subgraph_request_id.clone()),
            kind => no_property("subgraph_request_id", kind),
        }
    }
}

/// A request during its callbacks.
pub(super) struct RequestCell {
    owner: Owner,
    method: Method,
    uri: RefCell<Uri>,
    headers: Headers,
    body: RefCell<Bytes>,
    /// The body, if a script has changed it.
    changed: RefCell<Option<RequestBody>>,
    client: Rc<ClientHead>,
    client_body: Rc<ClientBody>,
    query_plan: Option<Arc<str>>,
}

impl RequestCell {
    pub(super) fn new(kind: Kind, place: &Place<'_>, request: &mut StageRequest) -> Self {
        Self {
            owner: Owner::new(kind, place),
            method: request.method.clone(),
            // Moved, not copied. `give_back` moves them out again.
            uri: RefCell::new(mem::take(&mut request.uri)),
            headers: Headers(Rc::new(RefCell::new(mem::take(&mut request.headers)))),
            body: RefCell::new(mem::take(&mut request.body)),
            changed: RefCell::default(),
            client: Rc::clone(&place.exchange.client),
            client_body: Rc::clone(&place.exchange.client_body),
            query_plan: place
                .exchange
                .query_plan
                .as_ref()
                .map(|plan| Arc::clone(&plan.text)),
        }
    }

    pub(super) fn give_back(&self, request: &mut StageRequest) {
        request.uri = self.uri.take();
        request.headers = self.headers.0.take();
        request.body = self.body.take();
        // Written only if a script has changed the body. An unchanged body keeps its original bytes.
        if let Some(body) = self.changed.take() {
            request.body = body.write();
        }
    }

    fn is_subgraph(&self) -> bool {
        self.owner.kind == Kind::Subgraph
    }
}

/// The `request` object of a script.
#[derive(Clone)]
pub(super) struct RequestHandle(pub(super) Rc<RequestCell>);

impl RequestHandle {
    pub(super) fn context(&mut self) -> Context {
        self.0.owner.context.clone()
    }

    pub(super) fn set_context(&mut self, context: Context) {
        self.0.owner.context.replace(&context);
    }

    pub(super) fn id(&mut self) -> String {
        self.0.owner.id()
    }

    pub(super) fn subgraph_request_id(&mut self) -> Thrown<String> {
        self.0.owner.subgraph_request_id()
    }

    /// At the subgraph service, these are a copy of the client's headers.
    pub(super) fn headers(&mut self) -> Headers {
        if self.0.is_subgraph() {
            // A copy, so that a write cannot change the client's headers for other fetches.
            let copy = self.0.client.headers.clone();
            return Headers(Rc::new(RefCell::new(copy)));
        }
        self.0.headers.clone()
    }

    pub(super) fn set_headers(&mut self, headers: Headers) -> Thrown<()> {
        if self.0.is_subgraph() {
            return no_property("headers", self.0.owner.kind);
        }
        SubgraphHandle(Rc::clone(&self.0)).set_headers(headers);
        Ok(())
    }

    pub(super) fn method(&mut self) -> ScriptMethod {
        if self.0.is_subgraph() {
            return ScriptMethod(self.0.client.method.clone());
        }
        ScriptMethod(self.0.method.clone())
    }

    pub(super) fn uri(&mut self) -> ScriptUri {
        if self.0.is_subgraph() {
            return ScriptUri(self.0.client.uri.clone());
        }
        ScriptUri(self.0.uri.borrow().clone())
    }

    pub(super) fn set_uri(&mut self, uri: ScriptUri) -> Thrown<()> {
        if self.0.is_subgraph() {
            return no_property("uri", self.0.owner.kind);
        }
        *self.0.uri.borrow_mut() = uri.0;
        Ok(())
    }

    pub(super) fn body(&mut self) -> Thrown<RequestBody> {
        match self.0.owner.kind {
            Kind::Router => no_property("body", Kind::Router),
            Kind::Subgraph => Ok(RequestBody::read(self.0.client_body.text())),
            Kind::Supergraph | Kind::Execution => Ok(SubgraphHandle(Rc::clone(&self.0)).body()),
        }
    }

    pub(super) fn set_body(&mut self, body: RequestBody) -> Thrown<()> {
        match self.0.owner.kind {
            kind @ (Kind::Router | Kind::Subgraph) => no_property("body", kind),
            Kind::Supergraph | Kind::Execution => {
                SubgraphHandle(Rc::clone(&self.0)).set_body(body);
                Ok(())
            }
        }
    }

    pub(super) fn query_plan(&mut self) -> Thrown<Dynamic> {
        match self.0.owner.kind {
            Kind::Execution => Ok(self
                .0
                .query_plan
                .as_deref()
                .map_or(Dynamic::UNIT, |plan| Dynamic::from(plan.to_owned()))),
            kind => no_property("query_plan", kind),
        }
    }

    pub(super) fn subgraph(&mut self) -> Thrown<SubgraphHandle> {
        if self.0.is_subgraph() {
            return Ok(SubgraphHandle(Rc::clone(&self.0)));
        }
        no_property("subgraph", self.0.owner.kind)
    }

    /// Exists only because Rhai writes `request.subgraph` back after `request.subgraph.uri = …`.
    pub(super) fn set_subgraph(&mut self, _same: SubgraphHandle) -> Thrown<()> {
        no_property("subgraph", self.0.owner.kind)
    }
}

/// The `request.subgraph` object: the outgoing request.
#[derive(Clone)]
pub(super) struct SubgraphHandle(Rc<RequestCell>);

impl SubgraphHandle {
    pub(super) fn headers(&mut self) -> Headers {
        self.0.headers.clone()
    }

    pub(super) fn set_headers(&mut self, headers: Headers) {
        // Rhai writes a changed element back to its owner. Then both are the same map, and borrowing it twice
        // would panic.
        if !Rc::ptr_eq(&headers.0, &self.0.headers.0) {
            let map = headers.0.borrow().clone();
            *self.0.headers.0.borrow_mut() = map;
        }
    }

    pub(super) fn uri(&mut self) -> ScriptUri {
        ScriptUri(self.0.uri.borrow().clone())
    }

    pub(super) fn set_uri(&mut self, uri: ScriptUri) {
        *self.0.uri.borrow_mut() = uri.0;
    }

    pub(super) fn body(&mut self) -> RequestBody {
        // Parsed at each access until a script assigns it, because most scripts never read the body.
        if let Some(body) = &*self.0.changed.borrow() {
            return body.clone();
        }
        RequestBody::read(&self.0.body.borrow())
    }

    pub(super) fn set_body(&mut self, body: RequestBody) {
        *self.0.changed.borrow_mut() = Some(body);
    }
}

/// A response during its callbacks.
pub(super) struct ResponseCell {
    owner: Owner,
    status: StatusCode,
    /// True for every part after the first.
    is_further: bool,
    headers: Headers,
    body: RefCell<Bytes>,
    changed: RefCell<Option<ResponseBody>>,
}

impl ResponseCell {
    pub(super) fn new(kind: Kind, place: &Place<'_>, response: &mut Response) -> Self {
        Self {
            owner: Owner::new(kind, place),
            status: response.status,
            is_further: response.is_further(),
            headers: Headers(Rc::new(RefCell::new(mem::take(&mut response.headers)))),
            body: RefCell::new(mem::take(&mut response.body)),
            changed: RefCell::default(),
        }
    }

    pub(super) fn give_back(&self, response: &mut Response) {
        response.headers = self.headers.0.take();
        response.body = self.body.take();
        if let Some(body) = self.changed.take() {
            response.body = body.write();
        }
    }
}

/// The `response` object of a script.
#[derive(Clone)]
pub(super) struct ResponseHandle(pub(super) Rc<ResponseCell>);

impl ResponseHandle {
    pub(super) fn context(&mut self) -> Context {
        self.0.owner.context.clone()
    }

    pub(super) fn set_context(&mut self, context: Context) {
        self.0.owner.context.replace(&context);
    }

    pub(super) fn id(&mut self) -> String {
        self.0.owner.id()
    }

    pub(super) fn subgraph_request_id(&mut self) -> Thrown<String> {
        self.0.owner.subgraph_request_id()
    }

    pub(super) fn headers(&mut self) -> Headers {
        self.0.headers.clone()
    }

    pub(super) fn set_headers(&mut self, headers: Headers) {
        // As in `SubgraphHandle::set_headers`.
        if !Rc::ptr_eq(&headers.0, &self.0.headers.0) {
            let map = headers.0.borrow().clone();
            *self.0.headers.0.borrow_mut() = map;
        }
    }

    pub(super) fn status_code(&mut self) -> Thrown<ScriptStatus> {
        match self.0.owner.kind {
            Kind::Router | Kind::Subgraph => Ok(ScriptStatus(self.0.status)),
            kind => no_property("status_code", kind),
        }
    }

    pub(super) fn body(&mut self) -> Thrown<ResponseBody> {
        if self.0.owner.kind == Kind::Router {
            return no_property("body", Kind::Router);
        }
        if let Some(body) = &*self.0.changed.borrow() {
            return Ok(body.clone());
        }
        Ok(ResponseBody::read(&self.0.body.borrow()))
    }

    pub(super) fn set_body(&mut self, body: ResponseBody) -> Thrown<()> {
        if self.0.owner.kind == Kind::Router {
            return no_property("body", Kind::Router);
        }
        *self.0.changed.borrow_mut() = Some(body);
        Ok(())
    }

    /// True for the first part of a response. Only the first part has headers.
    pub(super) fn is_primary(&mut self) -> Thrown<bool> {
        match self.0.owner.kind {
            Kind::Subgraph => no_property("is_primary", Kind::Subgraph),
            _ => Ok(!self.0.is_further),
        }
    }
}
