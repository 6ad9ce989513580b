//! Counts of checked responses with a `Content-Encoding`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the content coding of plain bodies (RFC 9110, section 8.4.1).
pub const IDENTITY: &str = "identity";

/// Right responses with a `Content-Encoding`, by the method that checked their content. Only requests with
/// rules about the body count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodedAnswers {
    /// The bytes are equal to an already decoded response.
    pub same_bytes: u64,
    /// The checksum and the length at the end of a gzip body are right.
    pub checksum: u64,
    /// The generator decoded the body when it arrived.
    pub decoded: u64,
    /// The body itself was not checked, because its bytes differ from response to response.
    pub differing: u64,
    /// Number of responses of `checksum` and `differing` that were decoded after the end of the load.
    pub sampled: u64,
}

impl CodedAnswers {
    /// Number of all checked responses.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.same_bytes + self.checksum + self.decoded + self.differing
    }

    /// Adds the counts of another thread or of another measurement.
    pub fn add(&mut self, other: &CodedAnswers) {
        self.same_bytes += other.same_bytes;
        self.checksum += other.checksum;
        self.decoded += other.decoded;
        self.differing += other.differing;
        self.sampled += other.sampled;
    }
}
