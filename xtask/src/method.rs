//! The guard of `recording::METHOD`. Two recordings are comparable only if their figures were made in the
//! same way. So the number must rise when a figure changes.
//!
//! `crates/recording/method.toml` contains the number next to a fingerprint of the sources that determine
//! figures. A test compares them. The fingerprint leaves out parts that cannot change a figure: comments,
//! layout, unit tests, imports, and the names of files.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::repository::{root, tracked};
use crate::rust_source::{self, Token, reads};

/// Files and folders with code that determines a figure: the measurements, their times, and the computations.
/// The loops that send requests are not included, because `cargo xtask calibrate` checks them.
const SOURCES: [&str; 12] = [
    "crates/model/src/",
    "crates/stats/src/",
    "crates/schedule/src/",
    "crates/analysis/src/summary.rs",
    "crates/analysis/src/summary/",
    "crates/analysis/src/pace.rs",
    "crates/report/src/tables/systems.rs",
    "crates/load/src/recorder.rs",
    "crates/load/src/recorder/",
    "crates/load/src/awake.rs",
    "crates/load/src/priority.rs",
    "crates/rig/src/usage.rs",
];

const STAMP: &str = "crates/recording/method.toml";

/// A method and the fingerprint of the code behind its figures.
#[derive(Debug, Eq, PartialEq)]
struct Stamp {
    method: u32,
    fingerprint: String,
}

/// Updates the stamp file.
pub(crate) fn stamp() -> anyhow::Result<()> {
    let text = current()?.text();
    fs::write(root().join(STAMP), text).with_context(|| format!("{STAMP} cannot be written"))
}

impl Stamp {
    fn text(&self) -> String {
        format!(
            "# Written by `cargo xtask method`; see xtask/src/method.rs.\nmethod = {}\nfingerprint = \"{}\"\n",
            self.method, self.fingerprint
        )
    }
}

#[cfg(test)]
impl Stamp {
    fn parse(text: &str) -> anyhow::Result<Stamp> {
        let value = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(" = "));
            let found = lines.find(|(name, _)| *name == key);
            let (_, value) = found.with_context(|| format!("{STAMP} has no `{key}`"))?;
            anyhow::Ok(value.trim_matches('"').to_owned())
        };
        Ok(Stamp {
            method: value("method")?.parse()?,
            fingerprint: value("fingerprint")?,
        })
    }

    /// Returns an error with advice if the sources differ from the committed stamp.
    fn check(&self, committed: &Stamp) -> anyhow::Result<()> {
        if self == committed {
            return Ok(());
        }
        if self.method != committed.method {
            bail!(
                "METHOD is {} and {STAMP} says {}; run `cargo xtask method`",
                self.method,
                committed.method
            );
        }
        bail!(
            "code that figures depend on has changed since {STAMP} was written.\n\
             If a figure of the same run can now be another: raise `recording::METHOD`, say so under \"Numbers\" in CHANGELOG.md, and run `cargo xtask method`.\n\
             If no figure can: run `cargo xtask method`."
        )
    }
}

/// Computes the stamp of the current sources.
fn current() -> anyhow::Result<Stamp> {
    let mut sources = Vec::new();
    for path in SOURCES {
        let files = tracked(path)?;
        let files = files.iter().filter(|file| file.ends_with(".rs"));
        let before = sources.len();
        for file in files.filter(|file| !file.ends_with("tests.rs")) {
            sources.push(read(&root().join(file))?);
        }
        // A path without sources would silently leave its code out.
        if sources.len() == before {
            bail!("there is no {path}; name in xtask/src/method.rs where its code is now");
        }
    }
    Ok(Stamp {
        method: method()?,
        fingerprint: fingerprint(&sources),
    })
}

/// A digest that does not depend on the order and the names of the files.
fn fingerprint(sources: &[String]) -> String {
    let mut digests: Vec<_> = sources.iter().map(|text| digest(text)).collect();
    // Sorted, so that moving or renaming a file has no effect.
    digests.sort_unstable();
    let all = digests
        .iter()
        .fold(Sha256::new(), |sum, one| sum.chain_update(one));
    // Sixteen digits are enough to distinguish states of a repository.
    HEXLOWER.encode(&all.finalize()[..8])
}

fn digest(source: &str) -> [u8; 32] {
    let code = rust_source::without_tests(&rust_source::code(source));
    let mut sum = Sha256::new();
    let mut at = 0;
    while at < code.len() {
        if is_import(&code, at) {
            while at < code.len() && code[at].text != ";" {
                at += 1;
            }
        } else {
            sum.update(code[at].text);
            // A separator between tokens, so that `ab c` and `a bc` differ.
            sum.update([0]);
        }
        at += 1;
    }
    sum.finalize().into()
}

/// True for `use …;` or `mod name;`, but not for the `use<>` of a type.
fn is_import(code: &[Token<'_>], at: usize) -> bool {
    let next = code.get(at + 1).map(|token| token.text);
    match code[at].text {
        "use" => next != Some("<"),
        "mod" => reads(code, at + 2, &[";"]),
        _ => false,
    }
}

/// Reads `METHOD` from the source of `crates/recording`.
fn method() -> anyhow::Result<u32> {
    for file in tracked("crates/recording/src")? {
        let text = read(&root().join(&file))?;
        if let Some((_, rest)) = text.split_once("const METHOD: u32 = ") {
            let number = rest.split(';').next().unwrap_or(rest);
            return number.parse().with_context(|| format!("METHOD in {file}"));
        }
    }
    bail!("crates/recording has no `const METHOD: u32`")
}

fn read(path: &PathBuf) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_rises_when_figures_change() {
        let committed = Stamp::parse(&read(&root().join(STAMP)).unwrap()).unwrap();
        if let Err(error) = current().unwrap().check(&committed) {
            panic!("{error}");
        }
    }

    #[test]
    fn what_cannot_change_a_figure_does_not_change_the_fingerprint() {
        let of = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            fingerprint(&texts)
        };
        let plain = of(&["fn a() { 1 }", "fn b() {}"]);
        for same in [
            ["fn b() {}", "fn a() { 1 }"],
            ["// why\nuse x::y;\nfn a() {\n    1\n}", "mod c;\nfn b() {}"],
            [
                "fn a() { 1 }\n#[cfg(test)]\nmod tests { fn c() {} }",
                "/// Doc.\nfn b() {}",
            ],
        ] {
            assert_eq!(of(&same), plain, "{same:?}");
        }
        assert_ne!(of(&["fn a() { 2 }", "fn b() {}"]), plain);
    }

    #[test]
    fn the_refusal_says_what_to_do() {
        let stamp = |method: u32, fingerprint: &str| Stamp {
            method,
            fingerprint: fingerprint.to_owned(),
        };
        let committed = stamp(1, "aa");
        assert!(stamp(1, "aa").check(&committed).is_ok());
        let refusal = |found: Stamp| found.check(&committed).unwrap_err().to_string();
        assert!(refusal(stamp(1, "bb")).contains("raise `recording::METHOD`"));
        assert!(refusal(stamp(2, "bb")).contains("METHOD is 2"));
        assert_eq!(Stamp::parse(&committed.text()).unwrap(), committed);
    }
}
