//! Rhai scripts. Each worker compiles them once and collects their callbacks once.
//!
//! Only the callbacks run for each request, each with a scope of its own. No other thread uses a worker's
//! engine, so a call takes no lock and counts no shared reference. Scripts are trusted like configuration,
//! but their input is not. `bounds` ends a callback that would block all requests of its worker.

mod bounds;
mod engine;
mod functions;
mod handles;
mod source;
mod thrown;
mod uri;
mod values;

use std::cell::RefCell;
use std::rc::Rc;

use gateway_config::RhaiLimits;
use gateway_telemetry::OpenSpan;
use rhai::{AST, CallFnOptions, Dynamic, Engine, FnPtr, Scope};

use crate::environment::Environment;
use crate::exchange::{Exchange, Response, StageRequest, Step};
use bounds::Deadline;
use handles::{Kind, RequestCell, RequestHandle, ResponseCell, ResponseHandle};
use source::Imported;
pub(crate) use source::{ScriptError, Source};

/// The service, context and request ids that a callback runs with.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) exchange: &'a Exchange,
    pub(crate) subgraph_request_id: &'a str,
}

/// The compiled scripts of one worker.
pub(crate) struct Compiled {
    engine: Rc<Engine>,
    deadline: Deadline,
    /// The path of the main script.
    main: Rc<str>,
    ast: Rc<AST>,
    imported: Imported,
    has_imports: bool,
}

/// The kind of message that a callback sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Request,
    Response,
}

/// A callback, with its script, because it can call only the functions of that script.
struct Layer {
    side: Side,
    callback: FnPtr,
    ast: Rc<AST>,
    /// The script's name, for the log.
    script: Rc<str>,
}

/// The `service` object of a script.
#[derive(Clone, Default)]
pub(crate) struct ServiceHandle(Rc<RefCell<Vec<(Side, FnPtr)>>>);

impl ServiceHandle {
    fn map_request(&mut self, callback: FnPtr) {
        self.0.borrow_mut().push((Side::Request, callback));
    }

    fn map_response(&mut self, callback: FnPtr) {
        self.0.borrow_mut().push((Side::Response, callback));
    }
}

impl Compiled {
    pub(crate) fn new(
        source: &Source,
        limits: &RhaiLimits,
        sdl: &str,
        environment: &Environment,
    ) -> Result<Self, ScriptError> {
        let imported = Imported::default();
        let mut engine = engine::new(source, Rc::clone(&imported), sdl, environment);
        let deadline = bounds::set(&mut engine, limits);
        let ast = source.compile(&engine)?;
        Ok(Self {
            engine: Rc::new(engine),
            deadline,
            main: source.main.display().to_string().into(),
            ast: Rc::new(ast),
            imported,
            has_imports: source.imports(),
        })
    }

    /// The callbacks that the script registers for a service, or `None` if there are none. If a script fails
    /// during registration, the service has no callbacks.
    pub(crate) fn layers(&self, entry: &str, subgraph: Option<&str>) -> Option<Layers> {
        let arity = 1 + usize::from(subgraph.is_some());
        self.ast
            .iter_functions()
            .find(|function| function.name == entry && function.params.len() == arity)?;
        // The signature decides, as in Apollo Router. A subgraph function takes the service and its name.
        let service = ServiceHandle::default();
        let mut arguments = vec![Dynamic::from(service.clone())];
        arguments.extend(subgraph.map(|name| Dynamic::from(name.to_owned())));
        let mut scope = Scope::new();
        self.deadline.start();
        let called = self
            .engine
            .call_fn::<Dynamic>(&mut scope, &self.ast, entry, arguments);
        // A failed registration must not stop the gateway, because scripts can change while it serves
        // requests.
        if let Err(error) = called {
            log::error!("rhai: `{entry}` failed, its service is used without scripts: {error}");
            return None;
        }
        let callbacks = service.0.take().into_iter();
        let layers: Vec<Layer> = callbacks
            .map(|(side, callback)| {
                let (script, ast) = self.home(&callback);
                Layer {
                    side,
                    callback,
                    ast,
                    script,
                }
            })
            .collect();
        (!layers.is_empty()).then(|| Layers {
            engine: Rc::clone(&self.engine),
            deadline: self.deadline.clone(),
            has_imports: self.has_imports,
            kind: match entry {
                "router_service" => Kind::Router,
                "supergraph_service" => Kind::Supergraph,
                "execution_service" => Kind::Execution,
                _ => Kind::Subgraph,
            },
            layers,
        })
    }

    /// The script of a callback, with its name.
    fn home(&self, callback: &FnPtr) -> (Rc<str>, Rc<AST>) {
        let has_it = |ast: &Rc<AST>| {
            ast.iter_functions()
                .any(|function| function.name == callback.fn_name())
        };
        // The main script wins over imported scripts that have a function with the same name.
        let main = || (Rc::clone(&self.main), Rc::clone(&self.ast));
        if has_it(&self.ast) {
            return main();
        }
        let imported = self.imported.borrow();
        let home = imported.iter().find(|(_, (_, ast))| has_it(ast));
        home.map_or_else(main, |(name, (_, ast))| {
            (format!("{name}.rhai").into(), Rc::clone(ast))
        })
    }
}

/// The callbacks of one service. Each callback wraps all callbacks that were registered before it.
pub(crate) struct Layers {
    engine: Rc<Engine>,
    deadline: Deadline,
    has_imports: bool,
    kind: Kind,
    layers: Vec<Layer>,
}

impl Layers {
    /// Runs the request callbacks, the last registered first.
    pub(crate) fn request(&self, place: &Place<'_>, request: &mut StageRequest) -> Step {
        // Without a callback there is no cell. The main cost of a layer is to move a request into a cell and
        // out again.
        if !self.layers.iter().any(|layer| layer.side == Side::Request) {
            return Step::Continue;
        }
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
                let mut response = thrown::response(&error, self.kind, &layer.script);
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

    /// Runs the response callbacks, the first registered first.
    pub(crate) fn response(&self, place: &Place<'_>, response: &mut Response) {
        self.responses(&self.layers, place, response);
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
                    *response = thrown::response(&error, self.kind, &layer.script);
                    if let Some(span) = &mut span {
                        span.fail("the script threw");
                    }
                }
            }
        }
    }

    fn call(&self, layer: &Layer, argument: Dynamic) -> Result<(), Box<rhai::EvalAltResult>> {
        let Layer { callback, ast, .. } = layer;
        // Each callback has its own time limit, so that a slow callback does not end the next one.
        self.deadline.start();
        // Without imports, the direct call is enough. It does not run the script's statements again.
        if !self.has_imports {
            let called = callback.call::<Dynamic>(&self.engine, ast, (argument,));
            return called.map(drop);
        }
        // A bare call of a function pointer does not see imports. The statements outside of functions contain
        // the imports, so they run before the call.
        let mut arguments = callback.curry().to_vec();
        arguments.push(argument);
        let options = CallFnOptions::new().eval_ast(true);
        let mut scope = Scope::new();
        let name = callback.fn_name();
        self.engine
            .call_fn_with_options::<Dynamic>(options, &mut scope, ast, name, arguments)
            .map(drop)
    }
}
