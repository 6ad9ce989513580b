//! Random identifiers.

use std::cell::RefCell;

use ring::rand::{SecureRandom, SystemRandom};

/// One system call pays for this many identifiers.
const POOLED: usize = 128;

struct Pool {
    bytes: [u8; POOLED * 16],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const {
        RefCell::new(Pool { bytes: [0; POOLED * 16], used: POOLED * 16 })
    };
}

/// An evenly distributed number.
#[must_use]
pub fn random() -> u64 {
    let [bytes @ .., _, _, _, _, _, _, _, _] = pooled();
    u64::from_le_bytes(bytes)
}

/// A version 4 UUID, lower-case and with hyphens.
pub(crate) fn uuid_v4() -> String {
    let uuid = uuid::Builder::from_random_bytes(pooled()).into_uuid();
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    uuid.hyphenated().encode_lower(&mut text).to_owned()
}

/// Sixteen random bytes.
pub(crate) fn pooled() -> [u8; 16] {
    POOL.with_borrow_mut(|pool| {
        // One fill for many identifiers: a system call per request would cost more than the rest of
        // its identifier.
        if pool.used == pool.bytes.len() {
            SystemRandom::new()
                .fill(&mut pool.bytes)
                .expect("the operating system gives random bytes");
            pool.used = 0;
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&pool.bytes[pool.used..pool.used + 16]);
        pool.used += 16;
        bytes
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn identifiers_are_version_4_and_all_different() {
        let all: HashSet<String> = (0..3 * POOLED).map(|_| uuid_v4()).collect();
        assert_eq!(all.len(), 3 * POOLED);
        for id in all {
            let bytes = id.as_bytes();
            assert_eq!(
                (bytes[8], bytes[13], bytes[14], bytes[18]),
                (b'-', b'-', b'4', b'-')
            );
            assert!(b"89ab".contains(&bytes[19]), "{id}");
        }
    }
}
