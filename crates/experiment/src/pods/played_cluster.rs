//! A cluster for tests: an API server in this process, and a thread that plays its controllers and kubelets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{ApiConnection, Run};
use serde_json::{Value, json};

use super::fake_api::Api;
use super::generator_job::{self, GeneratorInput};
use super::packed_files::PackedFiles;
use super::stage::{GeneratorPods, PodsSpec, Stage};
use super::waits::PodWaits;
use super::wanted::Wanted;

/// The stored objects, by their paths.
pub(super) type Objects = BTreeMap<String, Value>;

/// The path of all objects of a kind in the namespace.
pub(super) const PODS: &str = "/api/v1/namespaces/space/pods/";
const JOBS: &str = "/apis/batch/v1/namespaces/space/jobs/";
const SECRETS: &str = "/api/v1/namespaces/space/secrets/";

/// The end of a generator in a played cluster.
pub(super) enum PlayedEnd {
    /// It has ended well, and this is its log.
    Sent(String),
    /// It has written this log, but its kubelet never reports its end.
    Written(String),
    /// The cluster evicts it.
    Evicted,
}

/// A thread that plays a cluster until it is dropped.
pub(super) struct PlayedCluster {
    pub(super) api: Api,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl PlayedCluster {
    /// Changes the objects of the server again and again with `play`.
    pub(super) fn start(mut play: impl FnMut(&mut Objects) + Send + 'static) -> PlayedCluster {
        let api = Api::start();
        let is_over = Arc::new(AtomicBool::new(false));
        let (state, asked) = (Arc::clone(&api.state), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                play(&mut state.lock().expect("no panic").objects);
                std::thread::park_timeout(Duration::from_millis(10));
            }
        });
        PlayedCluster {
            api,
            is_over,
            thread: Some(thread),
        }
    }

    /// All objects in the cluster except nodes and logs.
    pub(super) fn left(&self) -> Vec<String> {
        let mut left = self.api.left();
        left.retain(|path| !path.contains("/log") && !path.contains("/nodes/"));
        left
    }

    /// Ends the thread.
    ///
    /// # Panics
    /// When the thread has panicked.
    pub(super) fn end(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().expect("it ends once").join();
        ended.expect("no panic");
    }
}

impl Drop for PlayedCluster {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A stage for these systems, with two generators.
pub(super) fn stage<'c>(
    connection: &'c ApiConnection,
    wanted: &[Wanted<'_>],
    files: PackedFiles,
) -> Stage<'c> {
    stage_with(connection, wanted, files, PodsSpec::of_load(1))
}

/// A stage for these systems with these settings of pods, with two generators.
pub(super) fn stage_with<'c>(
    connection: &'c ApiConnection,
    wanted: &[Wanted<'_>],
    files: PackedFiles,
    spec: PodsSpec,
) -> Stage<'c> {
    let deadline = Duration::from_secs(60);
    let run = Run::begin(connection, "x", "weigh:1", deadline).expect("an owner");
    let pods = GeneratorPods {
        image: "weigh:1".to_owned(),
        count: 2,
        deadline,
        waits: PodWaits::default(),
        spec,
        files,
    };
    Stage::begin(run, wanted, BTreeMap::new(), pods).unwrap_or_else(|error| panic!("{error}"))
}

/// Creates the pods of each new Job of generators, which end at once. `end` gets their input, the number of the Job
/// from 1, and the shard from 0.
pub(super) fn play_generators(
    objects: &mut Objects,
    played: &mut Vec<String>,
    end: &dyn Fn(GeneratorInput, usize, u64) -> PlayedEnd,
) {
    let jobs = objects.iter().filter(|(path, job)| {
        path.starts_with(JOBS) && job["spec"]["parallelism"] != 0 && !played.contains(path)
    });
    let jobs: Vec<(String, Value)> = jobs
        .map(|(path, job)| (path.clone(), job.clone()))
        .collect();
    for (path, job) in jobs {
        played.push(path);
        for shard in 0..job["spec"]["completions"].as_u64().expect("a number") {
            let input = mounted(objects, &job["spec"]["template"]["spec"]);
            let (pod, log) = generator(&job, shard, end(input, played.len(), shard));
            let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
            objects.extend(log.map(|log| (format!("{PODS}{name}/log?generator"), json!(log))));
            objects.insert(format!("{PODS}{name}"), pod);
        }
    }
}

fn generator(job: &Value, shard: u64, end: PlayedEnd) -> (Value, Option<String>) {
    let template = &job["spec"]["template"];
    let (status, log) = match end {
        PlayedEnd::Sent(log) => {
            let terminated = json!({"terminated": {"exitCode": 0}});
            let own = json!([{"name": "generator", "state": terminated}]);
            (
                json!({"phase": "Succeeded", "containerStatuses": own}),
                Some(log),
            )
        }
        PlayedEnd::Written(log) => {
            let own = json!([{"name": "generator", "state": {"running": {}}}]);
            (
                json!({"phase": "Running", "containerStatuses": own}),
                Some(log),
            )
        }
        PlayedEnd::Evicted => (json!({"phase": "Failed", "reason": "Evicted"}), None),
    };
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!(format!(
        "{}-{shard}",
        job["metadata"]["name"].as_str().expect("a name")
    ));
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] =
        json!(shard.to_string());
    pod["metadata"]["ownerReferences"] = json!([{"uid": job["metadata"]["uid"]}]);
    pod["spec"]["nodeName"] = json!("n1");
    pod["status"] = status;
    (pod, log)
}

/// The input of a generator, as a kubelet puts it into the pod.
fn mounted(objects: &Objects, pod: &Value) -> GeneratorInput {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = &pod["volumes"][0]["projected"]["sources"];
    for source in sources.as_array().expect("sources") {
        let (secret, item) = (&source["secret"], &source["secret"]["items"][0]);
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let stored = &objects[&format!("{SECRETS}{}", text(&secret["name"]))];
        let content = STANDARD.decode(text(&stored["data"][text(&item["key"])]));
        let content = content.expect("base64");
        // The limit of the cluster for all values of a Secret.
        assert!(content.len() <= 1 << 20, "{}", content.len());
        std::fs::write(folder.path().join(text(&item["path"])), content).expect("a file");
    }
    let job: &Path = &folder.path().join("job.json");
    generator_job::read(job).unwrap_or_else(|why| panic!("{why}"))
}
