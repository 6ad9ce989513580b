//! `cargo xtask bench-scaling`: generators by the number of their cores and connections.
//!
//! A closed loop shows the requests per second, the CPU time and the memory. Open loops show how late `weigh` sends. The
//! other generators do not report their lateness.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use stats::Histogram;

use super::generator::{self, Generator};
use super::material::Material;
use super::server::{self, Server};
use super::task::Task;
use super::{DOCUMENT, Row, Sample, Setting, built, say, table};
use crate::page;

/// Settings of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Numbers of cores of a generator.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2])]
    cores: Vec<u32>,
    /// Numbers of connections.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [100, 1000, 10_000])]
    connections: Vec<u32>,
    /// Number of turns. Every generator runs once per turn.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Length of one run, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    seconds: u32,
    /// Requests per second of the open loops.
    #[arg(long, value_name = "PER_SECOND", value_delimiter = ',', default_values_t = [10_000, 50_000])]
    rate: Vec<u32>,
    /// Use this `weigh` instead of building one.
    #[arg(long, value_name = "PROGRAM")]
    weigh: Option<PathBuf>,
    /// Write the table into docs/bench-load.md.
    #[arg(long)]
    write: bool,
}

/// The title of the table in the document.
pub(super) const TITLE: &str = "Cores and connections";

/// The generators of the comparison.
const COMPARED: [&str; 4] = ["weigh", "wrk", "oha", "k6"];

/// Quantiles of the lateness in the table.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// The results of one number of cores and connections.
struct Point {
    setting: Setting,
    rows: Vec<Row>,
    /// The lateness of `weigh` in the open loop of each rate, of all turns together.
    lateness: Vec<Histogram>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let weigh = match &args.weigh {
        Some(program) => program.clone(),
        None => built()?,
    };
    let material = Material::new()?;
    let server = server::start(Task::Small, &material, &weigh)?;
    let (generators, absent): (Vec<_>, Vec<_>) =
        generator::all(Task::Small, &weigh, &*server, &material)
            .into_iter()
            .filter(|generator| COMPARED.contains(&generator.name))
            .partition(Generator::is_installed);
    let mut points = Vec::new();
    for &cores in &args.cores {
        for &connections in &args.connections {
            if cores == 0 || connections == 0 {
                bail!("expected at least 1 core and 1 connection, found {cores} and {connections}");
            }
            let setting = Setting {
                seconds: args.seconds,
                connections,
                cores,
            };
            points.push(measured(args, setting, &generators, &*server)?);
        }
    }
    let absent: Vec<&str> = absent.iter().map(|generator| generator.name).collect();
    let page = written(args, &points, &absent, &server.name()?);
    say(&page);
    if args.write {
        page::write(DOCUMENT, TITLE, &page)?;
    }
    Ok(())
}

/// Runs all generators in turn with one number of cores and connections.
fn measured(
    args: &Args,
    setting: Setting,
    generators: &[Generator],
    server: &dyn Server,
) -> anyhow::Result<Point> {
    let mut point = Point {
        setting,
        rows: generators.iter().map(row).collect(),
        lateness: args.rate.iter().map(|_| Histogram::new()).collect(),
    };
    for turn in 0..args.repeat {
        for (generator, row) in generators.iter().zip(&mut point.rows) {
            let sample = generator.run(setting, server).with_context(|| {
                format!(
                    "run {} of {} with {} connections",
                    turn + 1,
                    generator.name,
                    setting.connections
                )
            })?;
            say(&format!(
                "{} cores, {:>5} connections: {:<6} {:>8.0} requests/s {:>7.2} us CPU/request {:>7.1} MiB own",
                setting.cores,
                setting.connections,
                generator.name,
                sample.requests_per_s,
                sample.cpu_us_per_request,
                sample.own_kib / 1024.0,
            ));
            row.samples.push(sample);
        }
        if let Some(weigh) = generators.iter().find(|it| it.name == "weigh") {
            for (rate, all) in args.rate.iter().zip(&mut point.lateness) {
                all.add(&lateness(weigh.program(), &weigh.url, setting, *rate)?);
            }
        }
    }
    Ok(point)
}

fn row(generator: &Generator) -> Row {
    Row {
        name: generator.name,
        version: generator.version(),
        samples: Vec::new(),
    }
}

/// The lateness of an open loop: the actual send minus the due time.
fn lateness(weigh: &Path, url: &str, setting: Setting, rate: u32) -> anyhow::Result<Histogram> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("recording.json");
    // A rate that the server cannot answer ends with failures, and its lateness counts nevertheless.
    let _ended = Command::new("taskset")
        .args(["--cpu-list", &setting.cpu_list()])
        .arg(weigh)
        .args(["load", url, "--record"])
        .arg(&file)
        .args(["--rate", &rate.to_string()])
        .args(["-c", &setting.connections.to_string()])
        .args(["-z", &format!("{}s", setting.seconds)])
        .args(["--threads", &setting.cores.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("`taskset` starts weigh")?;
    let recording = fs::read(&file).context("`weigh load --record` writes a recording")?;
    let recording: serde_json::Value = serde_json::from_slice(&recording)?;
    let late = recording["rounds"][0]["lateness_ns_hdr"].clone();
    let late: recording::Hdr =
        serde_json::from_value(late).context("the recording has the lateness of its sends")?;
    Ok(late.histogram())
}

/// The table as Markdown.
fn written(args: &Args, points: &[Point], absent: &[&str], server: &str) -> String {
    let list = |numbers: &[u32]| {
        let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
        words.join(",")
    };
    let lateness: String = args
        .rate
        .iter()
        .map(|rate| format!(" lateness us at {rate}/s |"))
        .collect();
    let mut out = format!(
        "`cargo xtask bench-scaling --cores {} --connections {} --repeat {} --seconds {} --rate {}`\n\n\
         Server: {server} on core 0, small responses. Generators: closed loop, keep-alive, over loopback. weigh and \
         wrk have one thread for each core. {}.\n\n\
         Cells show medians of {} runs in turn, with the lowest and highest values in brackets. Lateness is the \
         actual send minus the due time, at p50, p99 and p99.9, in open loops.\n\n\
         | cores | connections | generator | requests/s | CPU us/request | own MiB | KiB per further connection |{lateness}\n\
         |---:|---:|---|---:|---:|---:|---:|{}\n",
        list(&args.cores),
        list(&args.connections),
        args.repeat,
        args.seconds,
        list(&args.rate),
        table::machine(),
        args.repeat,
        "---:|".repeat(args.rate.len()),
    );
    for point in points {
        for row in &point.rows {
            out += &line(points, point, row);
        }
    }
    let rows = points.first().map_or(&[][..], |point| &point.rows);
    let mut versions: Vec<String> = rows
        .iter()
        .map(|row| format!("{} ({})", row.name, row.version))
        .collect();
    versions.extend(absent.iter().map(|name| format!("{name} (not installed)")));
    out + &format!("\nVersions: {}.\n", versions.join(", "))
}

fn line(points: &[Point], point: &Point, row: &Row) -> String {
    let cell = |column: table::Column, digits: usize| {
        let (low, middle, high) = table::spread(&row.samples, column);
        format!("{middle:.digits$} ({low:.digits$} to {high:.digits$})")
    };
    let own_kib: table::Column = |sample| sample.own_kib;
    let lateness: String = point
        .lateness
        .iter()
        .map(|all| match row.name {
            "weigh" => format!(" {} |", quantiles_us(all)),
            _ => " not reported |".to_owned(),
        })
        .collect();
    let further = match per_connection_kib(points, point, row.name) {
        Some(kib) => format!("{kib:.1}"),
        None => "first row".to_owned(),
    };
    let Setting {
        cores, connections, ..
    } = point.setting;
    format!(
        "| {cores} | {connections} | {} | {} | {} | {:.1} | {further} |{lateness}\n",
        row.name,
        cell(|sample: &Sample| sample.requests_per_s, 0),
        cell(|sample: &Sample| sample.cpu_us_per_request, 2),
        table::spread(&row.samples, own_kib).1 / 1024.0,
    )
}

/// The own memory of each connection beyond the first row with as many cores, in KiB. `None` for that row.
fn per_connection_kib(points: &[Point], point: &Point, name: &str) -> Option<f64> {
    let own_kib = |point: &Point| {
        let row = point.rows.iter().find(|row| row.name == name)?;
        Some(table::spread(&row.samples, |sample| sample.own_kib).1)
    };
    let first = points
        .iter()
        .find(|other| other.setting.cores == point.setting.cores)?;
    let further = point
        .setting
        .connections
        .checked_sub(first.setting.connections)
        .filter(|further| *further > 0)?;
    Some((own_kib(point)? - own_kib(first)?) / f64::from(further))
}

fn quantiles_us(lateness: &Histogram) -> String {
    let mut words = String::new();
    for quantile in QUANTILES {
        let Some(ns) = lateness.quantile_ns(quantile) else {
            return "none sent".to_owned();
        };
        let separator = if words.is_empty() { "" } else { ", " };
        #[expect(clippy::cast_precision_loss, reason = "a time below 100 days")]
        let us = ns as f64 / 1000.0;
        let _ = write!(words, "{separator}{us:.1}");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(cores: u32, connections: u32, own_kib: f64) -> Point {
        Point {
            setting: Setting {
                seconds: 1,
                connections,
                cores,
            },
            rows: vec![Row {
                name: "weigh",
                version: "1".to_owned(),
                samples: vec![Sample {
                    requests_per_s: 1.0,
                    cpu_us_per_request: 1.0,
                    peak_kib: 1.0,
                    own_kib,
                }],
            }],
            lateness: Vec::new(),
        }
    }

    #[test]
    fn memory_per_connection_is_beyond_the_first_row_with_as_many_cores() {
        let points = [
            point(1, 100, 2000.0),
            point(1, 1100, 3000.0),
            point(2, 100, 2500.0),
            point(2, 600, 3500.0),
        ];
        let found = |index: usize| per_connection_kib(&points, &points[index], "weigh");
        assert_eq!(found(0), None);
        assert_eq!(found(1), Some(1.0));
        assert_eq!(found(2), None);
        assert_eq!(found(3), Some(2.0));
    }

    #[test]
    fn quantiles_of_nothing_are_no_numbers() {
        let mut lateness = Histogram::new();
        assert_eq!(quantiles_us(&lateness), "none sent");
        lateness.record_n_ns(1000, 1000);
        let words = quantiles_us(&lateness);
        assert_eq!(words.split(", ").count(), 3, "{words}");
        assert!(words.starts_with("1.0, "), "{words}");
    }
}
