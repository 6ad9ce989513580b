//! What the log says about tables.

use chassis::journal::write;

use crate::seed::Amount;

/// A step that made or changed tables.
pub(crate) fn migrated(number: i32, name: &str) {
    write(
        "migrated",
        &[("number", number.into()), ("name", name.into())],
    );
}

/// New tables that were filled.
pub(crate) fn seeded(amount: Amount) {
    let fields = [
        ("products", amount.products.into()),
        ("line_items", amount.line_items.into()),
    ];
    write("seeded", &fields);
}
