//! Links of a page. They lead to another page of the book, to a picture, or to another site.
//!
//! A link to a file that is no page of the book (code, a lab) becomes plain text, because the book is read without
//! the repository.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};

use crate::pages::Pages;
use crate::paths::{relative, resolve};

/// A page with links that work in the book.
#[derive(Debug)]
pub(crate) struct Linked {
    pub(crate) text: String,
    /// Pictures of the page, from the root of the repository.
    pub(crate) pictures: BTreeSet<PathBuf>,
}

/// Rewrites the links of the page `path` for the book.
///
/// # Errors
///
/// Fails if a link leads to no file of the repository.
pub(crate) fn of_book(
    root: &Path,
    pages: &Pages,
    path: &Path,
    text: &str,
) -> anyhow::Result<Linked> {
    let mut linked = Linked {
        text: text.to_owned(),
        pictures: BTreeSet::new(),
    };
    let mut links = inline_links(text);
    // From the end, so that earlier ranges stay right.
    links.sort_by_key(|link| std::cmp::Reverse(link.range.start));
    for link in links {
        if link.target.contains(':') {
            continue;
        }
        let (file, heading) = link.target.split_once('#').unwrap_or((&link.target, ""));
        let target = if file.is_empty() {
            Some(source_of(path, pages))
        } else {
            resolve(path, file)
        };
        let target = target.with_context(|| {
            format!(
                "{}: `{}` leads out of the repository",
                path.display(),
                link.target
            )
        })?;
        if link.is_picture {
            ensure!(
                root.join(&target).is_file(),
                "{}: there is no picture `{}`",
                path.display(),
                target.display()
            );
            linked.pictures.insert(target);
            continue;
        }
        if let Some(page) = pages.moved.get(&(target.clone(), heading.to_owned())) {
            let name = relative(path, page);
            replace_target(&mut linked.text, &link, &format!("{name}#{heading}"));
        } else if !pages.texts.contains_key(&target) {
            ensure!(
                root.join(&target).exists(),
                "{}: the link `{}` leads to `{}`, which does not exist",
                path.display(),
                link.target,
                target.display()
            );
            let label = link_text(&linked.text, &link);
            linked.text.replace_range(link.range.clone(), &label);
        }
    }
    Ok(linked)
}

/// The page of the repository that contains a page of the book, or the page itself if it was not split.
fn source_of(path: &Path, pages: &Pages) -> PathBuf {
    let source = pages.moved.iter().find(|(_, page)| *page == path);
    source.map_or_else(|| path.to_path_buf(), |((source, _), _)| source.clone())
}

/// A link or picture within a text.
struct Link {
    range: Range<usize>,
    target: String,
    is_picture: bool,
}

/// All links and pictures of the form `[text](target)`.
fn inline_links(text: &str) -> Vec<Link> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    events
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link {
                link_type: LinkType::Inline,
                dest_url,
                ..
            }) => Some(Link {
                range,
                target: dest_url.into_string(),
                is_picture: false,
            }),
            Event::Start(Tag::Image { dest_url, .. }) => Some(Link {
                range,
                target: dest_url.into_string(),
                is_picture: true,
            }),
            _ => None,
        })
        .collect()
}

/// The text of a link, without brackets and target.
fn link_text(text: &str, link: &Link) -> String {
    let whole = text.get(link.range.clone()).unwrap_or_default();
    let label = whole.strip_prefix('[').unwrap_or(whole);
    let end = label.rfind("](").unwrap_or(label.len());
    label.get(..end).unwrap_or_default().to_owned()
}

fn replace_target(text: &mut String, link: &Link, target: &str) {
    let label = link_text(text, link);
    text.replace_range(link.range.clone(), &format!("[{label}]({target})"));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// `text` as the page `docs/a.md` of a book with one more page, `docs/b.md`, in a repository with `code.rs`.
    fn linked(text: &str) -> anyhow::Result<Linked> {
        let root = tempfile::tempdir().unwrap();
        for file in ["code.rs", "picture.png"] {
            std::fs::write(root.path().join(file), "").unwrap();
        }
        let texts = ["docs/a.md", "docs/b.md"].map(|it| (PathBuf::from(it), String::new()));
        let pages = Pages {
            summary: String::new(),
            texts: BTreeMap::from(texts),
            moved: BTreeMap::new(),
        };
        of_book(root.path(), &pages, Path::new("docs/a.md"), text)
    }

    #[test]
    fn links_to_pages_and_other_hosts_stay() {
        let text = "[b](b.md#x), [host](https://example.org/), `[no](gone.md)`\n";
        assert_eq!(linked(text).unwrap().text, text);
    }

    #[test]
    fn a_link_to_code_becomes_its_text() {
        let found = linked("See [`code.rs`](../code.rs) and [b](b.md).").unwrap();
        assert_eq!(found.text, "See `code.rs` and [b](b.md).");
    }

    #[test]
    fn a_picture_comes_along() {
        let found = linked("![a picture](../picture.png)").unwrap();
        assert_eq!(
            found.pictures,
            BTreeSet::from([PathBuf::from("picture.png")])
        );
    }

    #[test]
    fn a_link_to_no_file_is_named() {
        let error = linked("[x](gone.md)").unwrap_err().to_string();
        assert!(
            error.contains("leads to `docs/gone.md`, which does not exist"),
            "{error}"
        );
        let error = linked("[x](../../gone.md)").unwrap_err().to_string();
        assert!(error.contains("leads out of the repository"), "{error}");
    }
}
