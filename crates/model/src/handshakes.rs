//! Handshakes of TLS in a load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Handshakes of TLS that the generator completed, over TCP and over QUIC. Connections that were opened before the
/// load count, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handshakes {
    /// Number of handshakes with the certificate of the target.
    pub full: u64,
    /// Number of handshakes with a ticket of an earlier connection, without the certificate.
    pub resumed: u64,
    /// Number of handshakes with accepted 0-RTT. They are part of `full` or `resumed`.
    #[serde(default)]
    pub early_accepted: u64,
    /// Number of handshakes with rejected 0-RTT. They are part of `full` or `resumed`. Requests that had left before
    /// were sent again.
    #[serde(default)]
    pub early_rejected: u64,
}

impl Handshakes {
    /// Adds the counts of another thread or of another measurement.
    pub fn add(&mut self, other: Handshakes) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.early_accepted += other.early_accepted;
        self.early_rejected += other.early_rejected;
    }

    /// Counts one handshake.
    pub fn count(&mut self, is_resumed: bool, is_early_accepted: Option<bool>) {
        self.add(Handshakes {
            full: u64::from(!is_resumed),
            resumed: u64::from(is_resumed),
            early_accepted: u64::from(is_early_accepted == Some(true)),
            early_rejected: u64::from(is_early_accepted == Some(false)),
        });
    }
}

/// Returns the sum of all counts. `None` without any count.
pub fn handshakes(each: impl IntoIterator<Item = Option<Handshakes>>) -> Option<Handshakes> {
    each.into_iter().flatten().reduce(|mut sum, handshakes| {
        sum.add(handshakes);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_counts_once_and_its_early_data_separately() {
        let mut counted = Handshakes::default();
        counted.count(false, None);
        counted.count(true, Some(true));
        counted.count(true, Some(false));
        let once = Handshakes {
            full: 1,
            resumed: 2,
            early_accepted: 1,
            early_rejected: 1,
        };
        assert_eq!(counted, once);
        assert_eq!(handshakes([None, None]), None);
        let sum = handshakes([Some(once), None, Some(once)]).unwrap();
        assert_eq!((sum.full, sum.resumed), (2, 4));
    }
}
