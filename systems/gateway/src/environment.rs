//! The one place where the gateway reads its environment.

use std::path::Path;
use std::sync::Arc;

use gateway_config::Surroundings;

/// Variables of the environment and files, as expansion and scripts ask for them.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    prefix: Option<String>,
}

impl Environment {
    /// The environment of this process. With `APOLLO_ROUTER_CONFIG_ENV_PREFIX=P` a variable `X`
    /// is looked up as `P_X`.
    pub(crate) fn of_process() -> Self {
        Self {
            prefix: variable("APOLLO_ROUTER_CONFIG_ENV_PREFIX"),
        }
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
