//! The results of generators, read from their logs while their containers still run. Without them, each round
//! would wait for the kubelets to report the end of these containers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cluster::ApiConnection;
use cluster::followed_log::FollowedLog;
use cluster::state::{Phase, PodState};

use super::super::result;
use crate::environment::instant;

/// Pause before a log is followed again after the end of its connection.
const FOLLOW_AGAIN: Duration = Duration::from_secs(1);

/// The results of the generators of a round that have arrived, and the logs that have not.
pub(super) struct FollowedResults<'c> {
    connection: &'c ApiConnection,
    logs: BTreeMap<String, Following>,
    /// By the name of the pod.
    results: BTreeMap<String, Vec<u8>>,
}

struct Following {
    since: Instant,
    /// `None` after its connection has ended.
    log: Option<FollowedLog>,
}

impl<'c> FollowedResults<'c> {
    pub(super) fn new(connection: &'c ApiConnection) -> FollowedResults<'c> {
        FollowedResults {
            connection,
            logs: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    /// Takes results that have arrived, and follows the logs of generators that run.
    pub(super) fn look<'p>(&mut self, generators: impl Iterator<Item = &'p PodState>) {
        for pod in generators {
            let runs = matches!(pod.phase, Phase::Running | Phase::Ready);
            if !runs || self.has(pod) {
                continue;
            }
            let connection = self.connection;
            let follow = || Following {
                since: instant(),
                log: Some(connection.follow_log(&pod.name, pod.container.as_deref(), result::END)),
            };
            let following = self.logs.entry(pod.name.clone()).or_insert_with(follow);
            if following.log.as_ref().is_some_and(FollowedLog::is_over) {
                let log = following.log.take();
                let log = log.and_then(|log| connection.followed(log));
                // A log without a whole result is read again after the end of the pod.
                if let Some(Ok(bytes)) = log.map(|log| result::read(&log)) {
                    self.results.insert(pod.name.clone(), bytes);
                    continue;
                }
            }
            if following.log.is_none() && following.since.elapsed() >= FOLLOW_AGAIN {
                *following = follow();
            }
        }
    }

    /// True if the result of this generator has arrived.
    pub(super) fn has(&self, pod: &PodState) -> bool {
        self.results.contains_key(&pod.name)
    }

    /// The result of a generator. `None` if it has not arrived.
    pub(super) fn take(&mut self, pod: &PodState) -> Option<Vec<u8>> {
        self.results.remove(&pod.name)
    }
}
