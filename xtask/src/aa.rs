//! `cargo xtask aa`: the instrument held against known differences, on real processes.
//!
//! The one idea: the truth is known because it is made. The null server is compared with itself, with
//! itself plus a planted delay, and burns a known processor time; what `weigh lab` says about that
//! goes into METHODOLOGY.md.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::bench;
use crate::chores::root;

/// What is planted, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this piece; each of them takes less than two minutes.
    #[arg(long, value_enum)]
    piece: Option<Piece>,
    /// Repetitions of the lab that compares a server with itself.
    #[arg(long, default_value_t = 10)]
    repeat: u64,
    /// Use this weigh instead of building one.
    #[arg(long, value_name = "PROGRAM")]
    weigh: Option<PathBuf>,
    /// Write the results into METHODOLOGY.md.
    #[arg(long)]
    write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Piece {
    /// The same server twice: no difference is the truth.
    Same,
    /// One server is 200 us later.
    Delay,
    /// Servers that burn 0.1, 1 and 5 ms of processor time per request.
    Cpu,
}

const PIECES: [Piece; 3] = [Piece::Same, Piece::Delay, Piece::Cpu];

/// The delay that is planted.
const DELAY_US: f64 = 200.0;
/// The processor times that are burnt.
const BURNT_US: [f64; 3] = [100.0, 1_000.0, 5_000.0];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let weigh = match &args.weigh {
        Some(program) => fs::canonicalize(program).context("`--weigh` is a program")?,
        None => bench::built()?,
    };
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let bench = Bench {
        weigh,
        folder: folder.path(),
        withheld: Cell::new(0),
    };
    for piece in PIECES {
        if args.piece.is_some_and(|only| only != piece) {
            continue;
        }
        let section = match piece {
            Piece::Same => bench.same(args.repeat)?,
            Piece::Delay => bench.delay()?,
            Piece::Cpu => bench.cpu()?,
        };
        let section = section + &bench.withheld();
        bench::say(&section);
        if args.write {
            write(piece, &section)?;
        }
    }
    Ok(())
}

/// Where labs are written and run.
struct Bench<'a> {
    weigh: PathBuf,
    folder: &'a Path,
    /// Labs that were run again because a check withheld a number.
    withheld: Cell<u64>,
}

impl Bench<'_> {
    /// Equal servers, again and again.
    fn same(&self, repeat: u64) -> anyhow::Result<String> {
        let mut claims: Vec<(&str, u64)> = SHOWN.iter().map(|(_, name)| (*name, 0)).collect();
        let mut rows = String::new();
        let mut verdicts = 0;
        for seed in 1..=repeat {
            let summary = self.lab("same", "  - {name: again}\n", OPEN, seed)?;
            let again = variant(&summary, "again")?;
            let verdict = text(again, "verdict_text");
            verdicts += u64::from(claim(again, "latency_us_mean") != "no-difference-shown");
            for ((key, _), (_, count)) in SHOWN.iter().zip(&mut claims) {
                *count += u64::from(claim(again, key) != "no-difference-shown");
            }
            bench::say(&format!("{seed}/{repeat}: {verdict}"));
            let _ = writeln!(
                rows,
                "| {seed} | {} | {verdict} |",
                overhead(again, "latency_us_mean")
            );
        }
        let claimed = claims.iter().map(|(name, count)| format!("{name} {count}"));
        Ok(format!(
            "The same server twice, {repeat} labs of 8 rounds: a difference was claimed in \
             **{verdicts} of {repeat}**.\nBy figure, each at 95 %: {}.\n\n\
             | lab | mean latency, difference (us) | verdict |\n|---|---|---|\n{rows}",
            claimed.collect::<Vec<_>>().join(", ")
        ))
    }

    fn delay(&self) -> anyhow::Result<String> {
        let variants = "  - {name: later, with: {server.flag: --delay=200us}}\n";
        let summary = self.lab("delay", variants, OPEN, 1)?;
        let later = variant(&summary, "later")?;
        let mut rows = String::new();
        for (key, name) in SHOWN.iter().filter(|(key, _)| key.starts_with("latency")) {
            let (_, low, high) = interval(later, key)?;
            let is_inside = low <= DELAY_US && DELAY_US <= high;
            let verdict = if is_inside { "yes" } else { "no" };
            let _ = writeln!(rows, "| {name} | {} | {verdict} |", overhead(later, key));
        }
        Ok(format!(
            "A server that answers {DELAY_US} us later; verdict: **{}**.\n\n\
             | figure | difference (us) | the planted one is in the interval |\n\
             |---|---|---|\n{rows}",
            text(later, "verdict_text")
        ))
    }

    fn cpu(&self) -> anyhow::Result<String> {
        let variants: String = BURNT_US
            .iter()
            .map(|us| format!("  - {{name: burns-{us}us, with: {{server.flag: --burn={us}us}}}}\n"))
            .collect();
        let summary = self.lab("cpu", &variants, CLOSED, 1)?;
        let mut rows = String::new();
        for us in BURNT_US {
            let row = variant(&summary, &format!("burns-{us}us"))?;
            let cpu = &row["metrics"]["cpu_us_per_request"];
            let Some(value) = cpu["value"].as_f64() else {
                bail!(
                    "`burns-{us}us` has no number: {}",
                    text(row, "verdict_text")
                );
            };
            let (low, high) = (number(&cpu["low"]), number(&cpu["high"]));
            let off = (value / us - 1.0) * 100.0;
            let _ = writeln!(
                rows,
                "| {us} us | {value:.1} us ({low:.1} to {high:.1}) | {off:+.1} % |"
            );
        }
        Ok(format!(
            "Servers that burn a known processor time per request:\n\n\
             | burnt | reported (95 % interval) | off |\n|---|---|---|\n{rows}"
        ))
    }

    /// Says how many labs were run again, and starts counting anew.
    fn withheld(&self) -> String {
        match self.withheld.take() {
            0 => String::new(),
            1 => "\nOne lab was run again because a check withheld a number.\n".to_owned(),
            many => format!("\n{many} labs were run again because a check withheld a number.\n"),
        }
    }

    /// Runs a lab of null servers until every row has a number, and reads its summary.
    fn lab(&self, name: &str, variants: &str, load: &str, seed: u64) -> anyhow::Result<Value> {
        for _ in 0..ATTEMPTS {
            let summary = self.run_lab(name, variants, load, seed)?;
            let rows = summary["variants"].as_array();
            let Some(without) = rows
                .into_iter()
                .flatten()
                .find(|row| row["verdict"]["state"] == "invalid")
            else {
                return Ok(summary);
            };
            bench::say(&format!(
                "{name}, seed {seed}: {}",
                text(without, "verdict_text")
            ));
            self.withheld.set(self.withheld.get() + 1);
        }
        bail!("a check withheld a number {ATTEMPTS} times; free the machine, then run this again")
    }

    fn run_lab(&self, name: &str, variants: &str, load: &str, seed: u64) -> anyhow::Result<Value> {
        let path = self.folder.join(format!("{name}.yaml"));
        let weigh = self.weigh.display();
        let lab = format!(
            "question: Is what was planted found ({name})?\nload: {load}\nwarmup: 100ms\nrounds: 8\n\
             target: server\nsystems:\n  server:\n    settings: {{flag: --seed=1}}\n    \
             run: \"'{weigh}' null-server --listen {{{{addr}}}} {{{{flag}}}}\"\n    pin: 0\n\
             baseline: {{name: plain}}\nvariants:\n{variants}"
        );
        fs::write(&path, lab).context("a lab can be written")?;
        let output = Command::new(&self.weigh)
            .args(["lab", "--format", "json", "--seed", &seed.to_string()])
            .arg("--out")
            .arg(self.folder.join("recordings"))
            .arg(&path)
            .stderr(Stdio::piped())
            .output()
            .context("weigh starts")?;
        let answer: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            let talk = String::from_utf8_lossy(&output.stderr);
            format!("weigh ended with {} and said:\n{talk}", output.status)
        })?;
        Ok(answer["summary"].clone())
    }
}

/// How often a lab is run when checks withhold a number: it then says nothing about the instrument.
const ATTEMPTS: u32 = 10;

const OPEN: &str = "{rate: 1000/s, duration: 400ms}";
const CLOSED: &str = "{connections: 1, duration: 1s}";

/// Figures by their key, with the name to show.
const SHOWN: [(&str, &str); 6] = [
    ("latency_us_mean", "mean"),
    ("latency_us_p50", "p50"),
    ("latency_us_p90", "p90"),
    ("latency_us_p95", "p95"),
    ("latency_us_p99", "p99"),
    ("cpu_us_per_request", "CPU"),
];

fn variant<'a>(summary: &'a Value, name: &str) -> anyhow::Result<&'a Value> {
    let variants = summary["variants"].as_array();
    let mut rows = variants.into_iter().flatten();
    rows.find(|row| row["name"] == name)
        .with_context(|| format!("`{name}` is not in the summary"))
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or("nothing")
}

fn claim<'a>(row: &'a Value, key: &str) -> &'a str {
    let overhead = &row["metrics"][key]["overhead"];
    overhead["claim"].as_str().unwrap_or("no-difference-shown")
}

/// The difference with the ends of its interval.
fn interval(row: &Value, key: &str) -> anyhow::Result<(f64, f64, f64)> {
    let overhead = &row["metrics"][key]["overhead"];
    let read = |field: &str| overhead[field].as_f64();
    read("difference")
        .zip(read("difference_low").zip(read("difference_high")))
        .map(|(value, (low, high))| (value, low, high))
        .with_context(|| format!("no interval of {key}: {}", text(row, "verdict_text")))
}

/// `+199.2 (196.1 to 203.4)`.
fn overhead(row: &Value, key: &str) -> String {
    interval(row, key).map_or_else(
        |_| "none".to_owned(),
        |(value, low, high)| format!("{value:+.1} ({low:+.1} to {high:+.1})"),
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Where the results stand.
const DOCUMENT: &str = "METHODOLOGY.md";

fn write(piece: Piece, section: &str) -> anyhow::Result<()> {
    let name = format!("{piece:?}").to_lowercase();
    let path = root().join(DOCUMENT);
    let page = fs::read_to_string(&path).with_context(|| format!("{DOCUMENT} cannot be read"))?;
    let begin = format!("<!-- written by cargo xtask aa --piece {name} --write: begin -->");
    let end = format!("<!-- written by cargo xtask aa --piece {name} --write: end -->");
    let Some((before, rest)) = page.split_once(&begin) else {
        bail!("{DOCUMENT} has no line `{begin}`");
    };
    let Some((_, after)) = rest.split_once(&end) else {
        bail!("{DOCUMENT} has no line `{end}`");
    };
    fs::write(
        &path,
        format!("{before}{begin}\n\n{}\n\n{end}{after}", section.trim_end()),
    )
    .with_context(|| format!("{DOCUMENT} cannot be written"))
}
