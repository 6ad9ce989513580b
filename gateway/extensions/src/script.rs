//! Rhai scripts. Each worker compiles them once, runs their statements once and collects their callbacks once.
//!
//! Only the callbacks run for each request. A callback sees the variables that the statements of its script
//! define. It sees no variable of another call. No other thread uses a worker's engine, so a call takes no lock
//! and counts no shared reference. Scripts are trusted like configuration, but their input is not.
//! `bounds` ends a callback that would block all requests of its worker.
//!
//! A script may decide who gets an answer, so no request passes a script that cannot run. A script that fails
//! before it serves is a [`ScriptError`].

mod bounds;
mod engine;
mod functions;
mod handles;
mod layers;
mod source;
mod thrown;
mod uri;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use gateway_config::RhaiLimits;
use gateway_telemetry::TraceId;
use rhai::{AST, CallFnOptions, Dynamic, Engine, EvalAltResult, FnPtr, Scope};
use yaml_with_places::nearest;

use crate::environment::Environment;
use crate::exchange::Exchange;
use bounds::Deadline;
use handles::Kind;
pub(crate) use layers::Layers;
use layers::{Callbacks, Layer, Side};
use source::Imported;
pub(crate) use source::{ScriptError, Source};

/// The functions that register the callbacks of the four services. Each is optional.
const ENTRIES: [&str; 3] = ["router_service", "supergraph_service", "execution_service"];
const SUBGRAPH_ENTRY: &str = "subgraph_service";

/// The service, context and request ids that a callback runs with.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) exchange: &'a Exchange,
    pub(crate) subgraph_request_id: &'a str,
}

/// The trace of the request that a script works on. Empty if requests are not traced.
type CurrentTrace = Rc<Cell<Option<TraceId>>>;

/// A script file, with the variables that its statements define.
#[derive(Clone)]
struct Script {
    /// The script's name, for the log.
    name: Rc<str>,
    ast: Rc<AST>,
    /// All calls share them, so a function can count requests in a variable.
    globals: Rc<RefCell<Scope<'static>>>,
}

/// The compiled scripts of one worker.
pub(crate) struct Compiled {
    engine: Rc<Engine>,
    deadline: Deadline,
    trace: CurrentTrace,
    main: Script,
    imported: Imported,
    /// Imported scripts with a callback of their own, by name.
    homes: RefCell<HashMap<String, Script>>,
    /// True if calls run the statements of the script again. See [`Source::needs_statements`].
    evaluates: bool,
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

impl Script {
    /// Runs the statements outside of functions once.
    fn run(name: Rc<str>, ast: Rc<AST>, engine: &Engine) -> Result<Self, Box<EvalAltResult>> {
        let mut globals = Scope::new();
        engine.run_ast_with_scope(&mut globals, &ast)?;
        Ok(Self {
            name,
            ast,
            globals: Rc::new(RefCell::new(globals)),
        })
    }

    /// Calls a function that sees the variables of the script. `evaluates` runs the statements before the
    /// call, so that it also sees imports and `global::` constants.
    fn call(
        &self,
        engine: &Engine,
        evaluates: bool,
        function: &str,
        arguments: Vec<Dynamic>,
    ) -> Result<(), Box<EvalAltResult>> {
        let mut globals = self.globals.borrow_mut();
        let options = CallFnOptions::new().eval_ast(evaluates);
        let called = engine.call_fn_with_options::<Dynamic>(
            options,
            &mut globals,
            &self.ast,
            function,
            arguments,
        );
        called.map(drop)
    }

    /// True if the script defines the function of this callback, for one argument.
    fn has(&self, callback: &FnPtr) -> bool {
        has(&self.ast, callback)
    }
}

/// True if a script defines the function of this callback, for one argument.
fn has(ast: &AST, callback: &FnPtr) -> bool {
    let arity = callback.curry().len() + 1;
    ast.iter_functions()
        .any(|function| function.name == callback.fn_name() && function.params.len() == arity)
}

impl Compiled {
    /// Compiles the scripts and runs the statements of the main script.
    pub(crate) fn new(
        source: &Source,
        limits: &RhaiLimits,
        sdl: &str,
        environment: &Environment,
    ) -> Result<Self, ScriptError> {
        let imported = Imported::default();
        let trace = CurrentTrace::default();
        let mut engine = engine::new(source, Rc::clone(&imported));
        functions::register(&mut engine, source, &trace, sdl, environment);
        let deadline = bounds::set(&mut engine, limits);
        let ast = Rc::new(source.compile(&engine)?);
        deadline.start();
        let name: Rc<str> = source.main.display().to_string().into();
        let main = Script::run(Rc::clone(&name), ast, &engine).map_err(|error| {
            ScriptError::Statements {
                script: name.to_string(),
                reason: error.to_string(),
            }
        })?;
        Ok(Self {
            engine: Rc::new(engine),
            deadline,
            trace,
            main,
            imported,
            homes: RefCell::default(),
            evaluates: source.needs_statements(),
        })
    }

    /// The problems of all service functions, for subgraphs with these names. Each is listed once.
    pub(crate) fn problems<'n>(
        &self,
        subgraphs: impl Iterator<Item = &'n str>,
    ) -> Vec<ScriptError> {
        let services = ENTRIES.iter().map(|entry| (*entry, None));
        let subgraphs = subgraphs.map(|name| (SUBGRAPH_ENTRY, Some(name)));
        let results = services
            .chain(subgraphs)
            .map(|(entry, subgraph)| self.callbacks(entry, subgraph).map(drop));
        // Without any subgraph, at least the parameters of its function are checked.
        let parameters = self.has_function(SUBGRAPH_ENTRY, 2).map(drop);
        let mut problems: Vec<ScriptError> = Vec::new();
        let found = results.chain([parameters]).filter_map(Result::err);
        for problem in found.chain(self.misspelled()) {
            let text = problem.to_string();
            if problems.iter().all(|known| known.to_string() != text) {
                problems.push(problem);
            }
        }
        problems
    }

    /// Functions with almost the name of a service function that the script does not define. No request would
    /// run them, so requests would pass unchecked.
    fn misspelled(&self) -> impl Iterator<Item = ScriptError> {
        let entries = || ENTRIES.into_iter().chain([SUBGRAPH_ENTRY]);
        let defines = |entry: &str| self.main.ast.iter_functions().any(|it| it.name == entry);
        self.main.ast.iter_functions().filter_map(move |function| {
            let meant = nearest(function.name, entries())?;
            (!defines(meant)).then(|| ScriptError::Misspelled {
                script: self.main.name.to_string(),
                function: function.name.to_owned(),
                meant: meant.to_owned(),
            })
        })
    }

    /// True if the main script defines at least one service function.
    pub(crate) fn has_services(&self) -> bool {
        let mut functions = self.main.ast.iter_functions();
        functions
            .any(|function| ENTRIES.contains(&function.name) || function.name == SUBGRAPH_ENTRY)
    }

    /// The callbacks that the script registers for a service, or `None` if there are none. If the script
    /// fails during registration, the service refuses all requests.
    pub(crate) fn layers(&self, entry: &str, subgraph: Option<&str>) -> Option<Layers> {
        match self.callbacks(entry, subgraph) {
            Ok(callbacks) => callbacks.map(Layers::Ready),
            Err(error) => Some(Layers::Unusable(error)),
        }
    }

    /// True if the main script defines the service function with this number of parameters.
    ///
    /// # Errors
    /// Fails if the function exists with other parameters only. The script would be skipped silently.
    fn has_function(&self, entry: &str, expected: usize) -> Result<bool, ScriptError> {
        let functions = self.main.ast.iter_functions();
        let named = functions.filter(|function| function.name == entry);
        let found: Vec<usize> = named.map(|function| function.params.len()).collect();
        match found.first() {
            None => Ok(false),
            Some(_) if found.contains(&expected) => Ok(true),
            Some(found) => Err(ScriptError::Parameters {
                script: self.main.name.to_string(),
                function: entry.to_owned(),
                expected,
                found: *found,
            }),
        }
    }

    fn callbacks(
        &self,
        entry: &str,
        subgraph: Option<&str>,
    ) -> Result<Option<Callbacks>, ScriptError> {
        // The signature decides, as in Apollo Router. A subgraph function takes the service and its name.
        if !self.has_function(entry, 1 + usize::from(subgraph.is_some()))? {
            return Ok(None);
        }
        let script = self.main.name.to_string();
        let registration = |reason: String| ScriptError::Registration {
            script: script.clone(),
            function: entry.to_owned(),
            reason,
        };
        let service = ServiceHandle::default();
        let mut arguments = vec![Dynamic::from(service.clone())];
        arguments.extend(subgraph.map(|name| Dynamic::from(name.to_owned())));
        self.deadline.start();
        self.main
            .call(&self.engine, self.evaluates, entry, arguments)
            .map_err(|error| registration(error.to_string()))?;
        let registered = service.0.take().into_iter();
        let layers = registered.map(|(side, callback)| {
            Ok(Layer {
                side,
                script: self.home(&callback).map_err(registration)?,
                callback,
            })
        });
        let layers: Vec<Layer> = layers.collect::<Result<_, ScriptError>>()?;
        Ok((!layers.is_empty()).then(|| Callbacks {
            engine: Rc::clone(&self.engine),
            deadline: self.deadline.clone(),
            trace: Rc::clone(&self.trace),
            evaluates: self.evaluates,
            kind: Kind::of_entry(entry),
            layers,
        }))
    }

    /// The script that defines the function of a callback. A callback can call only functions of that script.
    fn home(&self, callback: &FnPtr) -> Result<Script, String> {
        // The main script wins over imported scripts that have a function with the same name.
        if self.main.has(callback) {
            return Ok(self.main.clone());
        }
        let imported = self.imported.borrow();
        let home = imported.iter().find(|(_, (_, ast))| has(ast, callback));
        let Some((name, (_, ast))) = home else {
            let name = callback.fn_name();
            return Err(format!(
                "no script defines a function `{name}` with one parameter"
            ));
        };
        let (name, ast) = (name.clone(), Rc::clone(ast));
        // The statements may import further scripts, which changes the map.
        drop(imported);
        if let Some(known) = self.homes.borrow().get(&name) {
            return Ok(known.clone());
        }
        self.deadline.start();
        let script = Script::run(format!("{name}.rhai").into(), ast, &self.engine)
            .map_err(|error| error.to_string())?;
        self.homes.borrow_mut().insert(name, script.clone());
        Ok(script)
    }
}
