//! The subject of a counter: an address, an e-mail, or both together.

use std::fmt;

use crate::address::Address;

/// Identifies a counter of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The counter of an address.
    Address(Address),
    /// The counter of an e-mail, or of an e-mail at an address, by a keyed hash.
    Hash(u128),
}

impl Subject {
    /// All bits. One rule has subjects of one kind, so they cannot collide.
    pub(crate) fn bits(self) -> u128 {
        match self {
            Self::Address(address) => address.bits(),
            Self::Hash(bits) => bits,
        }
    }
}

impl From<Address> for Subject {
    fn from(address: Address) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(out),
            Self::Hash(bits) => write!(out, "{bits:032x}"),
        }
    }
}
