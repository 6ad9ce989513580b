//! Sorts the keys of many configurations into the lists of `gateway check`, and counts them.
//!
//! `cargo run -p gateway-config --example survey -- FOLDER…` reads each YAML file below the folders. The first
//! table has a line for each file, and the second has a line for each key and its class.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use gateway_config::{Surroundings, SurveyedKey, read, survey};

/// An environment with every variable and without files.
struct AllVariables;

impl Surroundings for AllVariables {
    fn variable(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

/// The names of keys by class, each with the number of files.
type Counts = BTreeMap<(&'static str, String), usize>;

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for folder in env::args_os().skip(1) {
        find(&PathBuf::from(folder), &mut files)?;
    }
    files.sort();
    let mut counts = Counts::new();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "file\tresult\tworks\twithout effect\trefused\tfirst mistake"
    )?;
    for file in &files {
        let line = surveyed(file, &fs::read_to_string(file)?, &mut counts);
        writeln!(out, "{}\t{line}", file.display())?;
    }
    writeln!(out, "\nclass\tkey\tfiles")?;
    for ((class, key), count) in &counts {
        writeln!(out, "{class}\t{key}\t{count}")?;
    }
    Ok(())
}

/// Adds all YAML files below a path.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            find(&entry?.path(), files)?;
        }
    } else if path
        .extension()
        .is_some_and(|it| it == "yaml" || it == "yml")
    {
        files.push(path.to_owned());
    }
    Ok(())
}

/// The columns of a file. Its keys are added to `counts`.
fn surveyed(path: &Path, text: &str, counts: &mut Counts) -> String {
    let Ok(survey) = survey(path, text, &AllVariables) else {
        return "not YAML\t0\t0\t0\t".to_owned();
    };
    let mut add = |class, keys: &[SurveyedKey]| {
        let names: BTreeSet<&String> = keys.iter().map(|it| &it.key).collect();
        for name in names {
            *counts.entry((class, name.clone())).or_default() += 1;
        }
        keys.len()
    };
    let works = add("works", &survey.works);
    let idle = add("without effect", &survey.without_effect);
    let refused = add("refused", &survey.refused);
    let (result, mistake) = match read(path, text, &AllVariables, false) {
        Ok(_) => ("starts", String::new()),
        Err(mistakes) => {
            for mistake in mistakes.iter() {
                if let Some(name) = mistake.message.strip_prefix("unknown key ") {
                    *counts.entry(("unknown", name.to_owned())).or_default() += 1;
                }
            }
            let first = mistakes.iter().next();
            (
                "refused",
                first.map(|it| it.message.clone()).unwrap_or_default(),
            )
        }
    };
    format!("{result}\t{works}\t{idle}\t{refused}\t{mistake}")
}
