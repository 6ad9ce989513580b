//! The generators of a load with several shards, as seen by one of them.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use model::{InvalidKind, Shard};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stats::cycles::{Cause, Disturbance};

use crate::invalid::Invalid;
use crate::pods::barrier::{ClockOffset, GeneratorBarrier};
use crate::prove::RequestCounts;

/// The generators of a load. Each sends one shard.
pub struct Peers {
    barrier: RefCell<GeneratorBarrier>,
    /// The pod of this generator.
    pub(super) pod: String,
    /// The node of that pod.
    pub(super) node: String,
}

/// The report of one generator about its shard. Times are nanoseconds after the common start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ShardReport {
    /// Requests to each variant.
    pub(super) counts: Vec<RequestCounts>,
    /// True if the times of all its slots were recorded.
    pub(super) is_whole: bool,
    /// Times when its host or the generator was disturbed: from, to, and true if it was the host.
    pub(super) disturbances: Vec<(u64, u64, bool)>,
}

/// The reports of all generators about a load. Empty for a load with one generator.
pub(super) struct PeerReports {
    all: Vec<ShardReport>,
    /// Index of this generator's report.
    own: usize,
}

impl Peers {
    /// Returns the generators that have joined a barrier. This one is `pod` on `node`.
    pub fn of(barrier: GeneratorBarrier, pod: String, node: String) -> Peers {
        Peers {
            barrier: RefCell::new(barrier),
            pod,
            node,
        }
    }

    pub(super) fn shard(&self) -> Shard {
        self.barrier.borrow().shard()
    }

    pub(super) fn clock(&self) -> ClockOffset {
        self.barrier.borrow().clock()
    }

    /// Sends a value to all generators and returns the values of all, in their order. Waits for all.
    ///
    /// # Errors
    /// Fails if a generator is gone.
    pub(super) fn exchange<T>(&self, own: &T) -> Result<Vec<T>, Invalid>
    where
        T: Serialize + DeserializeOwned + Clone,
    {
        self.barrier.borrow_mut().exchange(own).map_err(alone)
    }

    /// Returns the common start time of all generators. The first generator sets it: its `lead` after all have agreed.
    ///
    /// # Errors
    /// Fails if a generator is gone.
    pub(super) fn agree(&self, lead: Duration) -> Result<Instant, Invalid> {
        self.barrier.borrow_mut().agree(lead).map_err(alone)
    }
}

fn alone(reason: String) -> Invalid {
    Invalid::new(
        InvalidKind::LoadFailed,
        format!("not all generators are present: {reason}"),
    )
}

impl PeerReports {
    /// Returns the empty list of reports, for a load with one generator.
    pub(super) fn none() -> PeerReports {
        PeerReports {
            all: Vec::new(),
            own: 0,
        }
    }

    /// Sends the report of this generator and waits for the reports of all.
    ///
    /// # Errors
    /// Fails if a generator is gone.
    pub(super) fn exchange(peers: &Peers, own: &ShardReport) -> Result<PeerReports, Invalid> {
        Ok(PeerReports {
            all: peers.exchange(own)?,
            own: peers.shard().index() as usize,
        })
    }

    fn of_others(&self) -> impl Iterator<Item = &ShardReport> {
        let all = self.all.iter().enumerate();
        all.filter(|(index, _)| *index != self.own)
            .map(|(_, report)| report)
    }

    /// Returns the requests that the other generators sent to a variant.
    pub(super) fn sent_by_others(&self, variant: usize) -> RequestCounts {
        self.of_others()
            .filter_map(|report| report.counts.get(variant).copied())
            .fold(RequestCounts::default(), RequestCounts::plus)
    }

    /// Adds the disturbances of the other generators. Returns `None` if a generator has not recorded the
    /// times of its slots.
    pub(super) fn add_disturbances(&self, disturbances: &mut Vec<Disturbance>) -> Option<()> {
        if !self.all.iter().all(|report| report.is_whole) {
            return None;
        }
        for report in self.of_others() {
            let theirs = report.disturbances.iter();
            disturbances.extend(theirs.map(|&(from_ns, to_ns, is_host)| Disturbance {
                from_ns,
                to_ns: to_ns.max(from_ns),
                cause: if is_host {
                    Cause::Host
                } else {
                    Cause::Generator
                },
                variant: None,
            }));
        }
        Some(())
    }
}
