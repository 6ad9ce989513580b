//! The cluster's part of a run: objects that last for all rounds, and pods that last for one round.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::call::Resource;
use cluster::connection::Heed;
use cluster::event::last_warning;
use cluster::generators::{GeneratorLimits, Generators, TOLD_IN};
use cluster::kubelet::Readings;
use cluster::node::NodeDescription;
use cluster::owner::{LeavingRound, Round as OwnedRound};
use cluster::state::{Phase, PodState};
use cluster::workload::{SERVES, service};
use cluster::{ApiConnection, ClusterError, Run};
use recording::{ClusterText, NodeText, PlacedText};
use serde_json::Value;

mod followed;
mod generators;
mod images;
pub(crate) mod losses;
mod manifests;
mod node_history;
mod remedy;
mod start;

use self::node_history::NodeHistory;
use super::cluster_domain;
use super::manifests::OfSystems;
use super::packed_files::{PackedFiles, PackingList};
use super::round_spec::BARRIER_PORT;
use super::start_progress::StartFailure;
use super::systems::{self, Which};
use super::waits::{PodWaits, TROUBLES};
use super::wanted::Wanted;
use crate::invalid::{LINES_KEPT, PodLog};

/// Pause between two checks of pods.
const LOOK: Duration = Duration::from_millis(500);
/// Pause between two readings of kubelets, of nodes, and of events.
const READ: Duration = Duration::from_secs(3);
/// Time limit of a round besides its load: pods start, generators wait for each other and prove.
pub const BESIDE_LOAD: Duration = Duration::from_secs(300);

/// Host names with their addresses.
type Hosts = Vec<(String, IpAddr)>;

/// The pods of the generators of a run.
pub struct GeneratorPods {
    /// Their container image.
    pub image: String,
    /// Number of generators.
    pub count: u32,
    /// Time limit of a round.
    pub deadline: Duration,
    /// Time limits for pods to start.
    pub waits: PodWaits,
    /// The settings of the pods.
    pub spec: PodsSpec,
    /// The files that all pods read.
    pub files: PackedFiles,
}

/// The settings of all pods of a run.
pub struct PodsSpec {
    limits: GeneratorLimits,
    pods: lab::Pods,
    /// The DNS domain of the cluster.
    domain: String,
}

impl PodsSpec {
    /// Returns the settings for a single load of `threads` threads in each generator.
    #[must_use]
    pub fn of_load(threads: u32) -> PodsSpec {
        PodsSpec {
            limits: GeneratorLimits::of(threads, 1),
            pods: lab::Pods::default(),
            domain: String::new(),
        }
    }

    /// Returns the settings for a lab.
    #[must_use]
    pub fn of(lab: &lab::Lab) -> PodsSpec {
        // Only in a pod, this file names the domain of the cluster.
        let resolver = std::fs::read_to_string(cluster_domain::RESOLVER).ok();
        PodsSpec {
            limits: GeneratorLimits::of(lab.threads, lab.all().count()),
            pods: lab.pods.clone(),
            domain: cluster_domain::expected(lab, resolver.as_deref()),
        }
    }
}

/// The cluster objects that last for all rounds of a run.
pub struct Stage<'c> {
    run: Run<'c>,
    spec: PodsSpec,
    image: String,
    pub generators: u32,
    /// The address of each Service that receives load, by its name.
    services: BTreeMap<String, SocketAddr>,
    manifests: OfSystems,
    /// The addresses of the Services of manifests, by their names in the files.
    hosts: BTreeMap<(Option<usize>, String), Hosts>,
    pub(crate) nodes: BTreeMap<String, NodeDescription>,
    pub(crate) placed: Vec<PlacedText>,
    /// The rounds that the cluster took a pod from, with the reasons.
    pub(crate) lost_rounds: Vec<String>,
    /// True if `weigh` has permission to read kubelets.
    pub(crate) reads_kubelets: bool,
    /// Time limit of a round.
    pub(crate) deadline: Duration,
    /// Time limits for pods to start.
    pub(crate) waits: PodWaits,
    /// The files that the generators of all rounds read.
    pub(crate) files: PackingList,
    /// The pods of the last round, if they are being removed during the start of the next one.
    leaving: RefCell<Option<LeavingRound>>,
    node_history: RefCell<NodeHistory>,
}

/// The pods of one round.
pub(crate) struct RunningPods<'s, 'c> {
    owner: OwnedRound<'s, 'c>,
    /// The pods of systems at the time when all were ready.
    pub(crate) pods: Vec<PodState>,
    /// Systems that did not start.
    pub(crate) failed: Vec<StartFailure>,
    /// The pods behind the URLs of systems that this run did not start.
    pub(crate) attached: Vec<PodState>,
}

/// The reason for a round without a result.
pub(crate) enum RoundError {
    /// A request to the cluster failed.
    Cluster(ClusterError),
    /// The cluster took a generator away, or its result. Another attempt may succeed.
    Lost(String),
    /// A generator has not sent its part.
    Generator(String),
}

impl From<ClusterError> for RoundError {
    fn from(error: ClusterError) -> RoundError {
        RoundError::Cluster(error)
    }
}

/// The place of a pod in a round, in the form of a recording.
pub(crate) fn placed_text(
    pod: &PodState,
    round: u32,
    variant: Option<String>,
    system: &str,
) -> PlacedText {
    PlacedText {
        pod: pod.name.clone(),
        node: pod.node.clone(),
        address: pod.ip.clone(),
        round: Some(round),
        variant,
        system: system.to_owned(),
        quality: pod.qos.clone(),
        image: pod.image.clone(),
    }
}

impl<'c> Stage<'c> {
    /// Creates the owner object of the run, and the Services of all systems. They last for the run, so that
    /// addresses stay the same.
    ///
    /// # Errors
    /// When the cluster refuses a request, or would refuse the pods of generators. The owner is then deleted.
    pub fn begin(
        run: Run<'c>,
        wanted: &[Wanted<'_>],
        manifests: OfSystems,
        generators: GeneratorPods,
    ) -> Result<Stage<'c>, ClusterError> {
        let GeneratorPods {
            image,
            count,
            deadline,
            waits,
            spec,
            files,
        } = generators;
        let mut stage = Stage {
            run,
            spec,
            image,
            generators: count,
            services: BTreeMap::new(),
            manifests,
            hosts: BTreeMap::new(),
            nodes: BTreeMap::new(),
            placed: Vec::new(),
            lost_rounds: Vec::new(),
            reads_kubelets: true,
            deadline,
            waits,
            files: files.list().clone(),
            leaving: RefCell::default(),
            node_history: RefCell::default(),
        };
        let made = stage.make_services(wanted);
        let made = made.and_then(|()| stage.check_generators());
        match made.and_then(|()| stage.send_files(&files)) {
            Ok(()) => Ok(stage),
            Err(error) => {
                // The first error is returned. `end` itself reports a failed deletion of the owner.
                let _also = stage.run.end();
                Err(error)
            }
        }
    }

    /// Asks the cluster if it would create the pods of generators. A Job without pods has no error.
    fn check_generators(&self) -> Result<(), ClusterError> {
        let pod = self.generators_of(0).pod();
        self.run.try_create(Resource::Pods, pod)
    }

    /// Creates the Secrets with the files of the generators. They last for all rounds.
    fn send_files(&self, files: &PackedFiles) -> Result<(), ClusterError> {
        let generators = self.generators_of(0);
        for (index, part) in (0..).zip(files.parts()) {
            let secret = generators.part_secret(index, &STANDARD.encode(part));
            self.run.create(Resource::Secrets, secret)?;
        }
        Ok(())
    }

    fn make_services(&mut self, wanted: &[Wanted<'_>]) -> Result<(), ClusterError> {
        for one in wanted {
            let which = self.which(one);
            let (name, port) = (which.name(), which.port());
            if self.manifests_of(one).is_some() {
                self.make_services_of_manifests(one, &name)?;
            } else if !self.services.contains_key(&name) {
                let address = self.make_service(service(&name, port), port)?;
                self.services.insert(name, address);
            }
        }
        let barrier = self.generators_of(0).meeting();
        let address = self.make_service(barrier, BARRIER_PORT)?;
        self.services.insert(self.barrier_name(), address);
        Ok(())
    }

    fn make_service(&self, object: Value, port: u16) -> Result<SocketAddr, ClusterError> {
        let name = cluster::connection::name_of(&object).to_owned();
        let made = self.run.create(Resource::Services, object)?;
        let address = made["spec"]["clusterIP"]
            .as_str()
            .and_then(|ip| ip.parse().ok());
        let ip = address.ok_or_else(|| ClusterError::Unreadable {
            what: format!("create the Service `{name}`"),
            reason: format!("it has no address: {}", made["spec"]["clusterIP"]),
        })?;
        Ok(SocketAddr::new(ip, port))
    }

    fn which<'a>(&'a self, wanted: &Wanted<'a>) -> Which<'a> {
        let mut which = Which {
            run: self.run.id(),
            variant: wanted.variant,
            setup: wanted.setup,
            settings: self.spec.pods.of_system(&wanted.setup.system),
            listen: Ipv4Addr::UNSPECIFIED.into(),
            node: None,
        };
        // Pods and Services have addresses of the same family, the first family of the cluster.
        let address = self.services.get(&which.name());
        if address.is_some_and(SocketAddr::is_ipv6) {
            which.listen = Ipv6Addr::UNSPECIFIED.into();
        }
        which
    }

    fn barrier_name(&self) -> String {
        format!("wb-{}-generators", self.run.id())
    }

    fn generators_of(&self, round: u32) -> Generators {
        Generators {
            name: self.barrier_name(),
            object: format!("{}-r{round}", self.barrier_name()),
            file_parts: self.files.parts(),
            image: self.image.clone(),
            pull: "IfNotPresent",
            args: vec!["generator".to_owned(), format!("{TOLD_IN}/job.json")],
            count: self.generators,
            port: BARRIER_PORT,
            deadline: self.deadline,
            limits: self.spec.limits,
            settings: self.spec.pods.generators.clone(),
        }
    }

    /// The address of the first generator, used by the barrier.
    pub fn barrier(&self) -> SocketAddr {
        self.services[&self.barrier_name()]
    }

    /// The DNS domain in the host names of manifests.
    pub(crate) fn domain(&self) -> &str {
        &self.spec.domain
    }

    /// The address of a system's Service.
    pub(crate) fn address(&self, wanted: &Wanted<'_>) -> SocketAddr {
        self.services[&self.which(wanted).name()]
    }

    /// The address of a system as seen by another: first the system of its own variant, then the shared
    /// system.
    fn address_for(&self, one: &Wanted<'_>, system: &str) -> Option<SocketAddr> {
        let of = |variant: Option<usize>| {
            let name = systems::service_name(self.run.id(), variant, system);
            self.services.get(&name).copied()
        };
        of(one.variant).or_else(|| of(None))
    }

    /// The pods of a system.
    pub(crate) fn pods_of<'p>(
        &self,
        wanted: &Wanted<'_>,
        pods: &'p [PodState],
    ) -> Vec<&'p PodState> {
        let name = self.which(wanted).name();
        let serves = |pod: &&PodState| pod.labels.get(SERVES) == Some(&name);
        pods.iter().filter(serves).collect()
    }

    /// The port of a system in its pods.
    pub(crate) fn port_of(&self, wanted: &Wanted<'_>) -> u16 {
        match self.manifests_of(wanted) {
            Some(manifests) => manifests.target_port(),
            None => self.which(wanted).port(),
        }
    }

    fn connection(&self) -> &'c ApiConnection {
        self.run.connection
    }

    /// The pods with these labels.
    ///
    /// # Errors
    /// When the cluster cannot be reached, or refuses the selector.
    pub(crate) fn pods(&self, selector: &str) -> Result<Vec<PodState>, ClusterError> {
        let pods = self
            .connection()
            .list(Resource::Pods, selector, Heed::Stop)?;
        Ok(pods.iter().map(PodState::of).collect())
    }

    /// The end of the log of a pod. `None` if it cannot be read, such as before the container has started.
    pub(crate) fn log_of(&self, pod: &PodState) -> Option<PodLog> {
        if matches!(pod.phase, Phase::Coming(_)) {
            return None;
        }
        let container = pod.container.as_deref();
        let read = self.connection();
        let last_lines = read.last_log_lines(&pod.name, container, LINES_KEPT).ok()?;
        Some(PodLog {
            pod: pod.name.clone(),
            last_lines,
        })
    }

    /// The last warning about a pod. `None` without one, or without the right to list events.
    fn warning_about(&self, pod: &PodState) -> Option<String> {
        let events = self.connection().events_of("Pod", &pod.name).ok()?;
        last_warning(&events, &[]).map(|event| format!("{}: {}", event.reason, event.message))
    }

    /// The warning of a kubelet that keeps a pod from starting.
    fn trouble_of(&self, pod: &PodState) -> Option<String> {
        let events = self.connection().events_of("Pod", &pod.name).ok()?;
        let trouble = last_warning(&events, &TROUBLES)?;
        Some(format!(
            "{}: {}: {}",
            pod.placed(),
            trouble.reason,
            trouble.message
        ))
    }

    /// Reads the kubelets of these pods. A kubelet without a response does not end the run.
    fn read_kubelets<'p>(&self, pods: impl Iterator<Item = &'p PodState>, readings: &mut Readings) {
        if !self.reads_kubelets {
            return;
        }
        let nodes: BTreeSet<&String> = pods.filter_map(|pod| pod.node.as_ref()).collect();
        for node in nodes {
            match self.connection().kubelet_summary(node) {
                Ok(summary) => readings.add(&summary, self.connection().namespace()),
                Err(error) => tracing::debug!(node, %error, "the kubelet was not read"),
            }
        }
    }

    /// Checks once if `weigh` may read kubelets. Returns the reason if it may not.
    pub(crate) fn may_read_kubelets(&mut self, pods: &[PodState]) -> Option<String> {
        let node = pods.iter().find_map(|pod| pod.node.as_ref())?;
        match self.connection().kubelet_summary(node) {
            Err(error @ ClusterError::Forbidden { .. }) => {
                self.reads_kubelets = false;
                Some(error.to_string())
            }
            _ => None,
        }
    }

    /// Reads the nodes of these pods that were not read before. Without permission, a node has only its name.
    pub(crate) fn know_nodes(&mut self, pods: &[PodState]) {
        for node in pods.iter().filter_map(|pod| pod.node.as_ref()) {
            if self.nodes.contains_key(node) {
                continue;
            }
            let known = self.connection().get(Resource::Nodes, node);
            let known = known.map_or_else(
                |_| NodeDescription::of(&serde_json::json!({"metadata": {"name": node}})),
                |found| NodeDescription::of(&found),
            );
            self.nodes.insert(node.clone(), known);
        }
    }

    /// The current pods of a round.
    ///
    /// # Errors
    /// When the cluster cannot be reached.
    pub(crate) fn pods_now(&self, up: &RunningPods<'_, '_>) -> Result<Vec<PodState>, ClusterError> {
        self.pods(&up.owner.selector())
    }

    /// Ends a round. Its pods are then deleted.
    ///
    /// # Errors
    /// When the cluster cannot be reached, or an object remains.
    pub(crate) fn end_round(up: RunningPods<'_, '_>) -> Result<(), ClusterError> {
        up.owner.end()
    }

    /// Ends a round that was measured. If its pods cannot change the places of other pods, they may still end
    /// while the systems of the next round start. No load begins before they are gone.
    ///
    /// # Errors
    /// When the cluster cannot be reached, or an object remains.
    pub(crate) fn leave_round(
        &self,
        up: RunningPods<'_, '_>,
        generators: &[PodState],
    ) -> Result<(), ClusterError> {
        // All pods of manifests start together, and could find pods of the last round behind their Services.
        let may_overlap = self.manifests.is_empty() && may_overlap(&up.pods, generators);
        let leaving = up.owner.leave()?;
        if !may_overlap {
            return self.run.wait_until_gone(&leaving);
        }
        self.leaving.replace(Some(leaving));
        Ok(())
    }

    /// Waits until the pods of the last round are gone. False if they were gone before.
    fn await_last_round(&self) -> Result<bool, ClusterError> {
        let leaving = self.leaving.take();
        let waited = leaving.map(|leaving| self.run.wait_until_gone(&leaving));
        waited.transpose().map(|waited| waited.is_some())
    }

    /// Ends the run. All its objects are then deleted. If the cluster has not removed some before (`are_left`),
    /// it does not wait for them again.
    ///
    /// # Errors
    /// When the cluster cannot be reached, or an object remains.
    pub fn end(self, are_left: bool) -> Result<(), ClusterError> {
        match are_left {
            true => self.run.end_at_once(),
            false => self.run.end(),
        }
    }

    /// The cluster in the form of a recording.
    pub(crate) fn text(&self, version: &str, namespace: &str) -> ClusterText {
        ClusterText {
            kind: "kubernetes".to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            generators: self.generators,
            nodes: self.node_texts(),
            placed: self.placed.clone(),
            lost_rounds: self.lost_rounds.clone(),
            processor_time: match self.reads_kubelets {
                true => "from the kubelet (a reading about every 10 s), between the first and the last reading within the load".to_owned(),
                false => "unknown, because access to kubelets is not allowed".to_owned(),
            },
        }
    }

    /// The nodes in the form of a recording.
    fn node_texts(&self) -> Vec<NodeText> {
        let text = |node: &NodeDescription| NodeText {
            name: node.name.clone(),
            kernel: node.kernel.clone(),
            os: node.os.clone(),
            runtime: node.runtime.clone(),
            kubelet: node.kubelet.clone(),
            // A node that `weigh` may not read has no architecture.
            architecture: Some(node.architecture.clone()).filter(|it| !it.is_empty()),
            cpu: node.cpu.clone(),
            memory: node.memory.clone(),
        };
        self.nodes.values().map(text).collect()
    }
}

/// True if the systems of the next round may start while these pods of a round end. All are on one node, so the
/// next pods get the same node. The cluster keeps the memory of each pod free, so both have place in memory.
fn may_overlap(systems: &[PodState], generators: &[PodState]) -> bool {
    let nodes = systems.iter().chain(generators).map(|pod| &pod.node);
    let nodes: BTreeSet<&Option<String>> = nodes.collect();
    let is_guaranteed = |pod: &PodState| pod.qos.as_deref() == Some("Guaranteed");
    nodes.len() == 1 && !generators.is_empty() && systems.iter().all(is_guaranteed)
}
