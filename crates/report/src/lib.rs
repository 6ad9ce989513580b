//! The recording format, its analysis and the report formats.
//!
//! `weigh` fills a [`Recording`] and writes it as JSON. All reports are derived from that file alone.
//! [`Summary::of`] computes the figures, and the renderers print them. `weigh report` can repeat both on
//! another machine or in a later year.
//!
//! This crate is pure on purpose: no sockets, no clock, no environment, no files. Input and output are text.

#![warn(missing_docs)]

mod answer;
mod bodies;
mod cell;
mod comment;
mod company;
pub mod compare;
mod confidence;
mod csv;
pub mod curve;
mod describe;
mod digits;
mod explain;
pub mod flame;
mod float;
#[cfg(test)]
mod foreign_tests;
pub mod gate;
mod hdr;
pub mod history;
mod html;
pub mod import;
mod interim;
mod json;
mod junit;
mod layouts;
mod markdown;
mod merge;
mod metric;
mod pace;
pub mod quoted;
pub mod recording;
#[cfg(test)]
mod reference_tests;
#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "made-up latencies need no care, and are far below the limits"
)]
mod sample;
#[cfg(test)]
mod schema_tests;
mod sent;
mod single;
mod step;
pub mod summary;
mod table;
mod tables;
mod terminal;
mod text;
pub mod until;
mod xml;

pub use comment::comment;
pub use compare::Comparison;
pub use confidence::CONFIDENCE;
pub use csv::csv;
pub use gate::Gate;
pub use hdr::Hdr;
pub use html::{curve as curve_page, history as history_page, html};
pub use import::{ForeignRun, ImportError};
pub use interim::interim;
pub use json::json;
pub use junit::junit;
pub use layouts::{Layout, LayoutError};
pub use markdown::markdown;
pub use merge::{MergeError, merge, merge_parts};
pub use metric::{Metric, Unit};
pub use recording::{METHOD, ReadError, Recording};
pub use single::load_text;
pub use summary::{MetricSummary, Summary, Verdict, body_notes};
pub use terminal::{Terminal, ascii, harmless, printable};
pub use text::{full_text, text};
