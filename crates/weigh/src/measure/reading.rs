//! What a measurement is held against: the same counters read before and after the load.
//!
//! [`Reading::begin`] before the load, [`Reading::look`] as its last request is answered,
//! [`Reading::end`] after it. Several readings may be open at once, each of another candidate.

use std::time::Instant;

use lab::Variant;
use load::Measurement;
use report::recording::{MachineUse, ProofSeen, RoundRecord, SystemUsage};
use rig::{Moment, Rig};

use super::round::Seat;
use super::session::Session;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::prove::{Observed, Observer, RequestCounts, by_instance};
use crate::record;
use crate::systems::{self, RunningSystems, Shares, Tally, UsageReading};

/// What was read before a load.
pub(super) struct Reading<'r> {
    variant: &'r Variant,
    systems: &'r RunningSystems,
    began: Instant,
    observer: Observer<'r>,
    tallies: Vec<Tally>,
    usage: Vec<UsageReading>,
    moment: Option<Moment>,
}

/// What was read at the end of a load, while its connections were open.
pub(super) struct Look {
    moment: Option<Moment>,
    usage: Vec<UsageReading>,
}

/// One measurement of one candidate, before it becomes a record.
pub(super) struct Measured {
    began: Instant,
    pub(super) measurement: Measurement,
    /// What the whole machine did meanwhile.
    pub(super) machine: Option<MachineUse>,
    /// What the systems used. A system that ended meanwhile is left out.
    systems: Vec<SystemUsage>,
    /// What other systems saw of it.
    proofs: Vec<ProofSeen>,
    /// The first proof that was not given.
    pub(super) unproven: Option<Invalid>,
}

impl<'r> Reading<'r> {
    /// Reads everything before the load.
    ///
    /// # Errors
    ///
    /// When a system or a balancer does not say what it has counted.
    pub(super) fn begin(
        variant: &'r Variant,
        systems: &'r RunningSystems,
        rig: &Rig,
    ) -> Result<Reading<'r>, Invalid> {
        // Observers and balancers are asked over sockets, which costs the systems processor time, so
        // their usage is read after that. At the end it is read before they are asked again.
        let observer = Observer::begin(variant, systems)?;
        let tallies = systems.tallies(rig)?;
        Ok(Reading {
            variant,
            systems,
            observer,
            tallies,
            began: instant(),
            usage: systems.usage(rig),
            moment: rig::moment(),
        })
    }

    /// Reads what the load has cost. To be called as the load's last look, before its connections
    /// close: a server that ends a thread with its connection would take with it what the kernel
    /// counted of the thread.
    pub(super) fn look(&self, rig: &Rig) -> Look {
        Look {
            moment: rig::moment(),
            usage: self.systems.usage(rig),
        }
    }

    /// Reads everything after the load, to which others have sent `beside`.
    ///
    /// # Errors
    ///
    /// When a balancer does not say what it has counted. A proof that was not given is no error here:
    /// what was measured is kept as evidence.
    pub(super) fn end(
        self,
        rig: &Rig,
        look: Look,
        measurement: Measurement,
        beside: RequestCounts,
    ) -> Result<Measured, Invalid> {
        // An interrupted load leaves requests under way that were seen and not counted, so nothing
        // can be held against its counts.
        let counts =
            (!measurement.interrupted).then(|| RequestCounts::of(&measurement).plus(beside));
        let observed = counts.map(|counts| self.observer.end(counts));
        let Observed {
            seen: mut proofs,
            failed: mut unproven,
        } = observed.unwrap_or_default();
        let shares = systems::between(&self.tallies, &self.systems.tallies(rig)?);
        let target = systems::target_of(self.variant.systems());
        match counts.and_then(|counts| by_instance(&shares, target, counts)) {
            Some(Ok(seen)) => proofs.push(seen),
            Some(Err(invalid)) => unproven = unproven.or(Some(invalid)),
            None => {}
        }
        Ok(Measured {
            began: self.began,
            measurement,
            machine: record::machine(self.moment, look.moment),
            systems: systems_used(&self.usage, &look.usage, &shares),
            proofs,
            unproven,
        })
    }
}

impl Measured {
    /// Its record, without what only the caller knows: attempts and searches.
    pub(super) fn record(&self, session: &Session<'_>, variant: &str, seat: Seat) -> RoundRecord {
        // Recordings count in 32 bits, and rounds have a limit far below.
        let number = |index: usize| u32::try_from(index).expect("no lab has so many rounds");
        RoundRecord {
            round: number(seat.round),
            position: number(seat.position),
            group: seat.group,
            variant: variant.to_owned(),
            started_offset_us: model::micros(self.began.duration_since(session.started)),
            machine: self.machine,
            systems: self.systems.clone(),
            proofs: self.proofs.clone(),
            ..record::measurement(&self.measurement)
        }
    }
}

/// What each system used between two readings, with the shares of its instances.
pub(super) fn systems_used(
    before: &[UsageReading],
    after: &[UsageReading],
    shares: &[Shares],
) -> Vec<SystemUsage> {
    assert_eq!(before.len(), after.len(), "both readings are of one start");
    let pairs = before.iter().zip(after);
    pairs
        .filter_map(|(before, after)| {
            assert_eq!(before.system, after.system, "systems keep their order");
            let shares = shares.iter().find(|shares| shares.system == after.system);
            let used = record::usage(&after.system, before.usage.as_ref()?, after.usage.as_ref()?);
            Some(SystemUsage {
                instances: shares.map_or_else(Vec::new, |shares| shares.instances.clone()),
                ..used
            })
        })
        .collect()
}
