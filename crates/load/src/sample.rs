//! Encoded bodies that are decoded after the load.

/// The largest number of kept bodies of one thread.
const KEPT_MAX: usize = 64;

/// The largest size of the kept bodies together, unless a single body is larger.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// An evenly spaced sample of bodies: every body at first, and every second of the kept bodies whenever there
/// are too many.
pub(crate) struct Sample {
    kept: Vec<Kept>,
    bytes: usize,
    offered: u64,
    /// One of this number of bodies is kept.
    stride: u64,
}

/// One body with its slot.
pub(crate) struct Kept {
    pub(crate) slot: u64,
    /// Index of the request in the rotation, or of the step in the scenario.
    pub(crate) request: usize,
    pub(crate) done_ns: u64,
    pub(crate) body: Vec<u8>,
}

impl Sample {
    pub(crate) fn new() -> Sample {
        Sample {
            kept: Vec::new(),
            bytes: 0,
            offered: 0,
            stride: 1,
        }
    }

    /// Keeps the result of `make`, if it belongs to the sample.
    pub(crate) fn offer(&mut self, make: impl FnOnce() -> Kept) {
        let is_its_turn = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !is_its_turn {
            return;
        }
        let kept = make();
        self.bytes += kept.body.len();
        self.kept.push(kept);
        while self.kept.len() > KEPT_MAX || (self.bytes > BYTES_MAX && self.kept.len() > 1) {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.bytes = self.kept.iter().map(|kept| kept.body.len()).sum();
            self.stride *= 2;
        }
    }

    pub(crate) fn into_kept(self) -> Vec<Kept> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(answers: u64, body_bytes: usize) -> Vec<u64> {
        let mut sample = Sample::new();
        for slot in 0..answers {
            sample.offer(|| Kept {
                slot,
                request: 0,
                done_ns: 0,
                body: vec![0; body_bytes],
            });
        }
        sample
            .into_kept()
            .into_iter()
            .map(|kept| kept.slot)
            .collect()
    }

    #[test]
    fn a_sample_is_evenly_spaced_and_bounded() {
        assert_eq!(sampled(3, 10), [0, 1, 2]);
        assert_eq!(sampled(64, 10).len(), 64);
        let many = sampled(10_000, 10);
        assert!((32..=64).contains(&many.len()), "{}", many.len());
        let gaps: Vec<u64> = many.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
        assert!(many[many.len() - 1] + gaps[0] >= 10_000, "{many:?}");
    }

    #[test]
    fn large_bodies_are_few_and_one_is_always_kept() {
        let few = sampled(1000, 1024 * 1024);
        assert!((4..=8).contains(&few.len()), "{few:?}");
        assert_eq!(sampled(100, 20 * 1024 * 1024), [0]);
    }
}
