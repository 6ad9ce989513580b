//! Profile of a system's processor time, by sampling in rounds that do not count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The samples of one system of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// The name of the variant.
    pub variant: String,
    /// The system's name in the lab.
    pub system: String,
    /// Number of samples. `weigh` takes one sample every `1 / rate_hz` seconds of the system's processor
    /// time.
    pub samples: u64,
    /// Samples per second of processor time.
    pub rate_hz: u32,
    /// Processor time per complete response in the sampled round, in microseconds. It includes the cost of
    /// sampling. Absent if it could not be read.
    pub cpu_us_per_request: Option<f64>,
    /// The functions with the most samples, in descending order.
    pub hottest: Vec<HotFunction>,
    /// The flame graphs and the folded stacks, as paths relative to the recording folder.
    pub files: Vec<String>,
    /// The reason why there are no samples or no names, with a remedy. Absent if the profile is complete.
    pub missing: Option<String>,
}

/// One function of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HotFunction {
    /// The name of the function.
    pub function: String,
    /// Number of samples in the function itself.
    pub own_samples: u64,
    /// Number of samples in the function or in a function that it called.
    pub total_samples: u64,
}
