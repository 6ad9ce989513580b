//! The ids of traces and spans.

use std::cell::RefCell;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::context::{SpanId, TraceId};

/// One system call pays for this many traces.
const POOLED: usize = 64;
/// Bytes that a trace takes: its id, and where its spans begin.
const EACH: usize = 24;

struct Pool {
    bytes: [u8; POOLED * EACH],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const {
        RefCell::new(Pool { bytes: [0; POOLED * EACH], used: POOLED * EACH })
    };
}

/// The id of a new trace, and where the ids of its spans begin.
pub(crate) fn fresh() -> (TraceId, SpanIds) {
    POOL.with_borrow_mut(|pool| {
        if pool.used == pool.bytes.len() {
            SystemRandom::new()
                .fill(&mut pool.bytes)
                .expect("the operating system gives random bytes");
            pool.used = 0;
        }
        let (mut trace, mut seed) = ([0; 16], [0; 8]);
        let from = pool.used;
        trace.copy_from_slice(&pool.bytes[from..from + 16]);
        seed.copy_from_slice(&pool.bytes[from + 16..from + EACH]);
        pool.used += EACH;
        // Zero is no id. It comes once in 2^128 times.
        trace[15] |= u8::from(trace == [0; 16]);
        (TraceId(trace), SpanIds(u64::from_le_bytes(seed)))
    })
}

/// The ids of the spans of one request: a sequence that does not repeat (SplitMix64), from a random
/// beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanIds(u64);

impl SpanIds {
    pub(crate) fn next(&mut self) -> SpanId {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // Zero is no id.
        SpanId(mixed.max(1).to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn traces_and_spans_have_ids_of_their_own() {
        let mut spans = HashSet::new();
        let mut traces = HashSet::new();
        for _ in 0..3 * POOLED {
            let (trace, mut ids) = fresh();
            traces.insert(trace);
            spans.extend((0..100).map(|_| ids.next()));
        }
        assert_eq!((traces.len(), spans.len()), (3 * POOLED, 300 * POOLED));
    }
}
