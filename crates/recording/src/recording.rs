//! The data of one run, and the reading and writing of its file.
//!
//! Readers ignore unknown fields, so a newer `weigh` of the same [`METHOD`] may add some. A missing field,
//! another format and a newer method are errors.

use std::collections::BTreeSet;

use model::Order;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ClusterText, DecidedText, Environment, FactorsText, GatesText, KEEP_ALIVE, LoadText, Profile,
    Revisions, RoundRecord, UntilText, VariantRecord, WhyRecord,
};

/// Version of the method that measures: how load is sent, and how its times are taken and recorded. It is
/// raised if old and new recordings are no longer comparable. A recording contains the method that made it.
pub const METHOD: u32 = 3;

/// Version of the method that computes figures from the rounds of a recording. A recording contains raw
/// rounds, so each program computes the figures of all recordings by its own method, and names it. It is
/// raised if a figure of the same recording changes. Both methods share one sequence of numbers, so that
/// "method 4" has one meaning (docs/decisions/0014-two-methods.md).
pub const METHOD_OF_FIGURES: u32 = 4;

/// The data of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// The name of the format, which identifies the JSON of a recording.
    pub format: Format,
    /// The version of the method that measured and recorded. See `METHOD`.
    pub method: u32,
    /// The version of `weigh` that made the recording.
    pub weigh: Version,
    /// The kind of the run: a lab or a single load.
    pub kind: Kind,
    /// The command line of the run, program name first.
    pub command: Vec<String>,
    /// The lab file with its content. Absent for a single load.
    pub lab: Option<LabText>,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// End of the run, RFC 3339 in UTC.
    pub ended_at: String,
    /// True if the run ended before its last round: the user stopped it, or `ended_because` has the reason.
    /// The rounds measured before are kept.
    pub interrupted: bool,
    /// The reason why a cluster ended the run before its last round. Absent if the run was complete or the user
    /// stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<String>,
    /// The seed of the order of variants and of random arrivals.
    pub seed: u64,
    /// The planned order: the names of the variants in order, for each round.
    pub order: Vec<Vec<String>>,
    /// The order of the variants within a round. Absent for a single load, and in recordings of versions that
    /// only measured in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// The two revisions of a repository that the run compared. Absent if the run compared no revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<Revisions>,
    /// The stopping rule of the lab. Absent if the number of rounds was fixed.
    #[serde(default)]
    pub until: Option<UntilText>,
    /// The gates that end the run when they are decided. Absent without such gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<DecidedText>,
    /// The gates that judged the run. Absent without gates, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GatesText>,
    /// The machine, before and after the run.
    pub environment: Environment,
    /// The cluster that ran the lab. Absent if the lab ran on one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterText>,
    /// The intended load of every round.
    pub load: LoadText,
    /// The name of the baseline. If there are several baselines, the name of the first.
    pub baseline: String,
    /// The baseline and the variants in the order of the report, baseline first.
    pub variants: Vec<VariantRecord>,
    /// All measurements, in the order of their start.
    pub rounds: Vec<RoundRecord>,
    /// Profiles of systems, sampled in separate rounds. Empty without profiling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
    /// Samples for the cause of each difference, in separate rounds. Absent without `--why`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyRecord>,
}

/// The order of the variants within a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// The order: side by side, or in turn.
    pub order: Order,
    /// The reason for measuring in turn. Absent if the lab requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The groups of variants that ran together, each with its baselines. Empty if all variants ran together,
    /// and if rounds measured in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<String>>,
    /// The reason for several groups, with the measured figure. Absent without groups, and if the lab defines
    /// the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_because: Option<String>,
    /// True if each request left at any time of its gap, because the responses of all variants outlast the
    /// gap. Otherwise each variant has its own part of a gap, in random order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_at_any_time: bool,
}

impl Recording {
    /// True if all variants of a round used the machine at the same time. The figures of the other variants
    /// then show its speed.
    #[must_use]
    pub fn tells_pace(&self) -> bool {
        // A search ends at another rate for each variant, and at another moment.
        self.order_measured() == Order::SideBySide && self.load.capacity.is_none()
    }

    /// Order of the variants within a round.
    #[must_use]
    pub fn order_measured(&self) -> Order {
        self.measured
            .as_ref()
            .map_or(Order::InTurn, |measured| measured.order)
    }
}

/// The name of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Format {
    /// The format of a recording of `weigh`.
    #[serde(rename = "weighbridge-recording")]
    Recording,
}

/// The version of the program that made the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// The version of the release.
    pub version: String,
    /// The commit of the source code, if known.
    pub commit: Option<String>,
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `weigh lab`: variants against a baseline.
    Lab,
    /// `weigh load`: one target without a comparison. The only variant is the baseline.
    Load,
}

/// A lab, with the files that define it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabText {
    /// The name of the lab.
    pub name: String,
    /// The question that the lab answers.
    pub question: String,
    /// The path of the lab file, as the user wrote it.
    pub path: String,
    /// SHA-256 of the lab file, in hexadecimal.
    pub sha256: String,
    /// All files of the lab, the lab file first.
    pub files: Vec<FileText>,
    /// Names of variants that build on each other, in order. Absent without a ladder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladder: Vec<String>,
    /// The factorial design of the variants. Absent without factors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<FactorsText>,
}

/// One file of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileText {
    /// The path of the file, as the lab names it.
    pub path: String,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// The content. Absent if it is not text or too long to keep.
    pub text: Option<String>,
}

/// Reason why this `weigh` cannot read a file as a recording.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not JSON, a field is missing or has another type, or a histogram does not decode.
    #[error("the recording cannot be read: {0}. It may be cut off, or edited by hand")]
    Malformed(#[from] serde_json::Error),
    /// The file is JSON of another format.
    #[error(
        "expected `format` to be `weighbridge-recording`, found {found}. Is it a `recording.json` of `weigh`?"
    )]
    OtherFormat {
        /// The found value of `format`.
        found: String,
    },
    /// A newer `weigh` made the recording and computes numbers in another way.
    #[error(
        "expected a recording of method {METHOD} or older, found method {found}. Read it with `weigh` {weigh} or newer"
    )]
    NewerMethod {
        /// Method of the recording, larger than `METHOD`.
        found: u32,
        /// The version of the `weigh` that made it.
        weigh: String,
    },
}

/// The part of a recording that every method has.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: serde_json::Value,
    #[serde(default)]
    method: Option<u32>,
    #[serde(default)]
    weigh: serde_json::Value,
}

impl Recording {
    /// Reads a recording and checks its format, its method and every histogram.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        // This part comes first, because the rest of a newer recording may not be readable.
        let head: Head = serde_json::from_str(text)?;
        if head.format != "weighbridge-recording" {
            let found = match head.format {
                serde_json::Value::Null => "none".to_owned(),
                // A number or a list would not help the user to recognize the format.
                other => format!("`{}`", other.as_str().unwrap_or("something else")),
            };
            return Err(ReadError::OtherFormat { found });
        }
        if let Some(found) = head.method.filter(|method| *method > METHOD) {
            let weigh = head.weigh["version"]
                .as_str()
                // A recording without a version can still have a newer method.
                .unwrap_or("that made it")
                .to_owned();
            return Err(ReadError::NewerMethod { found, weigh });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Writes the recording as JSON with one field per line, so that two recordings can be diffed.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a recording has only text keys and finite numbers");
        text.push('\n');
        text
    }

    /// The JSON Schema of the format, committed at `schemas/recording.schema.json`.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Recording).to_value()
    }

    /// The record of a variant.
    pub fn variant(&self, name: &str) -> Option<&VariantRecord> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// True if connections to a variant were used for more than one request.
    #[must_use]
    pub fn keeps_connections(&self, variant: &str) -> bool {
        let own = self
            .variant(variant)
            .and_then(|variant| variant.with.get(KEEP_ALIVE));
        own.map_or(self.load.keep_alive, |switch| switch == "on")
    }

    /// Reason for measuring in turn. `None` if the lab requested it.
    #[must_use]
    pub fn in_turn_because(&self) -> Option<&str> {
        self.measured.as_ref()?.because.as_deref()
    }

    /// Reason for several groups. `None` if the run did not choose them.
    #[must_use]
    pub fn groups_because(&self) -> Option<&str> {
        self.measured.as_ref()?.groups_because.as_deref()
    }

    /// The groups of variants that ran together. Empty if all variants ran together, and in turn.
    #[must_use]
    pub fn groups(&self) -> &[Vec<String>] {
        self.measured
            .as_ref()
            .map_or(&[], |measured| &measured.groups)
    }

    /// Systems that all variants of a group share in one process.
    #[must_use]
    pub fn shared_systems(&self) -> Vec<String> {
        let systems = self.variants.iter().flat_map(|variant| &variant.systems);
        // A list keeps the order of the lab.
        let mut shared: Vec<String> = Vec::new();
        for system in systems.filter(|system| system.shared) {
            if !shared.contains(&system.name) {
                shared.push(system.name.clone());
            }
        }
        shared
    }

    /// The systems that ran on one core each, the same for all variants.
    #[must_use]
    pub fn placed_systems(&self) -> Vec<String> {
        let placed = self.rounds.iter().flat_map(|round| round.cores.keys());
        let placed: BTreeSet<&String> = placed.collect();
        placed.into_iter().cloned().collect()
    }

    /// Name of the variant's baseline. A baseline has its own name here.
    pub fn baseline_of<'a>(&'a self, variant: &'a VariantRecord) -> &'a str {
        variant.baseline.as_deref().unwrap_or(&self.baseline)
    }

    /// The measurements of a variant, in the order of their start.
    pub fn rounds_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a RoundRecord> {
        self.rounds
            .iter()
            .filter(move |round| round.variant == name)
    }
}

#[cfg(test)]
mod tests;
