//! The subcommands, one file each.

pub(crate) mod ab;
pub(crate) mod bisect;
pub(crate) mod book;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod generator;
pub(crate) mod history;
pub(crate) mod init;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod man_pages;
pub(crate) mod merge;
pub(crate) mod null_server;
pub(crate) mod pr;
mod recording_file;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod tare;
pub(crate) mod up;
