//! The generator that ended the load of a round, if one of them was lost.

use std::collections::BTreeMap;

use cluster::state::{Phase, PodState};

/// A generator that will not send its part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Shard of the generator.
    pub(crate) index: u32,
    /// Its pod, in the last state that the API reported.
    pub(crate) pod: PodState,
    /// The reason, such as `was evicted: Eviction API: evicting`.
    pub(crate) why: String,
}

/// Place of a loss in the chain of causes. The first loss takes the other generators with it: they miss it, and
/// the controller of their Job removes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The cluster reports its own reason: an eviction, a limit of memory, a lost node.
    Reported,
    /// The pod does not exist any more.
    Gone,
    /// The pod is being removed without a reported reason.
    Leaving,
    /// The generator ended by itself.
    Ended,
}

/// Returns the first lost generator of a round. `before` and `now` are the generators in two successive states,
/// by their shards.
pub(crate) fn first_loss(
    before: &BTreeMap<u32, PodState>,
    now: &BTreeMap<u32, PodState>,
) -> Option<Loss> {
    let mut losses: Vec<(Rank, Loss)> = Vec::new();
    let mut lose = |rank: Rank, index: u32, pod: &PodState, why: &str| {
        let (pod, why) = (pod.clone(), why.to_owned());
        losses.push((rank, Loss { index, pod, why }));
    };
    for (index, pod) in before {
        let is_other = now.get(index).is_none_or(|other| other.name != pod.name);
        if is_other && pod.phase != Phase::Succeeded {
            lose(Rank::Gone, *index, pod, "was removed");
        }
    }
    for (index, pod) in now {
        match &pod.phase {
            Phase::Failed(why) => lose(rank_of(why), *index, pod, why),
            Phase::Leaving => lose(Rank::Leaving, *index, pod, "is being removed"),
            _ => {}
        }
    }
    losses.sort_by_key(|(rank, loss)| (*rank, loss.pod.deleted_at));
    losses.into_iter().next().map(|(_, loss)| loss)
}

fn rank_of(why: &str) -> Rank {
    if why.starts_with("ended with exit code") {
        Rank::Ended
    } else if why.starts_with("was asked to end") {
        Rank::Leaving
    } else {
        Rank::Reported
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A generator of the given shard, with this status. It was deleted at this second, with the usual 30 s to end.
    fn generator(shard: u32, status: &Value, deleted: Option<u32>) -> PodState {
        let mut metadata = json!({
            "name": format!("generators-r1-{shard}"),
            "annotations": {"batch.kubernetes.io/job-completion-index": shard.to_string()},
        });
        if let Some(second) = deleted {
            metadata["deletionTimestamp"] = json!(format!("2026-11-28T12:00:{:02}Z", second + 30));
            metadata["deletionGracePeriodSeconds"] = json!(30);
        }
        PodState::of(&json!({"metadata": metadata, "status": status}))
    }

    /// The first loss after both generators have run.
    fn lost(now: [Option<PodState>; 2]) -> Option<(u32, String)> {
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let before = (0..2).map(|shard| (shard, generator(shard, &ready, None)));
        let now = (0..2)
            .zip(now)
            .filter_map(|(shard, pod)| Some((shard, pod?)));
        let loss = first_loss(&before.collect(), &now.collect());
        loss.map(|loss| (loss.index, loss.why))
    }

    fn failed(code: i32) -> Value {
        let ended = json!({"exitCode": code});
        json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": ended}}]})
    }

    #[test]
    fn the_loss_that_caused_the_others_is_named() {
        let running = json!({"phase": "Running"});
        let evicted = json!({"phase": "Running", "conditions": [{
            "type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI", "message": "evicting",
        }]});
        let one = |status: &Value, at| Some(generator(0, status, at));
        let two = |status: &Value, at| Some(generator(1, status, at));
        let was = |why: &str| Some((1, why.to_owned()));
        for (case, now, is) in [
            (
                "nothing is lost",
                [one(&running, None), two(&running, None)],
                None,
            ),
            (
                "the Job removes the first, because the second was evicted",
                [one(&running, Some(8)), two(&evicted, Some(8))],
                was("was evicted: evicting"),
            ),
            (
                "the second does not exist any more",
                [one(&running, Some(8)), None],
                was("was removed"),
            ),
            (
                "both are being removed, the second since an earlier second",
                [one(&running, Some(9)), two(&running, Some(8))],
                was("is being removed"),
            ),
            (
                "the first has obeyed its Job, the second was evicted",
                [one(&failed(143), Some(9)), two(&evicted, Some(8))],
                was("was evicted: evicting"),
            ),
            (
                "the first misses the second, which is being removed",
                [one(&failed(5), None), two(&running, Some(8))],
                was("is being removed"),
            ),
            (
                "the second ended by itself",
                [one(&running, None), two(&failed(5), None)],
                was("ended with exit code 5"),
            ),
        ] {
            assert_eq!(lost(now), is, "{case}");
        }
    }
}
