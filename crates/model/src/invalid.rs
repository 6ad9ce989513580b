//! Reasons why a variant has no number.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of problem that kept a variant from having a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvalidKind {
    /// The variant sent a wrong response.
    Mismatched,
    /// A proof showed that the variant did not do its work.
    NotProven,
    /// The variant did not become ready in time, or ended before.
    NotReady,
    /// A program that the variant needs is not installed.
    ProgramMissing,
    /// A build of the variant failed.
    BuildFailed,
    /// A system of the variant ended during the load.
    Crashed,
    /// The generator could not send the load.
    LoadFailed,
    /// The user stopped the run before the measurement of the variant.
    Interrupted,
    /// The variant has no problem, but there was no other variant left to compare with it.
    NotNeeded,
    /// The measured revision does not contain the variant.
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
