//! `cargo xtask bench-load`: weigh and other load generators against the same server, in turn.
//!
//! Main idea: the server counts the requests, and the kernel counts the CPU time. So the cost of a request does
//! not depend on a generator's own figures. The output names generators that are not installed, and leaves
//! them out.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, bail};

use crate::page;
use crate::repository::root;

mod generator;
mod material;
mod process;
pub(crate) mod scaling;
mod server;
mod table;
mod task;

use generator::Generator;
use material::Material;
use server::Server;
use task::Task;

/// Settings of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of turns. Every generator runs once per turn.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Length of one run, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    seconds: u32,
    /// Number of connections in the closed loop.
    #[arg(long, default_value_t = 100)]
    connections: u32,
    /// Tasks to compare. The default is all tasks.
    #[arg(long, value_name = "TASK", value_enum, value_delimiter = ',')]
    task: Vec<Task>,
    /// Words that select generators. A generator runs if its name contains one of them.
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    /// Use this `weigh` instead of building one.
    #[arg(long, value_name = "PROGRAM")]
    weigh: Option<std::path::PathBuf>,
    /// Write the tables into docs/bench-load.md. Tables of other tasks stay unchanged.
    #[arg(long)]
    write: bool,
}

/// Settings that all runs share.
#[derive(Clone, Copy, Debug)]
struct Setting {
    seconds: u32,
    connections: u32,
    /// Number of cores of the generator. Generators with a flag for threads have one thread on each.
    cores: u32,
}

impl Setting {
    /// The cores of the generator, as `taskset` expects them. The server has core 0, and a generator shares it only
    /// if the machine has no more cores.
    fn cpu_list(self) -> String {
        let machine = thread::available_parallelism().map_or(1, NonZero::get);
        if usize::try_from(self.cores).is_ok_and(|cores| cores < machine) {
            match self.cores {
                1 => "1".to_owned(),
                cores => format!("1-{cores}"),
            }
        } else {
            format!("0-{}", machine - 1)
        }
    }
}

/// Figures of one run of a generator.
#[derive(Clone, Copy, Debug)]
struct Sample {
    requests_per_s: f64,
    cpu_us_per_request: f64,
    /// Peak of the resident memory, with the pages of the program file.
    peak_kib: f64,
    /// The part of the resident memory that belongs to no file.
    own_kib: f64,
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
    let material = Material::new()?;
    let tasks = match args.task.as_slice() {
        [] => &Task::ALL[..],
        some => some,
    };
    for task in tasks {
        let server = server::start(*task, &material, &weigh)?;
        let generators = generator::all(*task, &weigh, &*server, &material);
        let page = compare(args, *task, generators, &*server)?;
        say(&page);
        if args.write {
            page::write(DOCUMENT, task.title(), &page)?;
        }
    }
    Ok(())
}

/// Runs all generators at one task and returns a table.
fn compare(
    args: &Args,
    task: Task,
    generators: Vec<Generator>,
    server: &dyn Server,
) -> anyhow::Result<String> {
    let is_wanted = |generator: &Generator| {
        args.only.is_empty() || args.only.iter().any(|word| generator.name.contains(word))
    };
    let (generators, absent): (Vec<_>, Vec<_>) = generators
        .into_iter()
        .filter(is_wanted)
        .partition(Generator::is_installed);
    let setting = Setting {
        seconds: args.seconds,
        connections: args.connections,
        cores: 1,
    };
    let mut rows: Vec<Row> = generators
        .iter()
        .map(|generator| Row {
            name: generator.name,
            version: generator.version(),
            samples: Vec::new(),
        })
        .collect();
    let unit = task.unit();
    for turn in 0..args.repeat {
        for place in 0..generators.len() {
            // The order shifts from turn to turn, so that no program always runs first.
            let index = (turn + place) % generators.len();
            let generator = &generators[index];
            let sample = generator
                .run(setting, server)
                .with_context(|| format!("run {} of {}", turn + 1, generator.name))?;
            say(&format!(
                "{:<22} {:>8.0} {unit}s/s {:>7.2} us CPU/{unit} {:>7.1} MiB, {:>5.1} MiB own",
                generator.name,
                sample.requests_per_s,
                sample.cpu_us_per_request,
                sample.peak_kib / 1024.0,
                sample.own_kib / 1024.0,
            ));
            rows[index].samples.push(sample);
        }
    }
    let absent: Vec<&str> = absent.iter().map(|generator| generator.name).collect();
    let scene = table::Scene {
        task,
        setting,
        repeat: args.repeat,
        server: server.name()?,
        absent,
    };
    Ok(table::page(&rows, &scene))
}

/// The document with the tables.
const DOCUMENT: &str = "docs/bench-load.md";

/// Builds weigh with the release profile.
pub(crate) fn built() -> anyhow::Result<PathBuf> {
    Ok(programs("release", &["weigh"])?.join("weigh"))
}

/// Builds packages with a profile of cargo. Returns the folder of their programs. The first package must have
/// a program of its own name.
pub(crate) fn programs(profile: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let named = packages.first().context("there is something to build")?;
    let output = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--profile", profile])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo starts")?;
    if !output.status.success() {
        bail!("{} do not build", packages.join(", "));
    }
    // Read from cargo's output, because the target folder may be elsewhere.
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == **named)
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
        .and_then(|program| Some(program.parent()?.to_path_buf()))
        .with_context(|| format!("cargo does not say where it put {named}"))
}

/// True if the program is on PATH.
pub(crate) fn is_on_path(program: &Path) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_document_has_a_place_for_every_task() {
        let titles: Vec<_> = Task::ALL.iter().map(|task| task.title()).collect();
        page::assert_places(DOCUMENT, &[titles, vec![scaling::TITLE]].concat());
    }
}
