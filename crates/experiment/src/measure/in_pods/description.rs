//! The description of a cluster in a recording: nodes, images and placement.

use cluster::state::PodState;

use super::PodsOfRound;
use crate::measure::Experiment;
use crate::measure::candidate_id::CandidateId;
use crate::measure::pod_attached::AttachedPods;
use crate::pods::stage::{Stage, placed_text};

impl Experiment<'_> {
    /// Records the nodes and images of pods.
    pub(super) fn describe(&mut self, stage: &mut Stage<'_>, round: &PodsOfRound<'_>) {
        let PodsOfRound {
            number,
            wanted,
            systems: pods,
            generators,
            ..
        } = round;
        stage.know_nodes(pods);
        stage.know_nodes(generators);
        let known: Vec<PodState> = pods.iter().chain(generators).cloned().collect();
        if *number == 1
            && let Some(reason) = stage.may_read_kubelets(&known)
        {
            self.session
                .progress
                .note(&format!("processor time is unknown: {reason}"));
        }
        let mut placed = Vec::new();
        for one in wanted {
            for pod in stage.pods_of(one, pods) {
                let is_counted = stage.is_counted(one, pod);
                let name = |position: usize| self.candidates.at(position);
                let name = one.variant.map(name);
                let variant = name.map(|id| self.candidates.get(id).name().to_owned());
                placed.push(placed_text(pod, *number, variant, &one.setup.system));
                let ids: Vec<CandidateId> = match name {
                    Some(id) => vec![id],
                    None => self.candidates.ids().collect(),
                };
                for id in ids {
                    let systems = &mut self.candidates.get_mut(id).systems;
                    let own = systems.iter_mut().find(|own| own.name == one.setup.system);
                    if let Some(own) = own.filter(|_| is_counted) {
                        own.manifests = stage.digest_of(one);
                        own.version.clone_from(&pod.image);
                        own.limits_enforced = Some(own.limits_asked);
                        own.limits_by = pod.qos.clone().map(|qos| format!("Kubernetes, {qos}"));
                    }
                }
            }
        }
        placed.extend(
            generators
                .iter()
                .map(|pod| placed_text(pod, *number, None, "generator")),
        );
        stage.placed.extend(placed);
        self.describe_attached(stage, &round.attached, *number);
    }

    /// Records the nodes and images of the pods behind URLs.
    fn describe_attached(&mut self, stage: &mut Stage<'_>, attached: &[AttachedPods], round: u32) {
        for one in attached {
            stage.know_nodes(&one.pods);
            let candidate = self.candidates.get_mut(one.id);
            let name = candidate.name().to_owned();
            let mut systems = candidate.systems.iter_mut();
            if let Some(own) = systems.find(|own| own.name == one.system) {
                own.version = one.pods.iter().find_map(|pod| pod.image.clone());
            }
            let placed = one
                .pods
                .iter()
                .map(|pod| placed_text(pod, round, Some(name.clone()), &one.system));
            stage.placed.extend(placed);
        }
    }
}
