//! Table of the judgements on gates.

use analysis::gate::Judgement;

use crate::table::{Cell, Column, Look, Table};
use crate::terminal::Tone;
use crate::words;

/// A row for each gate. No rows without gates.
pub(crate) fn table(gates: &[Judgement]) -> Table {
    let cells = |judgement: &Judgement| {
        let tone = (!judgement.is_passed).then_some(Tone::Refused);
        vec![
            Cell::from(&judgement.gate).looks(Look::Code, None),
            Cell::from(&judgement.variant),
            Cell::from(judgement.ruling.to_string()).looks(Look::Ruling, tone),
            words::why(judgement).into(),
        ]
    };
    Table::new(
        "gates",
        [
            "gate",
            "variant",
            "ruling",
            "interval, or why it is missing",
        ]
        .map(Column::words),
        gates.iter().map(cells),
    )
}
