//! Figures of a run: what `weigh` says about them, and what follows from the recording.

use anyhow::{Context as _, bail};
use serde_json::Value;
use stats::Histogram;

/// A figure that a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Median latency.
    Median,
    /// Mean of latencies without their upper tenth, which no report has.
    Trimmed,
    /// Mean latency.
    Mean,
    /// Processor time per request.
    Cpu,
}

impl Figure {
    pub(super) const ALL: [Figure; 4] =
        [Figure::Median, Figure::Trimmed, Figure::Mean, Figure::Cpu];

    pub(super) fn name(self) -> &'static str {
        match self {
            Figure::Median => "p50",
            Figure::Trimmed => "mean without the upper tenth",
            Figure::Mean => "mean",
            Figure::Cpu => "processor time",
        }
    }

    /// Its key in a summary; none of one that no report has.
    fn key(self) -> Option<&'static str> {
        match self {
            Figure::Median => Some("latency_us_p50"),
            Figure::Trimmed => None,
            Figure::Mean => Some("latency_us_mean"),
            Figure::Cpu => Some("cpu_us_per_request"),
        }
    }
}

/// A run of `weigh lab`.
pub(super) struct Run {
    pub(super) summary: Value,
    pub(super) recording: Value,
}

/// A difference with the ends of its interval, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Difference {
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
    /// Its place in the order in which the systems of the round were started, from 0.
    pub(super) position: u64,
    pub(super) variant: String,
    latency: Histogram,
    cpu_us: f64,
}

impl Measured {
    /// The figure in microseconds.
    pub(super) fn figure(&self, figure: Figure) -> f64 {
        let us = |nanoseconds: f64| nanoseconds / 1e3;
        match figure {
            Figure::Median => self
                .latency
                .quantile_ns(0.5)
                .map_or(f64::NAN, |ns| us(ns as f64)),
            Figure::Trimmed => us(trimmed_ns(&self.latency)),
            Figure::Mean => self.latency.mean_ns().map_or(f64::NAN, us),
            Figure::Cpu => self.cpu_us,
        }
    }
}

/// The mean of the lower nine tenths.
fn trimmed_ns(latency: &Histogram) -> f64 {
    let kept = latency.len() - latency.len() / 10;
    let (mut left, mut sum) = (kept, 0.0);
    for (value_ns, count) in latency.recorded() {
        let taken = count.min(left);
        sum += value_ns as f64 * taken as f64;
        left -= taken;
    }
    sum / kept as f64
}

impl Run {
    /// The difference of a variant from the baseline, as the report has it or as it would.
    pub(super) fn difference(&self, name: &str, figure: Figure) -> anyhow::Result<Difference> {
        let row = self.row(name)?;
        if let Some(key) = figure.key() {
            let overhead = &row["metrics"][key]["overhead"];
            let read = |field: &str| overhead[field].as_f64();
            return read("difference")
                .zip(read("difference_low").zip(read("difference_high")))
                .map(|(value, (low, high))| Difference { value, low, high })
                .with_context(|| format!("no interval of {key}: {}", text(row, "verdict_text")));
        }
        let confidence = self.summary["confidence_each"].as_f64();
        let confidence = confidence.context("a summary has a confidence")?;
        let baseline = self.summary["baseline"].as_str().unwrap_or_default();
        let all = self.measured()?;
        let (mut base, mut own) = (Vec::new(), Vec::new());
        for one in all.iter().filter(|one| one.variant == name) {
            let of_baseline =
                |other: &&Measured| other.round == one.round && other.variant == baseline;
            if let Some(other) = all.iter().find(of_baseline) {
                base.push(other.figure(figure));
                own.push(one.figure(figure));
            }
        }
        let found = stats::overhead(&base, &own, confidence)?.difference;
        let interval = found.interval.context("too few rounds for an interval")?;
        Ok(Difference {
            value: found.value,
            low: interval.low,
            high: interval.high,
        })
    }

    /// What a row says about itself.
    pub(super) fn value(&self, name: &str, figure: Figure) -> anyhow::Result<f64> {
        let key = figure.key().context("a figure of the report")?;
        let row = self.row(name)?;
        row["metrics"][key]["value"]
            .as_f64()
            .with_context(|| format!("`{name}` has no number: {}", text(row, "verdict_text")))
    }

    pub(super) fn row(&self, name: &str) -> anyhow::Result<&Value> {
        variant(&self.summary, name)
    }

    /// The share of cycles of a variant that were left out because another one was in the way.
    pub(super) fn overrun_share(&self, name: &str) -> f64 {
        let (mut cycles, mut overrun) = (0, 0);
        for record in list(&self.recording["rounds"]) {
            if record["variant"] == name {
                cycles += record["left_out"]["cycles"].as_u64().unwrap_or_default();
                overrun += record["left_out"]["overrun"].as_u64().unwrap_or_default();
            }
        }
        overrun as f64 / cycles.max(1) as f64
    }

    /// All measurements that count.
    pub(super) fn measured(&self) -> anyhow::Result<Vec<Measured>> {
        let records = list(&self.recording["rounds"]);
        let counted =
            records.filter(|record| record["disturbed"] != true && record["interrupted"] != true);
        counted.map(measured).collect()
    }
}

fn measured(record: &Value) -> anyhow::Result<Measured> {
    let number = |key: &str| record[key].as_u64().with_context(|| format!("no `{key}`"));
    let encoded = text(record, "latency_ns_hdr");
    let answers = record["outcomes"]["passed"].as_u64().unwrap_or_default();
    if answers == 0 {
        bail!("a measurement without an answer");
    }
    let systems = list(&record["systems"]);
    let cpu_us: u64 = systems.filter_map(|system| system["cpu_us"].as_u64()).sum();
    Ok(Measured {
        round: number("round")?,
        position: number("position")?,
        variant: text(record, "variant").to_owned(),
        latency: Histogram::decode(encoded).context("a histogram of latencies")?,
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

/// The median, to say what is typical of many runs; 0 of none.
pub(super) fn median(values: &[f64]) -> f64 {
    stats::sample::median(values).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_committed_recording_are_those_of_its_report() {
        let path =
            crate::chores::root().join("labs/router-extensibility/records/static-subgraph.json");
        let run = Run {
            summary: serde_json::json!({"baseline": "baseline", "confidence_each": 0.95,
                                        "variants": [{"name": "python"}]}),
            recording: serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        };
        // A coprocessor in Python costs about a millisecond; its slowest requests are cut.
        let cost = run.difference("python", Figure::Trimmed).unwrap();
        assert!(cost.is_claimed() && cost.contains(cost.value), "{cost:?}");
        assert!((400.0..4_000.0).contains(&cost.value), "{cost:?}");
        for one in run.measured().unwrap() {
            let (median, mean) = (one.figure(Figure::Median), one.figure(Figure::Mean));
            assert!(
                0.0 < median && one.figure(Figure::Trimmed) < mean,
                "{}",
                one.round
            );
            assert!(one.figure(Figure::Cpu) > 50.0, "{}", one.round);
        }
        assert!(
            run.difference("python", Figure::Median).is_err(),
            "no figures in this summary"
        );
    }

    #[test]
    fn the_upper_tenth_is_cut_and_nothing_else() {
        let mut latency = Histogram::new();
        for us in 1..=18 {
            latency.record_ns(us);
        }
        latency.record_n_ns(1_000_000, 2);
        // 18 of 20 are left: 1 to 18.
        assert!((trimmed_ns(&latency) - 9.5).abs() < 1e-9);
    }
}
