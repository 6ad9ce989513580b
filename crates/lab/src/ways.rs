//! The ways in which requests arrive, of which a load has one.

/// A key of `load` that says how requests arrive.
pub(crate) struct Way {
    pub(crate) key: &'static str,
    /// Keys that mean nothing beside it.
    pub(crate) misplaced: &'static [&'static str],
}

/// Each excludes the others.
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
    // What else is misplaced depends on its levels.
    Way {
        key: "sweep",
        misplaced: &["count"],
    },
];

/// The way of this key.
pub(crate) fn way(key: &str) -> &'static Way {
    let mut ways = WAYS.iter();
    ways.find(|way| way.key == key)
        .expect("only keys of the list are asked for")
}

impl Way {
    /// Whether a key contradicts this one.
    pub(crate) fn excludes(&self, key: &str) -> bool {
        let is_other = key != self.key && WAYS.iter().any(|way| way.key == key);
        is_other || self.misplaced.contains(&key)
    }
}
