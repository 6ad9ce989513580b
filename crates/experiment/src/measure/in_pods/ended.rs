//! Systems with a pod that ended during a measurement.

use cluster::state::PodState;

use crate::pods::stage::Stage;
use crate::pods::stage::losses::{PodEnd, end_of};
use crate::pods::wanted::Wanted;

/// A system with a pod that ended during the measurement.
pub(super) struct EndedSystem {
    /// The position of its variant. `None` for a system that all variants share.
    pub(super) variant: Option<usize>,
    pub(super) pod: PodState,
    /// True if the cluster took the pod away.
    pub(super) is_lost: bool,
    pub(super) why: String,
}

/// The systems with a pod that ended. `before` and `now` are all pods at the start of the load and after it.
pub(super) fn ended_systems(
    stage: &Stage<'_>,
    wanted: &[Wanted<'_>],
    before: &[PodState],
    now: &[PodState],
) -> Vec<EndedSystem> {
    let ended = wanted.iter().filter_map(|one| {
        let now = stage.pods_of(one, now);
        stage.pods_of(one, before).into_iter().find_map(|pod| {
            let same = now.iter().find(|other| other.name == pod.name);
            let PodEnd { pod, is_lost, why } = end_of(pod, same.copied())?;
            Some(EndedSystem {
                variant: one.variant,
                pod: pod.clone(),
                is_lost,
                why,
            })
        })
    });
    ended.collect()
}
