//! The one place where the gateway reads its environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_config::Surroundings;

/// Variables of the environment and files, as expansion and scripts ask for them.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    prefix: Option<String>,
    /// The files that were asked for since the last reading began.
    files: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Environment {
    /// The environment of this process. With `APOLLO_ROUTER_CONFIG_ENV_PREFIX=P` a variable `X`
    /// is looked up as `P_X`.
    pub(crate) fn of_process() -> Self {
        Self {
            prefix: variable("APOLLO_ROUTER_CONFIG_ENV_PREFIX"),
            files: Arc::default(),
        }
    }

    /// Begins a reading: no file has been asked for.
    pub(crate) fn begin(&self) {
        self.known().clear();
    }

    /// The files that were asked for, whether or not they are there.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.known().iter().cloned().collect()
    }

    /// A variable that OpenTelemetry gives a meaning to, such as `OTEL_SERVICE_NAME`. It has no
    /// prefix: it is the same for all programs.
    pub(crate) fn open_telemetry(&self, name: &str) -> Option<String> {
        variable(name)
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // The set is valid whatever panicked beside it.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole binary"
)]
fn variable(name: &str) -> Option<String> {
    // A variable that is not UTF-8 counts as not set: no key could use it.
    std::env::var(name).ok()
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

/// A look-up of variables by name.
pub(crate) type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The look-up of variables that scripts and conditions use.
pub(crate) fn lookup(environment: &Environment) -> Lookup {
    let environment = environment.clone();
    Arc::new(move |name| environment.variable(name))
}
