//! Parses addresses, and reduces them to a normal form that identifies a counter.
//!
//! The parser accepts the same texts as validator.js 12, because clients of the original send them. It
//! accepts leading zeros (decimal, not octal) and IPv6 in every spelling. It accepts no zone, no prefix and
//! no blanks.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An address in normal form. An IPv4 address and its IPv6-mapped form are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(u128);

impl Address {
    /// Reads an address as typed. `None` if it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // As an IPv6-mapped address, so that both spellings share a counter.
        if let Some(v4) = parse_v4(text) {
            return Some(Self(v4.to_ipv6_mapped().to_bits()));
        }
        let v6: Ipv6Addr = match text.rsplit_once(':') {
            // An IPv4 tail may also have leading zeros.
            Some((head, tail)) if tail.contains('.') => {
                format!("{head}:{}", parse_v4(tail)?).parse().ok()?
            }
            _ => text.parse().ok()?,
        };
        Some(Self(v6.to_bits()))
    }

    /// The network of an IPv6 address, of `prefix` bits (0 to 128). IPv4 addresses are unchanged.
    #[must_use]
    pub fn network(self, prefix: u8) -> Self {
        if Ipv6Addr::from_bits(self.0).to_ipv4_mapped().is_some() {
            return self;
        }
        assert!(
            prefix <= 128,
            "the prefix of an IPv6 address has at most 128 bits"
        );
        let host_bits = 128 - u32::from(prefix);
        // A shift by all 128 bits is undefined. That mask has no bits.
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        Self(self.0 & mask)
    }

    /// The IPv4 address of a client behind a translator (NAT64, SIIT) or a tunnel (6to4, Teredo), taken from
    /// its IPv6 address. Other addresses are unchanged.
    ///
    /// The IPv6 network of 64 bits does not identify such a client. All clients of a translator are in one
    /// network, and one client of 6to4 has 65,536 networks.
    #[must_use]
    pub fn carried(self) -> Self {
        match carried(self.0) {
            Some(v4) => Self(Ipv4Addr::from_bits(v4).to_ipv6_mapped().to_bits()),
            None => self,
        }
    }

    /// All bits, in the IPv6 form.
    #[must_use]
    pub fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v6 = Ipv6Addr::from_bits(self.0);
        // In the form that clients use.
        match v6.to_ipv4_mapped() {
            Some(v4) => v4.fmt(out),
            None => v6.fmt(out),
        }
    }
}

/// The IPv4 address inside an IPv6 address.
fn carried(bits: u128) -> Option<u32> {
    let starts_with = |prefix: u128, length: u32| bits >> (128 - length) == prefix;
    let part = |shift: u32| u32::try_from(bits >> shift & u128::from(u32::MAX)).ok();
    // RFC 6052: the well-known prefix of translators. RFC 2765: `::ffff:0:a.b.c.d` of SIIT.
    if starts_with(0x0064_ff9b_0000_0000_0000_0000, 96) || starts_with(0xffff_0000, 96) {
        return part(0);
    }
    // RFC 8215: operators choose prefixes within 64:ff9b:1::/48. With a prefix of 96 bits, the address is at
    // the end. With 48 bits, it is around bits 64 to 71, and the rest is zero.
    if starts_with(0x0064_ff9b_0001, 48) {
        if bits & ((1 << 40) - 1) != 0 {
            return part(0);
        }
        let (high, low) = (part(64)? & 0xffff, part(40)? & 0xffff);
        return Some(high << 16 | low);
    }
    // RFC 3056: in 6to4 it follows the prefix.
    if starts_with(0x2002, 16) {
        return part(80);
    }
    // RFC 4380: in Teredo it is at the end, with all bits inverted.
    if starts_with(0x2001_0000, 32) {
        return part(0).map(|turned| !turned);
    }
    None
}

/// Parses four decimal numbers of one to three digits.
fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        // The standard parser refuses leading zeros, but validator.js accepts them.
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        *octet = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then(|| octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Option<String> {
        Address::parse(text).map(|address| address.to_string())
    }

    #[test]
    fn spellings_of_an_address_have_one_form() {
        for (spellings, expected) in [
            (
                &[
                    "1.2.3.4",
                    "01.2.3.4",
                    "1.2.3.004",
                    "::ffff:1.2.3.4",
                    "::ffff:102:304",
                    "::FFFF:1.2.3.04",
                ][..],
                "1.2.3.4",
            ),
            (&["::1", "0:0:0:0:0:0:0:1", "0000::0001"], "::1"),
            (&["FE80::1", "fe80:0:0::1"], "fe80::1"),
            (&["::", "0::0"], "::"),
            (&["0.0.0.0"], "0.0.0.0"),
        ] {
            for text in spellings {
                assert_eq!(form(text).as_deref(), Some(expected), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            " ",
            "256.1.1.1",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.4/8",
            "fe80::1%eth0",
            " 1.2.3.4",
            "1.2.3.4 ",
            "0001.2.3.4",
            "+1.2.3.4",
            "1..2.3",
            "::ffff:256.1.1.1",
            "1:2:3",
            "::g",
            "1.2.3.٤",
            "[::1]",
        ] {
            assert_eq!(form(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_client_that_ipv6_only_carries_is_its_ipv4_address() {
        for (text, expected) in [
            ("64:ff9b::192.0.2.33", "192.0.2.33"),
            ("64:ff9b::c000:221", "192.0.2.33"),
            ("64:ff9b:1::192.0.2.33", "192.0.2.33"),
            ("64:ff9b:1:abcd::192.0.2.33", "192.0.2.33"),
            // The example of RFC 6052 for 48 bits.
            ("64:ff9b:1:c000:2:2100::", "192.0.2.33"),
            ("::ffff:0:192.0.2.33", "192.0.2.33"),
            ("::ffff:192.0.2.33", "192.0.2.33"),
            ("2002:c000:221::1", "192.0.2.33"),
            ("2002:c000:221:ffff:1:2:3:4", "192.0.2.33"),
            // The example of RFC 4380.
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45"),
            // Neighbors of these prefixes contain no IPv4 address.
            ("64:ff9b:2::192.0.2.33", "64:ff9b:2::c000:221"),
            ("64:ff9b:0:1::1", "64:ff9b:0:1::1"),
            ("2001:1::1", "2001:1::1"),
            ("2003::1", "2003::1"),
            ("::1", "::1"),
            ("192.0.2.33", "192.0.2.33"),
        ] {
            let carried = Address::parse(text).unwrap().carried();
            assert_eq!(carried.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn a_prefix_joins_addresses_of_ipv6_only() {
        let network = |text: &str| Address::parse(text).unwrap().network(64).to_string();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_eq!(network("10.0.0.1"), "10.0.0.1");
        let all = Address::parse("2001:db8::1").unwrap();
        assert_eq!((all.network(128), all.network(0).bits()), (all, 0));
    }
}
