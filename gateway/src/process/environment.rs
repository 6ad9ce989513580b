//! The only place where the gateway reads its environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_config::Surroundings;

/// Environment variables and files, for expansion and scripts.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    prefix: Option<String>,
    /// The files that were requested since the last reading began.
    files: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Environment {
    /// The environment of this process. With `APOLLO_ROUTER_CONFIG_ENV_PREFIX=P`, the variable `X` is looked
    /// up as `P_X`.
    pub(crate) fn of_process() -> Self {
        Self {
            prefix: variable("APOLLO_ROUTER_CONFIG_ENV_PREFIX"),
            files: Arc::default(),
        }
    }

    /// Begins a reading, with an empty list of requested files.
    pub(crate) fn begin(&self) {
        self.known().clear();
    }

    /// The requested files, including missing files.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.known().iter().cloned().collect()
    }

    /// A variable defined by OpenTelemetry, such as `OTEL_SERVICE_NAME`. It has no prefix, because all
    /// programs share it.
    pub(crate) fn open_telemetry(&self, name: &str) -> Option<String> {
        variable(name)
    }

    /// True if RUST_LOG is set. Apollo Router filters its log by it.
    pub(crate) fn has_log_filter() -> bool {
        variable("RUST_LOG").is_some()
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // A panic elsewhere leaves the set valid.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole binary"
)]
fn variable(name: &str) -> Option<String> {
    // A variable that is not UTF-8 counts as unset, because no key could use it. So does an empty one, because
    // deployments write an optional value that way.
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Surroundings for Environment {
    fn variable(&self, name: &str) -> Option<String> {
        match &self.prefix {
            Some(prefix) => variable(&format!("{prefix}_{name}")),
            None => variable(name),
        }
    }

    fn file(&self, path: &Path) -> Option<String> {
        self.known().insert(path.to_owned());
        // The caller reports the missing file with its place in the configuration.
        std::fs::read_to_string(path).ok()
    }
}

/// Looks up variables by name.
pub(crate) type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The variable lookup for scripts and conditions.
pub(crate) fn lookup(environment: &Environment) -> Lookup {
    let environment = environment.clone();
    Arc::new(move |name| environment.variable(name))
}
