//! The files of a script folder, read once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rhai::{AST, Engine, EvalAltResult, Module, ModuleResolver, Position, Scope, Shared};

/// The reason why scripts cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScriptError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<std::io::Error>,
    },
    /// The main script does not compile.
    #[error("`{}` does not compile: {reason}", path.display())]
    Compile {
        /// Path of the main script.
        path: PathBuf,
        /// The compiler's message, with the position.
        reason: String,
    },
    /// The statements outside of functions fail.
    #[error("the statements of `{script}` fail: {reason}")]
    Statements {
        /// Path of the main script.
        script: String,
        /// The error of the script, with the position.
        reason: String,
    },
    /// A service function has the wrong number of parameters.
    #[error(
        "`{function}` in `{script}` has the wrong number of parameters: expected {expected}, found {found}"
    )]
    Parameters {
        /// Path of the main script.
        script: String,
        /// The name of the service function.
        function: String,
        /// The right number of parameters.
        expected: usize,
        /// The number in the script.
        found: usize,
    },
    /// A function has almost the name of a service function, so no request would run it.
    #[error(
        "`{function}` in `{script}` is no service function, did you mean `{meant}`? Rename a helper that has this name"
    )]
    Misspelled {
        /// Path of the main script.
        script: String,
        /// The name in the script.
        function: String,
        /// The name of the service function.
        meant: String,
    },
    /// A service function fails, or registers a callback that does not exist.
    #[error("`{function}` in `{script}` fails: {reason}")]
    Registration {
        /// Path of the main script.
        script: String,
        /// The name of the service function.
        function: String,
        /// The error of the script, with the position.
        reason: String,
    },
}

/// All scripts as text. All workers compile the same text, even if a file changes in between.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) main: PathBuf,
    text: Arc<str>,
    modules: Arc<HashMap<String, String>>,
}

impl Source {
    /// Reads `main`, and every other script in the folder for `import`.
    pub(crate) fn read(folder: &Path, main: &Path) -> Result<Self, ScriptError> {
        let main = folder.join(main);
        let text = read(&main)?;
        let mut modules = HashMap::new();
        collect(folder, folder, &mut modules)?;
        Ok(Self {
            main,
            text: text.into(),
            modules: Arc::new(modules),
        })
    }

    pub(super) fn compile(&self, engine: &Engine) -> Result<AST, ScriptError> {
        engine
            .compile(&self.text)
            .map_err(|error| ScriptError::Compile {
                path: self.main.clone(),
                reason: error.to_string(),
            })
    }

    pub(super) fn resolver(&self, imported: Imported) -> Resolver {
        Resolver {
            modules: Arc::clone(&self.modules),
            imported,
        }
    }

    /// True if a call must run the statements of the script again. Rhai forgets imports and `global::`
    /// constants after each call.
    pub(super) fn needs_statements(&self) -> bool {
        // A search for the words is enough. A comment with one of them only costs a slower call.
        let needs = |text: &str| text.contains("import") || text.contains("global");
        needs(&self.text) || self.modules.values().any(|text| needs(text))
    }
}

fn read(path: &Path) -> Result<String, ScriptError> {
    std::fs::read_to_string(path).map_err(|source| ScriptError::Read {
        path: path.to_owned(),
        source: source.into(),
    })
}

fn collect(
    root: &Path,
    folder: &Path,
    modules: &mut HashMap<String, String>,
) -> Result<(), ScriptError> {
    let unreadable = |source: std::io::Error| ScriptError::Read {
        path: folder.to_owned(),
        source: source.into(),
    };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            collect(root, &path, modules)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "rhai")
        {
            // Every path lies below its root folder.
            let name = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .with_extension("")
                .to_string_lossy()
                .into_owned();
            modules.insert(name, read(&path)?);
        }
    }
    Ok(())
}

/// The imported scripts until now, by name.
pub(super) type Imported = Rc<RefCell<HashMap<String, (Shared<Module>, Rc<AST>)>>>;

/// Resolves imports from the scripts that were read.
pub(super) struct Resolver {
    modules: Arc<HashMap<String, String>>,
    imported: Imported,
}

impl ModuleResolver for Resolver {
    fn resolve(
        &self,
        engine: &Engine,
        _source: Option<&str>,
        path: &str,
        position: Position,
    ) -> Result<Shared<Module>, Box<EvalAltResult>> {
        // `import "./a.rhai"`, `"a.rhai"` and `"a"` are one script.
        let name = path.trim_start_matches("./");
        let name = name.strip_suffix(".rhai").unwrap_or(name);
        // The borrow ends before compiling, because an imported script may import further scripts.
        if let Some((module, _)) = self.imported.borrow().get(name) {
            return Ok(module.clone());
        }
        let text = self
            .modules
            .get(name)
            .ok_or_else(|| EvalAltResult::ErrorModuleNotFound(path.into(), position))?;
        let in_module = |error: Box<EvalAltResult>| {
            Box::new(EvalAltResult::ErrorInModule(path.into(), error, position))
        };
        let ast = engine
            .compile(text)
            .map_err(|error| in_module(Box::new(error.into())))?;
        let module: Shared<Module> = Module::eval_ast_as_new(Scope::new(), &ast, engine)
            .map_err(in_module)?
            .into();
        self.imported
            .borrow_mut()
            .insert(name.to_owned(), (module.clone(), Rc::new(ast)));
        Ok(module)
    }
}
