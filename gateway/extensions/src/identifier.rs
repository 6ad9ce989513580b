//! Random identifiers.

use gateway_telemetry::random_bytes;

/// A random number from the whole range of `u64`.
#[must_use]
pub fn random() -> u64 {
    u64::from_le_bytes(random_bytes())
}

/// A version 4 UUID, lower-case and with hyphens.
pub(crate) fn uuid_v4() -> String {
    let uuid = uuid::Builder::from_random_bytes(random_bytes()).into_uuid();
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    uuid.hyphenated().encode_lower(&mut text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// More identifiers than the pool of random bytes holds at a time.
    const MANY: usize = 3 * 128;

    #[test]
    fn identifiers_are_version_4_and_all_different() {
        let all: HashSet<String> = (0..MANY).map(|_| uuid_v4()).collect();
        assert_eq!(all.len(), MANY);
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
