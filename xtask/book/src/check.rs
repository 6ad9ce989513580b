//! A check of the finished book: every local link leads to a file and to an element of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::paths::resolve;

/// Most links that an error lists.
const SHOWN_MAX: usize = 20;

/// Checks the links of all HTML pages below `book`.
///
/// # Errors
///
/// Fails with the list of links that lead to no file, or to no element of their file.
pub(crate) fn links(book: &Path) -> anyhow::Result<()> {
    let mut pages = BTreeMap::new();
    read(book, &mut pages)?;
    let ids: BTreeMap<&Path, BTreeSet<&str>> = pages
        .iter()
        .map(|(path, html)| (path.as_path(), attribute(html, "id").collect()))
        .collect();
    let mut broken = Vec::new();
    for (path, html) in &pages {
        // The page for missing addresses and the page for print have the links of other folders.
        if ["404.html", "print.html"]
            .iter()
            .any(|name| path.ends_with(name))
        {
            continue;
        }
        for target in attribute(content(html), "href") {
            if !leads_somewhere(path, target, &ids) {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    broken.dedup();
    ensure!(
        broken.is_empty(),
        "{} links of the book lead nowhere:\n{}",
        broken.len(),
        broken
            .iter()
            .take(SHOWN_MAX)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    Ok(())
}

/// True if `target`, a link in the page `from`, leads to a file, and to an element of it if it names one.
fn leads_somewhere(from: &Path, target: &str, ids: &BTreeMap<&Path, BTreeSet<&str>>) -> bool {
    if target.contains(':') {
        return true;
    }
    let (file, id) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => Some(from.to_path_buf()),
        file => resolve(from, file),
    };
    let Some(path) = path else {
        return false;
    };
    match ids.get(path.as_path()) {
        Some(ids) => id.is_empty() || ids.contains(id),
        None => path.is_file(),
    }
}

/// The text of the chapter, without the frame that mdBook puts around it.
fn content(html: &str) -> &str {
    let start = html.find("<main").unwrap_or(0);
    let end = html.find("</main>").unwrap_or(html.len());
    html.get(start..end).unwrap_or(html)
}

/// Values of all attributes of this name.
fn attribute<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let mark = format!(" {name}=\"");
    let mut rest = html;
    std::iter::from_fn(move || {
        let start = rest.find(&mark)? + mark.len();
        let after = rest.get(start..)?;
        let (value, tail) = after.split_once('"')?;
        rest = tail;
        Some(value)
    })
}

fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|it| it == "html") {
            let html = fs::read_to_string(&path)?;
            pages.insert(path, html);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a book with these two pages, or an empty text.
    fn error_of(first: &str, second: &str) -> String {
        let book = tempfile::tempdir().unwrap();
        fs::create_dir(book.path().join("docs")).unwrap();
        fs::write(
            book.path().join("index.html"),
            format!("<main>{first}</main>"),
        )
        .unwrap();
        fs::write(
            book.path().join("docs/a.html"),
            format!("<main>{second}</main>"),
        )
        .unwrap();
        links(book.path()).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn links_to_pages_and_headings_pass() {
        let first = "<a href=\"docs/a.html#x\">x</a> <a href=\"https://example.org\">y</a>";
        let second = "<h2 id=\"x\">x</h2> <a href=\"../index.html\">up</a> <a href=\"#x\">x</a>";
        assert_eq!(error_of(first, second), "");
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let error = error_of(
            "<a href=\"docs/a.html#y\">x</a> <a href=\"b.html\">y</a>",
            "",
        );
        assert!(error.contains("2 links"), "{error}");
        assert!(
            error.contains("docs/a.html#y") && error.contains("b.html"),
            "{error}"
        );
    }
}
