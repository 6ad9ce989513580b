//! Digests that identify the content of a file.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of some bytes in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}
