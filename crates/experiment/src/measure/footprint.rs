//! The memory and fixed addresses of idle systems. They show if a machine has enough for several candidates
//! at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use lab::Setup;
use rig::Rig;

use crate::systems::{RunningSystems, UsageReading};

/// The needs of a candidate's systems, read after their first start.
#[derive(Clone, Debug, Default)]
pub(super) struct Footprint {
    /// Needs of its own systems.
    own: Taken,
    /// Needs of each shared system. It runs once for all candidates that are up together.
    shared: BTreeMap<String, Taken>,
}

/// The needs of systems.
#[derive(Clone, Debug, Default)]
struct Taken {
    /// Peak memory in bytes. A memory limit counts as used. `None` if it cannot be read.
    memory: Option<u64>,
    /// Listen addresses that `weigh` did not assign.
    fixed: BTreeSet<SocketAddr>,
}

impl Footprint {
    /// Reads the needs of all running systems of a candidate.
    pub(super) fn of(rig: &Rig, setups: &[Setup], systems: &RunningSystems) -> Footprint {
        let mut own = Taken {
            memory: Some(0),
            fixed: BTreeSet::new(),
        };
        let mut shared = BTreeMap::new();
        let seen = systems.usage(rig).into_iter().zip(systems.processes(rig));
        for (usage, processes) in seen {
            let mut setups = setups.iter();
            let setup = setups.find(|setup| setup.system == usage.setup);
            let setup = setup.expect("what runs was started for a setup");
            // Services of a compose file also have their own networks.
            let mut fixed = match processes.has_own_network || setup.compose().is_some() {
                true => BTreeSet::new(),
                false => rig::listening(&processes.pids),
            };
            fixed.retain(|address| !systems.is_given(*address));
            let memory = memory(setup, &usage);
            let taken = Taken { memory, fixed };
            if setup.is_shared {
                shared.insert(setup.system.clone(), taken);
            } else {
                own.add(taken);
            }
        }
        Footprint { own, shared }
    }

    /// True if any of its systems listens at an address that a second start would also use.
    pub(super) fn has_fixed_address(&self) -> bool {
        let mut all = self.shared.values().chain([&self.own]);
        all.any(|taken| !taken.fixed.is_empty())
    }

    /// An address that both candidates need. A shared system runs once, so it can only conflict with a
    /// candidate's own systems.
    pub(super) fn address_of_both(&self, other: &Footprint) -> Option<SocketAddr> {
        let of_shared = |one: &Footprint, other: &Footprint| {
            let mut shared = other.shared.values();
            shared.find_map(|shared| one.own.address_of_both(shared))
        };
        self.own
            .address_of_both(&other.own)
            .or_else(|| of_shared(self, other))
            .or_else(|| of_shared(other, self))
    }
}

impl Taken {
    fn add(&mut self, other: Taken) {
        let both = self.memory.zip(other.memory);
        self.memory = both.map(|(own, more)| own.saturating_add(more));
        self.fixed.extend(other.fixed);
    }

    fn address_of_both(&self, other: &Taken) -> Option<SocketAddr> {
        let mut own = self.fixed.iter();
        own.find(|own| other.fixed.iter().any(|other| collide(**own, *other)))
            .copied()
    }
}

/// Total memory that these may use, in bytes. Unknown needs count as zero.
pub(super) fn memory_of_all<'f>(footprints: impl IntoIterator<Item = &'f Footprint>) -> u64 {
    let mut needed = 0_u64;
    let mut shared: BTreeMap<&str, u64> = BTreeMap::new();
    for one in footprints {
        needed = needed.saturating_add(one.own.memory.unwrap_or(0));
        for (system, taken) in &one.shared {
            let most = shared.entry(system).or_default();
            *most = taken.memory.unwrap_or(0).max(*most);
        }
    }
    shared.into_values().fold(needed, u64::saturating_add)
}

/// The memory that a system may use: its limit, otherwise its peak.
fn memory(setup: &Setup, seen: &UsageReading) -> Option<u64> {
    // Each instance has the limit, and may use all of it.
    let instances = u64::from(setup.replicas.unwrap_or(1));
    let limit = setup.limits.memory;
    let limit = limit.map(|bytes| bytes.saturating_mul(instances));
    limit.or_else(|| seen.usage.as_ref()?.memory_peak)
}

/// True for the same port at the same address, or if one of them listens at all addresses.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let is_everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (one.ip() == other.ip() || is_everywhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(memory: Option<u64>, fixed: &[&str]) -> Taken {
        let fixed = fixed.iter().map(|text| text.parse().expect("an address"));
        Taken {
            memory,
            fixed: fixed.collect(),
        }
    }

    fn sharing(own: Taken, shared: Taken) -> Footprint {
        Footprint {
            own,
            shared: BTreeMap::from([("origin".to_owned(), shared)]),
        }
    }

    #[test]
    fn what_candidates_share_is_up_once() {
        let with = |own, shared| sharing(taken(own, &[]), taken(shared, &[]));
        let two = [with(Some(10), Some(100)), with(Some(20), Some(130))];
        assert_eq!(memory_of_all(&two), 160);
        // Unknown in one start and known in another.
        let two = [with(None, Some(100)), with(Some(20), None)];
        assert_eq!(memory_of_all(&two), 120);
        // Limits near the maximum of a `u64` must not overflow.
        let two = [with(Some(u64::MAX), None), with(Some(u64::MAX), Some(1))];
        assert_eq!(memory_of_all(&two), u64::MAX);
    }

    #[test]
    fn an_address_of_what_candidates_share_is_no_ones_own() {
        let fixed = |own: &[&str], shared: &[&str]| sharing(taken(None, own), taken(None, shared));
        let one = fixed(&[], &["127.0.0.1:80"]);
        assert_eq!(one.address_of_both(&one), None);
        assert!(one.has_fixed_address());
        let other = fixed(&["127.0.0.1:80"], &[]);
        for (one, other) in [(&one, &other), (&other, &one), (&other, &other)] {
            let found = one.address_of_both(other).map(|found| found.to_string());
            assert_eq!(found.as_deref(), Some("127.0.0.1:80"));
        }
    }

    #[test]
    fn addresses_collide_where_one_of_them_is_everywhere() {
        let collide = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| text.parse().expect("an address"));
            collide(one, other)
        };
        assert!(collide("127.0.0.1:80", "127.0.0.1:80"));
        assert!(collide("127.0.0.1:80", "0.0.0.0:80"));
        assert!(!collide("127.0.0.1:80", "127.0.0.2:80"));
        assert!(!collide("127.0.0.1:80", "127.0.0.1:81"));
    }
}
