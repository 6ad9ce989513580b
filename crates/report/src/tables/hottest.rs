//! Table of the ten functions with the most processor time of a system.

use recording::{Profile, digits, float};

use crate::cell;
use crate::table::{Column, Table, row};

/// Maximum number of functions per system.
pub(crate) const SHOWN: usize = 10;

/// The title, with remarks on missing data: `server of plain: 1,234 samples, 45.1 us of CPU a request`.
pub(crate) fn title(profile: &Profile) -> String {
    let mut text = format!("{} of {}", profile.system, profile.variant);
    if profile.samples > 0 {
        text += &format!(
            " ({} at {} a second",
            recording::describe::plural(profile.samples, "sample"),
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

/// A row for each function, in descending order of processor time.
pub(crate) fn table(profile: &Profile) -> Table {
    // The divisor is at least 1, so that a profile without samples has shares of 0.
    let share = |samples: u64| float(samples) / float(profile.samples.max(1));
    // One decimal is enough, because the shares are computed from a few thousand samples.
    let percent = |samples: u64| format!("{:.1}", share(samples) * 100.0);
    let rows = profile.hottest.iter().take(SHOWN).map(|hot| {
        let us = profile
            .cpu_us_per_request
            .map(|us| digits::value(us * share(hot.own_samples), None));
        row([
            hot.function.clone(),
            percent(hot.own_samples),
            us.unwrap_or_else(cell::nothing),
            percent(hot.total_samples),
        ])
    });
    Table::new(
        "hottest functions",
        [
            Column::words("function"),
            Column::figure("own", "%"),
            Column::figure("own", "us/request"),
            Column::figure("with callees", "%"),
        ],
        rows,
    )
}
