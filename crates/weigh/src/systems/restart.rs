//! Systems that are started beside those of the same variant that run already: all at the first
//! start, and in a quick run those that start fast, anew in each round.

use std::collections::BTreeSet;
use std::time::Duration;

use lab::{Setup, Text};
use rig::Rig;
use tempfile::TempDir;

use super::addresses::Addresses;
use super::start::{Ports, Starter};
use super::{RunningProcess, RunningSystems, SharedSystem, Startup, socket_folder, target_of};
use crate::invalid::Invalid;

/// A start that takes longer would make a round as long as a full one.
const SLOW_START: Duration = Duration::from_secs(1);
/// A start that takes more processor time is that of a runtime which compiles as it runs. Programs that
/// are compiled ahead take some ten milliseconds. Not the time, which on a busy machine is long for all.
const SLOW_START_PROCESSOR: Duration = Duration::from_millis(100);

impl RunningSystems {
    /// Starts anew all systems that are not to be kept, on new ports. None of those kept may be told
    /// the address of one that is not; [`closed`] sees to that.
    ///
    /// # Errors
    ///
    /// The first system that did not start or become ready. Nothing is left running then.
    pub(crate) fn restart(
        mut self,
        rig: &mut Rig,
        startup: Startup<'_>,
        kept: &BTreeSet<String>,
    ) -> Result<RunningSystems, Invalid> {
        let (stay, leave) = self
            .running
            .into_iter()
            .partition(|one| kept.contains(&one.setup));
        self.running = stay;
        let leaving: Vec<RunningProcess> = leave;
        // The target first, as when all are stopped.
        for one in leaving.into_iter().rev() {
            one.process.stop(rig);
        }
        self.complete(rig, startup)
    }

    /// Starts every system that does not run yet, in order, each once those before it are ready.
    ///
    /// # Errors
    ///
    /// The first system that did not start or become ready. Nothing is left running then.
    pub(super) fn complete(
        mut self,
        rig: &mut Rig,
        startup: Startup<'_>,
    ) -> Result<RunningSystems, Invalid> {
        let mut kept = std::mem::take(&mut self.running);
        let is_kept = |setup: &&Setup| kept.iter().any(|one| one.setup == setup.system);
        let (_, missing): (Vec<&Setup>, Vec<&Setup>) = startup.setups.iter().partition(is_kept);
        let begun = ports(
            &missing,
            startup.addresses,
            &kept,
            &self.shared,
            &mut self.sockets,
        );
        let ports = match begun {
            Ok(ports) => ports,
            Err(invalid) => {
                // The kept ones are stopped as well, as the variant cannot run without the others.
                self.running = kept;
                self.stop(rig);
                return Err(invalid);
            }
        };
        let mut starter = Starter {
            rig,
            lab: startup.lab,
            logs: startup.logs,
            ports,
            projects: startup.projects,
            stop: startup.stop,
            target: target_of(startup.setups),
        };
        // In the order of the setups, kept or not: the target is the last.
        for setup in startup.setups {
            let (own, others) = kept
                .into_iter()
                .partition(|one: &RunningProcess| one.setup == setup.system);
            kept = others;
            let own: Vec<RunningProcess> = own;
            if !own.is_empty() {
                self.running.extend(own);
                continue;
            }
            let first = self.running.len();
            // What did start is in `running` even when a later process of the setup did not, so that
            // it is stopped here and its port is free for the next variant.
            let started = starter
                .start(setup, &mut self.running)
                .and_then(|()| self.wait_ready(starter.rig, setup, first, startup.stop));
            if let Err(invalid) = started {
                self.running.extend(kept);
                self.stop(starter.rig);
                return Err(invalid);
            }
        }
        assert!(
            !self.running.is_empty() && kept.is_empty(),
            "every variant has a target, and every process belongs to a setup"
        );
        Ok(self)
    }

    /// The systems that are slow to start: a process of theirs took much time or processor time.
    pub(crate) fn slow_to_start(&self) -> impl Iterator<Item = &str> {
        let is_slow = |one: &&RunningProcess| {
            one.start.time > SLOW_START || one.start.processor_time > SLOW_START_PROCESSOR
        };
        self.running
            .iter()
            .filter(is_slow)
            .map(|one| one.setup.as_str())
    }
}

/// All ports before the first start: a system may be told the address of one that starts later.
fn ports(
    missing: &[&Setup],
    addresses: &Addresses,
    kept: &[RunningProcess],
    shared: &[SharedSystem],
    sockets: &mut Vec<TempDir>,
) -> Result<Ports, Invalid> {
    let folder = socket_folder(missing)?;
    let mut ports = Ports::of(missing, addresses, folder.as_ref().map(TempDir::path))?;
    for one in kept {
        if let Some(system) = &one.serves {
            ports.know(system, one.place.clone());
            ports.know_inner(system, one.process.inner());
        }
    }
    for one in shared {
        ports.know(&one.system, one.place.clone());
        ports.know_inner(&one.system, one.inner);
    }
    // The folders of earlier starts stay: a kept system may listen in one.
    sockets.extend(folder);
    Ok(ports)
}

/// These systems, and with each one all that it has to be kept with: those whose addresses it was
/// told, which would be wrong after their restart, and the balancer before its instances, which has
/// their port.
pub(crate) fn closed(mut kept: BTreeSet<String>, setups: &[&Setup]) -> BTreeSet<String> {
    // Until nothing is added: a setup may pull in one that was passed already.
    loop {
        let before = kept.len();
        for setup in setups {
            let balanced = setup.balances.as_ref().map(|it| it.system.clone());
            if balanced.as_ref().is_some_and(|it| kept.contains(it)) {
                kept.insert(setup.system.clone());
            }
            if kept.contains(&setup.system) {
                let told = setup.told().flat_map(Text::systems);
                kept.extend(told.map(str::to_owned));
                kept.extend(balanced);
            }
        }
        if kept.len() == before {
            return kept;
        }
    }
}
