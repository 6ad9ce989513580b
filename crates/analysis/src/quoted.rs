//! Figures of a recording in the words of a sentence that quotes them.

use std::str::FromStr;

use model::Metric;
use recording::digits;

use crate::summary::Summary;
use crate::summary::quantity::{amount, figure};

/// The quoted part of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The size of the difference from the baseline with its interval: `90 us (60 to 110)`.
    Difference,
    /// The size of the difference alone: `90 us`.
    Size,
    /// The change against the baseline with its interval, without a sign: `27 % (23 to 31)`.
    Percent,
    /// The figure divided by the baseline's figure, with its interval: `11.0 (8.7 to 11.6)`.
    Ratio,
    /// The variant's own figure: `142 us`.
    Value,
}

impl FromStr for Form {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "difference" => Ok(Self::Difference),
            "size" => Ok(Self::Size),
            "percent" => Ok(Self::Percent),
            "ratio" => Ok(Self::Ratio),
            "value" => Ok(Self::Value),
            other => Err(format!(
                "expected `difference`, `size`, `percent`, `ratio` or `value`, found `{other}`"
            )),
        }
    }
}

/// Returns a figure of a variant in words. `None` if the variant does not have it, or if the form requires an
/// interval that is missing.
#[must_use]
pub fn quoted(summary: &Summary, variant: &str, metric: Metric, form: Form) -> Option<String> {
    let found = summary.variant(variant)?.metric(metric)?;
    let overhead = || found.overhead.as_ref();
    let unit = summary.unit(metric);
    match form {
        Form::Value => Some(figure(unit, found.value)),
        Form::Size => Some(amount(unit, overhead()?.difference.abs())),
        Form::Difference => overhead()?.in_words(unit),
        Form::Ratio => {
            let overhead = overhead()?;
            let (low, high) = overhead.ratio_low.zip(overhead.ratio_high)?;
            let (from, to) = digits::interval_ends(low, high);
            let value = digits::value(overhead.ratio?, Some((high - low) / 2.0));
            Some(format!("{value} ({from} to {to})"))
        }
        Form::Percent => {
            let overhead = overhead()?;
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let ends = [overhead.ratio_low?, overhead.ratio_high?].map(percent);
            let value = percent(overhead.ratio?);
            let [low, high] = match value < 0.0 {
                true => [-ends[1], -ends[0]],
                false => ends,
            };
            let (from, to) = digits::interval_ends(low, high);
            let value = digits::value(value.abs(), Some((high - low) / 2.0));
            Some(format!("{value} % ({from} to {to})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_figure_is_quoted_as_the_report_says_it() {
        let sample = SampleRun::closed().variant("a", 700.0).variant("b", 800.0);
        let summary = Summary::of(&sample.build());
        let of = |metric, form| quoted(&summary, "b", metric, form);
        let mean = of(Metric::Mean, Form::Difference).unwrap();
        let overhead = summary.variants[1].metric(Metric::Mean).unwrap();
        let overhead = overhead.overhead.as_ref().unwrap();
        assert_eq!(Some(mean), overhead.in_words(summary.unit(Metric::Mean)));
        let fewer = of(Metric::Requests, Form::Percent).unwrap();
        assert!(
            fewer.starts_with("12") && fewer.contains(" % (1"),
            "{fewer}"
        );
        let memory = of(Metric::Memory, Form::Value).unwrap();
        assert!(memory.ends_with(" MiB"), "{memory}");
        assert_eq!(quoted(&summary, "nobody", Metric::Mean, Form::Size), None);
        assert_eq!(quoted(&summary, "a", Metric::Mean, Form::Size), None);
        assert!(
            "width"
                .parse::<Form>()
                .unwrap_err()
                .contains("found `width`")
        );
    }
}
