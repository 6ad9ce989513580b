//! Tables of a report, each built once for all formats.

pub(crate) mod bodies;
pub(crate) mod breakdown;
pub(crate) mod checks;
pub(crate) mod comparison;
pub(crate) mod distributions;
pub(crate) mod factors;
pub(crate) mod figures;
pub(crate) mod files;
pub(crate) mod gates;
pub(crate) mod handshakes;
pub(crate) mod hottest;
pub(crate) mod instances;
pub(crate) mod ladder;
pub(crate) mod levels;
pub(crate) mod load;
pub(crate) mod packets;
pub(crate) mod results;
pub(crate) mod searches;
pub(crate) mod sent;
pub(crate) mod statuses;
pub(crate) mod steps;
pub(crate) mod streams;
pub(crate) mod systems;
pub(crate) mod traffic;
pub(crate) mod why;

use analysis::summary::Summary;
use model::Metric;
use recording::Recording;

use crate::table::Table;

/// The tables of the costs of layers, each with its title.
pub(crate) fn costs(summary: &Summary) -> Vec<(&'static str, Table)> {
    let mut all = vec![
        (ladder::TITLE, ladder::table(summary)),
        (factors::TITLE, factors::table(summary)),
    ];
    all.extend(streams::all(summary).map(|it| (it.title, it.table)));
    all
}

/// The tables with the evidence, in the order of a report, each with its title.
pub(crate) fn evidence(recording: &Recording, summary: &Summary) -> [(&'static str, Table); 13] {
    [
        (distributions::TITLE, distributions::table(summary)),
        (searches::TITLE, searches::table(summary)),
        (
            crate::step::TITLE,
            steps::table(recording, summary.unit(Metric::Mean)),
        ),
        (traffic::TITLE, traffic::table(summary)),
        (systems::TITLE, systems::table(summary)),
        (breakdown::TITLE, breakdown::table(summary)),
        (breakdown::COUNTS_TITLE, breakdown::counts(summary)),
        (instances::TITLE, instances::table(summary)),
        (crate::bodies::TITLE, bodies::table(summary)),
        (crate::bodies::STATUS_TITLE, statuses::table(summary)),
        (crate::sent::TITLE, sent::table(summary)),
        (packets::TITLE, packets::table(summary)),
        (handshakes::TITLE, handshakes::table(summary)),
    ]
}
