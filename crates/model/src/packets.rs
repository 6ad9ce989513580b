//! Packets of a load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets that the generator sent over HTTP/3. Over TCP the kernel sends packets, and they are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Packets {
    /// Number of sent packets.
    pub sent: u64,
    /// Number of sent packets that the target did not acknowledge in time. Their content was sent again. The loss of
    /// packets from the target shows only in the latency.
    pub lost: u64,
}

impl Packets {
    /// Adds the counts of another thread or of another measurement.
    pub fn add(&mut self, other: Packets) {
        self.sent += other.sent;
        self.lost += other.lost;
    }
}

/// Returns the sum of all counts. `None` without any count.
pub fn packets(each: impl IntoIterator<Item = Option<Packets>>) -> Option<Packets> {
    each.into_iter().flatten().reduce(|mut sum, packets| {
        sum.add(packets);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_only_of_what_was_counted() {
        assert_eq!(packets([None, None]), None);
        let counted = Packets { sent: 10, lost: 1 };
        let sum = packets([Some(counted), None, Some(counted)]);
        assert_eq!(sum, Some(Packets { sent: 20, lost: 2 }));
    }
}
