//! Measurements in the layouts of other tools, for scripts that already parse them.
//!
//! The layout is the other tool's. The meaning is ours if a field's name allows both. Latency is from due to
//! the last byte, failed requests have no latency and are counted, and quantiles come from lossless
//! histograms. A field that was not measured is left out. If a layout requires the field, it is 0. Each file
//! below documents its exceptions.
//!
//! A lab's variant is shown with all its complete rounds merged into one measurement.

mod ab;
mod artillery;
mod bombardier;
mod hgrm;
mod k6;
mod merged;
mod vegeta;

use analysis::summary::Summary;
use recording::{Kind, Recording};

use crate::words;
use merged::Merged;

/// A layout of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// HdrHistogram's percentile table, as wrk2 prints it and HdrHistogram's plotter reads it.
    Hgrm,
    /// ApacheBench's report.
    Ab,
    /// vegeta's text report.
    VegetaText,
    /// vegeta's JSON report.
    VegetaJson,
    /// k6's `--summary-export`.
    K6Json,
    /// bombardier's plain text with latencies.
    BombardierText,
    /// bombardier's JSON with latencies.
    BombardierJson,
    /// Artillery's `--output`.
    ArtilleryJson,
}

/// Reason why a recording cannot be rendered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The recording has no variant with this name.
    #[error("expected a variant of the recording, found `{name}`. The variants are {known}")]
    UnknownVariant {
        /// Requested name of a variant.
        name: String,
        /// Names of the recording's variants.
        known: String,
    },
    /// The variant has no number.
    #[error("`{variant}` has no figures to print: {verdict}")]
    NoNumber {
        /// Name of the variant.
        variant: String,
        /// Verdict of the variant.
        verdict: String,
    },
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 8] = [
        Self::Hgrm,
        Self::Ab,
        Self::VegetaText,
        Self::VegetaJson,
        Self::K6Json,
        Self::BombardierText,
        Self::BombardierJson,
        Self::ArtilleryJson,
    ];

    /// Name of the layout on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hgrm => "hgrm",
            Self::Ab => "ab",
            Self::VegetaText => "vegeta",
            Self::VegetaJson => "vegeta-json",
            Self::K6Json => "k6",
            Self::BombardierText => "bombardier",
            Self::BombardierJson => "bombardier-json",
            Self::ArtilleryJson => "artillery",
        }
    }

    /// Renders one variant of a recording. Without a name, it renders the baseline, which is the only
    /// measurement of a single load.
    ///
    /// # Errors
    /// When there is no such variant, or when it has no number.
    pub fn render(
        self,
        recording: &Recording,
        variant: Option<&str>,
    ) -> Result<String, LayoutError> {
        // A single load has one variant, which is its own baseline.
        let name = variant.unwrap_or(&recording.baseline);
        let summary = Summary::of(recording);
        let row = summary
            .variant(name)
            .ok_or_else(|| LayoutError::UnknownVariant {
                name: name.to_owned(),
                known: known(recording),
            })?;
        let merged = Merged::of(recording, name);
        // A single load that was stopped before its first response is rendered with zeros. A lab's row
        // without requests is not a measurement.
        if !row.has_number() || merged.latency.is_empty() && recording.kind == Kind::Lab {
            return Err(LayoutError::NoNumber {
                variant: name.to_owned(),
                verdict: words::verdict_text(row),
            });
        }
        Ok(match self {
            Self::Hgrm => hgrm::hgrm(&merged.latency),
            Self::Ab => ab::ab(&merged),
            Self::VegetaText => vegeta::text(&merged),
            Self::VegetaJson => vegeta::json(&merged),
            Self::K6Json => k6::json(&merged),
            Self::BombardierText => bombardier::text(&merged),
            Self::BombardierJson => bombardier::json(&merged),
            Self::ArtilleryJson => artillery::json(&merged),
        })
    }
}

fn known(recording: &Recording) -> String {
    let names: Vec<String> = recording
        .variants
        .iter()
        .map(|variant| format!("`{}`", variant.name))
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
