//! Which requests of a side-by-side round may be compared.
//!
//! Side by side, every due time of a plan is one request to each variant: a *cycle*. What the host
//! or the generator does to a cycle says nothing about the variants, so such a cycle is left out, for
//! *all* variants alike. A request that takes longer than a whole cycle (an *overrun*) is in the way
//! of the requests that follow; these are left out too, but the overrun itself stays: a variant that
//! stalls the machine must show it.
//!
//! The one idea: nothing is left out for its own latency. Cycles are left out because of what clocks
//! and counters say about the host and the generator, or because *another* variant was in the way. A
//! rule that looked at a request's own latency would remove the tail it is meant to measure.

/// One intended request of one variant, in nanoseconds from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleSlot {
    /// When it was due.
    pub due_ns: u64,
    /// When it ended, with an answer or without; never before it was due.
    pub end_ns: u64,
}

/// A stretch of time in which the machine, not a variant, decided about latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// Its begin.
    pub from_ns: u64,
    /// Its end, not before its begin.
    pub to_ns: u64,
    /// What it was.
    pub cause: Cause,
}

/// Why a cycle is left out. Where several causes meet, the first of them counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The host gave a core to other guests.
    Host,
    /// The generator did not run although work was due.
    Generator,
    /// A request to another variant took longer than a whole cycle.
    Overrun,
}

/// How many cycles were left out, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// [`Cause::Host`].
    pub host: u64,
    /// [`Cause::Generator`].
    pub generator: u64,
    /// [`Cause::Overrun`].
    pub overrun: u64,
}

impl LeftOut {
    /// All causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.host + self.generator + self.overrun
    }

    fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Host => &mut self.host,
            Cause::Generator => &mut self.generator,
            Cause::Overrun => &mut self.overrun,
        } += 1;
    }
}

/// Which cycles of each variant count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// For each variant, for each cycle: why it is left out, if it is.
    left_out: Vec<Vec<Option<Cause>>>,
}

impl Validity {
    /// Decides about the cycles of a round. `variants` holds each variant's slots in the order of
    /// cycles; `dues_ns` when each cycle of the plan begins, and as its last element when the plan
    /// ends.
    ///
    /// # Panics
    /// When a variant has not one slot for each cycle, or `dues_ns` does not rise.
    #[must_use]
    pub fn of(
        variants: &[Vec<CycleSlot>],
        dues_ns: &[u64],
        disturbances: &[Disturbance],
    ) -> Validity {
        let cycles = dues_ns.len().saturating_sub(1);
        assert!(
            dues_ns.is_sorted(),
            "cycles begin in the order of their numbers"
        );
        let mut left_out = vec![vec![None; cycles]; variants.len()];
        for slots in variants {
            assert_eq!(slots.len(), cycles, "a slot for each cycle");
        }
        for disturbance in disturbances {
            for cycle in disturbed(dues_ns, disturbance.from_ns, disturbance.to_ns) {
                for own in &mut left_out {
                    mark(&mut own[cycle], disturbance.cause);
                }
            }
        }
        for (variant, slots) in variants.iter().enumerate() {
            for (cycle, slot) in slots.iter().enumerate() {
                let gap_ns = dues_ns[cycle + 1] - dues_ns[cycle];
                if slot.end_ns - slot.due_ns <= gap_ns {
                    continue;
                }
                // Its own later slots stay as well: what they wait for is its own doing.
                let last = dues_ns[..cycles].partition_point(|due_ns| *due_ns < slot.end_ns);
                let others = left_out.iter_mut().enumerate();
                for (_, own) in others.filter(|(other, _)| *other != variant) {
                    own[cycle..last.max(cycle + 1)]
                        .iter_mut()
                        .for_each(|place| mark(place, Cause::Overrun));
                }
            }
        }
        Validity { left_out }
    }

    /// Whether a cycle of a variant counts.
    #[must_use]
    pub fn counts(&self, variant: usize, cycle: usize) -> bool {
        self.left_out[variant][cycle].is_none()
    }

    /// How many of these cycles of a variant were left out.
    #[must_use]
    pub fn left_out_of(&self, variant: usize, cycles: impl Iterator<Item = usize>) -> LeftOut {
        let mut counts = LeftOut::default();
        let causes = cycles.filter_map(|cycle| self.left_out[variant][cycle]);
        causes.for_each(|cause| counts.count(cause));
        counts
    }

    /// How many cycles of a variant were left out.
    #[must_use]
    pub fn left_out(&self, variant: usize) -> LeftOut {
        let mut counts = LeftOut::default();
        let causes = self.left_out[variant].iter().flatten();
        causes.for_each(|cause| counts.count(*cause));
        counts
    }
}

/// The first cause stays, in the order of [`Cause`].
fn mark(place: &mut Option<Cause>, cause: Cause) {
    *place = Some(place.map_or(cause, |before| before.min(cause)));
}

/// The cycles that a stretch of time touches: those that begin in it, the one that it begins in, and
/// the one before, whose answers may still be under way. Whether they are is not asked, since a
/// slower variant would then lose more cycles than a faster one.
fn disturbed(dues_ns: &[u64], from_ns: u64, to_ns: u64) -> std::ops::Range<usize> {
    let cycles = dues_ns.len().saturating_sub(1);
    let begun = dues_ns[..cycles].partition_point(|due_ns| *due_ns <= from_ns);
    let last = dues_ns[..cycles].partition_point(|due_ns| *due_ns < to_ns);
    let first = begun.saturating_sub(2);
    first..last.max(begun).min(cycles)
}

#[cfg(test)]
mod tests;
