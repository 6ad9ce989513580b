//! `cargo xtask bench-gateway`: the cost that the gateway adds to its origin, side by side in one run.
//!
//! Main idea: the query for one location takes two fetches, one after the other. So the gateway's own part is
//! its latency minus twice the origin's. The kernel counts the CPU time of the gateway, and the origin counts
//! the fetches that prove the work.

use std::fmt;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::bench;
use crate::process::Process;
use crate::repository::root;

/// Settings of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of turns. Each turn measures everything once.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Length of one measurement, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    seconds: u32,
    /// Rate of the open loop, in requests per second.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Number of connections in the closed loop.
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// Cargo profile of the gateway: `release` or `tuned`.
    #[arg(long, default_value = "release")]
    profile: String,
    /// Configuration file of the gateway. Without it, the gateway uses its defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use `weigh`, `planets` and `gateway` from this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

/// The measured programs, and the program that measures them.
const PROGRAMS: [&str; 3] = ["gateway", "planets", "weigh"];

/// The figures of one turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    origin_p50_us: f64,
    gateway_p50_us: f64,
    origin_per_s: f64,
    gateway_per_s: f64,
    cpu_us_per_request: f64,
}

impl fmt::Display for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "p50 {:.0} us of the origin, {:.0} us of the gateway; {:.0}/s and {:.0}/s; {:.1} us of CPU time per request",
            self.origin_p50_us,
            self.gateway_p50_us,
            self.origin_per_s,
            self.gateway_per_s,
            self.cpu_us_per_request
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let programs = match &args.programs {
        Some(folder) => complete(folder)?,
        None => bench::programs(&args.profile, &PROGRAMS)?,
    };
    let bench = Bench::start(&programs, args)?;
    let idle_mib = bench.gateway_mib()?;
    bench.measure(args, &bench.gateway_url(), Load::Closed)?;
    let mut turns = Vec::new();
    for number in 0..args.repeat {
        let turn = bench
            .turn(args)
            .with_context(|| format!("turn {}", number + 1))?;
        say(&format!("turn {}: {turn}", number + 1));
        turns.push(turn);
    }
    let median = |of: fn(&Turn) -> f64| {
        let values: Vec<f64> = turns.iter().map(of).collect();
        stats::sample::median(&values).unwrap_or_default()
    };
    let (origin, gateway) = (
        median(|it| it.origin_p50_us),
        median(|it| it.gateway_p50_us),
    );
    say(&format!(
        "medians of {} turns of {} s each\n\
         at {}/s: p50 of the origin {origin:.0} us, of the gateway {gateway:.0} us; \
         gateway minus twice the origin {:.0} us\n\
         {} connections: origin alone {:.0}/s; gateway {:.0}/s with {:.1} us of its own CPU time per request\n\
         resident memory: {idle_mib:.1} MiB after the start, {:.1} MiB after the load",
        args.repeat,
        args.seconds,
        args.rate,
        median(|it| it.gateway_p50_us - 2.0 * it.origin_p50_us),
        args.connections,
        median(|it| it.origin_per_s),
        median(|it| it.gateway_per_s),
        median(|it| it.cpu_us_per_request),
        bench.gateway_mib()?,
    ));
    Ok(())
}

/// Returns the folder, if all programs are in it.
fn complete(folder: &Path) -> anyhow::Result<PathBuf> {
    for program in PROGRAMS {
        let path = folder.join(program);
        if !bench::is_on_path(&path) {
            bail!(
                "`{}` is not there: --programs names a folder with {}",
                path.display(),
                PROGRAMS.join(", ")
            );
        }
    }
    Ok(folder.to_owned())
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// At a fixed rate.
    Open,
    /// Each connection sends the next request after the response to the last one.
    Closed,
}

/// The figures that weigh reported for one measurement.
struct Figures {
    p50_us: f64,
    per_s: f64,
    passed: f64,
}

/// The running origin and gateway.
struct Bench {
    weigh: PathBuf,
    folder: tempfile::TempDir,
    /// Before the origin, so that the gateway ends first.
    gateway: Process,
    gateway_address: String,
    _origin: Process,
    origin_address: String,
}

impl Bench {
    fn start(programs: &Path, args: &Args) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut planets = Command::new(programs.join("planets"));
        let (origin, origin_address) =
            Process::listening(planets.args(["--listen", "127.0.0.1:0"]))?;
        let supergraph = root().join("services/planets/supergraph.graphql");
        let text = fs::read_to_string(supergraph)?.replace("127.0.0.1:4001", &origin_address);
        let supergraph = folder.path().join("supergraph.graphql");
        fs::write(&supergraph, text)?;
        let mut command = Command::new(programs.join("gateway"));
        command.args(["--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"]);
        command.arg("--supergraph").arg(supergraph);
        if let Some(config) = &args.config {
            command.arg("--config").arg(config);
        }
        let (gateway, gateway_address) = Process::listening(&mut command)?;
        // The fetches of the query's plan, in order.
        let fetches = FETCHES
            .iter()
            .enumerate()
            .map(|(number, (path, body))| {
                let file = folder.path().join(format!("fetch-{number}.json"));
                fs::write(&file, body)?;
                Ok(format!(
                    "POST http://{origin_address}{path}\nContent-Type: application/json\n@{}\n\n",
                    file.display()
                ))
            })
            .collect::<anyhow::Result<String>>()?;
        fs::write(folder.path().join("fetches"), fetches)?;
        Ok(Self {
            weigh: programs.join("weigh"),
            folder,
            gateway,
            gateway_address,
            _origin: origin,
            origin_address,
        })
    }

    fn gateway_url(&self) -> Vec<String> {
        let body = root().join("services/planets/queries/getLocationById.json");
        vec![
            format!("http://{}/", self.gateway_address),
            "--data-file".to_owned(),
            body.display().to_string(),
            "--header".to_owned(),
            "Content-Type: application/json".to_owned(),
        ]
    }

    fn turn(&self, args: &Args) -> anyhow::Result<Turn> {
        let fetches = self.folder.path().join("fetches").display().to_string();
        let origin = ["--targets".to_owned(), fetches];
        let gateway = self.gateway_url();
        let origin_open = self.measure(args, &origin, Load::Open)?;
        let gateway_open = self.measure(args, &gateway, Load::Open)?;
        let origin_closed = self.measure(args, &origin, Load::Closed)?;
        let before = (self.gateway.cpu_us()?, self.fetches()?);
        let gateway_closed = self.measure(args, &gateway, Load::Closed)?;
        let after = (self.gateway.cpu_us()?, self.fetches()?);
        if after.1 - before.1 < 2.0 * gateway_closed.passed {
            bail!("the origin saw fewer than two fetches for each answer");
        }
        Ok(Turn {
            origin_p50_us: origin_open.p50_us,
            gateway_p50_us: gateway_open.p50_us,
            origin_per_s: origin_closed.per_s,
            gateway_per_s: gateway_closed.per_s,
            cpu_us_per_request: (after.0 - before.0) / gateway_closed.passed,
        })
    }

    fn measure(&self, args: &Args, target: &[String], load: Load) -> anyhow::Result<Figures> {
        let mut command = Command::new(&self.weigh);
        command.arg("load").args(target);
        command.args(["--format", "json", "--expect-graphql", "--duration"]);
        command.arg(format!("{}s", args.seconds));
        match load {
            Load::Open => command.arg("--rate").arg(args.rate.to_string()),
            Load::Closed => command
                .arg("--connections")
                .arg(args.connections.to_string()),
        };
        let output = command.output().context("weigh starts")?;
        let summary: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let target = &summary["summary"]["variants"][0];
        let number = |pointer: &str| {
            let found = target.pointer(pointer).and_then(Value::as_f64);
            found.with_context(|| format!("weigh tells no `{pointer}`: {target}"))
        };
        let failed = number("/outcomes/failed/reset")? + number("/outcomes/failed/timeout")?;
        if failed + number("/outcomes/mismatched/graphql")? > 0.0 {
            bail!("wrong answers: {}", target["outcomes"]);
        }
        Ok(Figures {
            p50_us: number("/metrics/latency_us_p50/value")?,
            per_s: number("/metrics/requests_per_s/value")?,
            passed: number("/outcomes/passed")?,
        })
    }

    /// Resident memory of the gateway in MiB.
    fn gateway_mib(&self) -> anyhow::Result<f64> {
        let held = self.gateway.holding().context("the gateway runs")?;
        Ok(held.memory as f64 / f64::from(1 << 20))
    }

    /// Number of fetches that the origin has received.
    fn fetches(&self) -> anyhow::Result<f64> {
        let seen = get(&self.origin_address, "/seen")?;
        let count = |name: &str| seen[name]["requests"].as_f64().unwrap_or_default();
        Ok(count("locations") + count("reviews"))
    }
}

/// The fetches of the query for one location, as the gateway sends them.
const FETCHES: [(&str, &str); 2] = [
    (
        "/locations",
        r#"{"query":"query getLocationById__locations__0($locationId:ID!){location(id:$locationId){__typename id description name photo}}","operationName":"getLocationById__locations__0","variables":{"locationId":"loc-1"}}"#,
    ),
    (
        "/reviews",
        r#"{"query":"query getLocationById__reviews__1($representations:[_Any!]!){_entities(representations:$representations){...on Location{overallRating}}}","operationName":"getLocationById__reviews__1","variables":{"representations":[{"__typename":"Location","id":"loc-1"}]}}"#,
    ),
];

/// Sends a GET and parses the JSON response.
pub(crate) fn get(address: &str, path: &str) -> anyhow::Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (_, body) = text.split_once("\r\n\r\n").context("an HTTP answer")?;
    Ok(serde_json::from_str(body)?)
}

#[expect(clippy::print_stdout, reason = "the answer of a chore")]
fn say(line: &str) {
    println!("{line}");
}
