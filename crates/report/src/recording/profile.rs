//! Profile of a system's processor time, by sampling in rounds that do not count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What sampling one system of one variant came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// The variant.
    pub variant: String,
    /// The system's name in the lab.
    pub system: String,
    /// Samples taken while it had a processor, one every `1 / rate_hz` seconds of its time.
    pub samples: u64,
    /// Samples per second of processor time.
    pub rate_hz: u32,
    /// Processor time per complete answer in the sampled round, in microseconds; sampling itself is
    /// part of it. Absent where it could not be read.
    pub cpu_us_per_request: Option<f64>,
    /// The functions found at work most often, most first.
    pub hottest: Vec<HotFunction>,
    /// The drawings and the folded stacks, relative to the recording folder.
    pub files: Vec<String>,
    /// What is missing, and what to do about it: why there are no samples, or no names.
    pub missing: Option<String>,
}

/// One function of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HotFunction {
    /// Its name.
    pub function: String,
    /// Samples in which it was at work itself.
    pub own_samples: u64,
    /// Samples in which it, or what it had called, was at work.
    pub total_samples: u64,
}
