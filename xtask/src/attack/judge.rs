//! The rules that turn observations into "yes" and "no".

use std::time::Duration;

use crate::process::Holding;

/// Allowed latency of a neighbor, as a multiple of its latency before the attack. [`ALLOWED`] applies if it
/// is more.
const TIMES: u32 = 10;

/// Allowed latency under an attack, as a multiple of the latency under the load of as many honest clients.
const TIMES_LOADED: u32 = 2;

/// A latency that a client hardly notices. On two shared cores, an attacker takes some of their time.
const ALLOWED: Duration = Duration::from_millis(100);

/// Number of descriptors that may stay, because pools to origins grow under load.
const DESCRIPTORS_KEPT: u64 = 8;

/// Memory that may stay, because caches fill and allocators keep freed memory.
const MEMORY_KEPT: u64 = 64 * MIB;

pub(super) const MIB: u64 = 1024 * 1024;

/// The rules as text for the document.
pub(super) fn rules() -> String {
    format!(
        "Others served: the neighbor received the expected response to every request, as before \
         the attack. The 99th percentile of its latency was at most the largest of three \
         limits. The limits are {TIMES} times its value before the attack, {} ms, and \
         {TIMES_LOADED} times its value during `load`. For `slow-reader`, the last limit is \
         {TIMES_LOADED} times the larger of its values during `load` and `crowd`. Recovered: \
         after the attack, the same process answers every request within the first two limits. \
         At most {DESCRIPTORS_KEPT} more descriptors are open than before the attack. Memory is \
         at most {} MiB above its value before the attack.",
        ALLOWED.as_millis(),
        MEMORY_KEPT / MIB
    )
}

/// The service that the well-behaved client received in one stretch of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Service {
    /// Time from the due time to the last byte, without failed requests.
    pub(super) latencies: Vec<Duration>,
    /// Number of requests without the expected response.
    pub(super) failed: u64,
}

impl Service {
    /// The 99th percentile. A failed request counts as longer than all other requests. `None` if the percentile
    /// falls on a failed request, or without requests.
    pub(super) fn p99(&self) -> Option<Duration> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let all = sorted.len() + usize::try_from(self.failed).unwrap_or(usize::MAX);
        // The smallest latency that 99 of 100 do not exceed.
        let rank = (all * 99).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }

    /// True if all requests were answered about as fast as before, or as fast as under ordinary load.
    pub(super) fn is_as_good_as(&self, before: &Service, loaded: Option<Duration>) -> bool {
        let (Some(own), Some(before)) = (self.p99(), before.p99()) else {
            return false;
        };
        let loaded = loaded.map_or(Duration::ZERO, |loaded| loaded * TIMES_LOADED);
        self.failed == 0 && own <= ALLOWED.max(before * TIMES).max(loaded)
    }
}

impl Holding {
    /// The larger value of each resource.
    pub(super) fn most(self, other: Holding) -> Holding {
        Holding {
            memory: self.memory.max(other.memory),
            descriptors: self.descriptors.max(other.descriptors),
        }
    }

    /// True if the resources have been released.
    pub(super) fn is_back_at(self, before: Holding) -> bool {
        self.descriptors <= before.descriptors + DESCRIPTORS_KEPT
            && self.memory <= before.memory + MEMORY_KEPT
    }
}

/// One attack on one service.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) attack: String,
    /// The actions of the attackers and the responses they got.
    pub(super) seen: String,
    /// The neighbor's p99 under ordinary load, if all its requests were answered then.
    pub(super) loaded: Option<Duration>,
    pub(super) before: Service,
    pub(super) beside: Service,
    pub(super) after: Service,
    pub(super) held_before: Holding,
    pub(super) held_most: Holding,
    /// `None` if the process has ended.
    pub(super) held_after: Option<Holding>,
}

impl Row {
    pub(super) fn were_others_served(&self) -> bool {
        self.held_after.is_some() && self.beside.is_as_good_as(&self.before, self.loaded)
    }

    pub(super) fn has_recovered(&self) -> bool {
        let is_back = |held: Holding| held.is_back_at(self.held_before);
        self.held_after.is_some_and(is_back) && self.after.is_as_good_as(&self.before, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(ms: &[u64], failed: u64) -> Service {
        Service {
            latencies: ms.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            failed,
        }
    }

    fn row(beside: Service, after: Service, held: Option<Holding>) -> Row {
        Row {
            before: service(&[5; 100], 0),
            beside,
            after,
            held_before: Holding {
                memory: 20 * MIB,
                descriptors: 12,
            },
            held_after: held,
            ..Row::default()
        }
    }

    const BACK: Option<Holding> = Some(Holding {
        memory: 84 * MIB,
        descriptors: 20,
    });

    #[test]
    fn the_percentile_counts_failures_as_the_slowest() {
        let hundred: Vec<u64> = (1..=100).collect();
        let p99 = |service: Service| service.p99().map(|it| it.as_millis());
        assert_eq!(p99(service(&hundred, 0)), Some(99));
        assert_eq!(p99(service(&[7], 0)), Some(7));
        assert_eq!(p99(service(&hundred[..99], 1)), Some(99));
        assert_eq!(p99(service(&hundred[..98], 2)), None);
        assert_eq!(p99(service(&[], 0)), None);
    }

    #[test]
    fn others_are_served_up_to_ten_times_the_latency_or_100_ms() {
        let good = service(&[5; 100], 0);
        let served = |beside: Service| row(beside, good.clone(), BACK).were_others_served();
        assert!(served(service(&[100; 100], 0)));
        assert!(!served(service(&[101; 100], 0)));
        let slow = Row {
            before: service(&[50; 100], 0),
            ..row(service(&[500; 100], 0), good.clone(), BACK)
        };
        assert!(slow.were_others_served());
        let slower = Row {
            beside: service(&[501; 100], 0),
            ..slow
        };
        assert!(!slower.were_others_served());
    }

    #[test]
    fn what_honest_clients_cost_is_not_held_against_an_attack() {
        let good = service(&[5; 100], 0);
        let beside = |ms| Row {
            loaded: Some(Duration::from_millis(200)),
            ..row(service(&[ms; 100], 0), good.clone(), BACK)
        };
        assert!(beside(400).were_others_served());
        assert!(!beside(401).were_others_served());
        // After the attack there is no load.
        let after = Row {
            after: service(&[400; 100], 0),
            ..beside(400)
        };
        assert!(!after.has_recovered());
    }

    #[test]
    fn one_request_that_fails_is_a_no_and_so_is_nobody_asking() {
        let good = service(&[5; 100], 0);
        let served = |beside: Service| row(beside, good.clone(), BACK).were_others_served();
        assert!(!served(service(&[5; 999], 1)));
        assert!(!served(service(&[], 0)));
    }

    #[test]
    fn recovery_is_memory_descriptors_latency_and_being_alive() {
        let good = service(&[5; 100], 0);
        let recovered = |after: Service, held| row(good.clone(), after, held).has_recovered();
        assert!(recovered(good.clone(), BACK));
        assert!(!recovered(service(&[101; 100], 0), BACK));
        assert!(!recovered(good.clone(), None));
        for (memory, descriptors) in [(85 * MIB, 20), (84 * MIB, 21)] {
            let held = Holding {
                memory,
                descriptors,
            };
            assert!(!recovered(good.clone(), Some(held)), "{held:?}");
        }
    }

    #[test]
    fn who_has_died_has_served_nobody() {
        let good = service(&[5; 100], 0);
        assert!(!row(good.clone(), good, None).were_others_served());
    }
}
