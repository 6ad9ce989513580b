//! `weigh book`: the documentation that was installed with the program, in the browser.

use std::fs;
use std::path::{Path, PathBuf};

use experiment::console::Console;
use experiment::environment;
use experiment::exit::{Exit, Failure};

/// Open the book: tutorial, guides and reference.
///
/// The archives and packages of `weigh` contain the book, so this command needs no network. In a clone of the
/// repository, `cargo xtask book` builds it first.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Page to open, such as `checks` or `guides/proxy`. Without it, the first page.
    #[arg(value_name = "PAGE")]
    page: Option<String>,
    /// Print the path and open nothing.
    #[arg(long)]
    path: bool,
}

const EXAMPLES: &str = "\
Examples:
  weigh book
  weigh book checks
  w3m \"$(weigh book --path)\"";

/// Folders of the book, relative to the folder of the program: an archive, a package, and a build in the repository.
const FOLDERS: [&str; 3] = ["book", "../share/doc/weigh/book", "../book"];

/// Variables of the environment that a desktop or a person sets if there is a browser.
const BROWSER_VARIABLES: [&str; 3] = ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"];

/// Prints the path of the page, and opens it if a browser can be expected.
///
/// # Errors
///
/// Fails if the book is not installed, or if it has no such page.
pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    let program = environment::own_path().and_then(fs::canonicalize);
    let program = program.map_err(|error| Failure::bug(format!("own path unknown: {error}")))?;
    let page = find(&program, args.page.as_deref())?;
    console.answer(&format!("{}\n", page.display()));
    let has_browser = BROWSER_VARIABLES
        .iter()
        .any(|name| environment::inherited(name).is_some_and(|value| !value.is_empty()));
    if args.path || !has_browser {
        return Ok(Exit::Done);
    }
    open::that_detached(&page).map_err(|error| {
        Failure::not_ready(format!(
            "no browser can be started ({error}). Open `{}` yourself",
            page.display()
        ))
    })?;
    Ok(Exit::Done)
}

/// The file of a page. `program` is the path of the running program.
fn find(program: &Path, page: Option<&str>) -> Result<PathBuf, Failure> {
    let near = program.parent().unwrap_or(program);
    let book = FOLDERS
        .iter()
        .map(|folder| near.join(folder))
        .find(|folder| folder.join("index.html").is_file());
    let Some(book) = book.and_then(|folder| fs::canonicalize(folder).ok()) else {
        return Err(Failure::not_ready(format!(
            "the book is not installed next to `{}`. In a clone of the repository, build it with \
             `cargo xtask book`",
            program.display()
        )));
    };
    let Some(page) = page else {
        return Ok(book.join("index.html"));
    };
    let pages = pages(&book.join("docs"));
    let name = page.trim_end_matches(".md").trim_end_matches(".html");
    // `proxy` is enough for `guides/proxy`.
    let end = format!("/{name}");
    let known = pages.iter().find(|known| *known == name);
    if let Some(known) = known.or_else(|| pages.iter().find(|known| known.ends_with(&end))) {
        return Ok(book.join("docs").join(format!("{known}.html")));
    }
    Err(Failure::bad_input(format!(
        "the book has no page `{page}`. Expected one of {}",
        pages.join(", ")
    )))
}

/// Names of the pages in a folder and its folders, sorted: `checks`, `guides/proxy`.
fn pages(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for path in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.path())
    {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            names.extend(pages(&path).iter().map(|page| format!("{name}/{page}")));
        } else if path.extension().is_some_and(|it| it == "html") {
            names.push(name);
        }
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a program and a book at `book`.
    fn installed(program: &str, book: &str) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join(program);
        let book = root.path().join(book);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::create_dir_all(book.join("docs/guides")).unwrap();
        for file in ["index.html", "docs/checks.html", "docs/guides/proxy.html"] {
            fs::write(book.join(file), "").unwrap();
        }
        (root, program)
    }

    #[test]
    fn the_book_of_an_archive_a_package_and_a_clone_is_found() {
        for (program, book) in [
            ("weigh-0.1.0/weigh", "weigh-0.1.0/book"),
            ("usr/bin/weigh", "usr/share/doc/weigh/book"),
            ("target/release/weigh", "target/book"),
        ] {
            let (root, program) = installed(program, book);
            let first = find(&program, None).unwrap();
            let expected = root.path().canonicalize().unwrap().join(book);
            assert_eq!(first, expected.join("index.html"));
            let checks = find(&program, Some("checks")).unwrap();
            assert_eq!(checks, expected.join("docs/checks.html"));
            for name in ["guides/proxy", "proxy", "guides/proxy.md"] {
                let proxy = find(&program, Some(name)).unwrap();
                assert_eq!(proxy, expected.join("docs/guides/proxy.html"));
            }
        }
    }

    #[test]
    fn a_missing_book_and_a_missing_page_are_named() {
        let (_root, program) = installed("weigh/weigh", "weigh/book");
        let wrong = find(&program, Some("chekcs")).unwrap_err();
        assert_eq!(wrong.exit, Exit::BadInput);
        assert!(
            wrong.message.contains("no page `chekcs`")
                && wrong.message.contains("checks, guides/proxy"),
            "{}",
            wrong.message
        );
        let lost = find(Path::new("/nowhere/weigh"), None).unwrap_err();
        assert_eq!(lost.exit, Exit::NotReady);
        assert!(
            lost.message.contains("cargo xtask book"),
            "{}",
            lost.message
        );
    }
}
