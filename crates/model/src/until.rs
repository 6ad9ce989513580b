//! Stopping rules for rounds, such as a narrow interval: `p99 ±2%`.
//!
//! A rule defines the *precision* of a difference and never its size. If rounds continued until a difference
//! appeared, one would appear sooner or later even between equal systems.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Metric, Unit};

/// The stopping rule: the maximum width of the interval of the difference between a variant and its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Until {
    /// The rule as the user wrote it: `p99 ±2%`.
    text: String,
    /// The metric, by its name in reports: `latency_us_p99`.
    #[serde(rename = "figure")]
    pub metric: Metric,
    /// Maximum half of the width of the interval of each difference.
    pub half_width: HalfWidth,
}

/// The goal of a run without a fixed number of rounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// Intervals at most this wide.
    Width(Until),
    /// Decided gates: all hold, or at least one is broken. It is written `gates`.
    Gates,
}

/// Half of the width of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HalfWidth {
    /// A share of the baseline's own value: 0.02 for 2 %. Above 0.
    Share(f64),
    /// An amount in the unit of the metric's name. Above 0.
    Amount(f64),
}

/// Reason why a text is not a stopping rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what}. Write a figure and half of the width of its interval, for example `p99 ±2%` or `p99 ±0.1ms`, or `gates`"
)]
pub struct UntilError {
    what: String,
}

/// The grammar of stopping rules, for `--help` and the documentation.
#[must_use]
pub fn until_grammar() -> String {
    format!(
        "\
FIGURE ±WIDTH
gates

FIGURE  {}
WIDTH   half of the width of the interval of the difference: 2% of the baseline's
        own value, or an amount with its unit (0.1ms, 50us, 100/s, 1MB/s, 4MiB)

+- and +/- are other forms of ±. With several variants, each must reach the width.

`gates` adds rounds until each gate holds or one is broken, 6 to 24 in all.",
        Metric::list(8, 80)
    )
}

impl FromStr for Until {
    type Err = UntilError;

    fn from_str(text: &str) -> Result<Until, UntilError> {
        let text = text.trim();
        // Most keyboards have no key for the sign.
        let signs = ["±", "+/-", "+-"].into_iter();
        let found = signs.filter_map(|sign| text.split_once(sign)).next();
        let (name, width) = found.ok_or_else(|| wrong(format!("expected `±` in `{text}`")))?;
        let name = name.trim();
        let metric = Metric::named(name).ok_or_else(|| {
            let known = Metric::ALL.map(Metric::name).join(", ");
            wrong(format!("`{name}` is not a figure. The figures are {known}"))
        })?;
        Ok(Until {
            // The text is normalized, so that equal rules look equal in reports.
            text: format!("{name} ±{}", width.trim()),
            metric,
            half_width: half_width(width.trim(), metric)?,
        })
    }
}

impl FromStr for Goal {
    type Err = UntilError;

    fn from_str(text: &str) -> Result<Goal, UntilError> {
        match text.trim() {
            "gates" => Ok(Goal::Gates),
            width => width.parse().map(Goal::Width),
        }
    }
}

/// The written form: `p99 ±2%`.
impl fmt::Display for Until {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn half_width(text: &str, metric: Metric) -> Result<HalfWidth, UntilError> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        // If all characters are digits, the unit is missing. The code below reports this.
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let number = number
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| {
            wrong(format!(
                "expected a width above 0 after `±`, found `{text}`"
            ))
        })?;
    // Only a metric that is a share has absolute amounts in percent.
    if unit == "%" && metric.unit() != Unit::Share {
        return Ok(HalfWidth::Share(number / 100.0));
    }
    let size = metric.unit().size_of(unit, number);
    let size = size.map_err(|mistake| wrong(format!("expected `%` or {mistake}")))?;
    Ok(HalfWidth::Amount(number * size))
}

fn wrong(what: String) -> UntilError {
    UntilError { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Metric, HalfWidth) {
        let until: Until = text.parse().unwrap();
        (until.metric, until.half_width)
    }

    #[test]
    fn a_goal_is_a_width_or_the_gates() {
        assert_eq!(" gates ".parse(), Ok(Goal::Gates));
        let width: Until = "p99 ±2%".parse().unwrap();
        assert_eq!("p99 ±2%".parse(), Ok(Goal::Width(width)));
        let error = "gate".parse::<Goal>().unwrap_err().to_string();
        assert!(error.contains("or `gates`"), "{error}");
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
            assert_eq!(read(text), (Metric::P99, HalfWidth::Share(0.02)), "{text}");
        }
        let amounts = [
            ("p99.9 ±0.1ms", Metric::P999, 100.0),
            ("mean ±50us", Metric::Mean, 50.0),
            ("requests/s ±1.5k/s", Metric::Requests, 1_500.0),
            ("cpu ±2us", Metric::Cpu, 2.0),
            ("memory ±1MiB", Metric::Memory, 1_048_576.0),
            ("switches ±0.5", Metric::ContextSwitches, 0.5),
        ];
        for (text, metric, amount) in amounts {
            assert_eq!(read(text), (metric, HalfWidth::Amount(amount)), "{text}");
        }
        assert_eq!("p99 +- 2%".parse::<Until>().unwrap().to_string(), "p99 ±2%");
    }

    #[test]
    fn every_metric_can_be_waited_for_by_each_of_its_names() {
        for metric in Metric::ALL {
            for word in metric.names().iter().chain([&metric.key()]) {
                if metric.unit() != Unit::Share {
                    let share = format!("{word} ±2%");
                    assert_eq!(read(&share), (metric, HalfWidth::Share(0.02)), "{share}");
                }
                for (unit, size) in metric.unit().written() {
                    let amount = format!("{word} ±3{unit}");
                    let expected = (metric, HalfWidth::Amount(3.0 * size));
                    assert_eq!(read(&amount), expected, "{amount}");
                }
            }
        }
    }

    #[test]
    fn the_grammar_names_every_metric() {
        let grammar = until_grammar();
        for metric in Metric::ALL {
            assert!(grammar.contains(metric.name()), "{}", metric.name());
        }
        assert!(grammar.lines().all(|line| line.chars().count() <= 82));
    }

    #[test]
    fn what_is_no_width_is_refused_with_what_was_found() {
        for (text, part) in [
            ("p99 2%", "expected `±`"),
            ("p98 ±2%", "`p98` is not a figure"),
            ("p99 ±0%", "above 0"),
            ("p99 ±-2%", "above 0"),
            ("p99 ±", "above 0"),
            ("p99 ±2", "found none"),
            ("p99 ±2MiB", "found MiB"),
            ("switches ±2ms", "no unit after 2, found ms"),
        ] {
            let error = text.parse::<Until>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
