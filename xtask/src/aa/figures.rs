//! Figures of a run: the reported ones, and those computed from the recording.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde_json::Value;
use stats::Histogram;

/// A figure that a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Mean of the fastest three quarters of the requests.
    Typical,
    /// Median latency in microseconds.
    Median,
    /// Mean latency in microseconds.
    Mean,
    /// Processor time per request in microseconds.
    Cpu,
}

impl Figure {
    pub(super) const ALL: [Figure; 4] =
        [Figure::Typical, Figure::Median, Figure::Mean, Figure::Cpu];

    pub(super) fn name(self) -> &'static str {
        match self {
            Figure::Typical => "typical",
            Figure::Median => "p50",
            Figure::Mean => "mean",
            Figure::Cpu => "processor time",
        }
    }

    /// The key of the figure in a summary.
    fn key(self) -> &'static str {
        match self {
            Figure::Typical => "latency_us_typical",
            Figure::Median => "latency_us_p50",
            Figure::Mean => "latency_us_mean",
            Figure::Cpu => "cpu_us_per_request",
        }
    }
}

/// A finished run of `weigh lab`.
pub(super) struct Run {
    pub(super) summary: Value,
    pub(super) recording: Value,
    /// The folder of the recording.
    pub(super) folder: PathBuf,
}

/// A difference with the ends of its interval, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Difference {
    /// Reads the metric with this key from a row of a summary.
    pub(super) fn of(row: &Value, key: &str) -> anyhow::Result<Difference> {
        let overhead = &row["metrics"][key]["overhead"];
        let read = |field: &str| overhead[field].as_f64();
        read("difference")
            .zip(read("difference_low").zip(read("difference_high")))
            .map(|(value, (low, high))| Difference { value, low, high })
            .with_context(|| format!("no interval of {key}: {}", text(row, "verdict_text")))
    }

    pub(super) fn is_claimed(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    pub(super) fn contains(self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }

    pub(super) fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// One measurement of a variant in a round.
pub(super) struct Measured {
    pub(super) round: u64,
    /// Position in the start order of the systems of the round, from 0.
    pub(super) position: u64,
    latency: Histogram,
    typical_us: f64,
    cpu_us: f64,
}

impl Measured {
    /// Returns the figure in microseconds.
    pub(super) fn figure(&self, figure: Figure) -> f64 {
        let us = |nanoseconds: f64| nanoseconds / 1e3;
        match figure {
            Figure::Typical => self.typical_us,
            Figure::Median => self
                .latency
                .quantile_ns(0.5)
                .map_or(f64::NAN, |ns| us(ns as f64)),
            Figure::Mean => self.latency.mean_ns().map_or(f64::NAN, us),
            Figure::Cpu => self.cpu_us,
        }
    }
}

impl Run {
    /// The difference of a variant from the baseline.
    pub(super) fn difference(&self, name: &str, figure: Figure) -> anyhow::Result<Difference> {
        Difference::of(self.row(name)?, figure.key())
    }

    /// The value in a row itself, without a comparison.
    pub(super) fn value(&self, name: &str, figure: Figure) -> anyhow::Result<f64> {
        let (row, key) = (self.row(name)?, figure.key());
        row["metrics"][key]["value"]
            .as_f64()
            .with_context(|| format!("`{name}` has no number: {}", text(row, "verdict_text")))
    }

    pub(super) fn row(&self, name: &str) -> anyhow::Result<&Value> {
        variant(&self.summary, name)
    }

    /// The mean over the rounds of a variant of the time that its null server `server` took from the set moment
    /// of a response until the kernel had it, in microseconds. Each server prints it when it ends.
    pub(super) fn sent_us(&self, name: &str) -> anyhow::Result<f64> {
        let folder = recording::file_name(name);
        let mut all = Vec::new();
        for round in fs::read_dir(self.folder.join("logs").join(folder))? {
            let round = round?;
            if !round.file_name().to_string_lossy().starts_with("round-") {
                continue;
            }
            let log = fs::read_to_string(round.path().join("server.log"))?;
            all.push(sent_us(&log)?);
        }
        anyhow::ensure!(!all.is_empty(), "`{name}` has no log of a round");
        Ok(all.iter().sum::<f64>() / all.len() as f64)
    }

    /// The share of cycles of a variant that were left out because of another variant.
    pub(super) fn neighbor_share(&self, name: &str) -> f64 {
        let (mut cycles, mut neighbor) = (0, 0);
        for record in list(&self.recording["rounds"]) {
            if record["variant"] == name {
                cycles += record["left_out"]["cycles"].as_u64().unwrap_or_default();
                neighbor += record["left_out"]["neighbor"].as_u64().unwrap_or_default();
            }
        }
        neighbor as f64 / cycles.max(1) as f64
    }

    /// All measurements that count. Disturbed measurements do not.
    pub(super) fn measured(&self) -> anyhow::Result<Vec<Measured>> {
        let records = list(&self.recording["rounds"]);
        let counted =
            records.filter(|record| record["disturbed"] != true && record["interrupted"] != true);
        counted.map(measured).collect()
    }
}

/// Reads the counts in the last line of a null server's log.
fn sent_us(log: &str) -> anyhow::Result<f64> {
    let last = log.lines().last().context("an empty log")?;
    let counts: Value = serde_json::from_str(last).context("no counts of a null server")?;
    let sent = counts["sent_us_typical"].as_f64();
    sent.context("counts without `sent_us_typical`")
}

fn measured(record: &Value) -> anyhow::Result<Measured> {
    let number = |key: &str| record[key].as_u64().with_context(|| format!("no `{key}`"));
    let latency_of = |record: &Value| {
        let encoded = text(record, "latency_ns_hdr");
        Histogram::decode(encoded).context("a histogram of latencies")
    };
    let latency = latency_of(record)?;
    let requests = list(&record["requests"]).map(|request| {
        let planned = request["planned"].as_f64().context("no `planned`")?;
        anyhow::Ok((planned, latency_of(request)?))
    });
    let requests: Vec<_> = requests.collect::<anyhow::Result<_>>()?;
    let typical_ns = Histogram::typical_of_mixture_ns(requests)
        .or_else(|| latency.trimmed_mean_ns(Histogram::TYPICAL_SHARE));
    let answers = record["outcomes"]["passed"].as_u64().unwrap_or_default();
    if answers == 0 {
        bail!("a measurement without an answer");
    }
    let systems = list(&record["systems"]);
    let cpu_us: u64 = systems.filter_map(|system| system["cpu_us"].as_u64()).sum();
    Ok(Measured {
        round: number("round")?,
        position: number("position")?,
        latency,
        typical_us: typical_ns.map_or(f64::NAN, |ns| ns / 1e3),
        cpu_us: cpu_us as f64 / answers as f64,
    })
}

pub(super) fn variant<'a>(summary: &'a Value, name: &str) -> anyhow::Result<&'a Value> {
    list(&summary["variants"])
        .find(|row| row["name"] == name)
        .with_context(|| format!("`{name}` is not in the summary"))
}

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(super) fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or("nothing")
}

/// The results of runs for one figure: the difference of each compared variant, run by run.
pub(super) struct Tally {
    pub(super) figure: Figure,
    runs: Vec<Vec<Difference>>,
}

impl Tally {
    /// An empty tally for each of these figures.
    pub(super) fn each(figures: &[Figure]) -> Vec<Tally> {
        let empty = |figure: &Figure| Tally {
            figure: *figure,
            runs: Vec::new(),
        };
        figures.iter().map(empty).collect()
    }

    /// Adds a run with its variants of these names. Returns their differences.
    pub(super) fn add(
        &mut self,
        run: &Run,
        names: &[impl AsRef<str>],
    ) -> anyhow::Result<&[Difference]> {
        let differences = names
            .iter()
            .map(|name| run.difference(name.as_ref(), self.figure))
            .collect::<anyhow::Result<_>>()?;
        self.runs.push(differences);
        Ok(self.runs.last().expect("one was just added"))
    }

    /// Number of runs that claim a difference of any variant.
    pub(super) fn claims(&self) -> usize {
        self.count(Difference::is_claimed)
    }

    /// Number of runs with a difference of any variant that satisfies `is_so`.
    pub(super) fn count(&self, is_so: impl Fn(Difference) -> bool) -> usize {
        let is_so = |run: &&Vec<Difference>| run.iter().copied().any(&is_so);
        self.runs.iter().filter(is_so).count()
    }

    /// The median half-width of an interval, in microseconds.
    pub(super) fn half_width(&self) -> f64 {
        let all = self.runs.iter().flatten().copied();
        median(&all.map(Difference::half_width).collect::<Vec<f64>>())
    }
}

/// The median, as the typical value of many runs. 0 without values.
pub(super) fn median(values: &[f64]) -> f64 {
    stats::sample::median(values).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_committed_recording_are_plausible() {
        let path = crate::repository::root()
            .join("labs/router-extensibility/records/static-subgraph.json");
        let run = Run {
            summary: Value::Null,
            recording: serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap(),
            folder: PathBuf::new(),
        };
        for one in run.measured().unwrap() {
            let [typical, median, mean, cpu] = Figure::ALL.map(|figure| one.figure(figure));
            assert!(0.0 < median && 0.0 < typical, "{}", one.round);
            // The slowest quarter is cut.
            assert!(typical < mean, "{}", one.round);
            assert!(cpu > 50.0, "{}", one.round);
        }
    }

    /// A run with variants that differ from the baseline in their typical latency by the given value, with
    /// the ends of the interval.
    fn run(variants: &[(&str, [f64; 3])]) -> Run {
        let row = |(name, [value, low, high]): &(&str, [f64; 3])| {
            let overhead = serde_json::json!(
                {"difference": value, "difference_low": low, "difference_high": high});
            let metrics = serde_json::json!({"latency_us_typical": {"overhead": overhead}});
            serde_json::json!({"name": name, "metrics": metrics})
        };
        let rows: Vec<Value> = variants.iter().map(row).collect();
        Run {
            summary: serde_json::json!({"variants": rows}),
            recording: Value::Null,
            folder: PathBuf::new(),
        }
    }

    #[test]
    fn a_run_claims_a_difference_once_however_many_variants_have_one() {
        let names = ["a", "b"];
        let mut tally = Tally::each(&[Figure::Typical]).remove(0);
        let equal = [0.0, -1.0, 1.0];
        let later = [6.0, 4.0, 8.0];
        for (a, b) in [(equal, equal), (equal, later), (later, later)] {
            let run = run(&[("a", a), ("b", b)]);
            assert_eq!(tally.add(&run, &names).unwrap().len(), 2);
        }
        assert_eq!(tally.claims(), 2);
        assert_eq!(tally.count(|difference| difference.contains(0.5)), 2);
        // Three of six differences are of each kind.
        assert_eq!(tally.half_width(), 1.5);
        assert!(tally.add(&run(&[("a", equal)]), &names).is_err());
    }

    #[test]
    fn the_time_of_sends_is_the_mean_over_the_logs_of_the_rounds() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = run(&[]);
        run.folder = folder.path().to_owned();
        for (round, sent) in [("proof", 900.0), ("round-1", 10.0), ("round-2", 11.0)] {
            let logs = folder.path().join("logs/-5-us").join(round);
            fs::create_dir_all(&logs).unwrap();
            let log = format!("http://127.0.0.1:9/\n{{\"sent_us_typical\":{sent}}}\n");
            fs::write(logs.join("server.log"), log).unwrap();
        }
        assert_eq!(run.sent_us("+5 us").unwrap(), 10.5);
        assert!(run.sent_us("plain").is_err());
        assert!(sent_us("http://127.0.0.1:9/\n").is_err());
        assert!(sent_us("{}").is_err());
    }

    #[test]
    fn differences_are_those_of_the_report() {
        let run = run(&[("python", [5.0, 4.0, 6.5])]);
        let found = run.difference("python", Figure::Typical).unwrap();
        assert_eq!((found.value, found.low, found.high), (5.0, 4.0, 6.5));
        assert!(found.is_claimed() && found.contains(5.0) && !found.contains(0.0));
        assert!(
            run.difference("python", Figure::Median).is_err(),
            "not in this summary"
        );
        assert!(run.difference("go", Figure::Typical).is_err());
    }
}
