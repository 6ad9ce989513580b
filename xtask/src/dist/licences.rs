//! The licences of all crates in a program. Their terms require that their texts are included.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::repository::root;

/// The texts, crate by crate. Equal texts appear once.
pub(crate) fn of(target: &str) -> anyhow::Result<String> {
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", target])
        .current_dir(root())
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in linked(&metadata)? {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        let folder = Path::new(text(&package["manifest_path"])).parent();
        let texts = texts(folder.context("a manifest is in a folder")?)?;
        if texts.is_empty() {
            without.push(format!(
                "{name}: {}, {}",
                text(&package["license"]),
                text(&package["repository"])
            ));
        }
        for text in texts {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    let mut out = "What weigh is made of, besides itself, and under which terms.\n".to_owned();
    if !without.is_empty() {
        out += &format!(
            "\nWithout a text in their packages:\n  {}\n",
            without.join("\n  ")
        );
    }
    for (text, names) in by_text {
        out += &format!(
            "\n{}\n\n{}\n\n{}\n",
            "=".repeat(80),
            names.join(", "),
            text.trim_end()
        );
    }
    Ok(out)
}

/// The third-party packages that are linked into `weigh`, without packages of the build and of tests.
fn linked(metadata: &Value) -> anyhow::Result<Vec<&Value>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let packages = metadata["packages"]
        .as_array()
        .context("cargo lists packages")?;
    let weigh = packages
        .iter()
        .find(|it| it["name"] == "weigh")
        .context("weigh is one of them")?;
    let mut seen = BTreeSet::new();
    let mut ahead = vec![text(&weigh["id"]).to_owned()];
    while let Some(id) = ahead.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id.as_str());
        for dependency in node.map_or_else(Vec::new, |node| list(&node["deps"])) {
            // An ordinary dependency has no kind.
            if list(&dependency["dep_kinds"])
                .iter()
                .any(|it| it["kind"].is_null())
            {
                ahead.push(text(&dependency["pkg"]).to_owned());
            }
        }
    }
    // Packages without a source belong to this repository.
    let is_others =
        |package: &&Value| !package["source"].is_null() && seen.contains(text(&package["id"]));
    Ok(packages.iter().filter(is_others).collect())
}

fn texts(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let is_terms = |entry: &fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().to_uppercase();
        [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "NOTICE",
            "UNLICENSE",
            "COPYRIGHT",
        ]
        .iter()
        .any(|word| name.starts_with(word))
            && entry.path().is_file()
    };
    let read =
        |entry: fs::DirEntry| Ok(String::from_utf8_lossy(&fs::read(entry.path())?).into_owned());
    files.into_iter().filter(is_terms).map(read).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
