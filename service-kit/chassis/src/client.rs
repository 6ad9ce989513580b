//! Identifies the client of a request for the limits by address.

use std::net::IpAddr;

use crate::connection_table::Network;

/// A client: an IPv4 address, an IPv6 network of 64 bits, or this machine itself.
///
/// Services use it for every limit and share per client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientNetwork(Option<Network>);

impl ClientNetwork {
    /// All programs on this machine (127.0.0.1, ::1, Unix sockets), including a proxy. The limits by address
    /// do not apply to them.
    pub const THIS_MACHINE: Self = Self(None);

    /// Returns the client that connects from an address.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self(Network::of(address))
    }

    pub(crate) fn of(network: Option<Network>) -> Self {
        Self(network)
    }

    /// True if the limits by address apply to the client.
    #[must_use]
    pub fn is_counted(self) -> bool {
        self.0.is_some()
    }

    /// The address that identifies the client in limits. For IPv6 it stands for the whole network. `None` for
    /// this machine itself.
    #[must_use]
    pub fn counted_address(self) -> Option<IpAddr> {
        Some(match self.0? {
            Network::V4(octets) => octets.into(),
            Network::V6(network) => {
                let mut octets = [0; 16];
                octets[..8].copy_from_slice(&network);
                octets.into()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_counts_stands_for_its_network() {
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        let counted = |text: &str| ClientNetwork::at(address(text)).counted_address();
        assert_eq!(counted("192.0.2.7"), Some(address("192.0.2.7")));
        assert_eq!(counted("::ffff:192.0.2.7"), Some(address("192.0.2.7")));
        let network = counted("2001:db8:1:2:3:4:5:6");
        assert_eq!(network, Some(address("2001:db8:1:2::")));
        assert_eq!((counted("127.0.0.1"), counted("::1")), (None, None));
        assert_eq!(counted("127.0.0.2"), Some(address("127.0.0.2")));
        assert!(!ClientNetwork::THIS_MACHINE.is_counted());
        assert_eq!(
            ClientNetwork::at(address("127.0.0.1")),
            ClientNetwork::THIS_MACHINE
        );
    }
}
