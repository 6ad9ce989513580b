//! `cargo xtask release`: checks and builds everything of a release. A maintainer then sets the tag.

use std::fs;
use std::path::PathBuf;

use anyhow::{bail, ensure};

use crate::dist;
use crate::repository::{git, root};

/// File of the release notes, next to the archives.
const NOTES: &str = "RELEASE-NOTES.md";

/// Options of a release.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Check version, changelog and work tree, and build nothing.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    dist: dist::Args,
}

/// Checks that the repository is ready, builds the archives, and prints the commands that publish them.
///
/// # Errors
///
/// Fails if the work tree has changes, if the version has a tag or no section in the changelog, or if a build fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let version = dist::version()?;
    let tag = format!("v{version}");
    ensure!(
        git(&["status", "--porcelain"])?.trim().is_empty(),
        "the work tree has changes. Commit them first"
    );
    ensure!(
        git(&["tag", "--list", &tag])?.trim().is_empty(),
        "the tag {tag} exists. Raise `version` in Cargo.toml, and add a section to CHANGELOG.md"
    );
    let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
    let notes = section(&changelog, &version)?;
    if !args.check {
        dist::run(&args.dist)?;
        fs::write(notes_file(args), &notes)?;
    }
    say(&commands(&tag, args));
    Ok(())
}

fn notes_file(args: &Args) -> PathBuf {
    root().join(args.dist.out()).join(NOTES)
}

/// The next steps of the maintainer.
fn commands(tag: &str, args: &Args) -> String {
    let notes = args.dist.out().join(NOTES);
    match args.check {
        true => format!("{tag} is ready. Next: cargo xtask release"),
        false => format!(
            "{tag} is built. Next:\n  git tag --annotate {tag} --file {} --cleanup=verbatim\n  git push origin {tag}\n\
             Then upload the files of {}.",
            notes.display(),
            args.dist.out().display()
        ),
    }
}

/// The text of the changelog about one version. It must be the newest section.
fn section(changelog: &str, version: &str) -> anyhow::Result<String> {
    let mut sections = changelog.split("\n## ").skip(1);
    let Some(newest) = sections.next() else {
        bail!("CHANGELOG.md has no section");
    };
    let (heading, text) = newest.split_once('\n').unwrap_or((newest, ""));
    let named = heading.split([' ', ':', ',']).next().unwrap_or_default();
    ensure!(
        named == version,
        "the newest section of CHANGELOG.md is `{heading}`, and Cargo.toml has version {version}. Make them equal"
    );
    ensure!(
        !text.trim().is_empty(),
        "the section {version} of CHANGELOG.md is empty"
    );
    Ok(format!("{}\n", text.trim()))
}

#[expect(clippy::print_stdout, reason = "the next steps are this task's result")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_section_must_be_the_version() {
        let changelog = "# Changelog\n\n## 0.2.0 (2026-12-01)\n\nNew.\n\n## 0.1.0\n\nFirst.\n";
        assert_eq!(section(changelog, "0.2.0").unwrap(), "New.\n");
        let error = section(changelog, "0.1.0").unwrap_err().to_string();
        assert!(
            error.contains("`0.2.0 (2026-12-01)`") && error.contains("version 0.1.0"),
            "{error}"
        );
        assert!(section("# Changelog\n\n## 0.1.0\n\n", "0.1.0").is_err());
        assert!(section("# Changelog\n", "0.1.0").is_err());
    }

    #[test]
    fn the_changelog_describes_this_version() {
        let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
        section(&changelog, &dist::version().unwrap()).unwrap();
    }
}
