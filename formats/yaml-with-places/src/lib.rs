//! Reads YAML files that people write by hand. Each mistake has its line, and one run finds all mistakes.
//!
//! 1. [`read`] turns text into a tree. Every key and value of the tree has its place.
//! 2. [`Structure::check`] checks the tree against a JSON Schema. It finds unknown keys, with the nearest
//!    known key, wrong types and malformed values.
//! 3. The tree is a serde deserializer. [`At`], [`OneOrMany`] and [`Json`] are for fields that need more
//!    than serde offers. [`Node::json`] returns the tree as one JSON value instead.
//! 4. [`Findings::settle`] turns the findings into [`Mistakes`], which can be printed with the lines of
//!    the file.
//!
//! Each step adds to one list of findings and continues. The caller decides the meaning of keys and of
//! formatted values (`30s`, a URL). The schema names the formats, and [`FormatCheck`] parses them.
//!
//! Absent on purpose: files, the environment, and merging of several files.

#![warn(missing_docs)]

mod decode;
mod fields;
mod mistake;
mod reader;
mod structure;
mod suggestion;
mod tree;

pub use fields::{At, Json, OneOrMany, quote};
pub use mistake::{Finding, Findings, Mistake, Mistakes, Related, Source, line_and_column};
pub use reader::{Document, read, read_at_most};
pub use structure::{Blank, FormatCheck, Misspelling, Structure, missing};
pub use suggestion::{did_you_mean, nearest};
pub use tree::{Entry, Kind, Node, Place, Value, scalar};
