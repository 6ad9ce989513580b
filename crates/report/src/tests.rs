//! Tests that figures of a summary reach every rendering.

use std::time::Duration;

use analysis::summary::{CheckName, CheckState, Summary, VariantSummary, Verdict};
use model::{InvalidKind, Metric};
use recording::sample::SampleRun;
use recording::{ClusterText, Proof, Recording, VariantStatus};

mod against;
mod breakdown;
mod factors;
mod few;
mod groups;
mod ladder;
mod left_out;
mod noise;
mod split;
mod stopped;
mod sums;
mod typical;
mod until;
mod verdicts;
mod why;
mod withheld;

/// A cluster that lost one round for this reason.
pub(crate) fn cluster_that_lost(reason: &str) -> ClusterText {
    ClusterText {
        kind: "kubernetes".to_owned(),
        version: "v1.34.4".to_owned(),
        namespace: "n".to_owned(),
        generators: 1,
        nodes: Vec::new(),
        placed: Vec::new(),
        lost_rounds: vec![reason.to_owned()],
        processor_time: String::new(),
    }
}

/// All formats of a report, with their names.
fn renderings(recording: &Recording, summary: &Summary) -> [(&'static str, String); 8] {
    let terminal = crate::Terminal::plain(100);
    [
        ("text", crate::text(recording, summary, terminal)),
        ("full", crate::full_text(recording, summary, terminal)),
        ("markdown", crate::markdown(recording, summary)),
        ("comment", crate::comment(recording, summary)),
        ("html", crate::html(recording, summary)),
        ("json", crate::json(recording, summary)),
        ("junit", crate::junit(recording, summary)),
        ("csv", crate::csv(recording, summary)),
    ]
}
