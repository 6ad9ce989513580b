//! The pause of a closed loop after its target refused connections.
//!
//! Without a pause, the next slot would meet the same refusal at once, and a million requests would be over
//! in seconds. A plan has its own pace and needs no pause.

/// The pause after the first refused connect. It doubles with each further refusal.
const FIRST_NS: u64 = 1_000_000;

/// Beyond this many doublings the pause stays the same: 128 ms.
const DOUBLINGS_MAX: u32 = 7;

/// The refusals of one connection since it was last established.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    refusals: u32,
}

impl Backoff {
    /// Records another refused connect. Returns the time to wait, in nanoseconds.
    pub(crate) fn refused(&mut self) -> u64 {
        // At most seven doublings, so the shift cannot overflow.
        let pause_ns = FIRST_NS << self.refusals;
        self.refusals = (self.refusals + 1).min(DOUBLINGS_MAX);
        pause_ns
    }

    /// Records a successful connect.
    pub(crate) fn reset(&mut self) {
        self.refusals = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_limit_and_starts_anew_after_a_success() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..10).map(|_| backoff.refused() / 1_000_000).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
        backoff.reset();
        assert_eq!(backoff.refused(), 1_000_000);
    }
}
