//! The process behind an address: a process or a container that `weigh` started, or a system that runs
//! already.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lab::{Attach, Setup};
use load::{Request, Target};
use model::Protocol;
use rig::{Attached, Enforced, Rig, State, Usage, UsageSource};

use super::GRACE;
use super::container::RunningContainer;
use super::project::Service;
use super::readiness::wait_until_ready;
use crate::address;
use crate::containers;
use crate::invalid::Invalid;
use crate::invalid::last_words;
use crate::prometheus_text::metric;
use crate::stop::StopSignal;

/// The process behind an address.
pub(super) enum Process {
    /// A process that `weigh` started.
    Ours(rig::System),
    /// A container that `weigh` started.
    Container(Box<RunningContainer>),
    /// A system that runs already. `weigh` only observes it.
    Elsewhere {
        /// The name of the system.
        name: String,
        watched: Watched,
        /// The addresses of the instances, for proofs by counting. Empty if the system's own address is used.
        instances: Vec<SocketAddr>,
    },
    /// A service of a compose file, in containers.
    Service(Service),
}

/// The source of the usage of a system that runs already.
pub(super) enum Watched {
    Nowhere,
    Machine(Attached),
    Metrics(Metrics),
}

/// Address and path of a system's own metrics.
pub(super) struct Metrics {
    target: Target,
    path: String,
}

/// Time limit of one reading of metrics.
const METRICS: Duration = Duration::from_secs(2);

impl Process {
    pub(super) fn name(&self) -> &str {
        match self {
            Process::Ours(system) => system.name(),
            Process::Container(container) => container.name(),
            Process::Elsewhere { name, .. } => name,
            Process::Service(service) => service.name(),
        }
    }

    /// The usage since the start. `None` if it cannot be read.
    pub(super) fn usage(&self, rig: &Rig) -> Option<Usage> {
        match self {
            Process::Ours(system) => rig.usage(system).ok(),
            Process::Container(container) => container.usage(),
            Process::Elsewhere { watched, .. } => watched.usage(),
            Process::Service(service) => service.usage(),
        }
    }

    /// The addresses for proofs by counting. `own` is the listen address of the system.
    pub(super) fn asked_at(&self, own: SocketAddr) -> Vec<SocketAddr> {
        match self {
            Process::Elsewhere { instances, .. } if !instances.is_empty() => instances.clone(),
            Process::Elsewhere { .. }
            | Process::Ours(_)
            | Process::Container(_)
            | Process::Service(_) => vec![own],
        }
    }

    /// The processes that `weigh` started. Only these may be moved, sampled or reported as a disturbance.
    pub(super) fn pids(&self, rig: &Rig) -> Vec<i32> {
        match self {
            Process::Ours(system) => rig.processes(system),
            Process::Container(container) => container.pids(),
            Process::Elsewhere { .. } => Vec::new(),
            Process::Service(service) => service.pids(),
        }
    }

    /// The processes with readable processor time. Includes an attached system that runs already.
    pub(super) fn pids_watched(&self, rig: &Rig) -> Vec<i32> {
        match self {
            Process::Elsewhere {
                watched: Watched::Machine(attached),
                ..
            } => attached.pids(),
            Process::Elsewhere { .. }
            | Process::Ours(_)
            | Process::Container(_)
            | Process::Service(_) => self.pids(rig),
        }
    }

    /// The log of a process. `None` for containers, and for a system that runs already.
    pub(super) fn log(&self) -> Option<PathBuf> {
        match self {
            Process::Ours(system) => Some(system.log().to_owned()),
            Process::Container(_) | Process::Service(_) | Process::Elsewhere { .. } => None,
        }
    }

    /// The enforced limits. `None` for a system that runs already.
    pub(super) fn enforced(&self) -> Option<&Enforced> {
        match self {
            Process::Ours(system) => Some(system.enforced()),
            Process::Container(container) => Some(container.enforced()),
            // The record already contains the limits.
            Process::Service(_) | Process::Elsewhere { .. } => None,
        }
    }

    /// The exit status with the last lines of output. `None` while it runs. A system that `weigh` did not
    /// start is judged by its responses.
    pub(super) fn end(&self, rig: &mut Rig) -> Option<String> {
        match self {
            Process::Ours(system) => match rig.state(system) {
                State::Running => None,
                State::Exited { status, .. } => Some(format!(
                    "ended with {status}{}",
                    last_words(&system.last_lines(), system.log())
                )),
            },
            Process::Container(container) => container.end(),
            Process::Service(service) => service.ended(),
            Process::Elsewhere { .. } => None,
        }
    }

    /// Address for containers in the system's network. `None` if the system is in no such network.
    pub(super) fn inner(&self) -> Option<SocketAddr> {
        match self {
            Process::Container(container) => container.inner,
            Process::Ours(_) | Process::Service(_) | Process::Elsewhere { .. } => None,
        }
    }

    /// Stops the process, if `weigh` started it.
    pub(super) fn stop(self, rig: &mut Rig) {
        match self {
            Process::Ours(system) => drop(rig.stop(system, GRACE)),
            Process::Container(container) => container.stop(),
            Process::Elsewhere { .. } => {}
            Process::Service(service) => service.stop(),
        }
    }
}

impl Watched {
    /// # Errors
    /// A sentence, if the process or container does not exist.
    pub(super) fn of(attach: Option<&Attach>) -> Result<Watched, String> {
        Ok(match attach {
            None => Watched::Nowhere,
            Some(Attach::Pid(pid)) => {
                Watched::Machine(Attached::process(*pid).map_err(|error| error.to_string())?)
            }
            Some(Attach::Cgroup(folder)) => {
                Watched::Machine(Attached::group(folder).map_err(|error| error.to_string())?)
            }
            Some(Attach::Container(name)) => Watched::Machine(of_container(name)?),
            Some(Attach::Pods(selector)) => {
                return Err(format!(
                    "`attach: {{pods: {selector}}}` names pods of a cluster. Add `--on kubernetes`, or name a process with `pid`"
                ));
            }
            Some(Attach::Metrics(url)) => {
                let metrics = Metrics::at(url)?;
                // Read now, so that an error appears before the load.
                metrics.usage()?;
                Watched::Metrics(metrics)
            }
        })
    }

    fn usage(&self) -> Option<Usage> {
        match self {
            Watched::Nowhere => None,
            Watched::Machine(attached) => attached.usage(),
            Watched::Metrics(metrics) => metrics.usage().ok(),
        }
    }
}

/// The control groups of a container that runs already.
fn of_container(name: &str) -> Result<Attached, String> {
    let engine = containers::engine().map_err(|invalid| invalid.reason)?;
    let found = engine.inspect(name).map_err(|error| error.to_string())?;
    let pid = found
        .pid
        .ok_or_else(|| format!("the container `{name}` does not run"))?;
    Attached::groups_of(pid, &found.id).map_err(|error| error.to_string())
}

impl Metrics {
    fn at(url: &str) -> Result<Metrics, String> {
        let url = address::url(url)?;
        let protocol = Protocol {
            tls: address::is_encrypted(&url).then_some(model::Trust::System),
            ..Protocol::default()
        };
        let target = address::target(&url, None, protocol);
        Ok(Metrics {
            target: target.map_err(|failure| failure.message)?,
            path: address::path(&url),
        })
    }

    /// The usage as the system reports it, under the metric names of Prometheus' client libraries.
    fn usage(&self) -> Result<Usage, String> {
        let request = Request::get(&self.path);
        let answer = load::exchange(&self.target, &request, METRICS);
        let answer = answer.map_err(|failure| failure.to_string())?;
        let text = String::from_utf8_lossy(&answer.body);
        let seconds = metric("process_cpu_seconds_total", &text)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let cpu = seconds.ok_or("its metrics have no `process_cpu_seconds_total`")?;
        let memory = metric("process_resident_memory_bytes", &text);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole bytes, never negative"
        )]
        let memory = memory.map(|bytes| bytes.max(0.0) as u64);
        Ok(Usage {
            cpu,
            cpu_kernel: None,
            memory_peak: memory,
            memory_now: memory,
            memory_charged_peak: None,
            throttled: None,
            context_switches: None,
            waited_for_cpu: None,
            source: UsageSource::Metrics,
        })
    }
}

/// Waits until a system that `weigh` did not start is ready.
pub(super) fn wait_ready(
    setup: &Setup,
    probe: &mut dyn FnMut() -> Result<(), String>,
    stop: &StopSignal,
) -> Result<(), Invalid> {
    let overdue = |reason: String| {
        let url = setup.elsewhere().map(|it| it.authority.as_str());
        format!(
            "`{}` does not answer at {}: {reason}. The lab does not start it, so start it first",
            setup.system,
            url.unwrap_or_default()
        )
    };
    wait_until_ready(setup.ready.within, stop, probe, || Ok(()), overdue)
}
