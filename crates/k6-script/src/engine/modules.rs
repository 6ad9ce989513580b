//! Modules by name: files of the script, modules of k6, and modules that the engine does not have.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::{Ctx, Error, Exception, Module, Result};

use super::Shared;
use crate::files::Unreadable;
use crate::source::{self, Import};
use crate::{LeftModule, ScriptError, ScriptPlace};

/// Texts of the modules that surround a script.
const OWN: [(&str, &str); 13] = [
    ("weigh:main", include_str!("../js/main.js")),
    ("weigh:journal", include_str!("../js/journal.js")),
    ("weigh:values", include_str!("../js/values.js")),
    ("weigh:operators", include_str!("../js/operators.js")),
    ("weigh:status", include_str!("../js/status.js")),
    ("weigh:draws", include_str!("../js/draws.js")),
    ("weigh:http", include_str!("../js/http.js")),
    ("weigh:k6", include_str!("../js/k6.js")),
    ("weigh:url", include_str!("../js/url.js")),
    ("weigh:timeline", include_str!("../js/timeline.js")),
    ("weigh:streams", include_str!("../js/streams.js")),
    ("weigh:grpc", include_str!("../js/grpc.js")),
    ("weigh:modules", include_str!("../js/modules.js")),
];

/// Modules of k6, by the name of the table in `modules.js`.
const OF_K6: [&str; 13] = [
    "k6",
    "k6/http",
    "k6/data",
    "k6/encoding",
    "k6/crypto",
    "k6/metrics",
    "k6/execution",
    "k6/timers",
    "k6/options",
    "k6/net/grpc",
    "k6/ws",
    "k6/websockets",
    "k6/x/sse",
];

/// Modules of k6's library of scripts that the engine has.
const OF_LIBRARY: [&str; 5] = ["k6-utils", "httpx", "k6chaijs", "papaparse", "url"];

/// The address of k6's library of scripts.
const LIBRARY: &str = "https://jslib.k6.io/";

/// An import of a module that is no file.
#[derive(Debug)]
pub(crate) struct Use {
    import: Import,
    /// The name of the table in `modules.js`. `None` if the engine does not have the module.
    table: Option<String>,
    why: &'static str,
}

/// The table of a module that the engine has.
fn table(module: &str) -> Option<&str> {
    let module = match module {
        "k6/experimental/timers" => "k6/timers",
        "k6/experimental/grpc" => "k6/net/grpc",
        "k6/experimental/websockets" => "k6/websockets",
        other => other,
    };
    if OF_K6.contains(&module) {
        return Some(module);
    }
    let name = module.strip_prefix(LIBRARY)?.split('/').next()?;
    OF_LIBRARY.contains(&name).then_some(name)
}

/// The reason why the engine does not have a module.
fn reason(module: &str) -> &'static str {
    if module.starts_with("k6/x/") {
        return "it is an extension of k6";
    }
    if module == "k6" || module.starts_with("k6/") {
        return "it sends nothing that a lab can send, or it is not part of k6 yet";
    }
    if module.contains("://") {
        return "a script has no network here. `weigh` has the modules k6-utils, httpx, k6chaijs, papaparse and url of jslib.k6.io";
    }
    "it is a package, which a bundler must put into the script first"
}

/// Names of modules as paths, or as numbers of imports.
pub(super) struct Places(pub(super) Rc<RefCell<Shared>>);

impl Resolver for Places {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        // The surroundings of a script import each other. Files of a script have absolute paths.
        if !base.starts_with('/') {
            return Ok(name.to_owned());
        }
        let found = match is_local(name) {
            true => local(&self.0.borrow(), Path::new(base), name),
            false => return Ok(foreign(&mut self.0.borrow_mut(), base, name)),
        };
        found.map_err(|why| self.refuse(ctx, base, name, &why))
    }
}

impl Places {
    fn refuse(&self, ctx: &Ctx<'_>, base: &str, name: &str, why: &str) -> Error {
        let mut shared = self.0.borrow_mut();
        let file = PathBuf::from(base);
        let import = shared
            .imports_of(base)
            .into_iter()
            .find(|it| it.module == name);
        let place = ScriptPlace {
            line: import.map_or(0, |it| it.line),
            is_entry: file == shared.entry,
            file,
        };
        shared.refused.get_or_insert(ScriptError::Import {
            place,
            module: name.to_owned(),
            why: why.to_owned(),
        });
        Exception::throw_message(ctx, why)
    }
}

impl Shared {
    fn imports_of(&self, base: &str) -> Vec<Import> {
        self.imports
            .get(Path::new(base))
            .cloned()
            .unwrap_or_default()
    }
}

fn is_local(name: &str) -> bool {
    ["./", "../", "/", "file://"]
        .iter()
        .any(|begin| name.starts_with(begin))
        || name == "."
        || name == ".."
}

/// The file of a module, with the endings that bundlers add.
pub(super) fn local(
    shared: &Shared,
    base: &Path,
    name: &str,
) -> std::result::Result<String, String> {
    let name = name.strip_prefix("file://").unwrap_or(name);
    let folder = base.parent().unwrap_or(Path::new("/"));
    let path = plain(&folder.join(name));
    let mut candidates = vec![path.clone()];
    for ending in ["js", "ts", "mjs", "cjs"] {
        candidates.push(path.with_added_extension(ending));
    }
    // A script in TypeScript can name the file that a compiler makes from another script.
    if path.extension().is_some_and(|it| it == "js") {
        candidates.push(path.with_extension("ts"));
    }
    candidates.extend(["index.js", "index.ts"].map(|name| path.join(name)));
    for candidate in candidates {
        match shared.files.read(&candidate) {
            Ok(_) => return Ok(candidate.display().to_string()),
            Err(Unreadable::Absent) => {}
            Err(Unreadable::Refused(why)) => return Err(why),
        }
    }
    Err(format!("the file `{}` does not exist", path.display()))
}

/// The path without `.` and `..`.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// The number of an import of a module that is no file.
fn foreign(shared: &mut Shared, base: &str, name: &str) -> String {
    let mut own: Vec<Import> = shared.imports_of(base);
    own.retain(|import| import.module == name);
    let names = own
        .iter()
        .flat_map(|import| import.names.iter().cloned())
        .collect();
    let line = own.first().map_or(0, |import| import.line);
    let table = table(name).map(str::to_owned);
    let why = match table {
        Some(_) => "it has no such function here",
        None => reason(name),
    };
    if table.is_none() {
        let file = PathBuf::from(base);
        let place = ScriptPlace {
            line,
            is_entry: file == shared.entry,
            file,
        };
        shared.left.push(LeftModule {
            place,
            module: name.to_owned(),
            why,
        });
    }
    let import = Import {
        module: name.to_owned(),
        names,
        line,
    };
    shared.uses.push(Use { import, table, why });
    format!("weigh:use/{}", shared.uses.len() - 1)
}

/// Texts of modules by their names.
pub(super) struct Texts(pub(super) Rc<RefCell<Shared>>);

impl Loader for Texts {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js>> {
        let text = match OWN.iter().find(|(own, _)| *own == name) {
            Some((_, text)) => (*text).to_owned(),
            None => match name.strip_prefix("weigh:use/") {
                Some(number) => {
                    used(&self.0.borrow(), number).ok_or_else(|| Error::new_loading(name))?
                }
                None => {
                    let read = file(&mut self.0.borrow_mut(), Path::new(name));
                    read.map_err(|why| {
                        let message = why.to_string();
                        self.0.borrow_mut().refused.get_or_insert(why);
                        Exception::throw_message(ctx, &message)
                    })?
                }
            },
        };
        Module::declare(ctx.clone(), name, text)
    }
}

/// The text of a module that passes on members of a table, or placeholders for them.
fn used(shared: &Shared, number: &str) -> Option<String> {
    let found = shared.uses.get(number.parse::<usize>().ok()?)?;
    let (module, why) = (&found.import.module, found.why);
    let mut text = "import { modules, missing } from 'weigh:modules';\n".to_owned();
    match &found.table {
        Some(table) => {
            let _ = writeln!(
                text,
                "const own = modules[{table:?}];\nexport default own.default ?? own;"
            );
        }
        None => {
            let _ = writeln!(
                text,
                "const own = {{}};\nexport default missing({module:?}, 'default', {why:?});"
            );
        }
    }
    let mut names: Vec<&String> = found
        .import
        .names
        .iter()
        .filter(|name| *name != "default")
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        let _ = writeln!(
            text,
            "export const {name} = {name:?} in own ? own[{name:?}] : missing({module:?}, {name:?}, {why:?});"
        );
    }
    Some(text)
}

/// The text of a file that the engine can run.
fn file(shared: &mut Shared, path: &Path) -> std::result::Result<String, ScriptError> {
    let unread = |why: String| ScriptError::File {
        path: path.to_owned(),
        why,
    };
    let bytes = shared
        .files
        .read(path)
        .map_err(|error| unread(error.to_string()))?;
    let text = source::decoded(&bytes)
        .ok_or_else(|| unread("it is no text in UTF-8 or UTF-16".to_owned()))?;
    if path.extension().is_some_and(|it| it == "json") {
        return Ok(format!("export default {text};"));
    }
    let prepared =
        source::prepared(path, &text, shared.sites.len()).map_err(|error| ScriptError::Syntax {
            place: ScriptPlace {
                line: error.line,
                is_entry: path == shared.entry,
                file: path.to_owned(),
            },
            text: error.message,
        })?;
    let sites = prepared
        .sites
        .into_iter()
        .map(|site| (path.to_owned(), site));
    shared.sites.extend(sites);
    shared.lines.insert(path.to_owned(), prepared.lines);
    shared.imports.insert(path.to_owned(), prepared.imports);
    Ok(prepared.text)
}
