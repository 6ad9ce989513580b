//! Claims about lab files, made through the public API alone.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod against;
mod batches;
mod capacity;
mod choices;
mod compose;
mod config_files;
mod containers;
mod extends;
mod factors;
mod grpc;
mod levels;
mod load;
mod manifests;
mod meaning;
mod mistakes;
mod own_paths;
mod pods;
mod proof;
mod properties;
mod protocol;
mod replicas;
mod repository;
mod revisions;
mod scenario;
mod sent;
mod slices;
mod streams;
mod sweep;
mod systems;
mod together;
mod websocket;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lab::{Files, Lab, Mistakes};

/// A lab without mistakes, which tests change.
const LAB: &str = "\
question: What does b cost?
load:
  connections: 10
  duration: 1s
target: server
systems:
  server:
    settings: {stack: a}
    run: serve {{stack}} --listen {{addr}}
baseline: {name: a}
variants:
  - {name: b, with: {server.stack: b}}
";

/// A file system in memory.
#[derive(Debug, Default)]
struct Folder {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Folder {
    /// Returns a folder with the lab `labs/x.yaml`.
    fn with_lab(text: impl AsRef<[u8]>) -> Folder {
        Folder::default().file("labs/x.yaml", text)
    }

    fn file(mut self, path: &str, text: impl AsRef<[u8]>) -> Folder {
        self.files.insert(path.into(), text.as_ref().to_vec());
        self
    }

    fn parse(&self) -> Result<Lab, Mistakes> {
        lab::parse(Path::new("labs/x.yaml"), self)
    }

    /// Returns the mistakes as a person sees them.
    fn mistakes(&self) -> String {
        match self.parse() {
            Ok(_) => "no mistake".to_owned(),
            Err(mistakes) => mistakes.render(false),
        }
    }
}

impl Files for Folder {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let file = self.files.get(path).cloned();
        file.ok_or_else(|| "no such file".to_owned())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let inside = |path: &&PathBuf| path.parent() == Some(folder);
        let paths: Vec<PathBuf> = self.files.keys().filter(inside).cloned().collect();
        if paths.is_empty() {
            return Err("no such folder".to_owned());
        }
        Ok(paths)
    }
}

/// Returns the example lab with some of its text replaced.
fn changed(changes: &[(&str, &str)]) -> String {
    let mut text = LAB.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "the example has no `{from}`");
        text = text.replace(from, to);
    }
    text
}

/// Returns the mistakes of the example lab with some of its text replaced.
fn check(changes: &[(&str, &str)]) -> String {
    Folder::with_lab(changed(changes)).mistakes()
}

/// Returns the example lab with some of its text replaced, which must be correct.
fn lab(changes: &[(&str, &str)]) -> Lab {
    match Folder::with_lab(changed(changes)).parse() {
        Ok(lab) => lab,
        Err(mistakes) => panic!("{mistakes}"),
    }
}
