//! What is known of a lab while its files are read: their texts, and the mistakes found so far.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use yaml_with_places::{Findings, Node, Place, Source};

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

/// What was read so far: files, texts and mistakes.
pub(crate) struct Reading<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) sources: Vec<Source>,
    pub(crate) findings: Findings,
    /// Whether a part of the lab could not be read, so that what is not found may be there.
    pub(crate) has_gaps: bool,
    /// Files that are read already: two includes may share a third.
    pub(crate) trees: HashMap<PathBuf, Option<Node>>,
    /// The files being read, each included by the one before.
    pub(crate) open: Vec<PathBuf>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(files: &'a dyn Files) -> Reading<'a> {
        Reading {
            files,
            sources: Vec::new(),
            findings: Findings::default(),
            has_gaps: false,
            trees: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// The folder that paths written at this place are relative to.
    pub(crate) fn folder(&self, place: Place) -> PathBuf {
        self.sources
            .get(place.source)
            .and_then(|source| source.path.parent())
            .map(Path::to_owned)
            // A path without a parent is relative to where `weigh` runs.
            .unwrap_or_default()
    }

    /// A path written at this place, as the caller's files know it.
    pub(crate) fn resolve(&self, written: &str, place: Place) -> PathBuf {
        tidy(&self.folder(place).join(written))
    }

    /// The place of a reference within the value that stands at `place`.
    pub(crate) fn reference(&self, place: Place, index: usize) -> Place {
        let found = || {
            let text = self
                .sources
                .get(place.source)?
                .text
                .get(place.start..place.end)?;
            let (start, _) = text.match_indices("{{").nth(index)?;
            let length = text.get(start..)?.find("}}")? + 2;
            Some(Place {
                start: place.start + start,
                end: place.start + start + length,
                ..place
            })
        };
        // A value with escapes may have no such text; the whole value is near enough.
        found().unwrap_or(place)
    }

    /// The text of a file, or what is wrong with it.
    pub(crate) fn text(&self, path: &Path) -> Result<String, String> {
        let bytes = self
            .files
            .read(path)
            .map_err(|why| format!("cannot read `{}`: {why}", path.display()))?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("`{}` is not UTF-8 text: see byte {at}", path.display())
        })
    }

    /// Adds a source and gives the place of its beginning.
    pub(crate) fn source(&mut self, path: &Path, text: String) -> Place {
        let source = Source {
            path: path.to_owned(),
            text,
        };
        // A file of requests is looked at for every variant.
        let known = self.sources.iter().position(|known| *known == source);
        let source = known.unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        });
        Place {
            source,
            ..Place::default()
        }
    }
}

/// A path without `.` and, where a folder precedes it, without `..`. Links are not followed:
/// this room has no file system.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    // By its text alone, because this crate has no file system; a link in the path is not followed.
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                // Only a name can be taken back: `../..` leads further up.
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    if tidy.as_os_str().is_empty() {
        tidy.push(Component::CurDir);
    }
    tidy
}
