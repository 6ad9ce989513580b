//! The ids of traces and spans, and random bytes for all identifiers of a worker.

use std::cell::RefCell;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::context::{SpanId, TraceId};

/// Bytes in the pool. One system call provides the identifiers of some hundred requests.
const POOLED: usize = 2048;

struct Pool {
    bytes: [u8; POOLED],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const {
        RefCell::new(Pool { bytes: [0; POOLED], used: POOLED })
    };
}

/// Random bytes for identifiers, from a pool of this thread. A system call for each would cost more than the
/// rest of an identifier. `N` is at most 2,048.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    const { assert!(N <= POOLED, "the pool holds that many") };
    POOL.with_borrow_mut(|pool| {
        if pool.bytes.len() - pool.used < N {
            SystemRandom::new()
                .fill(&mut pool.bytes)
                .expect("the operating system gives random bytes");
            pool.used = 0;
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&pool.bytes[pool.used..pool.used + N]);
        pool.used += N;
        bytes
    })
}

/// The id of a new trace, and the sequence of its span ids.
pub(crate) fn fresh() -> (TraceId, SpanIds) {
    let mut trace = random_bytes::<16>();
    // Zero is not a valid id. Its probability is 1 in 2^128.
    trace[15] |= u8::from(trace == [0; 16]);
    (TraceId(trace), SpanIds(u64::from_le_bytes(random_bytes())))
}

/// The span ids of one request: a sequence without repetition (SplitMix64) from a random start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanIds(u64);

impl SpanIds {
    pub(crate) fn next(&mut self) -> SpanId {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // Zero is not a valid id.
        SpanId(mixed.max(1).to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// More than three full pools.
    const TRACES: usize = 3 * POOLED / 16;

    #[test]
    fn traces_and_spans_have_ids_of_their_own() {
        let mut spans = HashSet::new();
        let mut traces = HashSet::new();
        for _ in 0..TRACES {
            let (trace, mut ids) = fresh();
            traces.insert(trace);
            spans.extend((0..100).map(|_| ids.next()));
        }
        assert_eq!((traces.len(), spans.len()), (TRACES, 100 * TRACES));
    }
}
