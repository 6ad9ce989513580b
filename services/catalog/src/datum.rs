//! The values of columns and parameters.

use crate::id::Id;
use crate::moment::Moment;

/// A value for the database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Datum {
    Id(Id),
    Text(String),
    Integer(i32),
    Moment(Moment),
    /// A number of rows, for limits and offsets.
    Count(i64),
    Ids(Vec<Id>),
    Texts(Vec<String>),
    Integers(Vec<i32>),
    Moments(Vec<Moment>),
}
