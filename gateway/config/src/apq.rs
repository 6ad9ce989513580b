//! `apq`: automatic persisted queries.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{ByteSize, Written};

/// Automatic persisted queries. Clients send the hash of an operation's text. They send the text once, if the
/// gateway does not have the hash.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Apq {
    /// True if the gateway accepts hashes. Otherwise it responds with an error, and clients send the text.
    pub enabled: bool,
    /// The storage of texts that clients sent.
    pub router: ApqRouter,
}

impl Default for Apq {
    fn default() -> Self {
        Self {
            enabled: true,
            router: ApqRouter::default(),
        }
    }
}

/// The storage of texts that clients sent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApqRouter {
    /// The cache of texts.
    pub cache: ApqCache,
}

/// The place of the cache.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApqCache {
    /// The memory of this process. A new load of the configuration empties it.
    pub in_memory: ApqInMemory,
}

/// The size of the cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApqInMemory {
    /// Maximum number of texts.
    pub limit: NonZeroUsize,
    /// Maximum size of all texts together. A text that alone takes more than a sixteenth is not cached. Not
    /// in Apollo Router.
    pub max_bytes: Written<ByteSize>,
}

impl Default for ApqInMemory {
    fn default() -> Self {
        Self {
            limit: NonZeroUsize::new(512).expect("512 is not zero"),
            max_bytes: Written(ByteSize(16 << 20)),
        }
    }
}
