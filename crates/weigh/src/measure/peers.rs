//! The other generators of a load, of which this one sends a shard.

use std::cell::RefCell;
use std::time::Instant;

use model::{InvalidKind, Shard};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stats::cycles::{Cause, Disturbance};

use crate::pods::meeting::{ClockOffset, Meeting};
use crate::prove::RequestCounts;
use crate::systems::Invalid;

/// The generators of a load, as one of them sees them.
pub(crate) struct Company {
    meeting: RefCell<Meeting>,
    /// The pod that this one is.
    pub(super) pod: String,
    /// The node that it is on.
    pub(super) node: String,
}

/// What one generator tells the others of its part of a load, in nanoseconds from the moment on which all
/// began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    /// One for each variant.
    pub(super) counts: Vec<RequestCounts>,
    /// Whether the times of all its slots were kept.
    pub(super) is_whole: bool,
    /// When its host or itself was in the way: from, to, and whether it was the host.
    pub(super) disturbances: Vec<(u64, u64, bool)>,
}

impl Company {
    /// Those of a meeting, of which this one is a pod on a node.
    pub(crate) fn of(meeting: Meeting, pod: String, node: String) -> Company {
        Company {
            meeting: RefCell::new(meeting),
            pod,
            node,
        }
    }

    pub(super) fn shard(&self) -> Shard {
        self.meeting.borrow().shard()
    }

    pub(super) fn clock(&self) -> ClockOffset {
        self.meeting.borrow().clock()
    }

    /// Tells all others and gives what all have told, in their order: each waits for all.
    ///
    /// # Errors
    /// When one of them is gone.
    pub(super) fn exchange<T>(&self, own: &T) -> Result<Vec<T>, Invalid>
    where
        T: Serialize + DeserializeOwned + Clone,
    {
        self.meeting.borrow_mut().exchange(own).map_err(alone)
    }

    /// The moment at which all begin.
    ///
    /// # Errors
    /// When one of them is gone.
    pub(super) fn agree(&self) -> Result<Instant, Invalid> {
        self.meeting.borrow_mut().agree().map_err(alone)
    }
}

fn alone(reason: String) -> Invalid {
    Invalid::new(
        InvalidKind::LoadFailed,
        format!("the generators are not complete: {reason}"),
    )
}

impl Seen {
    /// Adds the disturbances that others have seen to those that were seen here.
    pub(super) fn complete(all: &[Seen], own: usize, disturbances: &mut Vec<Disturbance>) {
        let others = all.iter().enumerate().filter(|(index, _)| *index != own);
        for (_, other) in others {
            let theirs = other.disturbances.iter();
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
    }

    /// What the others have sent to a variant.
    pub(super) fn beside(all: &[Seen], own: usize, variant: usize) -> RequestCounts {
        let others = all.iter().enumerate().filter(|(index, _)| *index != own);
        others
            .filter_map(|(_, other)| other.counts.get(variant).copied())
            .fold(RequestCounts::default(), RequestCounts::plus)
    }
}
