//! `cargo xtask bench-load`: weigh and other load generators against the same nginx worker, in turn.
//!
//! The one idea: nginx counts the requests, the kernel counts the CPU time, so that no generator's
//! own figures are needed for the cost of a request. Generators that are not installed are left
//! out.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::chores::root;

mod generator;
mod nginx;
mod process;
mod table;

use generator::Generator;
use nginx::Nginx;

/// How the generators are compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Turns; every generator runs once in each.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Length of one run in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    seconds: u32,
    /// Connections of the closed loop.
    #[arg(long, default_value_t = 100)]
    connections: u32,
    /// Leave out generators whose name holds none of these words.
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    /// Use this weigh instead of building one.
    #[arg(long, value_name = "PROGRAM")]
    weigh: Option<std::path::PathBuf>,
    /// Write the table into docs/bench-load.md.
    #[arg(long)]
    write: bool,
}

/// What all runs have in common.
#[derive(Clone, Copy, Debug)]
struct Setting {
    seconds: u32,
    connections: u32,
}

/// What one run of a generator showed.
#[derive(Clone, Copy, Debug)]
struct Sample {
    requests_per_s: f64,
    cpu_us_per_request: f64,
    peak_kib: f64,
}

/// All runs of one generator.
struct Row {
    name: &'static str,
    version: String,
    samples: Vec<Sample>,
}

pub(crate) fn load(args: &Args) -> anyhow::Result<()> {
    let weigh = match &args.weigh {
        Some(program) => program.clone(),
        None => built()?,
    };
    let nginx = Nginx::start()?;
    let generators: Vec<Generator> = generator::all(&weigh, &nginx)
        .into_iter()
        .filter(|generator| {
            args.only.is_empty() || args.only.iter().any(|word| generator.name.contains(word))
        })
        .filter(Generator::is_installed)
        .collect();
    let setting = Setting {
        seconds: args.seconds,
        connections: args.connections,
    };
    let mut rows: Vec<Row> = generators
        .iter()
        .map(|generator| Row {
            name: generator.name,
            version: generator.version(),
            samples: Vec::new(),
        })
        .collect();
    for turn in 0..args.repeat {
        for place in 0..generators.len() {
            // Nobody always runs after the same one.
            let index = (turn + place) % generators.len();
            let generator = &generators[index];
            let sample = generator
                .run(setting, &nginx)
                .with_context(|| format!("run {} of {}", turn + 1, generator.name))?;
            say(&format!(
                "{:<22} {:>8.0} requests/s {:>7.2} us CPU/request {:>7.1} MiB",
                generator.name,
                sample.requests_per_s,
                sample.cpu_us_per_request,
                sample.peak_kib / 1024.0
            ));
            rows[index].samples.push(sample);
        }
    }
    let page = table::page(&rows, args, &nginx.version()?);
    say(&page);
    if args.write {
        write(&page)?;
    }
    Ok(())
}

/// Where the table stands.
const DOCUMENT: &str = "docs/bench-load.md";
const BEGIN: &str = "<!-- written by cargo xtask bench-load: begin -->";
const END: &str = "<!-- written by cargo xtask bench-load: end -->";

fn write(page: &str) -> anyhow::Result<()> {
    let path = root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("{DOCUMENT} cannot be read"))?;
    let Some((before, rest)) = text.split_once(BEGIN) else {
        bail!("{DOCUMENT} has no line `{BEGIN}`");
    };
    let Some((_, after)) = rest.split_once(END) else {
        bail!("{DOCUMENT} has no line `{END}`");
    };
    fs::write(&path, format!("{before}{BEGIN}\n\n{page}\n{END}{after}"))
        .with_context(|| format!("{DOCUMENT} cannot be written"))
}

/// Builds weigh as it is released.
pub(crate) fn built() -> anyhow::Result<std::path::PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--release", "--package", "weigh"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo starts")?;
    if !output.status.success() {
        bail!("weigh does not build");
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "weigh")
        .find_map(|message| message["executable"].as_str().map(Into::into))
        .context("cargo does not say where it put weigh")
}

/// A program on the path.
fn is_on_path(program: &Path) -> bool {
    Command::new("sh")
        .args(["-c", "command -v -- \"$0\" >/dev/null"])
        .arg(program)
        .status()
        .is_ok_and(|status| status.success())
}

#[expect(clippy::print_stdout, reason = "the answer of a chore")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
