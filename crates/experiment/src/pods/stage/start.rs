//! The start of a round: its systems come up, each after its dependencies.

use std::time::Duration;

use cluster::ClusterError;
use cluster::call::Resource;
use cluster::owner::Round as OwnedRound;
use cluster::state::PodState;
use lab::Endpoint;
use serde_json::Value;

use super::super::start_progress::{Cause, StartProgress};
use super::losses::LostNodes;
use super::{READ, RunningPods, Stage};
use crate::environment::instant;
use crate::pods::systems::Which;
use crate::pods::wanted::Wanted;

/// Pause between two checks of pods while no load is sent.
pub(super) const LOOK_CLOSELY: Duration = Duration::from_millis(150);

impl<'c> Stage<'c> {
    /// Starts the systems of a round, each after its dependencies.
    ///
    /// # Errors
    /// When the cluster cannot be reached. The result contains systems that did not start.
    pub(crate) fn bring_up<'s>(
        &'s self,
        round: u32,
        wanted: &[Wanted<'_>],
    ) -> Result<RunningPods<'s, 'c>, ClusterError> {
        self.run.live_on(self.deadline + self.waits.all())?;
        let owner = self.run.round(round)?;
        let mut progress = StartProgress::of(wanted, self.waits);
        let mut nodes = LostNodes::default();
        let mut asked_at = instant();
        loop {
            let pods = self.pods(&owner.selector())?;
            if asked_at.elapsed() >= READ {
                nodes.ask(self.connection(), &pods);
                asked_at = instant();
            }
            for index in 0..wanted.len() {
                if progress.is_due(index, wanted) {
                    self.start(&owner, &wanted[index], index, &mut progress)?;
                } else if progress.is_watched(index) {
                    let own = self.pods_of(&wanted[index], &pods);
                    if let Some(lost) = self.lost_with_node(&nodes, own) {
                        progress.fail(index, Cause::Lost, lost);
                        continue;
                    }
                    self.watch_start(&owner, &wanted[index], index, &pods, &mut progress)?;
                }
            }
            // The first systems start meanwhile. All others, and the load, come afterwards.
            self.await_last_round()?;
            if progress.is_over() {
                let failed = progress.failed(wanted);
                if failed.is_empty() {
                    self.remember_nodes(wanted, &pods);
                }
                return Ok(RunningPods {
                    owner,
                    pods,
                    failed,
                    attached: Vec::new(),
                });
            }
            if self.connection().is_stopped() {
                return Err(ClusterError::Stopped {
                    what: "bring the systems of a round up".to_owned(),
                });
            }
            self.connection().pause(LOOK_CLOSELY);
        }
    }

    /// Updates the progress of a system that was started.
    fn watch_start(
        &self,
        owner: &OwnedRound<'_, '_>,
        one: &Wanted<'_>,
        index: usize,
        pods: &[PodState],
        progress: &mut StartProgress,
    ) -> Result<(), ClusterError> {
        let own = self.pods_of(one, pods);
        if let Some(pod) = progress.look(index, one, self.count_of(one), &own) {
            progress.add_words(index, self.log_of(pod), self.warning_about(pod));
            let origin = self.origin_of(one);
            progress.add_remedy(index, |words| self.remedy_for(pod, origin, words));
        }
        if let Some(pod) = progress.due_for_warning(index, &own)
            && let Some(trouble) = self.trouble_of(pod)
        {
            progress.fail(index, Cause::Outside, trouble);
        }
        if own.is_empty() && progress.waits_for_pods(index) {
            self.look_for_refusal(owner, one, index, progress)?;
        }
        Ok(())
    }

    fn start(
        &self,
        owner: &OwnedRound<'_, '_>,
        one: &Wanted<'_>,
        index: usize,
        progress: &mut StartProgress,
    ) -> Result<(), ClusterError> {
        if let Some(manifests) = self.manifests_of(one) {
            return self.start_manifests(owner, one, manifests, index, progress);
        }
        let node = self.next_node(one);
        let which = Which {
            node: node.as_deref(),
            ..self.which(one)
        };
        let find = |system: &str| self.address_for(one, system).map(Endpoint::from);
        let object = format!("{}-r{}", which.name(), owner.number());
        match which.workload(object, self.deadline, &find) {
            Ok(workload) => {
                if let Some(files) = workload.config_map() {
                    owner.create(Resource::ConfigMaps, files)?;
                }
                let (resource, object) = workload.object();
                match self.create(owner, resource, object) {
                    Ok(()) => progress.has_started(index),
                    Err(error) if error.is_about_the_object() => {
                        progress.refuse(index, &error);
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(reason) => progress.fail(index, Cause::Own, reason),
        }
        Ok(())
    }

    /// Creates an object of a round. A quota may still count pods of the last round, so a refused object gets a
    /// second attempt after their end.
    pub(super) fn create(
        &self,
        owner: &OwnedRound<'_, '_>,
        resource: Resource,
        object: Value,
    ) -> Result<(), ClusterError> {
        let made = match owner.create(resource, object.clone()) {
            Err(ClusterError::Ruled { .. }) if self.await_last_round()? => {
                owner.create(resource, object)
            }
            made => made,
        };
        made.map(|_| ())
    }

    /// The node that the pod of a system prefers in the next round. `None` if it prefers the nodes of the same system
    /// of other variants.
    fn next_node(&self, one: &Wanted<'_>) -> Option<String> {
        let history = self.node_history.borrow();
        let node = history.next(&one.setup.system, one.variant?);
        node.map(str::to_owned)
    }

    /// Remembers the nodes of systems with one pod for each variant.
    fn remember_nodes(&self, wanted: &[Wanted<'_>], pods: &[PodState]) {
        let mut history = self.node_history.borrow_mut();
        history.begin_round();
        for one in wanted {
            let is_single = one.setup.replicas.is_none() && self.manifests_of(one).is_none();
            let node = self
                .pods_of(one, pods)
                .first()
                .and_then(|pod| pod.node.clone());
            if let (Some(variant), Some(node)) = (one.variant.filter(|_| is_single), node) {
                history.add(&one.setup.system, variant, node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use lab::Lab;
    use serde_json::json;

    use super::super::may_overlap;
    use super::*;
    use crate::files::Unwritten;
    use crate::measure::wanted;
    use crate::pods::packed_files::PackedFiles;
    use crate::pods::played_cluster::{Objects, PODS, PlayedCluster, stage, stage_with};
    use crate::pods::stage::PodsSpec;

    const LAB: &str = "question: Why?\nload: {rate: 10/s, duration: 1s}\ntarget: server\n\
        systems:\n  server: {image: 'a:1', port: 80}\n\
        baseline: {name: a}\nvariants: [{name: b}]\nexpect: {status: 200}\n";

    fn lab() -> Lab {
        lab_of(LAB)
    }

    fn lab_of(text: &str) -> Lab {
        let files = Unwritten(vec![(PathBuf::from("lab.yaml"), text.as_bytes().to_vec())]);
        lab::parse(Path::new("lab.yaml"), &files)
            .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)))
    }

    fn pod(node: &str, quality: &str) -> Value {
        json!({
            "spec": {"nodeName": node},
            "status": {
                "phase": "Running", "qosClass": quality,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        })
    }

    /// Every new pod is ready on this node.
    fn ready_on(node: &'static str) -> impl FnMut(&mut Objects) {
        move |objects| {
            for (path, own) in objects.iter_mut() {
                if path.starts_with(PODS) && own["status"].is_null() {
                    let ready = pod(node, "Guaranteed");
                    own["status"] = ready["status"].clone();
                    own["spec"]["nodeName"] = ready["spec"]["nodeName"].clone();
                }
            }
        }
    }

    #[test]
    fn a_single_system_reaches_the_cluster_with_its_own_settings() {
        let text = LAB.replace(
            "systems:\n",
            "pods:\n  systems: {node-selector: {pool: systems, disk: hdd}}\n  \
             of: {db: {node-selector: {disk: ssd}, tolerations: [{key: data}], requests: {cpu: 1}}}\n\
             systems:\n  db: {image: 'd:1', port: 90}\n",
        );
        let needing = "{image: 'a:1', port: 80, env: {DB: '{{db.addr}}'}}";
        let text = text.replace("{image: 'a:1', port: 80}", needing);
        let lab = lab_of(&text);
        let cluster = PlayedCluster::start(ready_on("n1"));
        let connection = cluster.api.connection(false);
        let wanted = wanted(&lab, &[0]);
        let files = PackedFiles::of([]).expect("no files");
        let stage = stage_with(&connection, &wanted, files, PodsSpec::of(&lab));
        let up = stage.bring_up(1, &wanted).expect("up");
        let made = cluster.api.state.lock().expect("no panic").objects.clone();
        let spec_of = |system: &str| {
            let own = made.iter().find(|(path, _)| {
                path.starts_with(PODS) && path.ends_with(&format!("-{system}-r1"))
            });
            own.map(|(_, pod)| pod["spec"].clone()).expect("a pod")
        };
        let (db, server) = (spec_of("db"), spec_of("server"));
        assert_eq!(
            db["nodeSelector"],
            json!({"pool": "systems", "disk": "ssd"})
        );
        assert_eq!(db["tolerations"], json!([{"key": "data"}]));
        assert_eq!(
            db["containers"][0]["resources"]["requests"]["cpu"],
            json!(1)
        );
        assert_eq!(
            server["nodeSelector"],
            json!({"pool": "systems", "disk": "hdd"})
        );
        assert!(server["tolerations"].is_null(), "{server}");
        Stage::end_round(up).expect("gone");
        stage.end(false).expect("gone");
        cluster.end();
    }

    #[test]
    fn rounds_overlap_only_if_the_next_pods_find_their_places() {
        let state = |node: &str, quality: &str| PodState::of(&pod(node, quality));
        let generator = [state("n1", "Burstable")];
        let systems = [state("n1", "Guaranteed"), state("n1", "Guaranteed")];
        assert!(may_overlap(&systems, &generator));
        assert!(!may_overlap(&systems, &[state("n2", "Burstable")]));
        assert!(!may_overlap(&[state("n1", "Burstable")], &generator));
        // A round without a load.
        assert!(!may_overlap(&systems, &[]));
    }

    #[test]
    fn the_next_round_waits_for_a_quota_that_counts_the_pods_of_the_last_one() {
        let cluster = PlayedCluster::start(ready_on("n1"));
        let connection = cluster.api.connection(false);
        let lab = lab();
        let wanted = wanted(&lab, &[0, 1]);
        let stage = stage(&connection, &wanted, PackedFiles::of([]).expect("no files"));
        let up = stage.bring_up(1, &wanted).expect("up");
        assert_eq!((up.pods.len(), up.failed.len()), (2, 0));
        let old = format!("{PODS}old");
        let left = json!({
            "metadata": {"name": "old", "labels": {"weighbridge/run": "x", "weighbridge/round": "1"}},
            "status": {},
        });
        cluster.api.set(|state| {
            let quota = (403, "pods is forbidden: exceeded quota: q".to_owned());
            state
                .refused
                .insert(PODS.trim_end_matches('/').to_owned(), quota);
            state.objects.insert(old.clone(), left);
        });
        let generators = [PodState::of(&pod("n1", "Burstable"))];
        stage.leave_round(up, &generators).expect("it leaves");
        assert!(cluster.left().contains(&old), "no wait for it");
        let state = Arc::clone(&cluster.api.state);
        let node = std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_millis(300));
            let mut state = state.lock().expect("no panic");
            state.objects.remove(&old);
            state.refused.clear();
        });
        let up = stage.bring_up(2, &wanted).expect("up");
        node.join().expect("no panic");
        assert_eq!((up.pods.len(), up.failed.len()), (2, 0));
        Stage::end_round(up).expect("gone");
        stage.end(false).expect("gone");
        assert_eq!(cluster.left(), Vec::<String>::new());
        cluster.end();
    }

    #[test]
    fn variants_that_do_not_share_a_node_exchange_their_nodes() {
        let mut of_next = ["n1", "n2"].into_iter().cycle();
        let play = move |objects: &mut Objects| {
            for (path, own) in objects.iter_mut() {
                if path.starts_with(PODS) && own["status"].is_null() {
                    let wish = &own["spec"]["affinity"]["nodeAffinity"];
                    let wish = &wish["preferredDuringSchedulingIgnoredDuringExecution"][0];
                    let wish = &wish["preference"]["matchFields"][0]["values"][0];
                    let node = wish.as_str().map_or_else(
                        || of_next.next().expect("endless").to_owned(),
                        str::to_owned,
                    );
                    own["spec"]["nodeName"] = json!(node);
                    own["status"] = pod(&node, "Guaranteed")["status"].clone();
                }
            }
        };
        let cluster = PlayedCluster::start(play);
        let connection = cluster.api.connection(false);
        let lab = lab();
        let wanted = wanted(&lab, &[0, 1]);
        let stage = stage(&connection, &wanted, PackedFiles::of([]).expect("no files"));
        let mut nodes = Vec::new();
        for round in 1..=3 {
            let up = stage.bring_up(round, &wanted).expect("up");
            let of_round = wanted.iter().map(|one| {
                let pods = stage.pods_of(one, &up.pods);
                pods[0].node.clone().expect("a node")
            });
            nodes.push(of_round.collect::<Vec<String>>());
            Stage::end_round(up).expect("gone");
        }
        assert_ne!(nodes[0][0], nodes[0][1]);
        assert_eq!(nodes[1], [nodes[0][1].clone(), nodes[0][0].clone()]);
        assert_eq!(nodes[2], nodes[0]);
        stage.end(false).expect("gone");
        cluster.end();
    }
}
