//! The noise floor in the form of a file, stored between runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use experiment::environment;
use recording::NoiseFloor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::floor::Floor;
use super::host_checks::Finding;

/// The result of `weigh tare`: its JSON output, and the file that later labs read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tare {
    /// Time of the measurement, RFC 3339 in UTC.
    pub(crate) made_at: String,
    /// The measured machine.
    pub(crate) machine: MachineName,
    /// Requests per second that the null server received.
    pub(crate) requests_per_s: f64,
    /// Number of rounds. Each round has two equal measurements.
    pub(crate) rounds: usize,
    /// Length of each of the two measurements of a round, in milliseconds.
    pub(crate) measurement_ms: u64,
    /// Processor time of the generator for each request, in microseconds.
    pub(crate) cpu_us_per_request: f64,
    /// Noise floors by the name of the figure.
    pub(crate) floors: BTreeMap<String, Floor>,
    /// Results of the checks of this machine.
    pub(crate) findings: Vec<Finding>,
}

/// Properties of a machine that must match before a lab uses a stored noise floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MachineName {
    /// The model name of the processor, if readable.
    pub(crate) cpu_model: Option<String>,
    /// Number of usable cores.
    pub(crate) cores: usize,
    /// The release of the kernel.
    pub(crate) kernel: String,
}

impl MachineName {
    pub(crate) fn of(machine: &rig::machine::Machine) -> MachineName {
        MachineName {
            cpu_model: machine.cpu_model.clone(),
            cores: machine.cpus_allowed,
            kernel: machine.kernel.clone(),
        }
    }
}

/// Path of the tare of this user. `None` without a home.
pub(crate) fn place() -> Option<PathBuf> {
    environment::state_folder().map(|folder| folder.join("weighbridge").join("tare.json"))
}

impl Tare {
    /// Stores the tare for later labs.
    pub(super) fn store(&self) -> Result<PathBuf, String> {
        let path = place().ok_or("neither XDG_STATE_HOME nor HOME is set")?;
        let folder = path.parent().expect("the file lies in a folder");
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text + "\n"))
            .map_err(|error| format!("`{}`: {error}", path.display()))?;
        Ok(path)
    }

    /// The stored tare, if it was made on this machine.
    pub(crate) fn stored(machine: &rig::machine::Machine) -> Option<Tare> {
        let text = fs::read_to_string(place()?).ok()?;
        // A tare of another version is ignored, because the user can make a new one.
        let tare: Tare = serde_json::from_str(&text).ok()?;
        (tare.machine == MachineName::of(machine)).then_some(tare)
    }

    /// The noise floor in the form of a report.
    pub(crate) fn noise_floor(&self) -> Option<NoiseFloor> {
        let floor = |name: &str| Some(self.floors.get(name)?.floor_us);
        Some(NoiseFloor {
            made_at: self.made_at.clone(),
            requests_per_s: self.requests_per_s,
            rounds: self.rounds,
            latency_us_mean: floor("latency mean")?,
            latency_us_p50: floor("latency p50")?,
            latency_us_p99: floor("latency p99")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use generated::assert_generated;

    use super::*;

    #[test]
    fn the_committed_schema_is_that_of_the_answer() {
        let schema = schemars::schema_for!(Tare);
        let schema = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        assert_generated("schemas/tare.schema.json", &schema);
    }
}
