//! The keys for the arrival of requests. A load has one of them.

/// A key of `load` that defines the arrival of requests.
pub(crate) struct Way {
    pub(crate) key: &'static str,
    /// Keys that have no meaning next to it.
    pub(crate) misplaced: &'static [&'static str],
}

/// Each key excludes all other keys of this list.
pub(crate) const WAYS: [Way; 5] = [
    Way {
        key: "connections",
        misplaced: &["arrival", "connections-max", "spin", "realtime"],
    },
    Way {
        key: "rate",
        misplaced: &["slice"],
    },
    Way {
        key: "phases",
        misplaced: &["duration", "slice"],
    },
    Way {
        key: "capacity",
        misplaced: &["count", "slice"],
    },
    // The levels decide which other keys are misplaced.
    Way {
        key: "sweep",
        misplaced: &["count"],
    },
];

/// Returns the entry of this key.
pub(crate) fn way(key: &str) -> &'static Way {
    let mut ways = WAYS.iter();
    ways.find(|way| way.key == key)
        .expect("only keys of the list are asked for")
}

impl Way {
    /// True if `key` contradicts this key.
    pub(crate) fn excludes(&self, key: &str) -> bool {
        let is_other = key != self.key && WAYS.iter().any(|way| way.key == key);
        is_other || self.misplaced.contains(&key)
    }
}
