//! The copy of the pages that mdBook reads.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::links;
use crate::pages::Pages;

/// Writes the pages, the list and the pictures below `stage`.
///
/// # Errors
///
/// Fails if a link leads to no file of the repository, or if a file cannot be written.
pub(crate) fn write(root: &Path, pages: &Pages, stage: &Path) -> anyhow::Result<()> {
    fs::write(stage.join("SUMMARY.md"), &pages.summary)?;
    for (path, text) in &pages.texts {
        let linked = links::of_book(root, pages, path, text)?;
        place(&stage.join(path), linked.text.as_bytes())?;
        for picture in linked.pictures {
            place(&stage.join(&picture), &fs::read(root.join(&picture))?)?;
        }
    }
    Ok(())
}

fn place(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| format!("`{}` cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{SUMMARY, read};

    /// A repository with these files.
    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            place(&root.path().join(path), text.as_bytes()).unwrap();
        }
        root
    }

    #[test]
    fn lab_keys_have_a_page_for_each_group() {
        let root = repository(&[
            (SUMMARY, "- [Keys](labs.md)\n- [Load](load.md)\n"),
            (
                "docs/labs.md",
                "# Keys\n\nStart.\n\n## `load`\n\nRates.\n\n### More\n\n## `expect`\n\nSee [rates](#load).\n",
            ),
            ("docs/load.md", "See [more](labs.md#more).\n"),
        ]);
        let pages = read(root.path()).unwrap();
        assert!(
            pages.summary.contains("  - [`load`](docs/labs-load.md)\n"),
            "{}",
            pages.summary
        );
        let stage = tempfile::tempdir().unwrap();
        write(root.path(), &pages, stage.path()).unwrap();
        let text = |path: &str| fs::read_to_string(stage.path().join(path)).unwrap();
        assert_eq!(text("docs/load.md"), "See [more](labs-load.md#more).\n");
        assert!(text("docs/labs-expect.md").contains("[rates](labs-load.md#load)"));
        assert!(text("docs/labs.md").contains("* [`expect`](labs-expect.md)"));
    }
}
