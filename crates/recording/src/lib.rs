//! The format of `recording.json`, which contains the data of one run.
//!
//! A recording contains observations and no conclusions: counts, lossless histograms, settings, versions and
//! the environment. The crate `analysis` draws the conclusions, so that an old recording profits from a
//! better analysis.
//!
//! The crate also reads the result files of other tools ([`import`]), merges recordings of several generators
//! ([`merge`]), and writes settings and numbers in words ([`describe`], [`digits`]). All crates above use the
//! same words.
//!
//! This crate is pure on purpose: no sockets, no clock, no environment, no files. Input and output are text.

#![warn(missing_docs)]

mod compared_with;
pub mod describe;
pub mod digits;
mod environment;
mod events;
mod factors;
mod file_name;
mod float;
mod hdr;
mod header;
pub mod import;
mod latency_means;
mod load;
mod merge;
mod network;
mod profile;
mod recording;
mod revisions;
mod round;
#[cfg(any(test, feature = "sample"))]
#[expect(
    clippy::cast_possible_truncation,
    reason = "made-up latencies need no care, and are far below the limits"
)]
pub mod sample;
mod until;
mod variant;
mod why;

pub use environment::{Environment, NoiseFloor};
pub use events::{EventsRecord, PositionRecord, SummedTimes, TimesRecord};
pub use factors::{FactorText, FactorsText, GeneratorText};
pub use file_name::file_name;
pub use float::float;
pub use hdr::Hdr;
pub use header::Header;
pub use import::{ForeignRun, ImportError};
pub use latency_means::LatencyMeans;
pub use load::{
    HttpText, LoadText, ProtocolText, RateChosen, RequestText, ResumptionText, TlsText,
    TriedVariant,
};
pub use merge::{MergeError, merge, merge_parts};
pub use network::{ClusterText, GeneratorRecord, NetworkRecord, NodeText, PlacedText};
pub use profile::{HotFunction, Profile};
pub use recording::{
    FileText, Format, Kind, LabText, METHOD, METHOD_OF_FIGURES, Measured, ReadError, Recording,
    Version,
};
pub use revisions::{Revision, Revisions};
pub use round::{
    Answers, InstanceUsage, LeftOut, LeftOutAnswers, MachineUse, RequestRecord, RoundPart,
    RoundRecord, SearchRecord, SearchStep, SlicesRecord, StepRecord, SystemUsage, Windows,
    latency_by_status,
};
pub use until::{DecidedText, GatesText, PilotText, UntilEnd, UntilText};
pub use variant::{
    EncodingRecord, KEEP_ALIVE, LimitsText, Proof, ProofAnswer, ProofSeen, SystemRecord,
    VariantRecord, VariantStatus,
};
pub use why::{SampledSystem, WaitKind, WhyLoad, WhyPair, WhyRecord, WhyUse};
