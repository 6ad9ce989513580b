//! The callbacks of one service, and their calls.

use std::rc::Rc;

use gateway_telemetry::{Active, OpenSpan};
use rhai::{Dynamic, Engine, FnPtr};

use super::bounds::Deadline;
use super::handles::{Kind, RequestCell, RequestHandle, ResponseCell, ResponseHandle};
use super::{CurrentTrace, Place, Script, ScriptError, thrown};
use crate::exchange::{Response, StageRequest, Step};
use crate::failure;

/// The kind of message that a callback sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// A callback, with its script, because it can call only the functions of that script.
pub(super) struct Layer {
    pub(super) side: Side,
    pub(super) callback: FnPtr,
    pub(super) script: Script,
}

/// The scripts of one service.
pub(crate) enum Layers {
    /// The script has registered these callbacks.
    Ready(Callbacks),
    /// The script cannot be used. The service refuses all requests, because the script may have refused them.
    Unusable(ScriptError),
}

/// The callbacks of one service. Each callback wraps all callbacks that were registered before it.
pub(crate) struct Callbacks {
    pub(super) engine: Rc<Engine>,
    pub(super) deadline: Deadline,
    pub(super) trace: CurrentTrace,
    /// True if calls run the statements of the script again.
    pub(super) evaluates: bool,
    pub(super) kind: Kind,
    pub(super) layers: Vec<Layer>,
}

impl Layers {
    /// Runs the request callbacks, the last registered first.
    pub(crate) fn request(&self, place: &Place<'_>, request: &mut StageRequest) -> Step {
        match self {
            Layers::Ready(callbacks) => callbacks.request(place, request),
            Layers::Unusable(error) => {
                log::error!("rhai: a request is refused: {error}");
                Step::Break(failure::internal())
            }
        }
    }

    /// Runs the response callbacks, the first registered first.
    pub(crate) fn response(&self, place: &Place<'_>, response: &mut Response) {
        match self {
            Layers::Ready(callbacks) => callbacks.responses(&callbacks.layers, place, response),
            // A subscription or a response of the cache may get here without a request stage.
            Layers::Unusable(_) => *response = failure::internal(),
        }
    }
}

impl Callbacks {
    fn request(&self, place: &Place<'_>, request: &mut StageRequest) -> Step {
        // Without a callback there is no cell. The main cost of a layer is to move a request into a cell and
        // out again.
        if !self.layers.iter().any(|layer| layer.side == Side::Request) {
            return Step::Continue;
        }
        self.trace
            .set(place.exchange.trace.as_ref().map(Active::id));
        let mut span = self.span(place, Side::Request);
        let cell = Rc::new(RequestCell::new(self.kind, place, request));
        for (index, layer) in self.layers.iter().enumerate().rev() {
            if layer.side != Side::Request {
                continue;
            }
            let handle = RequestHandle(Rc::clone(&cell));
            if let Err(error) = self.call(layer, Dynamic::from(handle)) {
                // Layers wrap each other. Layers that were registered later have seen the request, so they
                // see the response that ends it.
                let mut response = thrown::response(&error, self.kind, &layer.script.name);
                if let Some(span) = &mut span {
                    span.fail("the script threw");
                }
                self.responses(&self.layers[index + 1..], place, &mut response);
                return Step::Break(response);
            }
        }
        cell.give_back(request);
        Step::Continue
    }

    /// The span of all callbacks of one side, or `None` if the request is not traced.
    fn span(&self, place: &Place<'_>, side: Side) -> Option<Box<OpenSpan>> {
        let trace = place.exchange.trace.as_ref()?;
        let mut span = trace.start("rhai_plugin", gateway_telemetry::SpanKind::Internal)?;
        let service = match (self.kind, side) {
            (Kind::Router, Side::Request) => "RouterRequest",
            (Kind::Router, Side::Response) => "RouterResponse",
            (Kind::Supergraph, Side::Request) => "SupergraphRequest",
            (Kind::Supergraph, Side::Response) => "SupergraphResponse",
            (Kind::Execution, Side::Request) => "ExecutionRequest",
            (Kind::Execution, Side::Response) => "ExecutionResponse",
            (Kind::Subgraph, Side::Request) => "SubgraphRequest",
            (Kind::Subgraph, Side::Response) => "SubgraphResponse",
        };
        span.set("rhai.service", service);
        Some(span)
    }

    fn responses(&self, layers: &[Layer], place: &Place<'_>, response: &mut Response) {
        if !layers.iter().any(|layer| layer.side == Side::Response) {
            return;
        }
        self.trace
            .set(place.exchange.trace.as_ref().map(Active::id));
        let mut span = self.span(place, Side::Response);
        for layer in layers {
            if layer.side != Side::Response {
                continue;
            }
            // Each callback has its own cell, because a script may keep its handle. Later changes through the
            // handle must not reach this response.
            let cell = Rc::new(ResponseCell::new(self.kind, place, response));
            let handle = ResponseHandle(Rc::clone(&cell));
            match self.call(layer, Dynamic::from(handle)) {
                Ok(()) => cell.give_back(response),
                Err(error) => {
                    *response = thrown::response(&error, self.kind, &layer.script.name);
                    if let Some(span) = &mut span {
                        span.fail("the script threw");
                    }
                }
            }
        }
    }

    fn call(&self, layer: &Layer, argument: Dynamic) -> Result<(), Box<rhai::EvalAltResult>> {
        let Layer {
            callback, script, ..
        } = layer;
        // Each callback has its own time limit, so that a slow callback does not end the next one.
        self.deadline.start();
        // Most scripts define only functions. The direct call is faster.
        if !self.evaluates && script.globals.borrow().is_empty() {
            let called = callback.call::<Dynamic>(&self.engine, &script.ast, (argument,));
            return called.map(drop);
        }
        // A bare call of a function pointer sees neither variables nor imports of the script.
        let mut arguments = callback.curry().to_vec();
        arguments.push(argument);
        script.call(&self.engine, self.evaluates, callback.fn_name(), arguments)
    }
}
