//! `RESULTS.md` of a folder of labs, from the recordings that are committed with it.
//!
//! The layout is that of the table that the labs reproduce: a row a variant, the difference from the
//! baseline in brackets; then the same differences with their intervals. What a person writes around
//! the tables stays.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::chores::root;
use crate::page;

/// Write RESULTS.md of a folder of labs from its recordings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder in `labs/`.
    folder: String,
    /// First take the recordings in this folder, as `weigh lab --out` leaves them, for the
    /// committed ones. Of several of a lab, the newest.
    #[arg(long, value_name = "FOLDER")]
    adopt: Option<PathBuf>,
    /// Take this `weigh` instead of building it.
    #[arg(long, value_name = "PROGRAM")]
    weigh: Option<PathBuf>,
}

const COLUMNS: [(&str, &str); 7] = [
    ("Min", "latency_us_min"),
    ("Mean", "latency_us_mean"),
    ("p50", "latency_us_p50"),
    ("p90", "latency_us_p90"),
    ("p95", "latency_us_p95"),
    ("p99", "latency_us_p99"),
    ("Max", "latency_us_max"),
];

/// Differences that are shown with their intervals, what divides them, and their decimals.
const INTERVALS: [(&str, &str, f64, usize); 5] = [
    ("Mean (ms)", "latency_us_mean", 1e3, 3),
    ("p50 (ms)", "latency_us_p50", 1e3, 3),
    ("p99 (ms)", "latency_us_p99", 1e3, 3),
    ("CPU (us/request)", "cpu_us_per_request", 1.0, 0),
    ("Memory (MiB)", "memory_peak_bytes", 1_048_576.0, 1),
];

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
         The tables are written by `cargo xtask results {folder}` from the recordings in `records/`; \
         `weigh report labs/{folder}/records/NAME.json` shows all there is to know about one.\n"
    )
}

/// Copies recordings by the names of their labs.
fn adopt(from: &Path, labs: &Path, records: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(records)?;
    let mut folders: Vec<PathBuf> = fs::read_dir(from)
        .with_context(|| format!("`{}` cannot be read", from.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    // Their names end in the time, so that the newest comes last and stays.
    folders.sort();
    let mut adopted = 0;
    for folder in folders {
        let Ok(text) = fs::read_to_string(folder.join("recording.json")) else {
            continue;
        };
        let recording: Value = serde_json::from_str(&text)?;
        let name = recording["lab"]["name"].as_str().unwrap_or_default();
        if labs.join(name).with_extension("yaml").is_file() {
            fs::write(records.join(name).with_extension("json"), text)?;
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
    let mut command = Command::new(weigh.unwrap_or(Path::new(env!("CARGO"))));
    if weigh.is_none() {
        command.args(["run", "--quiet", "--release", "--package", "weigh", "--"]);
    }
    let output = command
        .arg("report")
        .arg(record)
        .args(["--format", "json"])
        .current_dir(root())
        .output()
        .context("weigh starts")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("weigh does not read `{}`: {said}", record.display());
    }
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let recording: Value = serde_json::from_str(&fs::read_to_string(record)?)?;
    Ok(rendered(name, &report, &recording))
}

fn rendered(name: &str, report: &Value, recording: &Value) -> String {
    let summary = &report["summary"];
    let rows = summary["variants"].as_array();
    let rows = rows.map_or(&[][..], Vec::as_slice);
    let question = summary["question"].as_str().unwrap_or_default();
    let mut out = format!("## {name}\n\n**{question}**\n\n");
    let titles = COLUMNS.map(|(title, _)| format!("{title} (ms)"));
    out += &head("Type", &titles);
    for row in rows {
        out += &line(
            row,
            &COLUMNS.map(|(_, metric)| figure(&row["metrics"][metric])),
        );
    }
    let confidence = summary["confidence_each"].as_f64().unwrap_or_default() * 100.0;
    let _ = write!(
        out,
        "\nDifferences from the baseline, each with its {confidence:.2} % interval, so that all \
         verdicts hold together with {:.0} %:\n\n",
        summary["confidence"].as_f64().unwrap_or_default() * 100.0
    );
    let mut titles = INTERVALS.map(|(title, ..)| title.to_owned()).to_vec();
    titles.push("Verdict".to_owned());
    out += &head("Type", &titles);
    for row in rows.iter().filter(|row| row["is_baseline"] != true) {
        let cells = INTERVALS.map(|(_, metric, unit, decimals)| {
            interval(&row["metrics"][metric]["overhead"], unit, decimals)
        });
        let mut cells = cells.to_vec();
        cells.push(row["verdict_text"].as_str().unwrap_or_default().to_owned());
        out += &line(row, &cells);
    }
    out + "\n" + &circumstances(name, report, recording)
}

fn head(first: &str, titles: &[String]) -> String {
    let rule = vec!["---"; titles.len() + 1].join(" | ");
    format!("| {first} | {} |\n| {rule} |\n", titles.join(" | "))
}

fn line(row: &Value, cells: &[String]) -> String {
    let name = row["name"].as_str().unwrap_or_default();
    format!("| {name} | {} |\n", cells.join(" | "))
}

/// `0.69<br>(+0.21)`, in milliseconds.
fn figure(metric: &Value) -> String {
    let Some(value) = metric["value"].as_f64() else {
        return "–".to_owned();
    };
    let value = format!("{:.2}", value / 1e3);
    match metric["overhead"]["difference"].as_f64() {
        Some(difference) => format!("{value}<br>({:+.2})", difference / 1e3),
        None => value,
    }
}

/// `+0.212 (+0.190 to +0.240)`
fn interval(overhead: &Value, unit: f64, decimals: usize) -> String {
    let figure = |key: &str| {
        let value = overhead[key].as_f64()?;
        Some(format!("{:+.decimals$}", value / unit))
    };
    let Some(difference) = figure("difference") else {
        return "–".to_owned();
    };
    match (figure("difference_low"), figure("difference_high")) {
        (Some(low), Some(high)) => format!("{difference} ({low} to {high})"),
        _ => difference,
    }
}

/// When, where, how long, and under which limits.
fn circumstances(name: &str, report: &Value, recording: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let environment = &report["environment"];
    let command: Vec<&str> = recording["command"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let command = command.get(1..).unwrap_or_default().join(" ");
    let mut out = format!(
        "- {} rounds, recorded {} by `weigh {command}`: `records/{name}.json`\n\
         - {}, {} cores, {}, {}\n",
        report["summary"]["rounds_measured"],
        text(&report["started_at"]),
        text(&environment["cpu_model"]),
        environment["cores"],
        text(&environment["os"]),
        text(&environment["kernel"]),
    );
    for (system, limits) in limits(recording) {
        let _ = writeln!(out, "- limits of `{system}`, as read back: {limits}");
    }
    for row in report["summary"]["variants"]
        .as_array()
        .into_iter()
        .flatten()
    {
        for check in row["checks"].as_array().into_iter().flatten() {
            if check["state"] != "ok" {
                let _ = writeln!(
                    out,
                    "- {}, check {} {}: {}",
                    text(&row["name"]),
                    text(&check["name"]),
                    text(&check["state"]),
                    text(&check["text"])
                );
            }
        }
    }
    out
}

/// The limits of each system; every variant has the same.
fn limits(recording: &Value) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let variants = recording["variants"].as_array().into_iter().flatten();
    let systems = variants.filter_map(|variant| variant["systems"].as_array());
    for system in systems
        .flatten()
        .filter(|system| system["limits_by"].is_string())
    {
        let name = system["name"].as_str().unwrap_or_default();
        let enforced = &system["limits_enforced"];
        let by = system["limits_by"].as_str().unwrap_or_default();
        let words = match (enforced["cpus"].as_f64(), enforced["memory_bytes"].as_f64()) {
            (None, None) => format!("none: {by}"),
            (cpus, memory) => {
                let cpus = cpus.map(|cpus| format!("{cpus} CPU"));
                let memory = memory.map(|bytes| format!("{:.0} MiB", bytes / 1_048_576.0));
                let both: Vec<String> = cpus.into_iter().chain(memory).collect();
                format!("{} ({by})", both.join(", "))
            }
        };
        if !found
            .iter()
            .any(|known| *known == (name.to_owned(), words.clone()))
        {
            found.push((name.to_owned(), words));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_has_the_table_of_the_seed_then_intervals_then_circumstances() {
        let metric = |value: f64| json!({"value": value});
        let compared = json!({
            "value": 900.0,
            "overhead": {"difference": 220.0, "difference_low": 190.0, "difference_high": 251.0},
        });
        let report = json!({
            "started_at": "2026-11-21T10:00:00Z",
            "environment": {"cpu_model": "C", "cores": 2, "os": "O", "kernel": "K"},
            "summary": {
                "question": "What does it cost?", "confidence": 0.95, "confidence_each": 0.975,
                "rounds_measured": 12,
                "variants": [
                    {"name": "baseline", "is_baseline": true, "metrics": {"latency_us_mean": metric(680.0)}, "checks": []},
                    {"name": "go", "metrics": {"latency_us_mean": compared}, "verdict_text": "0.22 ms slower",
                     "checks": [{"name": "lateness", "state": "weak", "text": "late"}]},
                    {"name": "java", "metrics": {}, "verdict_text": "NOT RUN: `java` is not installed", "checks": []},
                ],
            },
        });
        let recording = json!({
            "command": ["target/release/weigh", "lab", "x"],
            "variants": [{"systems": [
                {"name": "gateway", "limits_by": "cgroup v1", "limits_enforced": {"cpus": 1.0, "memory_bytes": 1_073_741_824_u64}},
                {"name": "planets", "limits_by": null},
            ]}],
        });
        let text = rendered("x", &report, &recording);
        for part in [
            "| go | – | 0.90<br>(+0.22) | – | – | – | – | – |\n",
            "| baseline | – | 0.68 | – | – | – | – | – |\n",
            "each with its 97.50 % interval",
            "| go | +0.220 (+0.190 to +0.251) | – | – | – | – | 0.22 ms slower |\n",
            "| java | – | – | – | – | – | NOT RUN: `java` is not installed |\n",
            "- 12 rounds, recorded 2026-11-21T10:00:00Z by `weigh lab x`: `records/x.json`\n",
            "- limits of `gateway`, as read back: 1 CPU, 1024 MiB (cgroup v1)\n",
            "- go, check lateness weak: late\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("planets"), "{text}");
    }
}
