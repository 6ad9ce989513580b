//! Paths between pages, and identifiers of headings.

use std::path::{Component, Path, PathBuf};

/// The path of `target`, a link in `page`, from the root of the repository. `None` if it leads out of it.
pub(crate) fn resolve(page: &Path, target: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir if path.pop() => {}
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// The link from one page to another.
pub(crate) fn relative(from: &Path, to: &Path) -> String {
    let up = from
        .parent()
        .map_or(0, |folder| folder.components().count());
    let same = from
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .zip(to.components())
        .take_while(|(one, other)| one == other)
        .count();
    let rest: PathBuf = to.components().skip(same).collect();
    format!("{}{}", "../".repeat(up - same), rest.display())
}

/// The identifier that GitHub and mdBook derive from a heading.
pub(crate) fn heading_id(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim();
    title
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_links_go_up_and_down() {
        let of = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(of("docs/a.md", "docs/b.md"), "b.md");
        assert_eq!(of("README.md", "docs/b.md"), "docs/b.md");
        assert_eq!(of("a/b/c.md", "a/d.md"), "../d.md");
    }

    #[test]
    fn identifiers_are_those_of_github() {
        assert_eq!(heading_id("## `load.requests`"), "loadrequests");
        assert_eq!(heading_id("# What a run costs"), "what-a-run-costs");
    }
}
