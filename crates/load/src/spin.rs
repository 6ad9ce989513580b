//! How much earlier than needed to stop sleeping, so that a slot leaves on time.
//!
//! The rest of the time is spent asking again and again. How early follows from how much too late the
//! system woke this thread before: as much as 99 of 100 sleeps do not exceed, so that a quiet machine
//! hardly spins at all. No more than a share of the time is spent so, because the systems under load
//! may need this core, and because a host that is shared takes the core away from a guest that never
//! rests. At rates where that is not enough, some slots leave as late as the system wakes us, and their
//! lateness says so.

/// The longest time to spin, per wait. Longer oversleeps are no matter of timers but of other programs
/// and other guests: no spinning helps against them, and they teach nothing.
const SPIN_MAX_NS: u64 = 200_000;

/// What is expected of sleeps before the first has been seen.
const OVERSLEEP_FIRST_NS: u64 = 60_000;

/// A sleep that ends later than expected raises the expectation by this much, and 99 that do not
/// lower it by as much: it settles where one in a hundred ends later, however late that one is.
const OVERSLEEP_STEP_NS: u64 = 5_000;
const OVERSLEEP_ODDS: u64 = 99;

/// Time earned for spinning but not spent is kept up to here.
const CREDIT_MAX_NS: u64 = 1_000_000;

/// What one thread may spin, for all its lanes together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpinBudget {
    /// How much too late 99 of 100 sleeps end here at most.
    oversleep_ns: u64,
    /// Of the time that passes, this share may be spent spinning.
    share: f64,
    credit_ns: u64,
}

impl SpinBudget {
    pub(crate) fn new(share: f64) -> SpinBudget {
        SpinBudget {
            oversleep_ns: OVERSLEEP_FIRST_NS,
            share,
            // Nothing in advance, so that the share is kept from the first wait on.
            credit_ns: 0,
        }
    }

    /// How long before a slot is due to stop sleeping.
    pub(crate) fn early_ns(&self) -> u64 {
        // A share of 1 gives the whole core, for a thread that is never woken late, nor descheduled
        // for having slept.
        if self.share >= 1.0 {
            return u64::MAX;
        }
        self.oversleep_ns.min(self.credit_ns)
    }

    /// Time passed, whatever was done in it: a share of it is earned.
    pub(crate) fn passed(&mut self, took_ns: u64) {
        let earned_ns = self.credit_ns + share_of(took_ns, self.share);
        self.credit_ns = earned_ns.min(CREDIT_MAX_NS);
    }

    /// Time was spent spinning. One that took longer than what is left spends all.
    pub(crate) fn spent(&mut self, took_ns: u64) {
        self.credit_ns = self.credit_ns.saturating_sub(took_ns);
    }

    /// A sleep that nothing cut short ended so much too late.
    pub(crate) fn slept(&mut self, late_ns: u64) {
        self.oversleep_ns = expect_of(self.oversleep_ns, late_ns);
    }
}

/// What is expected of sleeps after one more of them ended so much too late.
fn expect_of(oversleep_ns: u64, late_ns: u64) -> u64 {
    if late_ns > SPIN_MAX_NS {
        oversleep_ns
    } else if late_ns > oversleep_ns {
        (oversleep_ns + OVERSLEEP_STEP_NS).min(SPIN_MAX_NS)
    } else {
        // 50 ns at a time. No sleep ends too early, so 0 is the least that can be expected.
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

    /// The expectation after many sleeps of which every `nth` ends `rare_ns` late, the others
    /// `usual_ns`.
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
