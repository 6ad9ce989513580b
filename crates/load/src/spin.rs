//! Decides how much earlier a sleep ends, so that a slot leaves on time.
//!
//! The thread polls for the rest of the time. The extra time depends on the oversleeps of this thread: 99 of
//! 100 sleeps end within it, so a quiet machine hardly spins. Spinning is limited to a share of the time for
//! two reasons. The systems under load may need this core, and a shared host takes the core away from a guest
//! that never rests. At rates that need a larger share, some slots leave as late as the system wakes the
//! thread. Their lateness shows it.

/// The longest time to spin, per wait. Other programs and other guests cause longer oversleeps. Spinning does
/// not help against them, so they do not change the expectation.
const SPIN_MAX_NS: u64 = 200_000;

/// The expected oversleep before the first sleep.
const OVERSLEEP_FIRST_NS: u64 = 60_000;

/// The step of the expectation. A sleep that ends later than expected raises the expectation by this step,
/// and 99 other sleeps lower it by an equal amount. The expectation settles at the value that 1 in 100 sleeps
/// exceeds, independent of the excess.
const OVERSLEEP_STEP_NS: u64 = 5_000;
const OVERSLEEP_ODDS: u64 = 99;

/// Limit of the saved time for spinning.
const CREDIT_MAX_NS: u64 = 1_000_000;

/// The spin budget of one thread, for all its lanes together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpinBudget {
    /// The expected oversleep: 99 of 100 sleeps end at most this late.
    oversleep_ns: u64,
    /// The share of the time that may be spent spinning.
    share: f64,
    credit_ns: u64,
}

impl SpinBudget {
    pub(crate) fn new(share: f64) -> SpinBudget {
        SpinBudget {
            oversleep_ns: OVERSLEEP_FIRST_NS,
            share,
            // No credit at the start, so that the share is kept from the first wait on.
            credit_ns: 0,
        }
    }

    /// Returns how long before the due time of a slot to stop sleeping.
    pub(crate) fn early_ns(&self) -> u64 {
        // A share of 1 uses the whole core, for a thread that is never woken late, nor descheduled because it
        // slept.
        if self.share >= 1.0 {
            return u64::MAX;
        }
        self.oversleep_ns.min(self.credit_ns)
    }

    /// Adds a share of the passed time to the credit, independent of the work in that time.
    pub(crate) fn passed(&mut self, took_ns: u64) {
        let earned_ns = self.credit_ns + share_of(took_ns, self.share);
        self.credit_ns = earned_ns.min(CREDIT_MAX_NS);
    }

    /// Subtracts time that was spent spinning, down to a credit of 0.
    pub(crate) fn spent(&mut self, took_ns: u64) {
        self.credit_ns = self.credit_ns.saturating_sub(took_ns);
    }

    /// Records the lateness of a sleep that no event ended.
    pub(crate) fn slept(&mut self, late_ns: u64) {
        self.oversleep_ns = expect_of(self.oversleep_ns, late_ns);
    }
}

/// Returns the new expectation after a sleep that ended `late_ns` too late.
fn expect_of(oversleep_ns: u64, late_ns: u64) -> u64 {
    if late_ns > SPIN_MAX_NS {
        oversleep_ns
    } else if late_ns > oversleep_ns {
        (oversleep_ns + OVERSLEEP_STEP_NS).min(SPIN_MAX_NS)
    } else {
        // 50 ns at a time. No sleep ends too early, so the expectation is at least 0.
        oversleep_ns.saturating_sub(OVERSLEEP_STEP_NS / OVERSLEEP_ODDS)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a time that fits is a time that fits"
)]
fn share_of(ns: u64, share: f64) -> u64 {
    (ns as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the expectation after many sleeps. Every `nth` sleep ends `rare_ns` late, and other sleeps end
    /// `usual_ns` late.
    fn settled(usual_ns: u64, nth: u64, rare_ns: u64) -> u64 {
        (1..=50_000).fold(OVERSLEEP_FIRST_NS, |expected, sleep| {
            let is_rare = sleep % nth == 0;
            expect_of(expected, if is_rare { rare_ns } else { usual_ns })
        })
    }

    #[test]
    fn one_late_sleep_in_a_thousand_is_not_spun_for() {
        assert!(settled(40_000, 1000, 3_000_000) < 50_000);
    }

    #[test]
    fn one_late_sleep_in_twenty_is_provided_for() {
        let expected = settled(40_000, 20, 120_000);
        assert!((115_000..=125_000).contains(&expected), "{expected}");
    }

    #[test]
    fn no_wait_spins_longer_than_its_limit() {
        assert_eq!(settled(SPIN_MAX_NS, 1, SPIN_MAX_NS), SPIN_MAX_NS);
    }

    #[test]
    fn what_no_spinning_helps_against_is_not_spun_for() {
        assert!(settled(40_000, 10, 5_000_000) < 50_000);
    }

    #[test]
    fn a_share_of_nothing_earns_nothing() {
        let mut never = SpinBudget::new(0.0);
        never.passed(1_000_000);
        assert_eq!(never.early_ns(), 0);
    }
}
