//! Tables of the HTML page.

use analysis::summary::Summary;
use model::Metric;
use recording::{Kind, Profile, Recording};

use super::escape::escape;
use super::markup::{folded, list, table};
use crate::explain;
use crate::tables;

pub(super) fn results(summary: &Summary) -> String {
    let mut metrics = tables::results::on_page(summary);
    if summary.kind == Kind::Lab {
        // The extremes of a lab are in the figures of the distributions. The verdict has their space.
        metrics.retain(|metric| !matches!(metric, Metric::Min | Metric::Max));
    }
    let times = summary.unit(Metric::Mean);
    let results = tables::results::table(&summary.variants, &metrics, times);
    let results = match summary.kind {
        Kind::Lab => results.with_last_column_second(),
        // A single load has no verdict.
        Kind::Load => results.without_last_column(),
    };
    if summary.comparisons == 0 {
        return table(&results, "");
    }
    let caption = format!(
        // The caption is already markup, and backticks would be shown as text.
        "Below each figure, compared with <b>{}</b>: {}. A figure is \
         the baseline's figure plus the difference.",
        escape(&summary.against().replace('`', "")),
        explain::difference(summary)
    );
    table(&results, &caption)
}

/// The meaning of each verdict. Empty if there is no comparison.
pub(super) fn in_words(summary: &Summary) -> String {
    let sentences = explain::in_words(summary);
    // A single sentence is already the result at the top.
    if sentences.len() < 2 {
        return String::new();
    }
    list(&sentences)
}

pub(super) fn distributions(summary: &Summary) -> String {
    let caption = "In ms, over the requests of all rounds together. The table Results is computed by \
                   round, so its figures differ. Slow rounds weigh more here.";
    table(&tables::distributions::table(summary), caption)
}

/// Links to the drawings of a profile, which are in the page's folder.
fn drawings(profile: &Profile) -> String {
    let link = |file: &String| {
        let label = match file.ends_with("-difference.svg") {
            true => "difference from the baseline",
            false => "flamegraph",
        };
        format!(" <a href=\"./{}\">{label}</a>", escape(file))
    };
    let drawings = profile.files.iter().filter(|file| file.ends_with(".svg"));
    drawings.map(link).collect()
}

/// The functions with the most processor time, for each system. Empty without profiles.
pub(super) fn hottest(recording: &Recording) -> String {
    let of_profile = |profile: &Profile| {
        let title = escape(&tables::hottest::title(profile)) + &drawings(profile);
        match table(&tables::hottest::table(profile), &title).as_str() {
            "" => format!("<p>{title}</p>\n"),
            drawn => drawn.to_owned(),
        }
    };
    recording.profiles.iter().map(of_profile).collect()
}

/// The checks that are not in order, then all states, then all figures.
pub(super) fn checks(summary: &Summary) -> String {
    // A recording without checks, such as an imported one, must not claim that all is in order.
    if summary.variants.iter().all(|row| row.checks.is_empty()) {
        return String::new();
    }
    let troubles = explain::troubles(summary);
    let mut out = if troubles.is_empty() {
        "<p>All in order.</p>\n".to_owned()
    } else {
        list(&troubles)
    };
    let states = table(&tables::checks::states(summary), "");
    out += &folded("The state of every check", &states);
    let every = table(&tables::checks::every(summary), "");
    out + &folded("The figure behind every check", &every)
}
