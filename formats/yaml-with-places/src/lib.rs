//! YAML files that people write by hand: read so that every mistake has its line, and all mistakes
//! are found in one run.
//!
//! 1. [`read`] turns text into a tree whose every key and value knows its place;
//! 2. [`Structure::check`] checks the tree against a JSON Schema: unknown keys with the nearest known
//!    one, wrong types, values of a wrong form;
//! 3. the tree is a serde deserializer, with [`At`], [`OneOrMany`] and [`Json`] for fields that ask
//!    for more than serde knows; [`Node::json`] gives it as one JSON value instead;
//! 4. [`Findings::settle`] turns what was found into [`Mistakes`], which can be printed with the
//!    lines of the file.
//!
//! Each step adds to one list of findings and goes on. What the keys mean, and what a value of a
//! form is (`30s`, a URL), is up to the caller: the schema names forms, [`FormatCheck`] reads them.
//!
//! Absent on purpose: files, the environment, and merging of several files.

mod decode;
mod fields;
mod mistake;
mod reader;
mod structure;
mod suggestion;
mod tree;

pub use fields::{At, Json, OneOrMany, quote};
pub use mistake::{Finding, Findings, Mistake, Mistakes, Related, Source, line_and_column};
pub use reader::{Document, read};
pub use structure::{Blank, FormatCheck, Misspelling, Structure, missing};
pub use suggestion::{did_you_mean, nearest};
pub use tree::{Entry, Kind, Node, Place, Value, scalar};
