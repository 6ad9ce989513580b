//! Table of the files that a lab was read from.

use recording::FileText;

use crate::table::{Cell, Column, Look, Table};

/// A row for each file.
pub(crate) fn table(files: &[FileText]) -> Table {
    let code = |text: &String| Cell::from(text).looks(Look::Code, None);
    let rows = files.iter();
    Table::new(
        "files of the lab",
        ["file", "SHA-256"].map(Column::words),
        rows.map(|it| vec![code(&it.path), code(&it.sha256)]),
    )
}
