//! The check that the nodes of a cluster are not the difference between a variant and its baseline.

use std::collections::{BTreeMap, BTreeSet};

use recording::{PlacedText, float};

use super::{Check, CheckFacts, CheckName, Limits, Watched};

/// Pods by their nodes.
type Nodes<'a> = BTreeMap<&'a str, u64>;

/// The share of a variant's pods that ran on other nodes than the pods of its baseline, over all rounds. For
/// several systems, the largest share. It is 0 if variant and baseline exchange their nodes from round to
/// round, because the difference between nodes then cancels. Systems that `weigh` did not start keep their
/// nodes, so for them the check is weak at most.
///
/// Absent for a baseline, outside of a cluster, and for pods that all ran on one node.
pub(super) fn placement(watched: &Watched<'_>) -> Option<Check> {
    let placed = &watched.recording.cluster.as_ref()?.placed;
    let baseline = watched.recording.baseline_of(watched.variant);
    let own = watched.variant.name.as_str();
    if own == baseline {
        return None;
    }
    // A round without one of the two compares no nodes.
    let rounds = &rounds_of(placed, own) & &rounds_of(placed, baseline);
    let both = |pod: &&PlacedText| rounds.contains(&pod.round);
    let systems: BTreeSet<&str> = of_variant(placed, own).map(|pod| &*pod.system).collect();
    let mut all_nodes = BTreeSet::new();
    let mut worst: Option<(f64, &str)> = None;
    for system in systems {
        let nodes = |name| nodes_of(of_variant(placed, name).filter(both), system);
        let (its, base) = (nodes(own), nodes(baseline));
        // A system of a single variant is the layer itself.
        if !its.is_empty() && !base.is_empty() {
            all_nodes.extend(its.keys().chain(base.keys()).copied());
            let apart = distance(&its, &base);
            if worst.is_none_or(|(known, _)| apart > known) {
                worst = Some((apart, system));
            }
        }
    }
    let (apart, system) = worst.filter(|_| all_nodes.len() > 1)?;
    let mut systems = watched.variant.systems.iter();
    let is_deployed = systems.any(|it| it.name == system && it.url.is_some());
    let limits = match is_deployed {
        true => Limits::only_weak(WEAK),
        false => Limits::new(WEAK, FAILED),
    };
    Some(limits.judge(CheckName::Placement, apart, CheckFacts::Figure))
}

/// Smallest share of pods on other nodes that makes the check weak.
const WEAK: f64 = 0.2;
/// Smallest share of pods on other nodes that withholds the verdict.
const FAILED: f64 = 0.8;

fn of_variant<'a>(placed: &'a [PlacedText], name: &str) -> impl Iterator<Item = &'a PlacedText> {
    placed
        .iter()
        .filter(move |pod| pod.variant.as_deref() == Some(name))
}

fn rounds_of(placed: &[PlacedText], name: &str) -> BTreeSet<Option<u32>> {
    of_variant(placed, name).map(|pod| pod.round).collect()
}

/// The nodes of the pods of a system.
fn nodes_of<'a>(pods: impl Iterator<Item = &'a PlacedText>, system: &str) -> Nodes<'a> {
    let mut nodes = Nodes::new();
    for node in pods
        .filter(|pod| pod.system == system)
        .filter_map(|pod| pod.node.as_deref())
    {
        *nodes.entry(node).or_default() += 1;
    }
    nodes
}

/// The distance of two distributions over nodes: 0 if they are equal, 1 if no node is in both.
fn distance(its: &Nodes<'_>, base: &Nodes<'_>) -> f64 {
    let share = |nodes: &Nodes<'_>, node: &str| {
        let all: u64 = nodes.values().sum();
        float(nodes.get(node).copied().unwrap_or(0)) / float(all.max(1))
    };
    // The missing share on some nodes is the additional share on other nodes.
    let more = |node: &&str| (share(its, node) - share(base, node)).max(0.0);
    its.keys().map(more).sum()
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;
    use recording::{ClusterText, PlacedText, Recording};

    use super::*;
    use crate::summary::{CheckState, Summary};

    /// A recording with one pod per variant and round on these nodes: of `a`, the baseline, and of `b`.
    fn run(nodes: &[(&str, &str)]) -> Recording {
        let mut recording = SampleRun::open()
            .variant("a", 700.0)
            .variant("b", 700.0)
            .build();
        let mut placed = Vec::new();
        for (round, (of_a, of_b)) in (1..).zip(nodes) {
            for (variant, node) in [("a", of_a), ("b", of_b)] {
                placed.push(pod(round, variant, "server", node));
            }
        }
        recording.cluster = Some(ClusterText {
            kind: "kubernetes".to_owned(),
            version: "v1".to_owned(),
            namespace: "space".to_owned(),
            generators: 1,
            nodes: Vec::new(),
            placed,
            lost_rounds: Vec::new(),
            processor_time: String::new(),
        });
        recording
    }

    fn pod(round: u32, variant: &str, system: &str, node: &str) -> PlacedText {
        PlacedText {
            pod: format!("{variant}-{round}"),
            node: Some(node.to_owned()),
            address: None,
            round: Some(round),
            variant: Some(variant.to_owned()),
            system: system.to_owned(),
            quality: None,
            image: None,
        }
    }

    /// Figure and state of the check of a variant.
    fn of(recording: &Recording, variant: &str) -> Option<(f64, CheckState)> {
        let summary = Summary::of(recording);
        let row = summary.variant(variant).expect("a variant");
        let mut checks = row.checks.iter();
        let check = checks.find(|check| check.name == CheckName::Placement)?;
        Some((check.figure, check.state))
    }

    #[test]
    fn a_variant_with_a_node_of_its_own_has_no_verdict() {
        let confounded = run(&[("x", "y"); 8]);
        assert_eq!(of(&confounded, "b"), Some((1.0, CheckState::Failed)));
        assert_eq!(of(&confounded, "a"), None, "the baseline");
        let summary = Summary::of(&confounded);
        let row = summary.variant("b").expect("a variant");
        let cause = super::super::root(&row.checks).expect("a cause");
        assert_eq!(cause.name, CheckName::Placement);
    }

    #[test]
    fn deployed_systems_keep_their_nodes_and_their_verdict() {
        let mut deployed = run(&[("x", "y"); 8]);
        for variant in &mut deployed.variants {
            for system in &mut variant.systems {
                system.url = Some("http://api:80".to_owned());
                system.name = "server".to_owned();
            }
        }
        assert_eq!(of(&deployed, "b"), Some((1.0, CheckState::Weak)));
    }

    #[test]
    fn nodes_that_alternate_or_are_common_are_no_difference() {
        let alternating = run(&[("x", "y"), ("y", "x"), ("x", "y"), ("y", "x")]);
        assert_eq!(of(&alternating, "b"), Some((0.0, CheckState::Ok)));
        let common = run(&[("x", "x"), ("y", "y")]);
        assert_eq!(of(&common, "b"), Some((0.0, CheckState::Ok)));
        // One node for all needs no check.
        assert_eq!(of(&run(&[("x", "x"); 8]), "b"), None);
    }

    #[test]
    fn a_part_of_the_rounds_on_another_node_is_weak() {
        let some = run(&[("x", "x"), ("x", "y"), ("x", "x"), ("x", "y")]);
        assert_eq!(of(&some, "b"), Some((0.5, CheckState::Weak)));
    }

    #[test]
    fn only_systems_and_rounds_of_both_are_compared() {
        let mut recording = run(&[("x", "x"), ("y", "y")]);
        let placed = &mut recording.cluster.as_mut().expect("a cluster").placed;
        placed.push(pod(1, "b", "layer", "z"));
        placed.push(pod(3, "b", "server", "z"));
        assert_eq!(of(&recording, "b"), Some((0.0, CheckState::Ok)));
    }

    #[test]
    fn a_recording_without_rounds_of_pods_is_judged_by_its_last_round() {
        let mut recording = run(&[("x", "y")]);
        let cluster = recording.cluster.as_mut().expect("a cluster");
        for pod in &mut cluster.placed {
            pod.round = None;
        }
        assert_eq!(of(&recording, "b"), Some((1.0, CheckState::Failed)));
    }
}
