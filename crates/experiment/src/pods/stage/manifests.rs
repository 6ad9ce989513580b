//! Systems from manifests of the user.

use cluster::ClusterError;
use cluster::call::Resource;
use cluster::connection::{Heed, name_of};
use cluster::event::last_warning;
use cluster::manifests::{COUNTED, Copy, LOADED, Manifests};
use cluster::owner::Round as OwnedRound;
use cluster::rule::explained;
use cluster::state::{PodState, replica_failure};
use cluster::workload::SERVES;
use serde_json::Value;

use super::super::start_progress::StartProgress;
use super::{Hosts, Stage};
use crate::pods::systems::part;
use crate::pods::wanted::Wanted;

fn key_of(wanted: &Wanted<'_>) -> (Option<usize>, String) {
    (wanted.variant, wanted.setup.system.clone())
}

impl Stage<'_> {
    /// Creates the Services of manifests, once for all variants that share them.
    pub(super) fn make_services_of_manifests(
        &mut self,
        one: &Wanted<'_>,
        serves: &str,
    ) -> Result<(), ClusterError> {
        let key = key_of(one);
        let is_made = self.hosts.contains_key(&key);
        let Some(manifests) = self.manifests.get(&key).filter(|_| !is_made) else {
            return Ok(());
        };
        // Services belong to the run, not to one start.
        let copy = Copy {
            serves,
            stem: "",
            part: "",
            domain: "",
        };
        let manifests = &manifests.manifests;
        let port = manifests.port();
        let mut hosts = Vec::new();
        for (name, service) in manifests.services(copy) {
            let made = name_of(&service).to_owned();
            let address = self.make_service(service, port)?;
            hosts.push((name, address.ip()));
            if made == serves {
                self.services.insert(made, address);
            }
        }
        self.hosts.insert(key, hosts);
        Ok(())
    }

    pub(super) fn manifests_of(&self, wanted: &Wanted<'_>) -> Option<&Manifests> {
        let read = self.manifests.get(&key_of(wanted))?;
        Some(&read.manifests)
    }

    /// The SHA-256 of the manifests of a system.
    pub(crate) fn digest_of(&self, wanted: &Wanted<'_>) -> Option<String> {
        let read = self.manifests.get(&key_of(wanted))?;
        Some(read.digest.clone())
    }

    /// Number of pods of a system.
    pub(super) fn count_of(&self, wanted: &Wanted<'_>) -> usize {
        match self.manifests_of(wanted) {
            Some(manifests) => manifests.pods(),
            None => wanted.setup.replicas.unwrap_or(1) as usize,
        }
    }

    /// The pods of a system that the load reaches.
    pub(crate) fn loaded_of<'p>(
        &self,
        wanted: &Wanted<'_>,
        pods: &'p [PodState],
    ) -> Vec<&'p PodState> {
        self.labelled(wanted, pods, LOADED)
    }

    /// The pods of a system with counted processor time and memory.
    pub(crate) fn counted_of<'p>(
        &self,
        wanted: &Wanted<'_>,
        pods: &'p [PodState],
    ) -> Vec<&'p PodState> {
        self.labelled(wanted, pods, COUNTED)
    }

    /// The pods of a system with this label. Without manifests of the user, all its pods.
    fn labelled<'p>(
        &self,
        wanted: &Wanted<'_>,
        pods: &'p [PodState],
        label: &str,
    ) -> Vec<&'p PodState> {
        let all = self.pods_of(wanted, pods).into_iter();
        all.filter(|pod| self.has_label(wanted, pod, label))
            .collect()
    }

    /// True if the processor time and memory of a pod of this system are counted.
    pub(crate) fn is_counted(&self, wanted: &Wanted<'_>, pod: &PodState) -> bool {
        self.has_label(wanted, pod, COUNTED)
    }

    fn has_label(&self, wanted: &Wanted<'_>, pod: &PodState, label: &str) -> bool {
        self.manifests_of(wanted).is_none() || pod.labels.contains_key(label)
    }

    /// Creates the objects of manifests. The Services exist already.
    pub(super) fn start_manifests(
        &self,
        owner: &OwnedRound<'_, '_>,
        one: &Wanted<'_>,
        manifests: &Manifests,
        index: usize,
        coming: &mut StartProgress,
    ) -> Result<(), ClusterError> {
        for (resource, object) in self.objects_of(one, manifests, owner.number()) {
            match self.create(owner, resource, object) {
                Ok(()) => {}
                Err(error) if error.is_about_the_object() => {
                    coming.refuse(index, &error);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        coming.has_started(index);
        Ok(())
    }

    /// The objects of manifests for the start of a round.
    fn objects_of(
        &self,
        one: &Wanted<'_>,
        manifests: &Manifests,
        round: u32,
    ) -> Vec<(Resource, Value)> {
        let key = key_of(one);
        let number = self.manifests.keys().position(|known| *known == key);
        let number = number.unwrap_or_default();
        let stem = format!("wb-{}-{number}-r{round}", self.run.id());
        let serves = self.which(one).name();
        let copy = Copy {
            serves: &serves,
            stem: &stem,
            part: &part(self.run.id(), &one.setup.system),
            domain: &self.spec.domain,
        };
        let namespace = self.connection().namespace();
        manifests.of_a_start(copy, namespace, &self.hosts_of(one))
    }

    /// The workloads of manifests that could run before the other objects of their files exist. Accounts and
    /// Secrets of the files may be needed for a registry.
    pub(super) fn workloads_of_manifests(&self, one: &Wanted<'_>) -> Vec<Value> {
        let Some(manifests) = self.manifests_of(one) else {
            return Vec::new();
        };
        let objects = self.objects_of(one, manifests, 0);
        let secrets = [Resource::Secrets, Resource::ServiceAccounts];
        let own = objects.iter().filter(|(kind, _)| secrets.contains(kind));
        let own: Vec<&str> = own.map(|(_, object)| name_of(object)).collect();
        let needs_own = |object: &Value| {
            let spec = match &object["spec"]["template"]["spec"] {
                Value::Null => &object["spec"],
                spec => spec,
            };
            let pulls = spec["imagePullSecrets"].as_array().into_iter().flatten();
            let mut names = pulls
                .map(|it| &it["name"])
                .chain([&spec["serviceAccountName"]]);
            names.any(|name| own.iter().any(|own| *name == *own))
        };
        let workloads = objects.iter().filter(|(kind, object)| {
            let workloads = [
                Resource::Pods,
                Resource::Deployments,
                Resource::StatefulSets,
            ];
            workloads.contains(kind) && !needs_own(object)
        });
        workloads.map(|(_, object)| object.clone()).collect()
    }

    /// The host names for the pods of manifests: the Services of the files, and the systems that start
    /// earlier in the lab.
    fn hosts_of(&self, one: &Wanted<'_>) -> Hosts {
        let mut hosts = self.hosts.get(&key_of(one)).cloned().unwrap_or_default();
        for system in &one.setup.after {
            let is_known = hosts.iter().any(|(known, _)| known == system);
            let is_host = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let address = self.address_for(one, system);
            if let Some(address) = address.filter(|_| !is_known && system.chars().all(is_host)) {
                hosts.push((system.clone(), address.ip()));
            }
        }
        hosts
    }

    /// Checks if a Deployment of a system without pods reports that it cannot create any.
    pub(super) fn look_for_refusal(
        &self,
        owner: &OwnedRound<'_, '_>,
        one: &Wanted<'_>,
        index: usize,
        coming: &mut StartProgress,
    ) -> Result<(), ClusterError> {
        let name = self.which(one).name();
        let selector = owner.selector();
        let all = self
            .connection()
            .list(Resource::Deployments, &selector, Heed::Stop)?;
        let serves = |it: &&Value| it["spec"]["selector"]["matchLabels"][SERVES] == name;
        let why = all.iter().filter(serves).find_map(replica_failure);
        coming.refuse_pods(
            index,
            why.or_else(|| self.refusal_of_set(&selector, &serves)),
        );
        Ok(())
    }

    /// The reason why a StatefulSet has no pods. It has no condition for it, only events.
    fn refusal_of_set(&self, selector: &str, serves: &dyn Fn(&&Value) -> bool) -> Option<String> {
        let connection = self.connection();
        let sets = connection.list(Resource::StatefulSets, selector, Heed::Stop);
        let sets = sets.ok()?;
        sets.iter().filter(serves).find_map(|set| {
            let events = connection.events_of("StatefulSet", name_of(set)).ok()?;
            let refusal = last_warning(&events, &["FailedCreate"])?;
            let why = explained(&refusal.message);
            Some(format!("`{}` cannot create a pod: {why}", name_of(set)))
        })
    }
}
