//! Starts systems next to running systems of the same variant. A first start includes all systems. In a quick
//! run, each round restarts only the systems with a fast start.

use std::collections::BTreeSet;
use std::time::Duration;

use lab::{Setup, Text};
use rig::Rig;
use tempfile::TempDir;

use super::addresses::Addresses;
use super::start::{Ports, Starter};
use super::{RunningProcess, RunningSystems, SharedSystem, Startup, certificates, socket_folder};
use crate::invalid::Invalid;

/// A slower start would make a quick round as long as a full round.
const SLOW_START: Duration = Duration::from_secs(1);
/// A start with more processor time indicates a just-in-time compiler. Programs that are compiled ahead need
/// some ten milliseconds. Wall time does not distinguish them, because it is long for all on a busy machine.
const SLOW_START_PROCESSOR: Duration = Duration::from_millis(100);

impl RunningSystems {
    /// Restarts all systems except `kept`, on new ports. No kept system may depend on the address of a
    /// restarted system. [`closed`] ensures that.
    ///
    /// # Errors
    ///
    /// The first system that did not start or become ready. No system is left running then.
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
        // The target stops first, as at the end of a run.
        for one in leaving.into_iter().rev() {
            one.process.stop(rig);
        }
        self.complete(rig, startup)
    }

    /// Starts all missing systems in order. Each system starts after the earlier ones are ready.
    ///
    /// # Errors
    ///
    /// The first system that did not start or become ready. No system is left running then.
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
        let begun = begun.and_then(|ports| Ok((ports, certificates(startup.lab, startup.setups)?)));
        let (ports, certificates) = match begun {
            Ok(begun) => begun,
            Err(invalid) => {
                // The kept systems stop too, because the variant cannot run without the other systems.
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
            certificates,
        };
        // In the order of the setups, kept or not, because the target must be the last.
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
            // `running` contains the started processes even if a later process of the setup failed. They are
            // stopped here, so that their ports are free for the next variant.
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

    /// The systems with a slow start: one of their processes took much time or processor time.
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

/// Reserves all ports before the first start, because a system may need the address of a later system.
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
    // The folders of earlier starts stay, because a kept system may listen in one.
    sockets.extend(folder);
    Ok(ports)
}

/// Adds the systems that must be kept together with these. A kept system depends on the addresses in its
/// settings, which would be wrong after a restart. A balancer must stay with its instances, because it has
/// their port.
pub(crate) fn closed(mut kept: BTreeSet<String>, setups: &[&Setup]) -> BTreeSet<String> {
    // Repeated until no system is added, because a setup may require an earlier one.
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
