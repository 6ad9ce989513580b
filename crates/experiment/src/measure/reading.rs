//! Readings of counters before and after a load, for one measurement.
//!
//! [`Reading::begin`] runs before the load, [`Reading::sample`] with its last response, and [`Reading::end`]
//! after it. Several readings may be open at once, each for another candidate.

use std::time::Instant;

use lab::Variant;
use load::Measurement;
use recording::{MachineUse, ProofSeen, RoundRecord, SystemUsage};
use rig::{Moment, Rig};

use super::round::Position;
use super::session::Session;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::prove::{Observed, Observer, RequestCounts, by_instance};
use crate::record;
use crate::stop::StopSignal;
use crate::systems::{self, RunningSystems, Shares, Tally, UsageReading};

/// The counters before a load.
pub(super) struct Reading<'r> {
    variant: &'r Variant,
    systems: &'r RunningSystems,
    began: Instant,
    observer: Observer<'r>,
    tallies: Vec<Tally>,
    usage: Vec<UsageReading>,
    moment: Option<Moment>,
}

/// The counters at the end of a load, while its connections are open.
pub(super) struct UsageSample {
    at: Instant,
    moment: Option<Moment>,
    usage: Vec<UsageReading>,
}

/// One measurement of one candidate, before it becomes a record.
pub(super) struct Measured {
    began: Instant,
    pub(super) measurement: Measurement,
    /// The activity of the whole machine meanwhile.
    pub(super) machine: Option<MachineUse>,
    /// The usage of the systems. A system that ended meanwhile is left out.
    systems: Vec<SystemUsage>,
    /// The results of proofs by counters.
    proofs: Vec<ProofSeen>,
    /// The first failed proof.
    pub(super) unproven: Option<Invalid>,
}

impl<'r> Reading<'r> {
    /// Reads all counters before the load.
    ///
    /// # Errors
    ///
    /// When a system or a balancer does not return its counters.
    pub(super) fn begin(
        variant: &'r Variant,
        systems: &'r RunningSystems,
        rig: &Rig,
    ) -> Result<Reading<'r>, Invalid> {
        // Requests to observers and balancers cost the systems processor time. The usage is therefore read
        // after them here, and before them at the end.
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

    /// Reads the cost of the load. Must be called before the load's connections close. A server may end a
    /// thread together with its connection, and the kernel's counters of that thread would be lost.
    pub(super) fn sample(&self, rig: &Rig) -> UsageSample {
        UsageSample {
            at: instant(),
            moment: rig::moment(),
            usage: self.systems.usage(rig),
        }
    }

    /// Reads all counters after the load. `sent_by_others` counts the requests of the other generators. If the
    /// user stops the run while a proof waits for its number, the measurement counts as interrupted.
    ///
    /// # Errors
    ///
    /// When a balancer does not return its counters. A failed proof is not an error here, because the
    /// measurement is kept as evidence.
    pub(super) fn end(
        self,
        rig: &Rig,
        sample: UsageSample,
        mut measurement: Measurement,
        sent_by_others: RequestCounts,
        stop: &StopSignal,
    ) -> Result<Measured, Invalid> {
        // An interrupted load leaves requests in flight that the systems counted and the generator did not.
        // Its counts can therefore not be compared.
        let counts = (!measurement.interrupted)
            .then(|| RequestCounts::of(&measurement).plus(sent_by_others));
        let observed = counts.and_then(|counts| self.observer.end(counts, sample.at, stop));
        // A measurement without its proof has no number.
        measurement.interrupted |= observed.is_none();
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
            machine: record::machine(self.moment, sample.moment),
            systems: systems_used(&self.usage, &sample.usage, &shares),
            proofs,
            unproven,
        })
    }
}

impl Measured {
    /// The record of the measurement. The caller adds attempts and searches.
    pub(super) fn record(
        &self,
        session: &Session<'_>,
        variant: &str,
        position: Position,
    ) -> RoundRecord {
        // Recordings use 32 bits, and the limit of rounds is far lower.
        let number = |index: usize| u32::try_from(index).expect("no lab has so many rounds");
        RoundRecord {
            round: number(position.round),
            position: number(position.index),
            group: position.group,
            variant: variant.to_owned(),
            started_offset_us: model::micros(self.began.duration_since(session.started)),
            machine: self.machine,
            systems: self.systems.clone(),
            proofs: self.proofs.clone(),
            ..record::measurement(&self.measurement)
        }
    }
}

/// The usage of each system between two readings, with the shares of its instances.
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
