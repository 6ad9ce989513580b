//! The guard of `recording::METHOD` and `recording::METHOD_OF_FIGURES`. Two recordings are comparable only if
//! they were measured in the same way, and a figure is known only with the way that it was computed. So the
//! first number must rise when measurements change, and the second when figures of the same recording change.
//!
//! `crates/recording/method.toml` contains each number next to a fingerprint of its sources. A test compares
//! them. A fingerprint leaves out parts that cannot change a figure: comments, layout, unit tests, imports,
//! and the names of files.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::repository::{root, tracked};
use crate::rust_source::{self, Token, reads};

/// The two methods.
const GUARDS: [Guard; 2] = [
    Guard {
        constant: "METHOD",
        keys: ["method", "fingerprint"],
        what: "measurements",
        sources: &[
            "crates/model/src/",
            "crates/schedule/src/",
            "crates/load/src/recorder.rs",
            "crates/load/src/recorder/",
            "crates/load/src/awake.rs",
            "crates/load/src/priority.rs",
            "crates/rig/src/usage.rs",
        ],
    },
    Guard {
        constant: "METHOD_OF_FIGURES",
        keys: ["method_of_figures", "fingerprint_of_figures"],
        what: "figures",
        sources: &[
            "crates/model/src/",
            "crates/stats/src/",
            "crates/analysis/src/summary.rs",
            "crates/analysis/src/summary/",
            "crates/analysis/src/confidence.rs",
            "crates/analysis/src/metric.rs",
            "crates/analysis/src/pace.rs",
            "crates/report/src/tables/systems.rs",
        ],
    },
];

/// A method and the code behind it. The loops that send requests are not included, because
/// `cargo xtask calibrate` checks them.
struct Guard {
    /// The constant of `crates/recording` with the number.
    constant: &'static str,
    /// The keys of the number and of the fingerprint in the stamp file.
    keys: [&'static str; 2],
    /// The results of this code.
    what: &'static str,
    /// Files and folders with the code.
    sources: &'static [&'static str],
}

const STAMP: &str = "crates/recording/method.toml";

/// The number of a method and the fingerprint of the code behind it.
#[derive(Debug, Eq, PartialEq)]
struct Stamp {
    method: u32,
    fingerprint: String,
}

/// Updates the stamp file.
pub(crate) fn stamp() -> anyhow::Result<()> {
    let mut text = "# Written by `cargo xtask method`; see xtask/src/method.rs.\n".to_owned();
    for guard in &GUARDS {
        text.push_str(&guard.current()?.text(guard.keys));
    }
    fs::write(root().join(STAMP), text).with_context(|| format!("{STAMP} cannot be written"))
}

impl Stamp {
    fn text(&self, [method, fingerprint]: [&str; 2]) -> String {
        format!(
            "{method} = {}\n{fingerprint} = \"{}\"\n",
            self.method, self.fingerprint
        )
    }
}

#[cfg(test)]
impl Stamp {
    fn parse(text: &str, [method, fingerprint]: [&str; 2]) -> anyhow::Result<Stamp> {
        let value = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(" = "));
            let found = lines.find(|(name, _)| *name == key);
            let (_, value) = found.with_context(|| format!("{STAMP} has no `{key}`"))?;
            anyhow::Ok(value.trim_matches('"').to_owned())
        };
        Ok(Stamp {
            method: value(method)?.parse()?,
            fingerprint: value(fingerprint)?,
        })
    }
}

#[cfg(test)]
impl Guard {
    /// Returns an error with advice if the sources differ from the committed stamp.
    fn check(&self, current: &Stamp, committed: &Stamp) -> anyhow::Result<()> {
        if current == committed {
            return Ok(());
        }
        let (constant, what) = (self.constant, self.what);
        if current.method != committed.method {
            bail!(
                "{constant} is {} and {STAMP} says {}; run `cargo xtask method`",
                current.method,
                committed.method
            );
        }
        bail!(
            "code that {what} depend on has changed since {STAMP} was written.\n\
             If {what} of the same run can now be others: raise `recording::{constant}`, say so under \"Numbers\" in CHANGELOG.md, and run `cargo xtask method`.\n\
             If none can: run `cargo xtask method`."
        )
    }
}

impl Guard {
    /// Computes the stamp of the current sources.
    fn current(&self) -> anyhow::Result<Stamp> {
        let mut sources = Vec::new();
        for path in self.sources {
            let files = tracked(path)?;
            let files = files.iter().filter(|file| file.ends_with(".rs"));
            let before = sources.len();
            for file in files.filter(|file| !file.ends_with("tests.rs")) {
                sources.push(read(&root().join(file))?);
            }
            // A path without sources would silently leave its code out.
            if sources.len() == before {
                bail!(
                    "there is no {path}; name in xtask/src/method.rs where this code of {} is now",
                    self.what
                );
            }
        }
        Ok(Stamp {
            method: method(self.constant)?,
            fingerprint: fingerprint(&sources),
        })
    }
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

/// Reads a constant from the source of `crates/recording`.
fn method(constant: &str) -> anyhow::Result<u32> {
    let declared = format!("const {constant}: u32 = ");
    for file in tracked("crates/recording/src")? {
        let text = read(&root().join(&file))?;
        if let Some((_, rest)) = text.split_once(&declared) {
            let number = rest.split(';').next().unwrap_or(rest);
            return number
                .parse()
                .with_context(|| format!("{constant} in {file}"));
        }
    }
    bail!("crates/recording has no `{declared}`")
}

fn read(path: &PathBuf) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_rises_when_measurements_or_figures_change() {
        let text = read(&root().join(STAMP)).unwrap();
        for guard in &GUARDS {
            let committed = Stamp::parse(&text, guard.keys).unwrap();
            if let Err(error) = guard.check(&guard.current().unwrap(), &committed) {
                panic!("{error}");
            }
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
        for guard in &GUARDS {
            assert!(guard.check(&stamp(1, "aa"), &committed).is_ok());
            let refusal = |found: Stamp| guard.check(&found, &committed).unwrap_err().to_string();
            let raise = format!("raise `recording::{}`", guard.constant);
            assert!(refusal(stamp(1, "bb")).contains(&raise));
            let number = format!("{} is 2", guard.constant);
            assert!(refusal(stamp(2, "bb")).contains(&number));
        }
        let text: String = GUARDS.iter().map(|it| committed.text(it.keys)).collect();
        for guard in &GUARDS {
            assert_eq!(Stamp::parse(&text, guard.keys).unwrap(), committed);
        }
    }
}
