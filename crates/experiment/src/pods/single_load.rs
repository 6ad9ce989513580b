//! A single load from pods of a cluster, without systems of `weigh`.

use std::net::SocketAddr;

use cluster::ClusterError;
use cluster::kubelet::Readings;
use recording::{ClusterText, Recording};

use super::generator_job::GeneratorJob;
use super::stage::{RoundError, Stage, placed_text};
use crate::environment::instant;
use crate::exit::Failure;

/// The recordings of the generators of a single load, with the names of their pods.
pub struct SentLoad {
    /// In the order of the shards.
    pub shards: Vec<(String, Recording)>,
    /// The cluster, and the places of the generators.
    pub cluster: ClusterText,
}

/// The recordings of the generators with the names of their pods, in the order of the shards.
type Shards = Vec<(String, Recording)>;

/// Sends a load from the generators of a stage, and ends the stage. `job` gets the address of the barrier, once
/// for each attempt. A load that the cluster took a pod from is sent again once, after a `note`.
///
/// # Errors
/// When a generator does not send its part, or the cluster cannot be reached.
pub fn send(
    mut stage: Stage<'_>,
    version: &str,
    namespace: &str,
    job: impl Fn(SocketAddr) -> GeneratorJob,
    note: impl Fn(&str),
) -> Result<SentLoad, Failure> {
    let sent = attempts(&mut stage, &job, &note);
    let cluster = stage.text(version, namespace);
    let are_left = matches!(sent, Err(RoundError::Cluster(ClusterError::Left { .. })));
    let ended = stage.end(are_left);
    let shards = sent.map_err(|error| match error {
        RoundError::Cluster(error) => Failure::not_ready(error.to_string()),
        RoundError::Generator(reason) | RoundError::Lost(reason) => Failure::not_ready(reason),
    })?;
    ended.map_err(|error: ClusterError| Failure::not_ready(error.to_string()))?;
    Ok(SentLoad { shards, cluster })
}

/// Sends the load, and once more if the cluster took a pod away and the time limit leaves time for it.
fn attempts(
    stage: &mut Stage<'_>,
    job: &dyn Fn(SocketAddr) -> GeneratorJob,
    note: &dyn Fn(&str),
) -> Result<Shards, RoundError> {
    let began = instant();
    let why = match generated(stage, 1, &job(stage.barrier())) {
        Err(RoundError::Lost(why)) => why,
        sent => return sent,
    };
    if began.elapsed() * 2 > stage.deadline {
        let seconds = stage.deadline.as_secs();
        return Err(RoundError::Lost(format!(
            "{why}. The time limit of {seconds} s leaves no time to send the load again"
        )));
    }
    note(&format!("{why}. The load is sent again"));
    stage.lost_rounds.push(why);
    generated(stage, 2, &job(stage.barrier())).map_err(|error| match error {
        RoundError::Lost(why) => {
            RoundError::Lost(format!("the load was lost twice. The last: {why}"))
        }
        other => other,
    })
}

fn generated(
    stage: &mut Stage<'_>,
    attempt: u32,
    job: &GeneratorJob,
) -> Result<Shards, RoundError> {
    let up = stage.bring_up(attempt, &[])?;
    let mut readings = Readings::default();
    let sent = stage.generate(&up, job, &mut readings);
    let ended = Stage::end_round(up);
    if let (Err(RoundError::Lost(why)), Err(error)) = (&sent, &ended) {
        // The pods of this attempt are still there, so another attempt would not have the nodes alone.
        return Err(RoundError::Generator(format!("{why}. {error}")));
    }
    let (recordings, pods) = sent?;
    ended?;
    stage.know_nodes(&pods);
    let placed = pods
        .iter()
        .map(|pod| placed_text(pod, attempt, None, "generator"));
    stage.placed = placed.collect();
    let names = pods.into_iter().map(|pod| pod.name);
    Ok(names.zip(recordings).collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;

    use recording::sample::SampleRun;

    use super::*;
    use crate::pods::generator_job::GeneratorInput;
    use crate::pods::load_spec::LoadSpec;
    use crate::pods::meeting::Meeting;
    use crate::pods::packed_files::{FileOfLab, PackedFiles, noise};
    use crate::pods::played_cluster::{PlayedCluster, PlayedEnd, play_generators, stage};
    use crate::pods::result;

    /// The end of a load in a played cluster, and the notes about it. `end` decides the end of each generator.
    fn sent(
        files: &[FileOfLab],
        end: impl Fn(GeneratorInput, usize, u64) -> PlayedEnd + Send + 'static,
    ) -> (Result<SentLoad, Failure>, Vec<String>) {
        let mut played = Vec::new();
        let cluster =
            PlayedCluster::start(move |objects| play_generators(objects, &mut played, &end));
        let connection = cluster.api.connection(false);
        let files = PackedFiles::of(files.iter().map(|(path, content)| (path, content)));
        let files = files.expect("they fit");
        let list = files.list().clone();
        let stage = stage(&connection, &[], files);
        let job = |barrier| {
            let within = std::time::Duration::from_secs(9);
            let meeting = Meeting::of(2, barrier, "t".to_owned(), within);
            GeneratorJob::Load(LoadSpec::of(vec!["http://web/".to_owned()], &list, meeting))
        };
        let notes = Mutex::new(Vec::new());
        let note = |line: &str| notes.lock().expect("no panic").push(line.to_owned());
        let sent = send(stage, "v1", "space", job, note);
        assert_eq!(cluster.left(), Vec::<String>::new());
        cluster.end();
        (sent, notes.into_inner().expect("no panic"))
    }

    fn log_of(recording: &Recording) -> String {
        let mut log = Vec::new();
        let bytes = serde_json::to_vec(recording).expect("JSON");
        result::write(&mut log, &bytes).expect("it fits");
        String::from_utf8(log).expect("text")
    }

    fn said(sent: Result<SentLoad, Failure>) -> String {
        sent.err()
            .map(|failure| failure.message)
            .unwrap_or_default()
    }

    #[test]
    fn files_and_results_of_several_mebibytes_arrive_byte_for_byte() {
        let files = vec![
            (PathBuf::from("rows.csv"), b"a,b\n1,2\n".repeat(300_000)),
            (PathBuf::from("data.bin"), noise(3 << 20)),
        ];
        let mut recording = SampleRun::load_alone(true);
        while serde_json::to_vec(&recording).expect("JSON").len() < 7 << 20 {
            recording.rounds.extend(recording.rounds.clone());
        }
        let log = log_of(&recording);
        let expected = files.clone();
        let (sent, notes) = sent(&files, move |input, _, _| {
            assert!(input.files == expected, "the files of the pod differ");
            PlayedEnd::Sent(log.clone())
        });
        let sent = sent.unwrap_or_else(|failure| panic!("{}", failure.message));
        assert_eq!(sent.shards.len(), 2);
        for (_, shard) in &sent.shards {
            let json = |it: &Recording| serde_json::to_vec(it).expect("JSON");
            assert!(json(shard) == json(&recording), "the recording differs");
        }
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn a_load_that_lost_a_pod_is_sent_once_more_and_reported() {
        let log = log_of(&SampleRun::load_alone(true));
        let (sent, notes) = sent(&[], move |_, job, shard| match (job, shard) {
            (1, 1) => PlayedEnd::Evicted,
            _ => PlayedEnd::Sent(log.clone()),
        });
        let sent = sent.unwrap_or_else(|failure| panic!("{}", failure.message));
        assert_eq!(sent.shards[0].0, "wb-x-generators-r2-0");
        let why = "generator 2 of 2, pod `wb-x-generators-r1-1` on node `n1`, was evicted";
        assert_eq!(sent.cluster.lost_rounds, [why]);
        assert_eq!(notes, [format!("{why}. The load is sent again")]);
        let placed: Vec<Option<u32>> = sent.cluster.placed.iter().map(|it| it.round).collect();
        assert_eq!(placed, [Some(2), Some(2)]);
    }

    #[test]
    fn a_result_counts_before_the_kubelet_reports_the_end_of_the_generator() {
        let recording = SampleRun::load_alone(true);
        let log = log_of(&recording);
        let (sent, notes) = sent(&[], move |_, _, _| PlayedEnd::Written(log.clone()));
        let sent = sent.unwrap_or_else(|failure| panic!("{}", failure.message));
        let json = |it: &Recording| serde_json::to_vec(it).expect("JSON");
        for (_, shard) in &sent.shards {
            assert!(json(shard) == json(&recording), "the recording differs");
        }
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn a_rotated_log_is_a_loss() {
        let log = log_of(&SampleRun::load_alone(true));
        let end = log.lines().skip(2).collect::<Vec<_>>().join("\n");
        let (sent, notes) = sent(&[], move |_, job, _| {
            PlayedEnd::Sent(if job == 1 { end.clone() } else { log.clone() })
        });
        assert!(sent.is_ok(), "{}", said(sent));
        assert!(notes[0].contains("`containerLogMaxSize`"), "{notes:?}");
    }

    #[test]
    fn a_load_that_is_lost_twice_ends_with_the_reason() {
        let (sent, notes) = sent(&[], |_, _, _| PlayedEnd::Evicted);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let said = said(sent);
        assert!(
            said.starts_with(
                "the load was lost twice. The last: generator 1 of 2, pod `wb-x-generators-r2-0`"
            ),
            "{said}"
        );
    }
}
