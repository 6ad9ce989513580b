//! The objects of a run, and their removal.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use bollard::errors::Error;
use bollard::models::NetworkCreateRequest;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
};

use crate::error::{ContainerError, RunError, status, words};
use crate::{Engine, MANAGED_BY, RUN, WEIGHBRIDGE};

/// Pause between two searches for objects that a run has left.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);
/// Time that searches must stay empty. The engine still completes the requests of a client that was killed.
/// So a container may appear after all were removed.
const QUIET: Duration = Duration::from_millis(600);
/// Time limit of repeated removals.
pub(crate) const WITHIN: Duration = Duration::from_secs(30);

/// Number of removed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Number of containers, running or not.
    pub containers: usize,
    /// Number of networks.
    pub networks: usize,
    /// Number of volumes that were not removed with a container.
    pub volumes: usize,
}

impl Removed {
    /// True if no object was removed.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Removed::default()
    }

    pub(crate) fn plus(self, other: Removed) -> Removed {
        Removed {
            containers: self.containers + other.containers,
            networks: self.networks + other.networks,
            volumes: self.volumes + other.volumes,
        }
    }
}

impl Engine {
    /// Creates the network of containers of a run if it does not exist. Returns its name.
    ///
    /// # Errors
    /// The error of the engine.
    pub fn network(&self, run: &str) -> Result<String, ContainerError> {
        let made = self.runtime.block_on(self.make_network(run));
        made.map_err(|error| ContainerError::Refused {
            container: run.to_owned(),
            what: "make a network for",
            reason: words(&error),
        })?;
        Ok(run.to_owned())
    }

    async fn make_network(&self, run: &str) -> Result<(), Error> {
        let label = format!("{RUN}={run}");
        let filters = HashMap::from([("label", vec![label.as_str()])]);
        let options = ListNetworksOptionsBuilder::new().filters(&filters).build();
        // Checked first, because engines would create a second network of the same name.
        let known = self.docker.list_networks(Some(options)).await?;
        if known.is_empty() {
            let request = NetworkCreateRequest {
                name: run.to_owned(),
                driver: Some("bridge".to_owned()),
                labels: Some(labels(run)),
                ..NetworkCreateRequest::default()
            };
            self.docker.create_network(request).await?;
        }
        Ok(())
    }

    /// Removes every container, network and volume of a run once.
    ///
    /// # Errors
    /// The engine's error about the first object that it cannot remove. The remaining objects are removed
    /// nevertheless.
    pub fn sweep(&self, run: &str) -> Result<Removed, RunError> {
        let swept = self.runtime.block_on(self.sweep_all(run));
        swept.map_err(|error| RunError {
            run: run.to_owned(),
            reason: words(&error),
        })
    }

    /// Removes all objects of a run until no new one appears. It takes 0.6 s longer than [`Engine::sweep`].
    /// It is meant for a run with a process that was killed in the middle of an action.
    ///
    /// # Errors
    /// The objects that remain, and the reason.
    pub fn end_run(&self, run: &str) -> Result<Removed, RunError> {
        let began = now();
        let mut removed = Removed::default();
        let mut quiet_since = now();
        loop {
            match self.sweep(run) {
                Ok(nothing) if nothing.is_nothing() => {
                    if now().duration_since(quiet_since) >= QUIET {
                        return Ok(removed);
                    }
                }
                Ok(found) if now().duration_since(began) < WITHIN => {
                    removed = removed.plus(found);
                    quiet_since = now();
                }
                Ok(_) => {
                    return Err(RunError {
                        run: run.to_owned(),
                        reason: format!("new objects of the run still appear after {WITHIN:?}"),
                    });
                }
                Err(error) if now().duration_since(began) >= WITHIN => return Err(error),
                Err(_) => quiet_since = now(),
            }
            thread::park_timeout(PAUSE);
        }
    }

    async fn sweep_all(&self, run: &str) -> Result<Removed, Error> {
        self.sweep_labeled(&[format!("{RUN}={run}")]).await
    }

    /// Removes once every object that has all of these labels, written `name=value`.
    pub(crate) async fn sweep_labeled(&self, labels: &[String]) -> Result<Removed, Error> {
        let labels = labels.iter().map(String::as_str).collect();
        let filters = HashMap::from([("label", labels)]);
        let mut outcome = Outcome::default();
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters);
        let containers = self.docker.list_containers(Some(options.build())).await?;
        for id in containers.into_iter().filter_map(|container| container.id) {
            let options = RemoveContainerOptionsBuilder::new().v(true).force(true);
            let removed = self.docker.remove_container(&id, Some(options.build()));
            outcome.removed.containers += outcome_of(removed.await, &mut outcome.error);
        }
        // Networks are removed last, because a network with containers cannot be removed.
        let options = ListNetworksOptionsBuilder::new().filters(&filters).build();
        let networks = self.docker.list_networks(Some(options)).await?;
        for id in networks.into_iter().filter_map(|network| network.id) {
            let removed = self.docker.remove_network(&id).await;
            outcome.removed.networks += outcome_of(removed, &mut outcome.error);
        }
        let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let volumes = self.docker.list_volumes(Some(options)).await?;
        for volume in volumes.volumes.unwrap_or_default() {
            let options = RemoveVolumeOptionsBuilder::new().force(true).build();
            let removed = self.docker.remove_volume(&volume.name, Some(options)).await;
            outcome.removed.volumes += outcome_of(removed, &mut outcome.error);
        }
        match outcome.error {
            Some(error) => Err(error),
            None => Ok(outcome.removed),
        }
    }
}

#[derive(Default)]
struct Outcome {
    removed: Removed,
    error: Option<Error>,
}

/// 1 if an object was removed. Keeps the first error.
fn outcome_of(removed: Result<(), Error>, first: &mut Option<Error>) -> usize {
    match removed {
        Ok(()) => 1,
        Err(error) if is_gone(&error) => 1,
        Err(error) => {
            first.get_or_insert(error);
            0
        }
    }
}

/// True if the object is gone (404), or is just being removed by another client (409). The next search will
/// not find it.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(status(error), Some(404 | 409))
}

/// The labels of all objects of a run.
pub(crate) fn labels(run: &str) -> HashMap<String, String> {
    HashMap::from([
        (MANAGED_BY.to_owned(), WEIGHBRIDGE.to_owned()),
        (RUN.to_owned(), run.to_owned()),
    ])
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that reads a clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
