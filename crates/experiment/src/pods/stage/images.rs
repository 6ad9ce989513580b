//! The images of a run, pulled on all nodes that its pods may use before the first round.
//!
//! The scheduler prefers nodes that have an image already. Without this, variants with different images could stay on
//! different nodes in all rounds, and the first rounds would wait for pulls.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::ClusterError;
use cluster::call::Resource;
use cluster::connection::{Heed, name_of};
use cluster::image_pull::{ImagePull, PullState, image_pulls, pull_state};
use cluster::owner::Round as OwnedRound;
use lab::Endpoint;
use serde_json::Value;

use super::Stage;
use crate::environment::instant;
use crate::pods::wanted::Wanted;

/// Maximum number of nodes that images are pulled to. On more nodes, the pulls would load the registry more than the
/// run.
const NODES_MOST: usize = 32;
/// Pause between two checks of the pods that pull.
const LOOK: Duration = Duration::from_millis(250);

/// A pod that pulls, with its node.
struct Pulling {
    name: String,
    node: String,
}

impl Stage<'_> {
    /// Pulls the images of all pods on the nodes that may get them, if there are several nodes. Returns the problems as
    /// sentences. The run does not depend on the pulls, because each node pulls a missing image itself.
    ///
    /// # Errors
    /// When the user stops the run.
    pub(crate) fn pull_images(&self, wanted: &[Wanted<'_>]) -> Result<Vec<String>, ClusterError> {
        let nodes = self
            .connection()
            .list(Resource::Nodes, "", Heed::StopAndOutage);
        let pulled = nodes.and_then(|nodes| {
            let ready: Vec<&Value> = nodes.iter().filter(|node| may_get_pods(node)).collect();
            match ready.len() {
                0 | 1 => Ok(Vec::new()),
                _ => self.pull_on(&ready, wanted),
            }
        });
        match pulled {
            Err(error @ ClusterError::Stopped { .. }) => Err(error),
            Err(error) => Ok(vec![format!(
                "images are not pulled on all nodes before the first round: {error}"
            )]),
            pulled => pulled,
        }
    }

    fn pull_on(
        &self,
        nodes: &[&Value],
        wanted: &[Wanted<'_>],
    ) -> Result<Vec<String>, ClusterError> {
        let mut notes = Vec::new();
        let mut pulls: Vec<(ImagePull, Vec<&str>)> = Vec::new();
        for pull in image_pulls(&self.objects(wanted)) {
            let nodes = nodes.iter().filter(|node| pull.may_use(node));
            let nodes: Vec<&str> = nodes.map(|node| name_of(node)).collect();
            match nodes.len() {
                // There is no other node to compare with.
                0 | 1 => {}
                many if many > NODES_MOST => notes.push(format!(
                    "images are not pulled before the first round, because {many} nodes may get their pods, more than {NODES_MOST}. Choose nodes with `node-selector` in `pods`"
                )),
                _ => pulls.push((pull, nodes)),
            }
        }
        if pulls.is_empty() {
            return Ok(notes);
        }
        let owner = self.run.round(0)?;
        let pulled = self.pull_with(&owner, &pulls);
        let ended = owner.end();
        notes.extend(pulled?);
        ended.map(|()| notes)
    }

    /// Creates the pods, and waits for them.
    fn pull_with(
        &self,
        owner: &OwnedRound<'_, '_>,
        pulls: &[(ImagePull, Vec<&str>)],
    ) -> Result<Vec<String>, ClusterError> {
        let within = self.waits.started();
        let mut pulling = Vec::new();
        for (number, (pull, nodes)) in pulls.iter().enumerate() {
            for (index, node) in nodes.iter().enumerate() {
                let name = format!("wb-{}-pull-{number}-{index}", self.run.id());
                let seconds = (within * 2).as_secs();
                owner.create(Resource::Pods, pull.pod(&name, node, seconds))?;
                let node = (*node).to_owned();
                pulling.push(Pulling { name, node });
            }
        }
        let began = instant();
        let mut notes = BTreeSet::new();
        loop {
            let pods = self
                .connection()
                .list(Resource::Pods, &owner.selector(), Heed::Stop)?;
            pulling.retain(|one| {
                let Some(pod) = pods.iter().find(|pod| name_of(pod) == one.name) else {
                    return true;
                };
                match pull_state(pod) {
                    PullState::Pulling => return true,
                    PullState::Pulled | PullState::Elsewhere => {}
                    PullState::Failed(why) => {
                        let node = &one.node;
                        notes.insert(format!("node `{node}` has not pulled all images: {why}"));
                    }
                }
                false
            });
            if pulling.is_empty() {
                return Ok(notes.into_iter().collect());
            }
            if began.elapsed() > within {
                let late: BTreeSet<String> = pulling
                    .iter()
                    .map(|one| format!("`{}`", one.node))
                    .collect();
                let late: Vec<String> = late.into_iter().collect();
                notes.insert(format!(
                    "after {} s, images are not pulled on these nodes: {}. Give them time with `--pods-within`",
                    within.as_secs(),
                    late.join(", ")
                ));
                return Ok(notes.into_iter().collect());
            }
            if self.connection().is_stopped() {
                let what = "pull images".to_owned();
                return Err(ClusterError::Stopped { what });
            }
            self.connection().pause(LOOK);
        }
    }

    /// The generators, and the pods of all systems.
    fn objects(&self, wanted: &[Wanted<'_>]) -> Vec<Value> {
        let mut objects = vec![self.generators_of(0).pod()];
        for one in wanted {
            if self.manifests_of(one).is_some() {
                objects.extend(self.workloads_of_manifests(one));
                continue;
            }
            let find = |system: &str| self.address_for(one, system).map(Endpoint::from);
            // A system that a cluster cannot run is a row of the report. Here it has no image.
            let workload = self
                .which(one)
                .workload(String::new(), self.deadline, &find);
            objects.extend(workload.ok().map(|workload| workload.object().1));
        }
        objects
    }
}

/// True if the scheduler may give pods to this node.
fn may_get_pods(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let is_ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
    is_ready && node["spec"]["unschedulable"] != true
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use lab::Lab;
    use serde_json::json;

    use super::*;
    use crate::files::Unwritten;
    use crate::measure::wanted;
    use crate::pods::packed_files::PackedFiles;
    use crate::pods::played_cluster::{Objects, PODS, PlayedCluster, stage};

    const LAB: &str = "question: Why?\nload: {rate: 10/s, duration: 1s}\ntarget: server\n\
        systems:\n  server: {settings: {image: 'a:1'}, image: '{{image}}', port: 80}\n\
        baseline: {name: a}\nvariants: [{name: b, with: {server.image: 'b:1'}}]\nexpect: {status: 200}\n";

    fn lab() -> Lab {
        let files = Unwritten(vec![(PathBuf::from("lab.yaml"), LAB.as_bytes().to_vec())]);
        lab::parse(Path::new("lab.yaml"), &files)
            .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)))
    }

    fn node(name: &str, is_ready: bool) -> (String, Value) {
        let status = if is_ready { "True" } else { "False" };
        let node = json!({
            "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        });
        (format!("/api/v1/nodes/{name}"), node)
    }

    /// The images that the pods in the cluster pulled, with their nodes, and the notes.
    fn pulled(
        nodes: &[(&str, bool)],
        prepare: impl FnOnce(&PlayedCluster),
        mut end: impl FnMut(&str, &mut Value) + Send + 'static,
    ) -> (Vec<String>, Vec<String>) {
        let (seen, images) = std::sync::mpsc::channel();
        let play = move |objects: &mut Objects| {
            for (path, pod) in objects.iter_mut() {
                if path.starts_with(PODS) && pod["status"].is_null() {
                    let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
                    let rules = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
                    let node = &rules["nodeSelectorTerms"][0]["matchFields"][0]["values"][0];
                    let node = node.as_str().expect("a node").to_owned();
                    for container in pod["spec"]["containers"].as_array().expect("containers") {
                        let image = container["image"].as_str().expect("an image");
                        seen.send(format!("{node} {image}")).expect("it is heard");
                    }
                    end(&node, pod);
                }
            }
        };
        let cluster = PlayedCluster::start(play);
        cluster.api.set(|state| {
            let nodes = nodes.iter().map(|(name, is_ready)| node(name, *is_ready));
            state.objects.extend(nodes);
        });
        prepare(&cluster);
        let connection = cluster.api.connection(false);
        let lab = lab();
        let wanted = wanted(&lab, &[0, 1]);
        let stage = stage(&connection, &wanted, PackedFiles::of([]).expect("no files"));
        let notes = stage.pull_images(&wanted).expect("no stop");
        let pods = cluster
            .left()
            .into_iter()
            .filter(|path| path.starts_with(PODS));
        assert_eq!(pods.collect::<Vec<_>>(), Vec::<String>::new());
        stage.end(false).expect("gone");
        cluster.end();
        let images: BTreeSet<String> = images.iter().collect();
        (images.into_iter().collect(), notes)
    }

    /// The kubelet has pulled the images, and found no program.
    fn no_program(_: &str, pod: &mut Value) {
        let count = pod["spec"]["containers"]
            .as_array()
            .expect("containers")
            .len();
        let ended = json!({"imageID": "sha256:1", "state": {"terminated": {"exitCode": 128}}});
        pod["status"] = json!({"phase": "Failed", "containerStatuses": vec![ended; count]});
    }

    #[test]
    fn all_nodes_have_the_images_of_all_pods_before_the_first_round() {
        let nodes = [("n1", true), ("n2", true), ("n3", false)];
        let (images, notes) = pulled(&nodes, |_| {}, no_program);
        let expected = [
            "n1 a:1",
            "n1 b:1",
            "n1 weigh:1",
            "n2 a:1",
            "n2 b:1",
            "n2 weigh:1",
        ];
        assert_eq!(images, expected);
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn a_single_node_pulls_for_itself() {
        let (images, notes) = pulled(&[("n1", true)], |_| {}, no_program);
        assert!(
            images.is_empty() && notes.is_empty(),
            "{images:?} {notes:?}"
        );
    }

    #[test]
    fn a_node_without_an_image_is_named_and_a_node_for_other_pods_is_not() {
        let end = |node: &str, pod: &mut Value| match node {
            "n1" => no_program(node, pod),
            "n2" => {
                let condition = json!({"type": "PodScheduled", "status": "False"});
                pod["status"] = json!({"phase": "Pending", "conditions": [condition]});
            }
            _ => {
                let waiting = json!({"reason": "ErrImagePull", "message": "no such image"});
                let count = pod["spec"]["containers"]
                    .as_array()
                    .expect("containers")
                    .len();
                let status = json!({"state": {"waiting": waiting}});
                pod["status"] = json!({"containerStatuses": vec![status; count]});
            }
        };
        let nodes = [("n1", true), ("n2", true), ("n3", true)];
        let (_, notes) = pulled(&nodes, |_| {}, end);
        assert_eq!(
            notes,
            ["node `n3` has not pulled all images: ErrImagePull: no such image"]
        );
    }

    #[test]
    fn without_the_right_to_list_nodes_the_run_goes_on_and_says_so() {
        let nodes = [("n1", true), ("n2", true)];
        let forbid = |cluster: &PlayedCluster| {
            let words = "nodes is forbidden: User \"u\" cannot list resource \"nodes\"";
            cluster.api.set(|state| {
                let refusal = (403, words.to_owned());
                state.hidden.insert("/api/v1/nodes".to_owned(), refusal);
            });
        };
        let (images, notes) = pulled(&nodes, forbid, no_program);
        assert!(images.is_empty(), "{images:?}");
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].starts_with("images are not pulled on all nodes before the first round: the cluster does not allow weigh to list")
                && notes[0].contains("weigh-rbac.yaml"),
            "{notes:?}"
        );
    }
}
