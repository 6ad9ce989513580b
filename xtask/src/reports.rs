//! RESULTS.md of a lab's folder as whole reports: those of its committed recordings, one after the
//! other.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::chores::root;

/// Which folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder in `labs/`.
    lab: String,
}

/// Writes `labs/LAB/RESULTS.md` from the recordings in `labs/LAB/records`.
pub(crate) fn write(args: &Args) -> anyhow::Result<()> {
    let folder = root().join("labs").join(&args.lab);
    let mut text = format!(
        "<!-- Made from records/ by `cargo xtask reports {}`; do not edit. -->\n",
        args.lab
    );
    for recording in recordings(&folder.join("records"))? {
        let report = render(&recording)?;
        write!(text, "\n{}", report.trim_end())?;
        text.push('\n');
    }
    let path = folder.join("RESULTS.md");
    fs::write(&path, text).with_context(|| format!("`{}` cannot be written", path.display()))
}

/// Every recording of a folder, by name.
fn recordings(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("expected recordings in `{}`", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    found.sort();
    ensure!(
        !found.is_empty(),
        "expected recordings (`*.json`) in `{}`, found none",
        folder.display()
    );
    Ok(found)
}

fn render(recording: &Path) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "weigh", "--", "report"])
        .arg(recording)
        .args(["--format", "md"])
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        bail!(
            "`{}` is not rendered: {}",
            recording.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_taken_in_the_order_of_their_names() {
        let records = tempfile::tempdir().unwrap();
        for file in ["b.json", "a.json", "x.md"] {
            fs::write(records.path().join(file), "").unwrap();
        }
        let found = recordings(records.path()).unwrap();
        assert_eq!(
            found,
            ["a.json", "b.json"].map(|name| records.path().join(name))
        );
    }

    #[test]
    fn nothing_recorded_is_said() {
        let records = tempfile::tempdir().unwrap();
        let empty = recordings(records.path()).unwrap_err().to_string();
        assert!(empty.contains("found none"), "{empty}");
        assert!(recordings(&records.path().join("absent")).is_err());
    }
}
