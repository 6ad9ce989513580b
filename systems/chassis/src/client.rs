//! Who sent a request, as the limits by address tell clients apart.

use crate::connection_table::Network;

/// A client: an IPv4 address, a network of IPv6 of 64 bits, or this machine itself.
///
/// What a service shares out by client, it shares out by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(Option<Network>);

impl Client {
    /// All programs of this machine (127.0.0.1, ::1, Unix sockets), a proxy among them. The limits by
    /// address do not count them.
    pub const THIS_MACHINE: Self = Self(None);

    pub(crate) fn of(network: Option<Network>) -> Self {
        Self(network)
    }
}
