//! `RESULTS.md` of a folder of labs, from the recordings that are committed with it. The handwritten text
//! around the tables stays unchanged.

#[cfg(test)]
mod committed;
pub(crate) mod figures;
mod section;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::page;
use crate::repository::root;

/// Update RESULTS.md of a folder of labs from its recordings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder in `labs/` with the labs.
    folder: String,
    /// Folder with new recordings, as `weigh lab --out` writes them. They replace the committed
    /// recordings first. If a lab has several recordings, the newest counts.
    #[arg(long, value_name = "FOLDER")]
    adopt: Option<PathBuf>,
    /// Use this `weigh` instead of building it.
    #[arg(long, value_name = "PROGRAM")]
    weigh: Option<PathBuf>,
}

/// Recordings of labs that repeat a run of another tool, by name. Each has the output format and the name of
/// the tool.
const LAYOUTS: [(&str, &str, &str); 2] = [
    ("remote-schema", "k6", "k6"),
    ("webhook", "ab", "ApacheBench"),
];

/// Number of rows shown in that format: a baseline and the variant to compare with it.
const LAYOUT_ROWS: usize = 2;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = root().join("labs").join(&args.folder);
    let records = folder.join("records");
    if let Some(from) = &args.adopt {
        adopt(from, &folder, &records)?;
    }
    let found = recordings(&records)?;
    if found.is_empty() {
        bail!(
            "no recordings in `{}`; give `--adopt FOLDER`",
            records.display()
        );
    }
    let document = format!("labs/{}/RESULTS.md", args.folder);
    let path = root().join(&document);
    for record in &found {
        let name = record.file_stem().unwrap_or_default().to_string_lossy();
        let section = section(record, &name, args.weigh.as_deref())?;
        let known = fs::read_to_string(&path).unwrap_or_else(|_| heading(&args.folder));
        fs::write(&path, page::with_place(&known, &name))?;
        page::write(&document, &name, &section)?;
    }
    Ok(())
}

fn heading(folder: &str) -> String {
    format!(
        "# Results of `{folder}`\n\n\
         `cargo xtask results {folder}` writes the tables from the recordings in `records/`. \
         `weigh report labs/{folder}/records/NAME.json` shows the whole report of a recording.\n"
    )
}

/// Copies recordings by the names of their labs.
fn adopt(from: &Path, labs: &Path, records: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(records)?;
    let mut adopted = 0;
    for folder in runs(from)? {
        let Ok(text) = fs::read_to_string(folder.join("recording.json")) else {
            continue;
        };
        let recording: Value = serde_json::from_str(&text)?;
        let name = recording["lab"]["name"].as_str().unwrap_or_default();
        // The path is relative to the working folder of the run: the repository or `labs`. A lab may lie in a
        // subfolder.
        let path = recording["lab"]["path"].as_str().unwrap_or_default();
        let is_ours = [root(), root().join("labs")].iter().any(|folder| {
            let path = folder.join(path);
            path.starts_with(labs) && path.is_file()
        });
        if is_ours {
            let text = without_places(&text, &recording["command"]);
            fs::write(records.join(format!("{name}{}.json", level(&folder))), text)?;
            adopted += 1;
        }
    }
    if adopted == 0 {
        bail!(
            "expected recordings of the labs in `{}`, found none in `{}`",
            labs.display(),
            from.display()
        );
    }
    Ok(())
}

/// The folders of all runs, the newest of a lab last. A run of several loads has a folder for each.
fn runs(from: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let within = |folder: &Path| -> anyhow::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder);
        let entries = entries.with_context(|| format!("`{}` cannot be read", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        // Folder names end with the time.
        paths.sort();
        Ok(paths)
    };
    let mut found = Vec::new();
    for run in within(from)?.into_iter().filter(|path| path.is_dir()) {
        let levels = within(&run)?;
        found.extend(levels.into_iter().filter(|path| !level(path).is_empty()));
        found.push(run);
    }
    Ok(found)
}

/// The end of the name of a recording at one of several loads, such as `-at-100-connections`.
fn level(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match name.starts_with("at-") {
        true => format!("-{name}"),
        false => String::new(),
    }
}

/// Replaces absolute paths of the command line, and paths below them, by their last part. The location of
/// files on a machine is not part of the results.
fn without_places(text: &str, command: &Value) -> String {
    let words = command.as_array().into_iter().flatten();
    let paths = words
        .filter_map(Value::as_str)
        .filter(|word| word.starts_with('/') && word.len() > 1);
    paths.fold(text.to_owned(), |text, path| {
        let last = path.rsplit('/').next().unwrap_or_default();
        text.replace(
            &Value::from(path).to_string(),
            &Value::from(last).to_string(),
        )
        // Also within a longer text, such as the command of a shell with the path of a configuration file.
        .replace(&format!("{}/", path.trim_end_matches('/')), "")
    })
}

fn recordings(records: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(records).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn section(record: &Path, name: &str, weigh: Option<&Path>) -> anyhow::Result<String> {
    let asked = |words: &[&str]| {
        let mut command = Command::new(weigh.unwrap_or(Path::new(env!("CARGO"))));
        if weigh.is_none() {
            command.args(["run", "--quiet", "--release", "--package", "weigh", "--"]);
        }
        let output = command
            .arg("report")
            .arg(record)
            .args(words)
            .current_dir(root())
            .output()
            .context("weigh starts")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("weigh does not read `{}`: {said}", record.display());
        }
        String::from_utf8(output.stdout).context("weigh writes UTF-8")
    };
    let report: Value = serde_json::from_str(&asked(&["--format", "json"])?)?;
    let recording: Value = serde_json::from_str(&fs::read_to_string(record)?)?;
    let mut section = section::rendered(name, &report, &recording);
    if let Some((_, layout, tool)) = LAYOUTS.iter().find(|(folder, ..)| *folder == name) {
        let rows = report["summary"]["variants"].as_array();
        let names = rows
            .into_iter()
            .flatten()
            .filter_map(|row| row["name"].as_str());
        for variant in names.take(LAYOUT_ROWS) {
            let text = asked(&["--format", layout, "--variant", variant])?;
            let _ = write!(
                section,
                "\n{variant}, as {tool} would print it:\n\n```text\n{}\n```\n",
                text.trim_end()
            );
        }
    }
    Ok(section)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_of_several_loads_has_a_recording_for_each() {
        let folder = tempfile::tempdir().unwrap();
        for run in ["x-2/at-1-connection", "x-2/at-10-connections", "x-1/logs"] {
            fs::create_dir_all(folder.path().join(run)).unwrap();
        }
        let found: Vec<_> = runs(folder.path()).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|run| run.strip_prefix(folder.path()).unwrap())
            .collect();
        let expected = ["x-1", "x-2/at-1-connection", "x-2/at-10-connections", "x-2"];
        assert_eq!(names, expected.map(Path::new));
        assert_eq!(level(&found[1]), "-at-1-connection");
        assert_eq!(level(&found[3]), "");
    }

    #[test]
    fn a_committed_recording_does_not_say_where_things_lay() {
        let command = json!([
            "/opt/bin/weigh",
            "lab",
            "labs/x.yaml",
            "--out",
            "/var/records"
        ]);
        let text = json!({
            "command": command, "note": "labs/x.yaml", "file": "/var/records/x/log",
            "run": "sh -c 'cat /var/records/x/key'"
        })
        .to_string();
        let kept: Value = serde_json::from_str(&without_places(&text, &command)).unwrap();
        let expected = json!(["weigh", "lab", "labs/x.yaml", "--out", "records"]);
        assert_eq!(
            kept,
            json!({
                "command": expected, "note": "labs/x.yaml", "file": "x/log",
                "run": "sh -c 'cat x/key'"
            })
        );
    }
}
