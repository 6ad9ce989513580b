//! The ten functions with the most processor time of a system, for text and Markdown.

use crate::digits;
use crate::float::float;
use crate::recording::Profile;

/// Maximum number of functions per system.
pub(crate) const SHOWN: usize = 10;

/// The headings of the table.
pub(crate) const HEADINGS: [&str; 4] = ["function", "own %", "own us/request", "with callees %"];

/// The title, with remarks on missing data: `server of plain: 1,234 samples, 45.1 us of CPU a request`.
pub(crate) fn title(profile: &Profile) -> String {
    let mut text = format!("{} of {}", profile.system, profile.variant);
    if profile.samples > 0 {
        text += &format!(
            " ({} at {} a second",
            crate::describe::plural(profile.samples, "sample"),
            profile.rate_hz
        );
        if let Some(us) = profile.cpu_us_per_request {
            text += &format!(", {} us of CPU a request", digits::value(us, None));
        }
        text += ", in an extra round)";
    }
    if let Some(missing) = &profile.missing {
        text += &format!(": {missing}");
    }
    text
}

/// The rows of the table in descending order of processor time.
pub(crate) fn rows(profile: &Profile) -> Vec<[String; 4]> {
    // The divisor is at least 1, so that a profile without samples has shares of 0.
    let share = |samples: u64| float(samples) / float(profile.samples.max(1));
    // One decimal is enough, because the shares are computed from a few thousand samples.
    let percent = |samples: u64| format!("{:.1}", share(samples) * 100.0);
    let hottest = profile.hottest.iter().take(SHOWN);
    hottest
        .map(|hot| {
            let us = profile
                .cpu_us_per_request
                .map(|us| us * share(hot.own_samples));
            [
                hot.function.clone(),
                percent(hot.own_samples),
                us.map_or_else(|| "–".to_owned(), |us| digits::value(us, None)),
                percent(hot.total_samples),
            ]
        })
        .collect()
}
