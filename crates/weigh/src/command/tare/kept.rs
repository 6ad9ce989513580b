//! The noise floor as it is kept between runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use report::summary::VariantSummary;
use report::{Metric, Summary};
use serde::{Deserialize, Serialize};

use super::doctor::Finding;
use super::floor::Floor;
use crate::environment;

/// What `weigh tare` found: its JSON, and the file in which later labs find it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tare {
    /// When it was made, RFC 3339 in UTC.
    pub(crate) made_at: String,
    /// The machine it holds for.
    pub(crate) machine: MachineName,
    pub(crate) requests_per_s: f64,
    pub(crate) rounds: usize,
    /// Length of each of the two measurements of a round.
    pub(crate) measurement_ms: u64,
    pub(crate) cpu_us_per_request: f64,
    /// By the name of the figure.
    pub(crate) floors: BTreeMap<String, Floor>,
    pub(crate) findings: Vec<Finding>,
}

/// What must be the same for a tare to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MachineName {
    pub(crate) cpu_model: Option<String>,
    pub(crate) cores: usize,
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

/// Where the tare of this user lies; `None` without a home.
pub(crate) fn place() -> Option<PathBuf> {
    environment::state_folder().map(|folder| folder.join("weighbridge").join("tare.json"))
}

impl Tare {
    /// Keeps it for later labs.
    pub(super) fn keep(&self) -> Result<PathBuf, String> {
        let path = place().ok_or("neither XDG_STATE_HOME nor HOME is set")?;
        let folder = path.parent().unwrap_or(&path);
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text + "\n"))
            .map_err(|error| format!("`{}`: {error}", path.display()))?;
        Ok(path)
    }

    /// The tare that was kept, if it was made on this machine.
    pub(crate) fn kept(machine: &rig::machine::Machine) -> Option<Tare> {
        let text = fs::read_to_string(place()?).ok()?;
        let tare: Tare = serde_json::from_str(&text).ok()?;
        (tare.machine == MachineName::of(machine)).then_some(tare)
    }

    /// One line for reports.
    pub(crate) fn line(&self) -> Option<String> {
        let floor = |name: &str| Some(self.floors.get(name)?.floor_us);
        Some(format!(
            "{:.1} us mean, {:.1} us p50, {:.1} us p99 at {}/s ({} rounds, {})",
            floor("latency mean")?,
            floor("latency p50")?,
            floor("latency p99")?,
            self.requests_per_s,
            self.rounds,
            self.made_at.get(..10).unwrap_or(&self.made_at),
        ))
    }

    /// Names the variants whose mean latency differs from the baseline's by less than the floor.
    pub(crate) fn below_floor(&self, summary: &Summary) -> Vec<String> {
        let Some(floor) = self.floors.get("latency mean") else {
            return Vec::new();
        };
        let is_below = |row: &&VariantSummary| {
            let difference_us = mean_overhead_us(row);
            difference_us.is_some_and(|us| us.abs() < floor.floor_us)
        };
        let rows = summary.variants.iter().filter(|row| !row.is_baseline);
        rows.filter(is_below).map(|row| row.name.clone()).collect()
    }
}

/// A variant's mean latency minus the baseline's.
fn mean_overhead_us(row: &VariantSummary) -> Option<f64> {
    let overhead = row.metrics.get(&Metric::Mean)?.overhead.as_ref()?;
    Some(overhead.difference)
}
