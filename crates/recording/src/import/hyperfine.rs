//! Reader of hyperfine's JSON, in seconds, with one entry per command and all its runs.
//!
//! All runs of a command come before the runs of the next command. They are not interleaved.

use model::Metric;
use serde_json::Value;

use super::{Document, ForeignRun, Missing, Reader, Reports};

pub(super) const SHAPE: &str = "hyperfine --export-json";

pub(super) const JSON: Reader = Reader {
    shape: SHAPE,
    reports: Reports::One,
    recognizes: |document| {
        let results = document.at(&["results"]).and_then(Value::as_array);
        results.is_some_and(|results| {
            !results.is_empty() && results.iter().all(|one| one.get("command").is_some())
        })
    },
    read,
};

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let results = document.at(&["results"]).and_then(Value::as_array);
    results.into_iter().flatten().map(command).collect()
}

fn command(result: &Value) -> Result<ForeignRun, Missing> {
    // The file was recognized by this key, so `?` is used only if the value is not text.
    let name = result.get("command").and_then(Value::as_str).unwrap_or("?");
    let figure = |key: &str| result.get(key).and_then(Value::as_f64);
    let series = |key: &str, unit: f64| -> Vec<f64> {
        let values = result.get(key).and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_f64);
        values.map(|value| value * unit).collect()
    };
    let mut run = ForeignRun::new(SHAPE).closed();
    run.subject = Some(name.to_owned());
    run.put_all(
        1e6,
        [
            (Metric::Min, figure("min")),
            (Metric::P50, figure("median")),
            (Metric::Max, figure("max")),
            (Metric::Stdev, figure("stddev")),
            (Metric::Mean, figure("mean")),
            (
                Metric::Cpu,
                figure("user")
                    .zip(figure("system"))
                    .map(|(user, system)| user + system),
            ),
        ],
    );
    if !run.figures.contains_key(&Metric::Mean) {
        return Err(Missing(format!("`{name}` has no `mean`")));
    }
    let times = series("times", 1e6);
    if !times.is_empty() {
        // The time of each run replaces the mean, so that a run counts as a round and an interval is
        // possible.
        run.figures.insert(Metric::Mean, times);
    }
    let memory = series("memory_usage_byte", 1.0);
    if !memory.is_empty() {
        run.figures.insert(Metric::Memory, memory);
    }
    let codes = series("exit_codes", 1.0);
    let failed = codes.iter().filter(|code| **code != 0.0).count();
    if failed > 0 {
        run.note(format!(
            "{failed} of {} runs of `{name}` failed",
            codes.len()
        ));
    }
    run.note("a run of a command counts as a round. Runs of one command follow one another, so the difference contains a drift of the machine");
    run.note("requests are runs of the command, and CPU is the user and system time of a run");
    Ok(run)
}
