//! The state of reading a lab: the texts of its files, and the mistakes found.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use yaml_with_places::{Findings, Node, Place, Source};

/// The source of labs and of the files that they name.
pub trait Files {
    /// Returns the content of a file.
    ///
    /// # Errors
    /// The reason that it cannot be read, as one sentence for the author of the lab.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String>;

    /// Returns the paths of the files of a folder, each beginning with `folder`, in any order.
    ///
    /// # Errors
    /// The reason that it cannot be listed (absent, or not a folder), as one sentence.
    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String>;

    /// Returns a path that does not depend on the current folder, for `{{lab.folder}}`.
    fn absolute(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// Returns the path of the running program, for `{{weigh}}`.
    fn program(&self) -> PathBuf {
        PathBuf::from("weigh")
    }
}

/// Files, texts and mistakes of the lab that is being read.
pub(crate) struct Reading<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) sources: Vec<Source>,
    pub(crate) findings: Findings,
    /// True if a part of the lab could not be read. A missing name may then be in that part.
    pub(crate) has_gaps: bool,
    /// Files that are already read, because two includes may share a third.
    pub(crate) trees: HashMap<PathBuf, Option<Node>>,
    /// The files being read, each included by the previous file.
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

    /// Returns the base folder for relative paths at this place.
    pub(crate) fn folder(&self, place: Place) -> PathBuf {
        self.sources
            .get(place.source)
            .and_then(|source| source.path.parent())
            .map(Path::to_owned)
            // A path without a parent is relative to the working folder of `weigh`.
            .unwrap_or_default()
    }

    /// Returns a path at this place in the form of the caller's files.
    pub(crate) fn resolve(&self, written: &str, place: Place) -> PathBuf {
        tidy(&self.folder(place).join(written))
    }

    /// Returns the place of a reference within the value at `place`.
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
        // A value with escapes may not contain that text. The whole value is close enough.
        found().unwrap_or(place)
    }

    /// Returns the text of a file, or its mistake.
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

    /// Adds a source and returns the place of its beginning.
    pub(crate) fn source(&mut self, path: &Path, text: String) -> Place {
        let source = Source {
            path: path.to_owned(),
            text,
        };
        // A file of requests is read for every variant.
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

/// Returns a path without `.` and, after a folder, without `..`. Links are not followed, because this crate
/// has no file system.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    // Only the text of the path counts, because this crate has no file system. A link in the path is not
    // followed.
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                // Only a name can be removed: `../..` leads further up.
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
