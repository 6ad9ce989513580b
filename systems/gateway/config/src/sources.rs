//! The sources of mistakes: one file with one document.

use std::path::Path;

/// What to do about a second document in a file.
pub(crate) const ONE_DOCUMENT: &str = "remove the `---`";

/// The file as the only source of its mistakes.
pub(crate) fn sources(path: &Path, text: &str) -> Vec<yaml_with_places::Source> {
    vec![yaml_with_places::Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }]
}
