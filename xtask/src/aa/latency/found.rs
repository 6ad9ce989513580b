//! Runs, stored in a file with a line of JSON for each, so that rows can be measured in several sessions.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

/// Checks that fail because the machine gave its processors to other programs. A run that only these checks
/// withhold is no evidence about `weigh`.
const OF_THE_MACHINE: [&str; 3] = ["generator-pauses", "generator-starved", "steal"];

/// The conclusion of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// The run compared the two servers.
    Verdict {
        claims: bool,
        difference: f64,
        low: f64,
        high: f64,
        /// The truth, with this run's baseline.
        truth: f64,
    },
    /// A verdict was withheld, for these causes.
    Nothing(Vec<String>),
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The first digits of the digest of the program `weigh`.
    pub(super) build: String,
    /// The name of its row.
    pub(super) row: String,
    /// True if other programs kept every core busy.
    pub(super) is_busy: bool,
    pub(super) is_planted: bool,
    pub(super) seed: u64,
    pub(super) said: Said,
}

impl Said {
    /// Reads the summary of a run. `truth` gives the true difference for the figure of a baseline.
    pub(super) fn of(
        summary: &Value,
        headline: &str,
        truth: impl Fn(f64) -> f64,
    ) -> anyhow::Result<Said> {
        let row = |index: usize| summary["variants"].get(index);
        let (base, own) = row(0).zip(row(1)).context("a summary of two variants")?;
        let state = own["verdict"]["state"].as_str().unwrap_or("missing");
        let claims = match state {
            "slower" | "faster" => true,
            "no-difference-shown" => false,
            _ => return Ok(Said::Nothing(causes(base, own, state))),
        };
        let overhead = &own["metrics"][headline]["overhead"];
        let number = |value: &Value| value.as_f64().with_context(|| format!("no {headline}"));
        Ok(Said::Verdict {
            claims,
            difference: number(&overhead["difference"])?,
            low: number(&overhead["difference_low"])?,
            high: number(&overhead["difference_high"])?,
            truth: truth(number(&base["metrics"][headline]["value"])?),
        })
    }

    /// True if the result was not caused by the machine.
    pub(super) fn is_evidence(&self) -> bool {
        match self {
            Said::Verdict { .. } => true,
            Said::Nothing(causes) => causes
                .iter()
                .any(|cause| !OF_THE_MACHINE.contains(&cause.as_str())),
        }
    }

    pub(super) fn has_verdict(&self) -> bool {
        matches!(self, Said::Verdict { .. })
    }

    pub(super) fn is_inside(&self) -> bool {
        matches!(self, Said::Verdict { low, high, truth, .. } if low <= truth && truth <= high)
    }

    pub(super) fn claims(&self) -> bool {
        matches!(self, Said::Verdict { claims: true, .. })
    }
}

/// Names of the failed checks, or the state itself without one.
fn causes(base: &Value, own: &Value, state: &str) -> Vec<String> {
    let checks = [base, own].map(|row| row["checks"].as_array().into_iter().flatten());
    let failed = checks
        .into_iter()
        .flatten()
        .filter(|check| check["state"] == "failed")
        .filter_map(|check| check["name"].as_str());
    let mut names: Vec<String> = failed.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        let kind = own["verdict"]["kind"].as_str();
        names.push(kind.unwrap_or(state).to_owned());
    }
    names
}

impl Found {
    fn to_line(&self) -> String {
        let mut line = json!({
            "build": self.build, "row": self.row, "busy": self.is_busy,
            "planted": self.is_planted, "seed": self.seed,
        });
        match &self.said {
            Said::Nothing(causes) => line["causes"] = json!(causes),
            Said::Verdict {
                claims,
                difference,
                low,
                high,
                truth,
            } => {
                line["claims"] = json!(claims);
                for (key, value) in [
                    ("difference", difference),
                    ("low", low),
                    ("high", high),
                    ("truth", truth),
                ] {
                    line[key] = json!(value);
                }
            }
        }
        format!("{line}\n")
    }

    fn of_line(line: &str) -> anyhow::Result<Found> {
        let read: Value = serde_json::from_str(line).context("a line is JSON")?;
        let text = |key: &str| {
            let value = read[key].as_str().map(str::to_owned);
            value.with_context(|| format!("no `{key}`"))
        };
        let truth = |key: &str| read[key].as_bool().with_context(|| format!("no `{key}`"));
        let number = |key: &str| read[key].as_f64().with_context(|| format!("no `{key}`"));
        let said = match read["causes"].as_array() {
            Some(causes) => {
                let names = causes.iter().filter_map(Value::as_str);
                Said::Nothing(names.map(str::to_owned).collect())
            }
            None => Said::Verdict {
                claims: truth("claims")?,
                difference: number("difference")?,
                low: number("low")?,
                high: number("high")?,
                truth: number("truth")?,
            },
        };
        Ok(Found {
            build: text("build")?,
            row: text("row")?,
            is_busy: truth("busy")?,
            is_planted: truth("planted")?,
            seed: read["seed"].as_u64().context("no `seed`")?,
            said,
        })
    }
}

/// The file of all runs.
pub(super) struct Store {
    path: PathBuf,
    pub(super) runs: Vec<Found>,
}

impl Store {
    /// Reads a file. The file may be missing.
    pub(super) fn open(path: &Path) -> anyhow::Result<Store> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => {
                let what = format!("`{}` cannot be read", path.display());
                return Err(error).context(what);
            }
        };
        let runs = text.lines().enumerate().map(|(index, line)| {
            let place = || format!("`{}`, line {}", path.display(), index + 1);
            Found::of_line(line).with_context(place)
        });
        Ok(Store {
            path: path.to_owned(),
            runs: runs.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Adds a run to the file. Several processes may do so at the same time, because a line is one write.
    pub(super) fn add(&mut self, found: Found) -> anyhow::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("`{}` can be made", folder.display()))?;
        }
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)
            .with_context(|| format!("`{}` can be written", self.path.display()))?;
        file.write_all(found.to_line().as_bytes())?;
        self.runs.push(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(state: &str, failed: &[&str]) -> Value {
        let checks: Vec<Value> = failed
            .iter()
            .map(|name| json!({"name": name, "state": "failed"}))
            .collect();
        let metrics = |overhead: Value| json!({"latency_us_typical": {"value": 12_050.0, "overhead": overhead}});
        let overhead =
            json!({"difference": 230.0, "difference_low": 200.0, "difference_high": 260.0});
        json!({"variants": [
            {"metrics": metrics(Value::Null), "checks": []},
            {"metrics": metrics(overhead), "checks": checks,
             "verdict": {"state": state, "kind": "check-failed"}},
        ]})
    }

    fn said(state: &str, failed: &[&str]) -> Said {
        let truth = |baseline: f64| baseline / 50.0;
        Said::of(&summary(state, failed), "latency_us_typical", truth).unwrap()
    }

    #[test]
    fn a_verdict_is_read_with_its_interval_and_the_truth_beside_its_baseline() {
        let found = said("slower", &[]);
        assert!(found.claims() && found.is_inside() && found.is_evidence());
        let Said::Verdict { truth, low, .. } = found else {
            panic!("it has a verdict");
        };
        assert_eq!((truth, low), (241.0, 200.0));
        let undecided = said("no-difference-shown", &[]);
        assert!(!undecided.claims() && undecided.is_inside());
        let elsewhere = Said::of(&summary("slower", &[]), "latency_us_typical", |_| 199.0);
        assert!(!elsewhere.unwrap().is_inside());
    }

    #[test]
    fn a_withheld_verdict_has_causes_and_those_of_the_machine_are_no_evidence() {
        let ours = said("invalid", &["left-out", "steal"]);
        assert_eq!(
            ours,
            Said::Nothing(vec!["left-out".to_owned(), "steal".to_owned()])
        );
        assert!(ours.is_evidence() && !ours.is_inside() && !ours.claims());
        assert!(!said("withheld", &["steal"]).is_evidence());
        let other = said("invalid", &[]);
        assert_eq!(other, Said::Nothing(vec!["check-failed".to_owned()]));
        assert!(other.is_evidence());
        assert!(!said("not-compared", &["steal"]).has_verdict());
    }

    #[test]
    fn runs_of_several_sessions_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        // The folder does not exist yet, as in a fresh clone.
        let path = folder.path().join("evidence/runs.jsonl");
        let runs = [said("slower", &[]), said("invalid", &["left-out"])].map(|said| Found {
            build: "abc".to_owned(),
            row: "open 12ms 100/s even".to_owned(),
            is_busy: false,
            is_planted: true,
            seed: 3,
            said,
        });
        for run in &runs {
            Store::open(&path).unwrap().add(run.clone()).unwrap();
        }
        assert_eq!(Store::open(&path).unwrap().runs, runs);
        fs::write(&path, "{\"row\": 1}\n").unwrap();
        let error = Store::open(&path).err().map(|error| format!("{error:#}"));
        assert!(error.unwrap().contains("line 1"), "the place is named");
    }
}
