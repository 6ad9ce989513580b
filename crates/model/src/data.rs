//! Values that differ between requests, such as rows and random numbers.

/// Values for placeholders in paths, header values and bodies of requests. A placeholder is `{{column}}` of a
/// row, `{{name}}` of a range, `{{index}}` of the slot (from 0), or `{{random:1..1000}}`. The last one is a
/// whole number from a range that includes both ends, drawn for this placeholder alone. Values in a path are
/// percent-encoded. Values elsewhere are inserted unchanged, except with a notation before the name:
/// `{{escaped:column}}` within a JSON text, `{{encoded:column}}` percent-encoded, `{{raw:column}}` unchanged in
/// a path, and `{{json:name}}` for a captured value with its kind in JSON.
///
/// All placeholders of one request use one row. The content of a slot depends only on its index and on these
/// data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Names of the columns. If there are columns, a placeholder with an unknown name is an error. Without
    /// columns, it is plain text.
    pub columns: Vec<String>,
    /// Rows, each with a value for every column. At least one if there are columns.
    pub rows: Vec<Vec<String>>,
    /// Numbers that are drawn once per slot, by name. Columns and ranges have distinct names.
    pub ranges: Vec<Range>,
    /// Order of the rows over the slots.
    pub order: RowOrder,
    /// Seed of random rows and numbers. It is 0 in a lab, because the run chooses it.
    pub seed: u64,
}

/// A range of whole numbers. Each slot draws one number from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Name of the range in placeholders.
    pub name: String,
    /// The smallest number.
    pub from: u64,
    /// The largest number, at least `from`.
    pub to: u64,
}

/// Order of the rows over the slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// One row after another. The first row follows the last.
    #[default]
    Rotation,
    /// Any row, drawn with the seed and with replacement.
    Random,
}
