//! A single load from pods of a cluster, without systems of `weigh`.

use std::net::SocketAddr;

use cluster::ClusterError;
use cluster::kubelet::Readings;
use recording::{ClusterText, Recording};

use super::generator_job::GeneratorJob;
use super::stage::{RoundError, Stage, placed_text};
use crate::exit::Failure;

/// The recordings of the generators of a single load, with the names of their pods.
pub struct SentLoad {
    /// In the order of the shards.
    pub shards: Vec<(String, Recording)>,
    /// The cluster, and the places of the generators.
    pub cluster: ClusterText,
}

/// Sends a load from the generators of a stage, and ends the stage. `job` gets the address of the barrier.
///
/// # Errors
/// When a generator does not send its part, or the cluster cannot be reached.
pub fn send(
    mut stage: Stage<'_>,
    version: &str,
    namespace: &str,
    job: impl FnOnce(SocketAddr) -> GeneratorJob,
) -> Result<SentLoad, Failure> {
    let job = job(stage.barrier());
    let sent = generated(&mut stage, &job);
    let cluster = stage.text(version, namespace);
    let ended = stage.end(false);
    let shards = sent.map_err(|error| match error {
        RoundError::Cluster(error) => Failure::not_ready(error.to_string()),
        RoundError::Generator(reason) | RoundError::Lost(reason) => Failure::not_ready(reason),
    })?;
    ended.map_err(|error: ClusterError| Failure::not_ready(error.to_string()))?;
    Ok(SentLoad { shards, cluster })
}

fn generated(
    stage: &mut Stage<'_>,
    job: &GeneratorJob,
) -> Result<Vec<(String, Recording)>, RoundError> {
    let up = stage.bring_up(1, &[])?;
    let mut readings = Readings::default();
    let sent = stage.generate(&up, job, &mut readings);
    let ended = Stage::end_round(up);
    let (recordings, pods) = sent?;
    ended?;
    stage.know_nodes(&pods);
    let placed = pods
        .iter()
        .map(|pod| placed_text(pod, 1, None, "generator"));
    stage.placed = placed.collect();
    let names = pods.into_iter().map(|pod| pod.name);
    Ok(names.zip(recordings).collect())
}
