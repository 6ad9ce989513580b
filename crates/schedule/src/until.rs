//! When enough rounds have been measured: a wish for a narrow interval, such as `p99 ±2%`.
//!
//! The one idea: it says how *sure* a difference shall be, never how large. Rounds that go on until
//! a difference shows would show one sooner or later where there is none.

use std::fmt;
use std::str::FromStr;

/// A wish for a narrow interval of the difference between a variant and its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// The figure, by its name in JSON: `latency_us_p99`.
    pub figure: &'static str,
    /// Half of the width of the interval.
    pub half_width: HalfWidth,
    text: String,
}

/// Half of the width that an interval shall have at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HalfWidth {
    /// A share of the baseline's own value: 0.02 for 2 %. Above 0.
    Share(f64),
    /// An amount in the unit of the figure's name. Above 0.
    Amount(f64),
}

/// Why a text is no such wish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what}; write a figure and half of the width its interval shall have, for example `p99 ±2%` or `p99 ±0.1ms`"
)]
pub struct UntilError {
    what: String,
}

/// How it is written, for `--help` and docs.
pub const UNTIL_GRAMMAR: &str = "\
FIGURE ±WIDTH

FIGURE  min, mean, stdev, p50, p75, p90, p95, p99, p99.9, max, requests/s,
        throughput, cpu, memory, generator-cpu
WIDTH   half of the width of the interval of the difference: 2% of the baseline's
        own value, or an amount with its unit (0.1ms, 50us, 100/s, 1MB/s, 4MiB)

+- and +/- mean the same as ±. With several variants, all must be reached.";

/// Names of a figure, the one in JSON first, and the units of its amounts.
const FIGURES: [(&[&str], Units); 15] = [
    (
        &["requests_per_s", "requests/s", "req/s", "requests", "rps"],
        PER_SECOND,
    ),
    (&["latency_us_min", "min"], TIME),
    (&["latency_us_mean", "mean"], TIME),
    (&["latency_us_stdev", "stdev"], TIME),
    (&["latency_us_p50", "p50", "median"], TIME),
    (&["latency_us_p75", "p75"], TIME),
    (&["latency_us_p90", "p90"], TIME),
    (&["latency_us_p95", "p95"], TIME),
    (&["latency_us_p99", "p99"], TIME),
    (&["latency_us_p999", "p99.9", "p999"], TIME),
    (&["latency_us_max", "max"], TIME),
    (
        &["throughput_mb_per_s", "throughput", "mb/s"],
        &[("MB/s", 1.0), ("kB/s", 1e-3)],
    ),
    (&["cpu_us_per_request", "cpu"], TIME),
    (
        &["memory_peak_bytes", "memory"],
        &[
            ("B", 1.0),
            ("kB", 1e3),
            ("KiB", 1024.0),
            ("MB", 1e6),
            ("MiB", 1_048_576.0),
            ("GB", 1e9),
            ("GiB", 1_073_741_824.0),
        ],
    ),
    (&["generator_cpu_us_per_request", "generator-cpu"], TIME),
];

/// Units with their size in that of the figure.
type Units = &'static [(&'static str, f64)];

const TIME: Units = &[
    ("ns", 1e-3),
    ("us", 1.0),
    ("µs", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
];

const PER_SECOND: Units = &[("/s", 1.0), ("k/s", 1e3)];

impl FromStr for Until {
    type Err = UntilError;

    fn from_str(text: &str) -> Result<Until, UntilError> {
        let text = text.trim();
        let signs = ["±", "+/-", "+-"].into_iter();
        let found = signs.filter_map(|sign| text.split_once(sign)).next();
        let (name, width) = found.ok_or_else(|| wrong(format!("expected `±` in `{text}`")))?;
        let name = name.trim();
        let lower = name.to_ascii_lowercase();
        let (names, units) = FIGURES
            .iter()
            .find(|(names, _)| names.contains(&lower.as_str()))
            .ok_or_else(|| wrong(format!("`{name}` is no figure; they are {}", known())))?;
        let half_width = half_width(width.trim(), units)?;
        Ok(Until {
            figure: names[0],
            half_width,
            text: format!("{name} ±{}", width.trim()),
        })
    }
}

impl fmt::Display for Until {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn half_width(text: &str, units: Units) -> Result<HalfWidth, UntilError> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let number = number
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| {
            wrong(format!(
                "expected a width above 0 behind `±`, found `{text}`"
            ))
        })?;
    if unit == "%" {
        return Ok(HalfWidth::Share(number / 100.0));
    }
    let factor = units.iter().find(|(name, _)| *name == unit);
    let (_, factor) = factor.ok_or_else(|| {
        let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        let found = if unit.is_empty() { "none" } else { unit };
        wrong(format!(
            "expected `%` or a unit of `{}` behind {number}, found {found}",
            known.join("`, `")
        ))
    })?;
    Ok(HalfWidth::Amount(number * factor))
}

fn known() -> String {
    let names: Vec<&str> = FIGURES.iter().map(|(names, _)| names[1]).collect();
    names.join(", ")
}

fn wrong(what: String) -> UntilError {
    UntilError { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (&'static str, HalfWidth) {
        let until: Until = text.parse().unwrap();
        (until.figure, until.half_width)
    }

    #[test]
    fn shares_and_amounts_are_read_in_every_spelling() {
        for text in [
            "p99 ±2%",
            "p99 +-2 %",
            " p99+/-2%",
            "P99 ± 2%",
            "latency_us_p99 ±2%",
        ] {
            assert_eq!(
                read(text),
                ("latency_us_p99", HalfWidth::Share(0.02)),
                "{text}"
            );
        }
        let amounts = [
            ("p99.9 ±0.1ms", "latency_us_p999", 100.0),
            ("mean ±50us", "latency_us_mean", 50.0),
            ("requests/s ±1.5k/s", "requests_per_s", 1_500.0),
            ("cpu ±2us", "cpu_us_per_request", 2.0),
            ("memory ±1MiB", "memory_peak_bytes", 1_048_576.0),
        ];
        for (text, figure, amount) in amounts {
            assert_eq!(read(text), (figure, HalfWidth::Amount(amount)), "{text}");
        }
        assert_eq!("p99 +- 2%".parse::<Until>().unwrap().to_string(), "p99 ±2%");
    }

    #[test]
    fn what_is_no_width_is_refused_with_what_was_found() {
        for (text, part) in [
            ("p99 2%", "expected `±`"),
            ("p98 ±2%", "`p98` is no figure"),
            ("p99 ±0%", "above 0"),
            ("p99 ±-2%", "above 0"),
            ("p99 ±", "above 0"),
            ("p99 ±2", "found none"),
            ("p99 ±2MiB", "found MiB"),
        ] {
            let error = text.parse::<Until>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
