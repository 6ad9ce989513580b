//! The cycles of a side-by-side round that may be compared.
//!
//! Side by side, every due time of a plan is one request to each variant: a *cycle*. The requests of several
//! cycles may be in flight at once. The host, the generator or the systems of a neighbor can take the cores
//! away from a request. The latency of such a request does not describe its own variant, so the request is
//! left out.
//!
//! The length of a response never decides about that. Cycles are left out because of the kernel's counters
//! (stolen time, processor time) and the generator's clock. A rule that looked at a response would remove the
//! tail that it should measure.
//!
//! A request needs the cores at its beginning and at its end. A disturbance therefore leaves out the requests
//! that begin in it and the requests that are expected to end in it. The expected end is the due time plus
//! the variant's median latency, which is the same for all requests of the variant.

use std::ops::Range;

/// A stretch of time that disturbed latencies for a reason outside the variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// Begin in nanoseconds from the start of the load.
    pub from_ns: u64,
    /// End, not before the begin.
    pub to_ns: u64,
    /// Source of the disturbance.
    pub cause: Cause,
    /// The variant that was disturbed. `None` means all variants.
    pub variant: Option<usize>,
}

impl Disturbance {
    /// The cycles of a variant with this median latency that the disturbance may have affected. A cycle may
    /// appear twice.
    fn cycles(&self, dues_ns: &[u64], median_ns: u64) -> impl Iterator<Item = usize> {
        // Includes the cycle before, because its requests may still be in flight. The rule does not check if
        // they were, because a slower variant would then lose more cycles than a faster one.
        let beginning = cycles_of(dues_ns, self.from_ns, self.to_ns, 2);
        // The requests that would have begun a median latency earlier. If the stretch is over before the
        // first request can have ended, there are no such requests.
        let ending = match self.to_ns.checked_sub(median_ns) {
            None => 0..0,
            // The request of a variant lies anywhere between the due times of its cycle and of the next one.
            Some(to_ns) => cycles_of(dues_ns, self.from_ns.saturating_sub(median_ns), to_ns, 1),
        };
        beginning.chain(ending)
    }
}

/// The reason for leaving out a cycle. If several causes meet, the first of them counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The host gave a core to other guests.
    Host,
    /// The generator did not run although work was due.
    Generator,
    /// The systems of another variant kept the cores busy ([`crate::occupied`]).
    Neighbor,
}

/// Number of cycles that were left out, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Cycles left out for [`Cause::Host`].
    pub host: u64,
    /// Cycles left out for [`Cause::Generator`].
    pub generator: u64,
    /// Cycles left out for [`Cause::Neighbor`].
    pub neighbor: u64,
}

impl LeftOut {
    /// The sum over all causes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.host + self.generator + self.neighbor
    }

    fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Host => &mut self.host,
            Cause::Generator => &mut self.generator,
            Cause::Neighbor => &mut self.neighbor,
        } += 1;
    }
}

/// The cycles of each variant that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// For each variant and each cycle, the cause for leaving it out, if any.
    left_out: Vec<Vec<Option<Cause>>>,
}

impl Validity {
    /// Decides about the cycles of a round.
    ///
    /// `medians_ns` contains the median latency of each variant, 0 if it is unknown. `dues_ns` contains the
    /// begin of each cycle, and as its last element the end of the plan. All times are in nanoseconds from
    /// the start of the load.
    ///
    /// # Panics
    /// If `dues_ns` does not rise, or a disturbance names a variant that does not exist.
    #[must_use]
    pub fn of(medians_ns: &[u64], dues_ns: &[u64], disturbances: &[Disturbance]) -> Validity {
        let cycles = dues_ns.len().saturating_sub(1);
        assert!(
            dues_ns.is_sorted(),
            "cycles begin in the order of their numbers"
        );
        let mut left_out = vec![vec![None; cycles]; medians_ns.len()];
        for disturbance in disturbances {
            if let Some(variant) = disturbance.variant {
                assert!(
                    variant < medians_ns.len(),
                    "variant {variant} does not exist"
                );
            }
            let disturbed = left_out.iter_mut().zip(medians_ns).enumerate();
            let affected = disturbed
                .filter(|(variant, _)| disturbance.variant.is_none_or(|only| only == *variant));
            for (_, (own, median_ns)) in affected {
                let cycles = disturbance.cycles(dues_ns, *median_ns);
                cycles.for_each(|cycle| mark(&mut own[cycle], disturbance.cause));
            }
        }
        Validity { left_out }
    }

    /// True if a cycle of a variant counts.
    #[must_use]
    pub fn counts(&self, variant: usize, cycle: usize) -> bool {
        self.cause(variant, cycle).is_none()
    }

    /// Returns the cause for leaving out a cycle of a variant, or `None` if the cycle counts.
    #[must_use]
    pub fn cause(&self, variant: usize, cycle: usize) -> Option<Cause> {
        self.left_out[variant][cycle]
    }

    /// Counts these cycles of a variant that were left out.
    #[must_use]
    pub fn left_out_of(&self, variant: usize, cycles: impl Iterator<Item = usize>) -> LeftOut {
        let mut counts = LeftOut::default();
        let causes = cycles.filter_map(|cycle| self.left_out[variant][cycle]);
        causes.for_each(|cause| counts.count(cause));
        counts
    }

    /// Counts all cycles of a variant that were left out.
    #[must_use]
    pub fn left_out(&self, variant: usize) -> LeftOut {
        let mut counts = LeftOut::default();
        let causes = self.left_out[variant].iter().flatten();
        causes.for_each(|cause| counts.count(*cause));
        counts
    }
}

/// Keeps the first cause, in the order of [`Cause`].
fn mark(place: &mut Option<Cause>, cause: Cause) {
    *place = Some(place.map_or(cause, |before| before.min(cause)));
}

/// Returns the cycles that begin in a stretch of time and this number of cycles before them. The stretch
/// begins within the last cycle before them.
fn cycles_of(dues_ns: &[u64], from_ns: u64, to_ns: u64, before: usize) -> Range<usize> {
    let cycles = dues_ns.len().saturating_sub(1);
    let begun = dues_ns[..cycles].partition_point(|due_ns| *due_ns <= from_ns);
    let last = dues_ns[..cycles].partition_point(|due_ns| *due_ns < to_ns);
    begun.saturating_sub(before)..last.max(begun).min(cycles)
}

#[cfg(test)]
mod tests;
