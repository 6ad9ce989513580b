//! `apq`: automatic persisted queries.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{ByteSize, Written};

/// Automatic persisted queries: clients send the hash of a text in place of the text, which they send
/// once, when the hash is not known.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Apq {
    /// Whether hashes are taken. Without, a client is told that it has to send texts.
    pub enabled: bool,
    /// What is remembered of clients' texts.
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

/// What is remembered of clients' texts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApqRouter {
    /// Where.
    pub cache: ApqCache,
}

/// Where texts are remembered.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApqCache {
    /// In the memory of this process, until the configuration is loaded again.
    pub in_memory: ApqInMemory,
}

/// How much is remembered.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApqInMemory {
    /// Texts at most.
    pub limit: NonZeroUsize,
    /// Bytes at most, of all texts together. A text that alone takes more than a sixteenth is not
    /// remembered. Not known to the original.
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
