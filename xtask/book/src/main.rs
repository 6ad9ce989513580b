//! Builds the book: the pages that `docs/SUMMARY.md` lists, as HTML with a search.
//!
//! mdBook shows only files below one folder. The pages of this repository stay next to the code that they describe.
//! So this program copies them into a temporary folder with the same tree, and mdBook reads the copy.

mod check;
mod links;
mod pages;
mod split;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Parser as _;
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

/// Build the book and check its links
#[derive(Debug, clap::Parser)]
struct Args {
    /// Folder of the HTML pages. Its old content is deleted
    #[arg(long, value_name = "FOLDER", default_value = "target/book")]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let root = repository();
    let out = root.join(&args.out);
    build(&root, &out)?;
    #[expect(clippy::print_stdout, reason = "the place of the book is the result")]
    {
        println!("{}", out.join("index.html").display());
    }
    Ok(())
}

/// The root of the repository, two folders above this crate.
fn repository() -> PathBuf {
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
fn build(root: &Path, out: &Path) -> anyhow::Result<()> {
    let stage = tempfile::tempdir()?;
    let pages = pages::read(root)?;
    pages::write(root, &pages, stage.path())?;
    let mut config = Config::from_disk(root.join("docs/book.toml"))
        .context("docs/book.toml is not a configuration of mdBook")?;
    config.book.src = PathBuf::from(".");
    config.build.build_dir = out.to_path_buf();
    MDBook::load_with_config(stage.path(), config)?.build()?;
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
