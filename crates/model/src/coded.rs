//! Counts of checked responses with a `Content-Encoding`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the content coding of plain bodies (RFC 9110, section 8.4.1).
pub const IDENTITY: &str = "identity";

/// Right answers with a `Content-Encoding`, by how their content was found right. Only of requests
/// whose rules look at the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodedAnswers {
    /// By the same bytes as an answer that was decoded.
    pub same_bytes: u64,
    /// By the checksum and the length at the end of a gzip body.
    pub checksum: u64,
    /// By decoding it when it came.
    pub decoded: u64,
    /// Not by itself: the bytes differ from answer to answer.
    pub differing: u64,
    /// Of `checksum` and `differing`, those that were decoded when the load was over.
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
