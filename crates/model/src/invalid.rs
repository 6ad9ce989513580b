//! Reasons why a variant has no number.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of thing kept a variant from having a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvalidKind {
    /// It answered, and wrongly.
    Mismatched,
    /// It was seen not to do its work.
    NotProven,
    /// It did not become ready in time, or ended before.
    NotReady,
    /// A program it needs is not installed.
    ProgramMissing,
    /// Its build failed.
    BuildFailed,
    /// A system of it ended while it was loaded.
    Crashed,
    /// The load itself could not be carried out.
    LoadFailed,
    /// The user stopped the run before it was measured.
    Interrupted,
    /// Nothing is wrong with it, and nothing was left to compare it with.
    NotNeeded,
    /// The revision that it was to be measured in does not have it.
    Absent,
}

/// The reason in few words, for a table.
impl fmt::Display for InvalidKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            InvalidKind::Mismatched => "mismatched",
            InvalidKind::NotProven => "not proven",
            InvalidKind::NotReady => "not ready",
            InvalidKind::ProgramMissing => "program missing",
            InvalidKind::BuildFailed => "build failed",
            InvalidKind::Crashed => "crashed",
            InvalidKind::LoadFailed => "load failed",
            InvalidKind::Interrupted => "interrupted",
            InvalidKind::NotNeeded => "not measured",
            InvalidKind::Absent => "not there",
        })
    }
}
