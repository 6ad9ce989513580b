//! Table of the steps of a scenario.

use model::Unit;
use recording::Recording;

use crate::cell;
use crate::step;
use crate::table::{Column, Table, row};

/// A row for each step of each variant. No rows without a scenario.
pub(crate) fn table(recording: &Recording, times: Unit) -> Table {
    let mut rows = Vec::new();
    for variant in &recording.variants {
        let rounds: Vec<_> = recording.rounds_of(&variant.name).collect();
        for step in step::all(&rounds) {
            let [p50, p99, max] = step.quantiles_us().map(|us| cell::single(us, times));
            let outcomes = step.outcomes();
            rows.push(row([
                variant.name.clone(),
                step.name,
                p50,
                p99,
                max,
                outcomes,
            ]));
        }
    }
    Table::new(
        "steps of the scenario",
        [
            Column::words("variant"),
            Column::words("step"),
            Column::figure("p50", times.sign()),
            Column::figure("p99", times.sign()),
            Column::figure("max", times.sign()),
            Column::words("outcomes"),
        ],
        rows,
    )
}
