//! The engine: QuickJS with limits on time, memory and depth, without a network.

mod modules;
mod native;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rquickjs::promise::MaybePromise;
use rquickjs::{CatchResultExt as _, CaughtError, Context, Ctx, Function, Module, Object, Runtime};
use serde::Deserialize;

use crate::files::FileSource;
use crate::raw::{Raw, RawPlace};
use crate::source::{Import, Lines, Site};
use crate::{LeftModule, ScriptError, ScriptPlace};

/// Most memory of a script, in bytes.
const MEMORY_MAX: usize = 256 << 20;

/// Most stack of a script, in bytes. The thread has far more, for the parser.
const STACK_MAX: usize = 4 << 20;

/// The state that the engine and its loaders share.
pub(super) struct Shared {
    pub(super) files: Arc<dyn FileSource>,
    pub(super) entry: PathBuf,
    /// Calls of `k6/http` in all files, by number.
    pub(super) sites: Vec<(PathBuf, Site)>,
    /// Lines of files without types.
    pub(super) lines: BTreeMap<PathBuf, Lines>,
    /// Modules that the engine does not have.
    pub(super) left: Vec<LeftModule>,
    /// The first refusal of a loader.
    pub(super) refused: Option<ScriptError>,
    /// Imports of each file.
    pub(super) imports: BTreeMap<PathBuf, Vec<Import>>,
    /// Imports of modules that are no files.
    pub(super) uses: Vec<modules::Use>,
}

impl Shared {
    /// The place in the text as the user wrote it.
    pub(super) fn place(&self, raw: &RawPlace) -> ScriptPlace {
        let file = PathBuf::from(&raw.file);
        let line = match self.lines.get(&file) {
            Some(lines) => lines.original(raw.line),
            None => raw.line,
        };
        ScriptPlace {
            line,
            is_entry: file == self.entry,
            file,
        }
    }
}

/// The result of the engine.
pub(super) struct Ran {
    pub(super) raw: Raw,
    pub(super) shared: Shared,
}

/// An error as the script's surroundings describe it.
#[derive(Deserialize)]
struct Explained {
    text: String,
    place: Option<RawPlace>,
}

/// Runs a script with all its iterations.
pub(super) fn run(
    entry: &Path,
    files: Arc<dyn FileSource>,
    environment: &BTreeMap<String, String>,
    time: Duration,
) -> Result<Ran, ScriptError> {
    let shared = Rc::new(RefCell::new(Shared {
        files,
        entry: entry.to_owned(),
        sites: Vec::new(),
        lines: BTreeMap::new(),
        left: Vec::new(),
        refused: None,
        imports: BTreeMap::new(),
        uses: Vec::new(),
    }));
    let is_late = Rc::new(Cell::new(false));
    let text = {
        let runtime = limited(&shared, &is_late, time).map_err(internal)?;
        let context = Context::full(&runtime).map_err(internal)?;
        context.with(|ctx| executed(&ctx, &shared, environment))
    };
    if is_late.get() {
        return Err(ScriptError::Late(time.as_secs()));
    }
    let text = text?;
    let raw =
        serde_json::from_str(&text).map_err(|error| ScriptError::Internal(error.to_string()))?;
    let shared = Rc::into_inner(shared)
        .ok_or_else(|| ScriptError::Internal("the engine still runs".to_owned()))?;
    Ok(Ran {
        raw,
        shared: shared.into_inner(),
    })
}

fn internal(error: rquickjs::Error) -> ScriptError {
    ScriptError::Internal(error.to_string())
}

fn limited(
    shared: &Rc<RefCell<Shared>>,
    is_late: &Rc<Cell<bool>>,
    time: Duration,
) -> rquickjs::Result<Runtime> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY_MAX);
    runtime.set_max_stack_size(STACK_MAX);
    let (begin, is_late) = (now(), is_late.clone());
    runtime.set_interrupt_handler(Some(Box::new(move || {
        is_late.set(begin.elapsed() > time);
        is_late.get()
    })));
    runtime.set_loader(
        modules::Places(shared.clone()),
        modules::Texts(shared.clone()),
    );
    Ok(runtime)
}

/// The clock, for the limit on time.
#[expect(
    clippy::disallowed_methods,
    reason = "the only place of this crate that reads the clock"
)]
fn now() -> Instant {
    Instant::now()
}

/// The recording of the script, as JSON.
fn executed<'js>(
    ctx: &Ctx<'js>,
    shared: &Rc<RefCell<Shared>>,
    environment: &BTreeMap<String, String>,
) -> Result<String, ScriptError> {
    let main: Object<'js> = imported(ctx, "weigh:main").map_err(|error| match error {
        CaughtError::Exception(thrown) => ScriptError::Internal(thrown.to_string()),
        other => ScriptError::Internal(other.to_string()),
    })?;
    let explained = |error: CaughtError<'js>| explained(&main, error, shared);
    let prepare = || -> rquickjs::Result<()> {
        let values = Object::new(ctx.clone())?;
        for (name, value) in environment {
            values.set(name.as_str(), value.as_str())?;
        }
        let prepare: Function<'_> = main.get("prepare")?;
        prepare.call((native::functions(ctx, shared)?, values))
    };
    prepare().catch(ctx).map_err(explained)?;
    let entry = shared.borrow().entry.display().to_string();
    let script: Object<'js> = imported(ctx, &entry).map_err(explained)?;
    let run = || -> rquickjs::Result<String> {
        let run: Function<'_> = main.get("run")?;
        let ran: MaybePromise<'_> = run.call((script.clone(),))?;
        ran.finish()
    };
    run().catch(ctx).map_err(explained)
}

/// The exports of a module, after it ran.
fn imported<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>, CaughtError<'js>> {
    let import = || Module::import(ctx, name)?.finish::<Object<'js>>();
    import().catch(ctx)
}

/// The error for the user.
fn explained<'js>(
    main: &Object<'js>,
    error: CaughtError<'js>,
    shared: &Rc<RefCell<Shared>>,
) -> ScriptError {
    if let Some(refused) = shared.borrow_mut().refused.take() {
        return refused;
    }
    let thrown = match error {
        CaughtError::Exception(thrown) => thrown.into_value(),
        CaughtError::Value(value) => value,
        CaughtError::Error(rquickjs::Error::WouldBlock) => return ScriptError::Waits,
        CaughtError::Error(other) => return internal(other),
    };
    let explain = || -> rquickjs::Result<String> {
        let explain: Function<'js> = main.get("explain")?;
        explain.call((thrown,))
    };
    let Ok(Ok(found)) = explain().map(|text| serde_json::from_str::<Explained>(&text)) else {
        return ScriptError::Internal("an error without a description".to_owned());
    };
    if found.text.contains("out of memory") {
        return ScriptError::Large(MEMORY_MAX >> 20);
    }
    let place = found.place.map(|place| shared.borrow().place(&place));
    ScriptError::Thrown {
        place,
        text: found.text,
    }
}
