//! Durations, sizes, rates, limits and ranges in the notation of a person: `500ms`, `128MiB`, `100/s`.
//!
//! Units are required. A bare number is only a count.

use std::time::Duration;

use model::Rate;

use crate::formats::{Format, Misspelling};
use crate::template::{Part, Template};

/// Splits a text into a number and its unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+'))
        // A number without a unit. The caller reports which unit is missing.
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

const TIME_UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
];

/// The longest duration, in nanoseconds: 1,000 hours. A longer duration is a mistake in the unit.
const TIME_NS_MAX: f64 = 3.6e15;

impl Format for Duration {
    const NAME: &'static str = "time-span";
    const EXAMPLE: Option<&'static str> = Some("500ms");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let wrong = |why: &str, help: String| {
            Err(Misspelling::new(
                format!("`{text}` is not a length of time: {why}"),
                help,
            ))
        };
        let Some((number, unit)) = number_and_unit(text) else {
            return wrong(
                "expected a number and a unit",
                "write for example `500ms`, `5s` or `2m`".to_owned(),
            );
        };
        let Some((_, factor)) = TIME_UNITS.iter().find(|(name, _)| *name == unit) else {
            return if unit.is_empty() {
                wrong(
                    "the unit is missing",
                    format!("write `{text}s` or `{text}ms`"),
                )
            } else {
                wrong(
                    &format!("`{unit}` is not a unit of time"),
                    "the units are ns, us, ms, s, m and h".to_owned(),
                )
            };
        };
        if number < 0.0 {
            return wrong(
                "it is negative",
                format!("write `{}`", text.trim_start_matches('-')),
            );
        }
        // Rounded, because `0.1ms` has no exact binary fraction and would lose a nanosecond.
        let nanoseconds = (number * factor).round();
        // A long row of digits is read as infinity and is refused here, too.
        if nanoseconds > TIME_NS_MAX {
            return wrong(
                "it is longer than 1000h",
                "the units are ns, us, ms, s, m and h".to_owned(),
            );
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 3.6e15"
        )]
        let nanoseconds = nanoseconds as u64;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

/// A duration above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongerThanZero(pub(crate) Duration);

impl Format for LongerThanZero {
    const NAME: &'static str = "time-span-above-zero";
    const EXAMPLE: Option<&'static str> = Some("5s");

    fn read(text: &str) -> Result<Self, Misspelling> {
        match Duration::read(text)? {
            Duration::ZERO => Err(Misspelling::new(
                format!("`{text}` is too short: it must be above 0"),
                "write for example `5s`",
            )),
            duration => Ok(LongerThanZero(duration)),
        }
    }
}

const SIZE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// The largest size: 1 PiB. Larger numbers lose their last byte in `f64`.
const SIZE_MAX: f64 = 1_125_899_906_842_624.0;

/// A size in bytes, above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl Format for Bytes {
    const NAME: &'static str = "size";
    const EXAMPLE: Option<&'static str> = Some("128MiB");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let wrong = |why: &str, help: String| {
            Err(Misspelling::new(
                format!("`{text}` is not a size: {why}"),
                help,
            ))
        };
        let Some((number, unit)) = number_and_unit(text) else {
            return wrong(
                "expected a number and a unit",
                "write for example `128MiB` or `1GiB`".to_owned(),
            );
        };
        let Some((_, factor)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) else {
            return if unit.is_empty() {
                wrong(
                    "the unit is missing",
                    format!("write `{text}MiB` or `{text}B`"),
                )
            } else {
                wrong(
                    &format!("`{unit}` is not a unit of size"),
                    "the units are B, KB, MB, GB, KiB, MiB and GiB".to_owned(),
                )
            };
        };
        let bytes = (number * factor).round();
        // A limit of 0 would end the system before it starts.
        if bytes < 1.0 {
            return wrong(
                "it must be above 0",
                "write for example `128MiB`".to_owned(),
            );
        }
        // This also refuses a number that was read as infinity.
        if bytes > SIZE_MAX {
            return wrong(
                "no machine has this much memory",
                "write for example `1GiB`".to_owned(),
            );
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "1 to 2^50"
        )]
        let bytes = bytes as u64;
        Ok(Bytes(bytes))
    }
}

/// The highest number of requests per second. No generator can send more, so a higher rate is a mistake.
const RATE_MAX: f64 = 1e9;

fn read_rate(text: &str) -> Result<Rate, Misspelling> {
    let wrong = |why: &str, help: String| {
        Err(Misspelling::new(
            format!("`{text}` is not a rate: {why}"),
            help,
        ))
    };
    let Some((number, unit)) = number_and_unit(text) else {
        return wrong(
            "expected a number and `/s`",
            "write for example `100/s`".to_owned(),
        );
    };
    let seconds = match unit.strip_prefix('/').map(str::trim) {
        Some("s") => 1.0,
        Some("m" | "min") => 60.0,
        Some("h") => 3600.0,
        _ if unit.is_empty() => {
            return wrong(
                "the unit is missing",
                format!("write `{}/s`", text.trim_start_matches('-')),
            );
        }
        _ => {
            return wrong(
                &format!("`{unit}` is not a unit of rate"),
                "the units are /s, /m and /h".to_owned(),
            );
        }
    };
    let per_second = number / seconds;
    if per_second < 0.0 {
        return wrong(
            "it is negative",
            format!("write `{}`", text.trim_start_matches('-')),
        );
    }
    if per_second > RATE_MAX {
        return wrong(
            "it is more than 1000000000/s",
            "write for example `100/s`".to_owned(),
        );
    }
    Rate::new(per_second)
        .map_err(|error| Misspelling::new(error.to_string(), "write for example `100/s`"))
}

/// A rate that may be 0, for the start or end of a ramp.
impl Format for Rate {
    const NAME: &'static str = "rate-or-zero";
    const EXAMPLE: Option<&'static str> = Some("0/s");

    fn read(text: &str) -> Result<Self, Misspelling> {
        read_rate(text)
    }
}

/// A rate above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PositiveRate(pub(crate) Rate);

impl Format for PositiveRate {
    const NAME: &'static str = "rate";
    const EXAMPLE: Option<&'static str> = Some("100/s");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let rate = Rate::read(text)?;
        if rate > Rate::ZERO {
            return Ok(PositiveRate(rate));
        }
        Err(Misspelling::new(
            format!("`{text}` is not a rate: it must be above 0"),
            "write for example `100/s`",
        ))
    }
}

/// The rate of an open loop: a rate above 0, or `auto` for the choice of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoadRate {
    Given(Rate),
    Auto,
}

impl Format for LoadRate {
    const NAME: &'static str = "rate-or-auto";
    const EXAMPLE: Option<&'static str> = Some("100/s");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if text.trim() == "auto" {
            return Ok(LoadRate::Auto);
        }
        // A text without a digit may be the misspelled word.
        let is_word = !text.contains(|letter: char| letter.is_ascii_digit());
        match PositiveRate::read(text) {
            Ok(PositiveRate(rate)) => Ok(LoadRate::Given(rate)),
            Err(wrong) if is_word => Err(Misspelling {
                help: wrong.help.map(|help| format!("{help}, or `auto`")),
                ..wrong
            }),
            Err(wrong) => Err(wrong),
        }
    }
}

/// The word for no limit.
pub(crate) const NONE: &str = "none";
const CORES_MIN: f64 = 0.01;
const CORES_MAX: f64 = 1024.0;

/// Cores, with fractions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cores(pub(crate) f64);

impl Format for Cores {
    const NAME: &'static str = "cores";
    const EXAMPLE: Option<&'static str> = Some("0.25");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let wrong = |message: String| Err(Misspelling::new(message, "write for example `0.25`"));
        match text.parse() {
            Ok(cores) if cores < CORES_MIN => {
                wrong(format!("expected at least {CORES_MIN}, found `{text}`"))
            }
            Ok(cores) if cores > CORES_MAX => {
                wrong(format!("expected at most {CORES_MAX}, found `{text}`"))
            }
            // `NaN` is read as a number, and is neither below nor above a bound.
            Ok(cores) if f64::is_finite(cores) => Ok(Cores(cores)),
            _ => wrong(format!("expected a number of cores, found `{text}`")),
        }
    }
}

/// A limit as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Limit<F> {
    /// No limit.
    Off,
    Given(F),
    /// A template that depends on settings.
    Open(Template),
}

/// Names of limits in the schema. Each quantity has its own format.
pub(crate) trait Quantity: Format {
    const LIMIT: &'static str;
}

impl Quantity for Cores {
    const LIMIT: &'static str = "cores-or-none";
}

impl Quantity for Bytes {
    const LIMIT: &'static str = "size-or-none";
}

impl<F: Quantity> Format for Limit<F> {
    const NAME: &'static str = F::LIMIT;
    const EXAMPLE: Option<&'static str> = F::EXAMPLE;

    fn read(text: &str) -> Result<Self, Misspelling> {
        let template = Template::read(text)?;
        let is_open = |part: &Part| matches!(part, Part::Reference(_));
        if template.parts.iter().any(is_open) {
            return Ok(Limit::Open(template));
        }
        if text == NONE {
            return Ok(Limit::Off);
        }
        F::read(text).map(Limit::Given)
    }
}

/// A range of whole numbers, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Format for Numbers {
    const NAME: &'static str = "range";
    const EXAMPLE: Option<&'static str> = Some("1..1000");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let ends = text.split_once("..");
        let ends = ends.and_then(|(from, to)| number(from).zip(number(to)));
        match ends {
            // The number of values, one more than the difference, must also fit into 64 bits.
            Some((from, to)) if from <= to && to - from < u64::MAX => Ok(Numbers { from, to }),
            Some(_) => Err(Misspelling::new(
                format!("`{text}` is not a range: it ends before it begins"),
                "write the smaller number first: `1..1000`",
            )),
            None => Err(Misspelling::new(
                format!("`{text}` is not a range"),
                "write its first and last whole number: `1..1000`",
            )),
        }
    }
}

#[cfg(test)]
mod tests;
