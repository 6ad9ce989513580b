//! The page with the results of a bench.

use std::fs;

use super::task::Task;
use super::{Row, Sample, Setting};

/// A figure of a run.
pub(super) type Column = fn(&Sample) -> f64;

/// The subject of a page, without its rows.
pub(super) struct Scene<'a> {
    pub(super) task: Task,
    pub(super) setting: Setting,
    pub(super) repeat: usize,
    pub(super) server: String,
    /// Generators that are not installed here.
    pub(super) absent: Vec<&'a str>,
}

/// Medians and ratios to the first row, as Markdown.
pub(super) fn page(rows: &[Row], scene: &Scene<'_>) -> String {
    let Scene {
        task,
        setting,
        repeat,
        server,
        absent,
    } = scene;
    let unit = task.unit();
    let mut out = format!(
        "`cargo xtask bench-load --task {} --repeat {repeat} --seconds {} --connections {}`\n\n\
         Server: {server} on core 0. Generators: core 1, one thread, {}, over loopback. {}.\n\n\
         The table shows medians of {repeat} runs in turn, with the lowest and highest values in \
         brackets. Ratios are relative to `weigh`.\n\n\
         | generator | {unit}s/s | ratio | CPU us/{unit} | ratio | peak MiB | ratio | own MiB | ratio |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        task.word(),
        setting.seconds,
        setting.connections,
        task.load(*setting),
        machine(),
    );
    let Some(first) = rows.first() else {
        return out;
    };
    let columns: [(Column, usize); 4] = [
        (|sample| sample.requests_per_s, 0),
        (|sample| sample.cpu_us_per_request, 2),
        (|sample| sample.peak_kib / 1024.0, 1),
        (|sample| sample.own_kib / 1024.0, 1),
    ];
    for row in rows {
        out += &format!("| {} |", row.name);
        for (column, digits) in columns {
            let (low, middle, high) = spread(&row.samples, column);
            let ratio = middle / spread(&first.samples, column).1;
            out +=
                &format!(" {middle:.digits$} ({low:.digits$} to {high:.digits$}) | {ratio:.2} |");
        }
        out += "\n";
    }
    let mut versions: Vec<String> = rows
        .iter()
        .filter(|row| !row.name.contains(", "))
        .map(|row| format!("{} ({})", row.name, row.version))
        .collect();
    versions.extend(absent.iter().map(|name| format!("{name} (not installed)")));
    out + &format!("\nVersions: {}.\n", versions.join(", "))
}

/// The lowest, median and highest value of a column.
pub(super) fn spread(samples: &[Sample], column: Column) -> (f64, f64, f64) {
    let mut values: Vec<f64> = samples.iter().map(column).collect();
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else {
        return (f64::NAN, f64::NAN, f64::NAN);
    };
    let half = values.len() / 2;
    let middle = if values.len().is_multiple_of(2) {
        f64::midpoint(values[half - 1], values[half])
    } else {
        values[half]
    };
    (*low, middle, *high)
}

pub(super) fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or("unknown CPU", |(_, model)| model.trim());
    let cores = cpus
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Machine: {model}, {cores} cores, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_two_in_the_middle() {
        let samples = [4.0, 1.0, 3.0, 2.0].map(|requests_per_s| Sample {
            requests_per_s,
            cpu_us_per_request: 0.0,
            peak_kib: 0.0,
            own_kib: 0.0,
        });
        let found = spread(&samples, |sample| sample.requests_per_s);
        assert_eq!(found, (1.0, 2.5, 4.0));
    }
}
