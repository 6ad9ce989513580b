//! Builds the book: the pages that `docs/SUMMARY.md` lists, as HTML with a search.
//!
//! mdBook shows only files below one folder. The pages of this repository stay next to the code that they describe.
//! So this program copies them into a temporary folder with the same tree, and mdBook reads the copy.

mod check;
mod html;
mod links;
mod pages;
mod paths;
mod split;
mod stage;

use std::path::PathBuf;

use clap::Parser as _;

/// Build the book and check its links
#[derive(Debug, clap::Parser)]
struct Args {
    /// Folder of the HTML pages. Its old content is deleted
    #[arg(long, value_name = "FOLDER", default_value = "target/book")]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let root = html::repository();
    let out = root.join(&args.out);
    html::build(&root, &out)?;
    #[expect(clippy::print_stdout, reason = "the place of the book is the result")]
    {
        println!("{}", out.join("index.html").display());
    }
    Ok(())
}
