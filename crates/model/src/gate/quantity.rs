//! Parser for the limit of a gate, a number with a unit that suits the figure.

use super::Subject;
use crate::Metric;

/// Parses a limit into the metric's own unit. A share of the baseline becomes a ratio.
pub(super) fn read(text: &str, metric: Metric, subject: Subject) -> Result<(Subject, f64), String> {
    // The number ends at the start of its unit, or at the end of the text if it has no unit.
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
        // Most baselines have no failures, and a ratio to 0 has no meaning.
        (Subject::Ratio, _) if metric == Metric::Failures => Err(
            "`failures` have no ratio. Write `failures value < 1%`, or `failures overhead < 1%` for \
             the failures that a variant adds to its baseline"
                .to_owned(),
        ),
        // The difference of two shares is itself in percent.
        (Subject::Overhead, "%") if metric == Metric::Failures => Ok((subject, number / 100.0)),
        (Subject::Overhead, "%") => Ok((Subject::Ratio, 1.0 + number / 100.0)),
        (Subject::Ratio, "" | "x") => Ok((Subject::Ratio, number)),
        (Subject::Ratio, "%") => Err(format!(
            "`{text}` is not a ratio. Write `ratio < 1.05`, or `overhead < 5%` for a share of the \
             baseline"
        )),
        (Subject::Ratio, _) => Err(format!("`{text}` is not a ratio: a ratio has no unit")),
        (Subject::Overhead | Subject::Value, _) => {
            let size = metric.unit().size_of(unit, number);
            let size = size.map_err(|mistake| format!("expected {mistake}"))?;
            Ok((subject, number * size))
        }
    }
}
