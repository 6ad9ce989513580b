//! Counts of the events that attackers observed.

use std::collections::BTreeMap;

/// Events of an attack, counted by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen(BTreeMap<String, u64>);

impl Seen {
    pub(super) fn count(&mut self, what: &str) {
        self.add(what, 1);
    }

    pub(super) fn add(&mut self, what: &str, times: u64) {
        *self.0.entry(what.to_owned()).or_default() += times;
    }

    pub(super) fn join(mut self, other: &Seen) -> Seen {
        for (what, times) in &other.0 {
            self.add(what, *times);
        }
        self
    }

    /// The counts as text, such as `200: 14, closed by service: 3`.
    pub(super) fn in_words(&self) -> String {
        let words = self
            .0
            .iter()
            .map(|(what, times)| format!("{what}: {times}"));
        words.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_said_in_order_and_added_up() {
        let mut one = Seen::default();
        one.count("closed by service");
        one.add("200", 3);
        let both = one.clone().join(&one);
        assert_eq!(both.in_words(), "200: 6, closed by service: 2");
        assert_eq!(Seen::default().in_words(), "");
    }
}
