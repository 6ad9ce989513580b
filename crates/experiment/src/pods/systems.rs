//! The systems of a lab as pods of a cluster.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use cluster::workload::{
    FILES_BYTES_MAX, FILES_FOLDER, Probe, ResourceLimits, Workload, dns_label,
};
use lab::{Container, Endpoint, Network, Pull, Setup, Text, Volume};
use model::PodSettings;

/// The port of a system in its pod, if the lab lets `weigh` choose it.
const TOLD_PORT: u16 = 8080;
/// Maximum length of a system's part of a name. Names in a cluster have at most 63 characters, and prefix and
/// suffix need the rest.
const NAME: usize = 20;

/// Identifies the pods of one system in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which<'a> {
    pub(crate) run: &'a str,
    /// The variant's position. `None` for a system that all variants share.
    pub(crate) variant: Option<usize>,
    pub(crate) setup: &'a Setup,
    /// The settings of the lab for the pods of this system.
    pub(crate) settings: &'a PodSettings,
    /// The address that a system listens at, to be reachable by other pods.
    pub(crate) listen: IpAddr,
    /// The node that its pod prefers to the nodes of other variants.
    pub(crate) node: Option<&'a str>,
}

/// The name of the Service of a variant's system, or of a shared system.
pub(crate) fn service_name(run: &str, variant: Option<usize>, system: &str) -> String {
    let whose = variant.map_or("all".to_owned(), |variant| format!("v{variant}"));
    format!("wb-{run}-{whose}-{}", dns_label(system, NAME))
}

/// The part of a system in a run. It is equal for all variants, so that their pods share nodes.
pub(crate) fn part(run: &str, system: &str) -> String {
    format!("{run}-{}", dns_label(system, NAME))
}

impl Which<'_> {
    /// The name of the Service.
    pub(crate) fn name(&self) -> String {
        service_name(self.run, self.variant, &self.setup.system)
    }

    /// The port of the system in its pod.
    pub(crate) fn port(&self) -> u16 {
        match self.setup.container().map(|container| container.network) {
            Some(Network::Bridge { port }) => port,
            Some(Network::Host) | None => TOLD_PORT,
        }
    }

    /// The workload with the system's pods. `find` returns the addresses of other systems.
    ///
    /// # Errors
    /// The reason why a cluster cannot run it, as a sentence.
    pub(crate) fn workload(
        &self,
        object: String,
        deadline: Duration,
        find: &dyn Fn(&str) -> Option<Endpoint>,
    ) -> Result<Workload, String> {
        let setup = self.setup;
        let container = container_of(setup)?;
        let port = self.port();
        let own = Endpoint {
            files: (!setup.files.is_empty()).then(|| FILES_FOLDER.into()),
            ..SocketAddr::new(self.listen, port).into()
        };
        let place = |system: &str| match system == setup.system {
            true => Some(own.clone()),
            false => find(system),
        };
        let fill = |text: &Text| {
            let text_of = |instance| text.render_instance(instance, &place);
            let first = text_of(1)?;
            // All pods of a Deployment have equal settings.
            if setup.replicas.is_some() && text_of(2)? != first {
                return Err(format!(
                    "`{}` uses `{{{{instance}}}}`, but all pods of a Deployment have equal settings. Remove it. Each pod has its own host name",
                    setup.system
                ));
            }
            Ok(first)
        };
        let mut env = BTreeMap::new();
        for (variable, text) in &setup.env {
            env.insert(variable.clone(), fill(text)?);
        }
        let mut files = BTreeMap::new();
        for file in &setup.files {
            files.insert(file.name.clone(), fill(&file.text)?);
        }
        check_size(setup, &files)?;
        Ok(Workload {
            name: self.name(),
            object,
            image: container.image.clone(),
            pull: pull(container),
            command: Vec::new(),
            // As in a container engine, the command replaces the image's arguments.
            args: container
                .command
                .iter()
                .map(fill)
                .collect::<Result<_, _>>()?,
            env,
            user: user(setup, container)?,
            port,
            probe: probe(setup)?,
            empty_folders: empty_folders(setup, container)?,
            files,
            limits: limits(setup)?,
            replicas: setup.replicas,
            deadline,
            part: part(self.run, &setup.system),
            node: self.node.map(str::to_owned),
            settings: self.settings.clone(),
        })
    }
}

/// Refuses files that are too large for a ConfigMap.
fn check_size(setup: &Setup, files: &BTreeMap<String, String>) -> Result<(), String> {
    let bytes: usize = files.values().map(String::len).sum();
    if bytes > FILES_BYTES_MAX {
        return Err(format!(
            "the `files` of `{}` have {bytes} bytes, but a ConfigMap holds {FILES_BYTES_MAX}. Put large files into the image",
            setup.system
        ));
    }
    Ok(())
}

fn container_of(setup: &Setup) -> Result<&Container, String> {
    let system = &setup.system;
    let container = setup.container().ok_or_else(|| {
        format!(
            "`{system}` has no `image`, but a cluster runs containers and no commands of this machine"
        )
    })?;
    if setup.pin.is_some() {
        return Err(format!(
            "`{system}` has a `pin`, which names cores of this machine. A cluster with a static CPU manager pins a pod if its `limits.cpus` is a whole number"
        ));
    }
    if setup.is_on_socket() {
        return Err(format!(
            "`{system}` listens on a Unix socket, which other pods cannot reach. Use `{{{{addr}}}}` or `{{{{port}}}}`"
        ));
    }
    Ok(container)
}

fn pull(container: &Container) -> &'static str {
    match container.pull {
        Pull::Missing => "IfNotPresent",
        Pull::Always => "Always",
        Pull::Never => "Never",
    }
}

/// The user as a number, because a cluster does not look up user names in the image.
fn user(setup: &Setup, container: &Container) -> Result<Option<i64>, String> {
    let Some(user) = &container.user else {
        return Ok(None);
    };
    match user.parse::<u32>() {
        Ok(number) => Ok(Some(i64::from(number))),
        Err(_) => Err(format!(
            "expected the number of a user for `{}`, such as 1000, found `{user}`. A cluster does not accept names",
            setup.system
        )),
    }
}

fn empty_folders(setup: &Setup, container: &Container) -> Result<Vec<String>, String> {
    let folders = container.volumes.iter().map(|volume| match volume {
        Volume::Fresh { path } => Ok(path.clone()),
        Volume::Shown { source, .. } => Err(format!(
            "`{}` mounts `{}` of this machine, which its node does not have. Put it into the image",
            setup.system,
            source.display()
        )),
    });
    folders.collect()
}

/// Both limits, so that the pod gets the class Guaranteed, or no limits.
fn limits(setup: &Setup) -> Result<ResourceLimits, String> {
    let limits = ResourceLimits {
        cpus: setup.limits.cpus,
        memory: setup.limits.memory,
    };
    match (limits.cpus, limits.memory) {
        (Some(_), Some(_)) | (None, None) => Ok(limits),
        (cpus, _) => Err(format!(
            "`{}` has only a limit of {}, but a cluster guarantees resources only with both limits. Add `limits.{}`",
            setup.system,
            if cpus.is_some() {
                "processor time"
            } else {
                "memory"
            },
            if cpus.is_some() { "memory" } else { "cpus" },
        )),
    }
}

fn probe(setup: &Setup) -> Result<Probe, String> {
    let system = &setup.system;
    match &setup.ready.probe {
        lab::Probe::Listening => Ok(Probe::Listening),
        lab::Probe::Healthy => Err(format!(
            "`{system}` uses the health check of its image, which a cluster ignores. Give it `ready: {{path: …}}`"
        )),
        lab::Probe::Answers { path, status } if (200..400).contains(status) => Ok(Probe::Answers {
            path: path.clone(),
            is_encrypted: setup.is_encrypted,
        }),
        lab::Probe::Answers { status, .. } => Err(format!(
            "expected a ready status from 200 to 399, because a cluster accepts no other, found {status} for `{system}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::path::{Path, PathBuf};

    use serde_json::json;

    use super::*;
    use crate::files::Unwritten;

    const LAB: &str = "question: Why?\nload: {rate: 10/s, duration: 1s}\ntarget: server\nsystems:\n  \
        server: {image: 'a:1', port: 80, command: 'serve {{addr}}'}\n\
        pods: {systems: {priority-class: high, sidecars: off}, of: {server: {service-account: own}}}\n\
        baseline: {name: a}\nvariants: [{name: b}]\nexpect: {status: 200}\n";

    #[test]
    fn a_pod_listens_at_the_family_of_its_address_and_has_the_settings_of_the_lab() {
        let files = Unwritten(vec![(PathBuf::from("lab.yaml"), LAB.as_bytes().to_vec())]);
        let lab = lab::parse(Path::new("lab.yaml"), &files)
            .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)));
        let workload = |variant: usize, listen: IpAddr| {
            let setup = &lab.all().nth(variant).expect("a variant").systems()[0];
            let which = Which {
                run: "x",
                variant: Some(variant),
                setup,
                settings: lab.pods.of_system("server"),
                listen,
                node: None,
            };
            let made = which.workload("o".to_owned(), Duration::from_secs(1), &|_| None);
            made.unwrap_or_else(|why| panic!("{why}"))
        };
        let six = workload(0, Ipv6Addr::UNSPECIFIED.into());
        assert_eq!(six.args, ["serve", "[::]:80"]);
        let four = workload(1, Ipv4Addr::UNSPECIFIED.into());
        assert_eq!(four.args, ["serve", "0.0.0.0:80"]);
        assert_eq!(six.part, four.part, "variants share nodes");
        let (_, pod) = four.object();
        assert_eq!(pod["spec"]["priorityClassName"], "high");
        assert_eq!(pod["spec"]["serviceAccountName"], "own");
        assert_eq!(
            pod["metadata"]["annotations"]["linkerd.io/inject"],
            json!("disabled")
        );
    }
}
