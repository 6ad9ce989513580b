//! `include_subgraph_errors`: the information about subgraph errors in client responses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// The errors of subgraphs that clients receive. The default is that clients receive no details.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IncludeSubgraphErrors {
    /// The setting for all subgraphs.
    all: Option<AllFile>,
    /// The setting for one subgraph, by its name.
    subgraphs: BTreeMap<String, OneFile>,
}

/// The information about one subgraph's errors in client responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// Only the existence of an error and its path.
    #[default]
    Redact,
    /// The message, and the allowed extensions.
    Include {
        /// True if the message is replaced.
        redact_message: bool,
        /// The extensions that clients receive.
        extensions: ExtensionKeys,
    },
}

/// The extensions of an error that clients receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionKeys {
    /// All extensions of the error.
    All,
    /// Only the extensions under these keys.
    Only(Vec<String>),
    /// All extensions except these keys.
    Except(Vec<String>),
}

impl IncludeSubgraphErrors {
    /// Includes all errors of all subgraphs, as `--dev` requires.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            all: Some(AllFile::Switch(true)),
            subgraphs: BTreeMap::new(),
        }
    }

    /// True if `all` is a switch. Then a subgraph cannot have keys of its own.
    pub(crate) fn all_is_switch(&self) -> bool {
        matches!(self.all, None | Some(AllFile::Switch(_)))
    }

    /// The subgraphs with keys instead of a switch.
    pub(crate) fn subgraphs_with_keys(&self) -> impl Iterator<Item = &str> {
        self.subgraphs
            .iter()
            .filter(|(_, one)| matches!(one, OneFile::Keys(_)))
            .map(|(name, _)| name.as_str())
    }

    /// The policy for this subgraph's errors.
    #[must_use]
    pub fn of_subgraph(&self, name: &str) -> ErrorPolicy {
        let all = match &self.all {
            None | Some(AllFile::Switch(false)) => ErrorPolicy::Redact,
            Some(AllFile::Switch(true)) => ErrorPolicy::Include {
                redact_message: false,
                extensions: ExtensionKeys::All,
            },
            Some(AllFile::Keys(keys)) => ErrorPolicy::Include {
                redact_message: keys.redact_message,
                extensions: keys.extensions(),
            },
        };
        match self.subgraphs.get(name) {
            None => all,
            Some(OneFile::Switch(false)) => ErrorPolicy::Redact,
            Some(OneFile::Switch(true)) => ErrorPolicy::Include {
                redact_message: false,
                extensions: ExtensionKeys::All,
            },
            Some(OneFile::Keys(own)) => own.merged(&all),
        }
    }
}

/// `true`, `false`, or the extensions that clients receive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum AllFile {
    /// `true` sends errors unchanged, and `false` sends no details.
    Switch(bool),
    /// The parts that clients receive.
    Keys(KeysFile),
}

/// The parts of errors that clients receive. `allow_extensions_keys` and `deny_extensions_keys` exclude each
/// other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["allow_extensions_keys", "deny_extensions_keys"]}))]
struct KeysFile {
    /// True if the gateway replaces the message.
    redact_message: bool,
    /// The only extensions that clients receive.
    allow_extensions_keys: Option<Vec<String>>,
    /// The extensions that clients do not receive.
    deny_extensions_keys: Option<Vec<String>>,
}

impl KeysFile {
    fn extensions(&self) -> ExtensionKeys {
        match (&self.allow_extensions_keys, &self.deny_extensions_keys) {
            (Some(keys), _) => ExtensionKeys::Only(keys.clone()),
            (None, Some(keys)) => ExtensionKeys::Except(keys.clone()),
            (None, None) => ExtensionKeys::All,
        }
    }
}

/// `true`, `false`, or changes to the setting of `all`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneFile {
    /// `true` sends errors unchanged, and `false` sends no details.
    Switch(bool),
    /// The changes to the setting of `all`.
    Keys(OwnFile),
}

/// Changes to the setting of `all` for one subgraph. `allow_extensions_keys` and `deny_extensions_keys`
/// exclude each other.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["allow_extensions_keys", "deny_extensions_keys"]}))]
struct OwnFile {
    /// True if the gateway replaces the message.
    redact_message: Option<bool>,
    /// Further extensions that clients receive. If `all` has no list of allowed keys, they are the only
    /// extensions.
    allow_extensions_keys: Option<Vec<String>>,
    /// Further extensions that clients do not receive.
    deny_extensions_keys: Option<Vec<String>>,
    /// Keys of `all` that do not apply to this subgraph.
    exclude_global_keys: Vec<String>,
}

impl OwnFile {
    fn merged(&self, all: &ErrorPolicy) -> ErrorPolicy {
        // Without a policy for all subgraphs, a subgraph's own keys start from `Redact`: no message and no
        // extensions.
        let (global_redacts, global) = match all {
            ErrorPolicy::Redact => (true, ExtensionKeys::Only(Vec::new())),
            ErrorPolicy::Include {
                redact_message,
                extensions,
            } => (*redact_message, extensions.clone()),
        };
        let counted = |keys: Vec<String>| -> Vec<String> {
            keys.into_iter()
                .filter(|key| !self.exclude_global_keys.contains(key))
                .collect()
        };
        let extensions = match (
            &self.allow_extensions_keys,
            &self.deny_extensions_keys,
            global,
        ) {
            (Some(own), _, ExtensionKeys::Only(keys)) => {
                let mut keys = counted(keys);
                keys.extend(own.iter().cloned());
                ExtensionKeys::Only(keys)
            }
            // An allow list cannot be added to a deny list, so the subgraph's own list replaces it.
            (Some(own), _, _) => ExtensionKeys::Only(own.clone()),
            (None, Some(own), ExtensionKeys::Except(keys)) => {
                let mut keys = counted(keys);
                keys.extend(own.iter().cloned());
                ExtensionKeys::Except(keys)
            }
            (None, Some(own), _) => ExtensionKeys::Except(own.clone()),
            (None, None, ExtensionKeys::Only(keys)) => ExtensionKeys::Only(counted(keys)),
            (None, None, ExtensionKeys::Except(keys)) => ExtensionKeys::Except(counted(keys)),
            (None, None, ExtensionKeys::All) => ExtensionKeys::All,
        };
        ErrorPolicy::Include {
            redact_message: self.redact_message.unwrap_or(global_redacts),
            extensions,
        }
    }
}
