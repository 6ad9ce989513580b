//! The treatment of keys without code behind them.

/// The treatment of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Accepted without effect. The text describes the gateway's behavior instead.
    Idle(&'static str),
    /// Accepted without effect. This value requires the gateway's only behavior, so it needs no note.
    IdleUnless(&'static str, &'static str),
    /// Refused if it is on. The text describes the problem and the action to take.
    Refused(On, &'static str),
}

/// The condition under which a key is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Always, with any value.
    Always,
    /// If its value is not null, `false` or empty.
    Filled,
    /// If its `enabled` is true. The default is false.
    Enabled,
}

/// A key without code behind it, with all keys below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unserved {
    /// Path of the key, separated by slashes. `*` matches any name.
    pub(crate) path: &'static str,
    pub(crate) fate: Fate,
}

pub(crate) const fn idle(path: &'static str, instead: &'static str) -> Unserved {
    let fate = Fate::Idle(instead);
    Unserved { path, fate }
}

pub(crate) const fn idle_unless(
    path: &'static str,
    value: &'static str,
    instead: &'static str,
) -> Unserved {
    let fate = Fate::IdleUnless(value, instead);
    Unserved { path, fate }
}

pub(crate) const fn refused(path: &'static str, on: On, why: &'static str) -> Unserved {
    let fate = Fate::Refused(on, why);
    Unserved { path, fate }
}
