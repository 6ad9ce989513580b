//! The recording format, its analysis and its renderings.
//!
//! `weigh` fills a [`Recording`] and writes it as JSON. Everything a reader sees is derived from
//! that file alone: [`Summary::of`] computes, the renderers print, and `weigh report` can repeat
//! both on another machine or in a later year.
//!
//! Pure on purpose: no sockets, no clock, no environment, no files. Text in, text out.

mod digits;
mod hdr;
mod metric;
pub mod recording;
#[cfg(test)]
mod sample;
pub mod summary;

pub use hdr::Hdr;
pub use metric::{Metric, Unit};
pub use recording::{METHOD, ReadError, Recording};
pub use summary::{CONFIDENCE, Summary, Verdict};
