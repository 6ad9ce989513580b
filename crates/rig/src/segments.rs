//! TCP segments counted by the kernel, of connections and of this network namespace.

mod of_sockets;

use std::fs;

pub use of_sockets::segments_to;

/// Number of sent segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// All segments. A segment that was sent three times counts three times.
    pub sent: u64,
    /// The sent segments that were retransmissions, because no acknowledgment came. Never more than `sent`.
    pub retransmitted: u64,
}

/// Segments that this network namespace (in a pod: the pod) has sent since it was created. `None` if the
/// kernel does not report them.
#[must_use]
pub fn segments() -> Option<Segments> {
    parse(&fs::read_to_string("/proc/net/snmp").ok()?)
}

impl Segments {
    /// Segments that were sent since an earlier count.
    #[must_use]
    pub fn since(self, before: Segments) -> Segments {
        Segments {
            sent: self.sent.saturating_sub(before.sent),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
        }
    }
}

/// Parses a line of names and a line of numbers, both beginning with `Tcp:`.
fn parse(text: &str) -> Option<Segments> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let find = |wanted: &str| {
        let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
        let (_, number) = pairs.find(|(name, _)| *name == wanted)?;
        number.parse().ok()
    };
    let again: u64 = find("RetransSegs")?;
    Some(Segments {
        // The kernel leaves retransmissions out of this counter (RFC 4022, tcpOutSegs).
        sent: find("OutSegs")? + again,
        retransmitted: again,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_names() {
        let text = "Ip: Forwarding\nIp: 1\n\
                    Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs InErrs\n\
                    Tcp: 1 -1 70 90 3 0\nUdp: InDatagrams\nUdp: 5\n";
        let found = parse(text).expect("both are there");
        assert_eq!((found.sent, found.retransmitted), (93, 3));
        for wrong in ["", "Tcp: OutSegs RetransSegs\n", "Tcp: OutSegs\nTcp: 1\n"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_machine_tells_them() {
        let before = segments().expect("Linux tells");
        let after = segments().expect("Linux tells").since(before);
        assert!(after.retransmitted <= after.sent, "{after:?}");
    }
}
