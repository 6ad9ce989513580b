//! Pages of the book: the list, their texts, and the copy that mdBook reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::paths;
use crate::split;

/// The list of all pages.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// Pages that become one page for each heading of the second level.
const SPLIT: [&str; 1] = ["docs/labs.md"];

/// The pages of a book, ready to be written.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The list, with paths from the root of the repository.
    pub(crate) summary: String,
    /// Text by path from the root of the repository.
    pub(crate) texts: BTreeMap<PathBuf, String>,
    /// New places of headings that moved to a page of their own: `(page, heading)` to page.
    pub(crate) moved: BTreeMap<(PathBuf, String), PathBuf>,
}

/// Reads the list and all its pages.
///
/// # Errors
///
/// Fails if the list or one of its pages cannot be read.
pub(crate) fn read(root: &Path) -> anyhow::Result<Pages> {
    let list = fs::read_to_string(root.join(SUMMARY))
        .with_context(|| format!("{SUMMARY} cannot be read"))?;
    let mut pages = Pages {
        summary: String::new(),
        texts: BTreeMap::new(),
        moved: BTreeMap::new(),
    };
    for line in list.lines() {
        let Some(entry) = Entry::of(line) else {
            pages.summary += line;
            pages.summary.push('\n');
            continue;
        };
        let path = paths::resolve(Path::new(SUMMARY), entry.target)
            .with_context(|| format!("{SUMMARY} leads out of the repository: {line}"))?;
        let text = fs::read_to_string(root.join(&path)).with_context(|| {
            format!("{SUMMARY} lists `{}`, which cannot be read", path.display())
        })?;
        pages.add(&entry, path, text)?;
    }
    Ok(pages)
}

impl Pages {
    /// Adds a page, and its parts if it is split.
    fn add(&mut self, entry: &Entry<'_>, path: PathBuf, text: String) -> anyhow::Result<()> {
        self.list(entry.before, entry.title, &path);
        let is_split = SPLIT.iter().any(|name| Path::new(name) == path);
        if !is_split {
            return self.insert(path, text);
        }
        let whole = split::by_heading(&text);
        let stem = path.with_extension("");
        let mut contents = whole.start;
        contents += "\n## All groups\n\n";
        for part in whole.parts {
            let page = PathBuf::from(format!("{}-{}.md", stem.display(), part.id));
            let name = page.file_name().unwrap_or_default().to_string_lossy();
            contents += &format!("* [{}]({name})\n", part.title);
            self.list(&format!("  {}", entry.before), &part.title, &page);
            for heading in &part.headings {
                self.moved
                    .insert((path.clone(), heading.clone()), page.clone());
            }
            self.insert(page, part.text)?;
        }
        self.insert(path, contents)
    }

    fn list(&mut self, before: &str, title: &str, path: &Path) {
        self.summary += &format!("{before}[{title}]({})\n", path.display());
    }

    fn insert(&mut self, path: PathBuf, text: String) -> anyhow::Result<()> {
        let shown = path.display().to_string();
        let is_new = self.texts.insert(path, text).is_none();
        ensure!(is_new, "{SUMMARY} lists `{shown}` twice");
        Ok(())
    }
}

/// A line of the list that names a page.
struct Entry<'a> {
    /// Indentation and list mark.
    before: &'a str,
    title: &'a str,
    target: &'a str,
}

impl<'a> Entry<'a> {
    /// `None` for titles, separators and empty lines.
    fn of(line: &'a str) -> Option<Entry<'a>> {
        let start = line.find('[')?;
        let middle = line.find("](")?;
        let end = line.rfind(')')?;
        Some(Entry {
            before: line.get(..start)?,
            title: line.get(start + 1..middle)?,
            target: line.get(middle + 2..end)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with these files.
    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_list_has_paths_from_the_root() {
        let root = repository(&[
            (
                SUMMARY,
                "# Summary\n\n- [First](../README.md)\n  - [Load](load.md)\n",
            ),
            ("README.md", "# A"),
            ("docs/load.md", "# B"),
        ]);
        let pages = read(root.path()).unwrap();
        assert_eq!(
            pages.summary,
            "# Summary\n\n- [First](README.md)\n  - [Load](docs/load.md)\n"
        );
        assert_eq!(pages.texts.len(), 2);
    }

    #[test]
    fn a_missing_page_is_named() {
        let root = repository(&[(SUMMARY, "- [First](gone.md)\n")]);
        let error = format!("{:#}", read(root.path()).unwrap_err());
        assert!(error.contains("`docs/gone.md`"), "{error}");
    }

    #[test]
    fn a_page_that_is_listed_twice_is_named() {
        let root = repository(&[
            (SUMMARY, "- [First](load.md)\n- [Second](load.md)\n"),
            ("docs/load.md", "# B"),
        ]);
        let error = format!("{:#}", read(root.path()).unwrap_err());
        assert!(error.contains("lists `docs/load.md` twice"), "{error}");
    }
}
