//! Lab files: YAML to a checked experiment, with all mistakes at once.
//!
//! A lab goes through five steps, one module each:
//!
//! 1. `yaml` turns text into a tree whose every node knows its place;
//! 2. `structure` holds the tree against the JSON Schema made from the structs of `wire`
//!    (unknown keys, wrong types, bad formats) and cuts out what is wrong;
//! 3. `include` merges the files of one lab, the including file winning key by key;
//! 4. `decode` reads what is left into the structs of `wire`;
//! 5. `load`, `requests`, `systems` and `variants` check what no schema can say, and build the
//!    [`Lab`].
//!
//! Every step adds to one list of mistakes and goes on, so that an author sees all of them in one
//! run; only text that is not YAML ends the reading of its file.
//!
//! Absent on purpose: the file system, the clock, the environment and sockets. Files are reached
//! through [`Files`], given by the caller.

mod experiment;
mod mistake;
mod text;

use std::path::{Path, PathBuf};

pub use experiment::{
    Expect, Lab, LabRequest, Limits, Probe, Ready, Setup, Source, System, Variant,
};
pub use mistake::{Mistake, Mistakes, Related};
pub use text::Text;

/// Where labs and the files they name are read from.
pub trait Files {
    /// The content of a file.
    ///
    /// # Errors
    /// Why it cannot be read, as one sentence for the author of the lab.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String>;

    /// The paths of the files of a folder, each beginning with `folder`, in any order.
    ///
    /// # Errors
    /// Why it cannot be listed (absent, or not a folder), as one sentence.
    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String>;
}

/// Reads a lab file with everything it includes and names, and checks all of it.
///
/// # Errors
/// Every mistake found; see [`Mistakes::render`].
pub fn parse(path: &Path, files: &dyn Files) -> Result<Lab, Mistakes> {
    let text = files.read(path);
    let mut findings = mistake::Findings::default();
    findings.add(mistake::Finding::new(
        mistake::Place::default(),
        match text {
            Ok(_) => "lab files are not understood yet".to_owned(),
            Err(why) => why,
        },
    ));
    let sources = vec![Source {
        path: path.to_owned(),
        text: String::new(),
    }];
    Err(findings
        .into_mistakes(sources)
        .expect("one mistake was just added"))
}
