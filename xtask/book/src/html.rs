//! The pages as HTML, by mdBook.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

use crate::{check, pages, stage};

/// The root of the repository, two folders above this crate.
pub(crate) fn repository() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .unwrap_or(manifest)
        .to_path_buf()
}

/// Builds the book of the repository at `root` into `out`.
///
/// # Errors
///
/// Fails if a listed page is missing, if a link leads to a missing file or heading, or if `out` cannot be written.
pub(crate) fn build(root: &Path, out: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let pages = pages::read(root)?;
    stage::write(root, &pages, folder.path())?;
    let mut config = Config::from_disk(root.join("docs/book.toml"))
        .context("docs/book.toml is not a configuration of mdBook")?;
    config.book.src = PathBuf::from(".");
    config.build.build_dir = out.to_path_buf();
    MDBook::load_with_config(folder.path(), config)?.build()?;
    check::links(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every page of the repository's book is there, and every link of it leads somewhere.
    #[test]
    fn the_book_of_the_repository_builds() {
        let out = tempfile::tempdir().unwrap();
        build(&repository(), out.path()).unwrap();
        let index = std::fs::read_to_string(out.path().join("index.html")).unwrap();
        assert!(index.contains("Weighbridge"), "{index}");
        assert!(out.path().join("docs/labs-load.html").is_file());
        let searches = std::fs::read_dir(out.path())
            .unwrap()
            .filter_map(Result::ok)
            .any(|file| {
                file.file_name()
                    .to_string_lossy()
                    .starts_with("searchindex")
            });
        assert!(searches, "the book has no search index");
    }
}
