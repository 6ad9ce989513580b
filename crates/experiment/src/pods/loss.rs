//! The generator that ended the load of a round, if one of them was lost.

use std::collections::{BTreeMap, BTreeSet};

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
    rank: Rank,
}

impl Loss {
    /// True if the cluster took the pod away. Another attempt may succeed.
    pub(crate) fn is_of_the_cluster(&self) -> bool {
        matches!(self.rank, Rank::Taken | Rank::Gone | Rank::Leaving)
    }

    /// True if the pod was removed, and no reason is reported.
    fn was_removed(&self) -> bool {
        matches!(self.rank, Rank::Gone | Rank::Leaving)
    }

    /// True if the generator ended by itself. It may have missed another one.
    pub(crate) fn ended_by_itself(&self) -> bool {
        self.rank == Rank::Ended
    }
}

/// Place of a loss in the chain of causes. The first loss takes the other generators with it: they miss it, and
/// the controller of their Job removes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The cluster reports that it took the pod away: an eviction, a preemption, a lost node.
    Taken,
    /// The cluster reports another reason: a limit of memory, an image that cannot start.
    Reported,
    /// The pod has never started, and the others missed it.
    NeverCame,
    /// The pod does not exist any more.
    Gone,
    /// The pod is being removed without a reported reason.
    Leaving,
    /// The generator ended by itself.
    Ended,
}

/// Returns the lost generators of a round, the likely cause first. `before` and `now` are the generators in two
/// successive states, by their shards.
pub(crate) fn losses(before: &BTreeMap<u32, PodState>, now: &BTreeMap<u32, PodState>) -> Vec<Loss> {
    let mut losses: Vec<Loss> = Vec::new();
    let mut lose = |rank: Rank, index: u32, pod: &PodState, why: &str| {
        let (pod, why) = (pod.clone(), why.to_owned());
        losses.push(Loss {
            index,
            pod,
            why,
            rank,
        });
    };
    for (index, pod) in before {
        let is_other = now.get(index).is_none_or(|other| other.name != pod.name);
        match &pod.phase {
            Phase::Coming(why) if is_other => lose(Rank::NeverCame, *index, pod, &never_came(why)),
            Phase::Succeeded => {}
            _ if is_other => lose(Rank::Gone, *index, pod, "was removed"),
            _ => {}
        }
    }
    let was_coming = |index: &u32| {
        let earlier = before.get(index);
        earlier.is_none_or(|it| matches!(it.phase, Phase::Coming(_)))
    };
    for (index, pod) in now {
        match &pod.phase {
            Phase::Lost(why) => lose(Rank::Taken, *index, pod, why),
            Phase::Failed(why) => lose(rank_of(why), *index, pod, why),
            Phase::Leaving if !(before.contains_key(index) && was_coming(index)) => {
                lose(Rank::Leaving, *index, pod, "is being removed");
            }
            Phase::Leaving => {
                lose(
                    Rank::NeverCame,
                    *index,
                    pod,
                    "was removed before it started",
                );
            }
            _ => {}
        }
    }
    // If no generator has given up, the cluster took away a pod that had not started.
    let has_given_up =
        |loss: &Loss| matches!(loss.rank, Rank::Taken | Rank::Reported | Rank::Ended);
    if !losses.iter().any(has_given_up) {
        let early = losses.iter_mut().filter(|it| it.rank == Rank::NeverCame);
        for loss in early {
            loss.rank = Rank::Leaving;
            "was removed before it started".clone_into(&mut loss.why);
        }
    }
    // A generator that has not started is a cause only if another one has given up.
    if losses.iter().any(has_given_up) {
        for (index, pod) in now {
            if let Phase::Coming(why) = &pod.phase
                && was_coming(index)
            {
                let (pod, why) = (pod.clone(), never_came(why));
                losses.push(Loss {
                    index: *index,
                    pod,
                    why,
                    rank: Rank::NeverCame,
                });
            }
        }
    }
    losses.sort_by_key(|loss| (loss.rank, loss.pod.deleted_at));
    losses
}

/// True if only the controller of the Job knows which of these losses caused the others. Pods may be removed in
/// the same second, and the API reports whole seconds.
pub(crate) fn are_alike(losses: &[Loss]) -> bool {
    let removed = losses.iter().filter(|loss| loss.was_removed());
    losses.first().is_some_and(Loss::was_removed) && removed.count() > 1
}

/// Returns the loss that caused the others. `by_job` contains the pods that the controller of the Job removed,
/// because another pod was lost before.
pub(crate) fn cause(losses: Vec<Loss>, by_job: &BTreeSet<String>) -> Option<Loss> {
    let is_own = |loss: &Loss| !(loss.was_removed() && by_job.contains(&loss.pod.name));
    let first = losses.iter().position(is_own).unwrap_or(0);
    losses.into_iter().nth(first)
}

fn never_came(why: &str) -> String {
    format!("did not start: {why}")
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

    fn first_loss(before: &BTreeMap<u32, PodState>, now: &BTreeMap<u32, PodState>) -> Option<Loss> {
        losses(before, now).into_iter().next()
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
    fn only_a_pod_that_the_cluster_took_away_is_worth_another_attempt() {
        let evicted = json!({"phase": "Failed", "reason": "Evicted"});
        for (status, is_worth) in [(evicted, true), (failed(5), false)] {
            let now = BTreeMap::from([(0, generator(0, &status, None))]);
            let loss = first_loss(&BTreeMap::new(), &now).expect("a loss");
            assert_eq!(loss.is_of_the_cluster(), is_worth, "{status}");
            assert_eq!(loss.ended_by_itself(), !is_worth, "{status}");
        }
        let unplaced = json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "message": "Insufficient cpu"}]});
        // The first has given up, because the second has never had a node.
        let before = BTreeMap::from([
            (0, generator(0, &json!({"phase": "Running"}), None)),
            (1, generator(1, &unplaced, None)),
        ]);
        let now = BTreeMap::from([
            (0, generator(0, &failed(5), None)),
            (1, generator(1, &unplaced, None)),
        ]);
        let loss = first_loss(&before, &now).expect("a loss");
        assert_eq!(
            (loss.index, loss.why.as_str(), loss.is_of_the_cluster()),
            (
                1,
                "did not start: no node accepts it: Insufficient cpu",
                false
            )
        );
        // A generator that is still coming is no loss.
        let coming = BTreeMap::from([(0, generator(0, &json!({"phase": "Pending"}), None))]);
        assert_eq!(first_loss(&coming, &coming), None);
    }

    #[test]
    fn a_pod_that_is_taken_away_before_it_starts_is_lost_to_the_cluster() {
        let running = || generator(0, &json!({"phase": "Running"}), None);
        let coming = json!({"phase": "Pending"});
        let before = BTreeMap::from([(0, running()), (1, generator(1, &coming, None))]);
        let leaving = BTreeMap::from([(0, running()), (1, generator(1, &coming, Some(8)))]);
        let gone = BTreeMap::from([(0, running())]);
        for now in [leaving, gone] {
            let loss = first_loss(&before, &now).expect("a loss");
            assert_eq!(
                (loss.index, loss.is_of_the_cluster()),
                (1, true),
                "{loss:?}"
            );
            assert_eq!(loss.why, "was removed before it started");
        }
    }

    #[test]
    fn a_pod_that_its_job_removed_is_not_the_cause() {
        let running = || json!({"phase": "Running"});
        let coming = || generator(0, &json!({"phase": "Pending"}), None);
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let before = BTreeMap::from([(0, coming()), (1, generator(1, &ready, None))]);
        // Both were deleted in the same second, and the first had not started.
        let now = || {
            let leaving = |shard| (shard, generator(shard, &running(), Some(8)));
            losses(&before, &BTreeMap::from([leaving(0), leaving(1)]))
        };
        assert!(are_alike(&now()));
        let by_job = BTreeSet::from(["generators-r1-0".to_owned()]);
        let found = cause(now(), &by_job).map(|loss| (loss.index, loss.why));
        assert_eq!(found, Some((1, "is being removed".to_owned())));
        // Nobody is the cause of everything, so the first stays.
        let all = BTreeSet::from(["generators-r1-0".to_owned(), "generators-r1-1".to_owned()]);
        assert_eq!(cause(now(), &all).map(|loss| loss.index), Some(0));
        // A reported reason is enough.
        let reported = BTreeMap::from([
            (0, generator(0, &running(), Some(8))),
            (1, generator(1, &failed(137), Some(8))),
        ]);
        assert!(!are_alike(&losses(&before, &reported)));
    }

    #[test]
    fn the_loss_that_caused_the_others_is_named() {
        let running = json!({"phase": "Running"});
        let evicted = json!({"phase": "Running", "conditions": [{
            "type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI", "message": "evicting",
        }]});
        let killed = json!({"phase": "Failed", "containerStatuses": [
            {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]});
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
            (
                "the second was killed for its memory, and the first misses it",
                [one(&failed(5), None), two(&killed, None)],
                was("was killed because it used more memory than its limit"),
            ),
        ] {
            assert_eq!(lost(now), is, "{case}");
        }
    }
}
