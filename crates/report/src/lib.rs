//! The renderings of recordings: text, Markdown, HTML, CSV, JSON, JUnit, and the layouts of other tools.
//!
//! A renderer takes a [`recording::Recording`] and its [`analysis::Summary`] and computes no figure. `weigh
//! report` can repeat each of them on another machine or in a later year.
//!
//! This crate is pure on purpose: no sockets, no clock, no environment, no files. Input and output are text.

#![warn(missing_docs)]

mod answer;
mod bodies;
mod cell;
mod comment;
mod comparison;
mod consequence;
mod course;
mod csv;
pub mod curve;
mod explain;
pub mod flame;
#[cfg(test)]
mod foreign_tests;
mod gates;
pub mod history;
mod html;
mod interim;
mod json;
mod junit;
mod layouts;
mod markdown;
mod sent;
mod single;
mod step;
mod table;
mod tables;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod words;
mod xml;

pub use comment::comment;
pub use comparison::{comparison_junit, comparison_markdown, comparison_text};
pub use csv::csv;
pub use html::{
    SoFar, curve as curve_page, history as history_page, html, html_so_far, html_waiting,
};
pub use interim::interim;
pub use json::{comparison_json, comparison_schema, json};
pub use junit::junit;
pub use layouts::{Layout, LayoutError};
pub use markdown::markdown;
pub use single::load_text;
pub use terminal::{Terminal, ascii, harmless, printable};
pub use text::{full_text, text, wrapped};
pub use words::{check_text, in_words, verdict_text, why};
