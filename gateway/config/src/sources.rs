//! The source of all messages: one file with one document.

use std::path::Path;

/// Help text for a file with a second document.
pub(crate) const ONE_DOCUMENT: &str = "remove the `---`";

/// The file as the only source of its messages.
pub(crate) fn sources(path: &Path, text: &str) -> Vec<yaml_with_places::Source> {
    vec![yaml_with_places::Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }]
}
