//! `include_subgraph_errors`: what clients learn about errors of subgraphs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// The errors of subgraphs that clients receive. By default they receive none.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IncludeSubgraphErrors {
    /// For all subgraphs.
    all: Option<AllFile>,
    /// For one subgraph, by its name.
    subgraphs: BTreeMap<String, OneFile>,
}

/// What clients learn about the errors of one subgraph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// That there was one, and where in the response.
    #[default]
    Redact,
    /// Its message, and its extensions as far as they are allowed.
    Include {
        /// Replaces the message.
        redact_message: bool,
        /// Which extensions stay.
        extensions: ExtensionKeys,
    },
}

/// Which extensions of an error stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionKeys {
    /// All.
    All,
    /// Those under these keys.
    Only(Vec<String>),
    /// All but those under these keys.
    Except(Vec<String>),
}

impl IncludeSubgraphErrors {
    /// Everything, of every subgraph: what `--dev` asks for.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            all: Some(AllFile::Switch(true)),
            subgraphs: BTreeMap::new(),
        }
    }

    /// Whether `all` is a switch, beside which a subgraph cannot have keys of its own.
    pub(crate) fn all_is_switch(&self) -> bool {
        matches!(self.all, None | Some(AllFile::Switch(_)))
    }

    /// The subgraphs that have keys, and not a switch.
    pub(crate) fn subgraphs_with_keys(&self) -> impl Iterator<Item = &str> {
        self.subgraphs
            .iter()
            .filter(|(_, one)| matches!(one, OneFile::Keys(_)))
            .map(|(name, _)| name.as_str())
    }

    /// What clients learn about the errors of this subgraph.
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

/// `true`, `false`, or which extensions stay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum AllFile {
    /// Everything, or nothing.
    Switch(bool),
    /// Some of it.
    Keys(KeysFile),
}

/// Which parts of errors clients see; not both `allow_extensions_keys` and
/// `deny_extensions_keys`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["allow_extensions_keys", "deny_extensions_keys"]}))]
struct KeysFile {
    /// Whether the message is replaced.
    redact_message: bool,
    /// The only extensions that stay.
    allow_extensions_keys: Option<Vec<String>>,
    /// The extensions that do not stay.
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

/// `true`, `false`, or what differs from `all`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneFile {
    /// Everything, or nothing.
    Switch(bool),
    /// Some of it.
    Keys(OwnFile),
}

/// What differs from `all` for one subgraph; not both `allow_extensions_keys` and
/// `deny_extensions_keys`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["allow_extensions_keys", "deny_extensions_keys"]}))]
struct OwnFile {
    /// Whether the message is replaced.
    redact_message: Option<bool>,
    /// More extensions that stay, or the only ones where `all` names those that do not.
    allow_extensions_keys: Option<Vec<String>>,
    /// Extensions that do not stay.
    deny_extensions_keys: Option<Vec<String>>,
    /// Keys of `all` that do not count here.
    exclude_global_keys: Vec<String>,
}

impl OwnFile {
    fn merged(&self, all: &ErrorPolicy) -> ErrorPolicy {
        // Without a policy for all, a subgraph's own keys start from what `Redact` means: no
        // message, no extensions.
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
            // An allowed list cannot be added to a denied one, so the own list replaces it.
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
