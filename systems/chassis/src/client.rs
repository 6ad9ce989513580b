//! Who sent a request, as the limits by address tell clients apart.

use std::net::IpAddr;

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

    /// The client whose connections come from an address.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self(Network::of(address))
    }

    pub(crate) fn of(network: Option<Network>) -> Self {
        Self(network)
    }

    /// Whether limits by address are for it.
    #[must_use]
    pub fn is_counted(self) -> bool {
        self.0.is_some()
    }

    /// The address under which it counts, which stands for its whole network where that is of IPv6;
    /// nothing for this machine itself.
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
        let counted = |text: &str| Client::at(address(text)).counted_address();
        assert_eq!(counted("192.0.2.7"), Some(address("192.0.2.7")));
        assert_eq!(counted("::ffff:192.0.2.7"), Some(address("192.0.2.7")));
        let network = counted("2001:db8:1:2:3:4:5:6");
        assert_eq!(network, Some(address("2001:db8:1:2::")));
        assert_eq!((counted("127.0.0.1"), counted("::1")), (None, None));
        assert_eq!(counted("127.0.0.2"), Some(address("127.0.0.2")));
        assert!(!Client::THIS_MACHINE.is_counted());
        assert_eq!(Client::at(address("127.0.0.1")), Client::THIS_MACHINE);
    }
}
