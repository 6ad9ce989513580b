//! The limit of a gate: a number with a unit that suits the figure.

use super::Subject;
use crate::metric::{Metric, Unit};

/// Reads a limit into the metric's own unit. A share of the baseline is a ratio to it.
pub(super) fn read(text: &str, metric: Metric, subject: Subject) -> Result<(Subject, f64), String> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || ['.', '-', '+'].contains(&c)))
        .unwrap_or(text.len());
    let unit = text[end..].trim();
    let number = text[..end]
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
        .ok_or_else(|| format!("expected a quantity after the comparison, found `{text}`"))?;
    match (subject, unit) {
        (Subject::Overhead, "%") => Ok((Subject::Ratio, 1.0 + number / 100.0)),
        (Subject::Ratio, "" | "x") => Ok((Subject::Ratio, number)),
        (Subject::Ratio, "%") => Err(format!(
            "`{text}` is no ratio: write `ratio < 1.05`, or `overhead < 5%` for a share of the \
             baseline"
        )),
        (Subject::Ratio, _) => Err(format!("`{text}` is no ratio: a ratio has no unit")),
        (Subject::Overhead | Subject::Value, _) => {
            let units = units(metric.unit());
            let factor = units.iter().find(|(name, _)| *name == unit);
            let (_, factor) = factor.ok_or_else(|| {
                let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
                let known = known.join("`, `");
                let found = if unit.is_empty() { "none" } else { unit };
                format!("expected a unit of `{known}` after {number}, found {found}")
            })?;
            Ok((subject, number * factor))
        }
    }
}

/// Units with their size in the metric's own.
fn units(unit: Unit) -> &'static [(&'static str, f64)] {
    match unit {
        Unit::Milliseconds | Unit::Microseconds => &[
            ("ns", 1e-3),
            ("us", 1.0),
            ("µs", 1.0),
            ("ms", 1e3),
            ("s", 1e6),
        ],
        Unit::Mebibytes => &[
            ("B", 1.0),
            ("kB", 1e3),
            ("KiB", 1024.0),
            ("MB", 1e6),
            ("MiB", 1_048_576.0),
            ("GB", 1e9),
            ("GiB", 1_073_741_824.0),
        ],
        Unit::PerSecond => &[("/s", 1.0), ("k/s", 1e3)],
        Unit::MegabytesPerSecond => &[("MB/s", 1.0), ("kB/s", 1e-3)],
        Unit::PerRequest => &[("", 1.0)],
    }
}
