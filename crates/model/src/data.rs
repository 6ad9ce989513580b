//! Values that differ from request to request.

/// What is filled into requests, in their paths, header values and bodies: `{{column}}` of a row,
/// `{{name}}` of a range, `{{index}}` of the slot (from 0), and `{{random:1..1000}}`, a whole number
/// from a range with both ends, drawn for this place alone. Values in a path are percent-encoded;
/// elsewhere they stand as they are.
///
/// All places of one request take the same row. What a slot sends depends on nothing but its index
/// and this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Names of the columns. With columns, a place of any other name is a mistake; without, it is
    /// text.
    pub columns: Vec<String>,
    /// Rows, each with a value for every column. At least one when there are columns.
    pub rows: Vec<Vec<String>>,
    /// Numbers drawn once for each slot, by name. No column has the name of one.
    pub ranges: Vec<Range>,
    /// Which row a slot takes.
    pub order: RowOrder,
    /// For random rows and numbers. 0 in a lab, which leaves it to the run.
    pub seed: u64,
}

/// Whole numbers, of which each slot draws one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// What places call it.
    pub name: String,
    /// The smallest.
    pub from: u64,
    /// The largest; not less than the smallest.
    pub to: u64,
}

/// Which row of the data a slot takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// One after the other, and again from the first.
    #[default]
    Rotation,
    /// Any, drawn with the seed and put back.
    Random,
}
