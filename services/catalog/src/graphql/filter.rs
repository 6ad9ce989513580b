//! The arguments `where` and `order_by`, which select and sort rows.

use async_graphql::{InputObject, InputType};

use super::FieldError;
use crate::datum::Datum;
use crate::id::Id;
use crate::moment::Moment;
use crate::select::{Column, Direction, Select, Test};

/// Creates a test from a value.
type MakeTest = fn(Datum) -> Test;

/// Maximum number of values in `_in`.
const LIST_MAX: usize = 1_000;

/// A type that the values of a column can be compared with.
pub(super) trait Comparable: InputType {
    /// The value as a parameter of a statement.
    fn datum(self) -> Datum;

    /// A list of values as a parameter of a statement.
    fn list(values: Vec<Self>) -> Datum;

    /// True if both databases can store the value.
    fn is_storable(&self) -> bool {
        true
    }
}

impl Comparable for Id {
    fn datum(self) -> Datum {
        Datum::Id(self)
    }

    fn list(values: Vec<Self>) -> Datum {
        Datum::Ids(values)
    }
}

impl Comparable for i32 {
    fn datum(self) -> Datum {
        Datum::Integer(self)
    }

    fn list(values: Vec<Self>) -> Datum {
        Datum::Integers(values)
    }
}

impl Comparable for Moment {
    fn datum(self) -> Datum {
        Datum::Moment(self)
    }

    fn list(values: Vec<Self>) -> Datum {
        Datum::Moments(values)
    }
}

impl Comparable for String {
    fn datum(self) -> Datum {
        Datum::Text(self)
    }

    fn list(values: Vec<Self>) -> Datum {
        Datum::Texts(values)
    }

    fn is_storable(&self) -> bool {
        // PostgreSQL does not allow this character in a text. SQLite does, but both refuse it so that their
        // responses are equal.
        !self.contains('\0')
    }
}

/// Conditions for the values of a column. All given conditions must hold.
#[derive(InputObject)]
#[graphql(concrete(name = "uuid_comparison_exp", params(Id)))]
#[graphql(concrete(name = "String_comparison_exp", params(String)))]
#[graphql(concrete(name = "Int_comparison_exp", params(i32)))]
#[graphql(concrete(name = "timestamptz_comparison_exp", params(Moment)))]
pub(super) struct Comparison<T: Comparable> {
    #[graphql(name = "_eq")]
    equal: Option<T>,
    #[graphql(name = "_gt")]
    greater: Option<T>,
    #[graphql(name = "_gte")]
    at_least: Option<T>,
    #[graphql(name = "_lt")]
    less: Option<T>,
    #[graphql(name = "_lte")]
    at_most: Option<T>,
    #[graphql(name = "_in")]
    one_of: Option<Vec<T>>,
    #[graphql(name = "_is_null")]
    is_null: Option<bool>,
}

impl<T: Comparable> Comparison<T> {
    fn apply(self, column: Column, select: &mut Select) -> Result<(), FieldError> {
        // One table, to check and add all comparisons in the same loop.
        let one: [(Option<T>, MakeTest); 5] = [
            (self.equal, Test::Equal),
            (self.greater, Test::Greater),
            (self.at_least, Test::AtLeast),
            (self.less, Test::Less),
            (self.at_most, Test::AtMost),
        ];
        for (value, test) in one {
            if let Some(value) = value {
                select.test(column, test(storable(value)?.datum()));
            }
        }
        if let Some(values) = self.one_of {
            // The database may compare each row with each value.
            if values.len() > LIST_MAX {
                let found = values.len();
                let message = format!("expected at most {LIST_MAX} values in _in, found {found}");
                return Err(FieldError::Argument(message));
            }
            let values: Result<Vec<T>, _> = values.into_iter().map(storable).collect();
            select.test(column, Test::OneOf(T::list(values?)));
        }
        if let Some(is_null) = self.is_null {
            select.test(column, Test::IsNull(is_null));
        }
        Ok(())
    }
}

/// Checks that both databases can store a value.
pub(super) fn storable<T: Comparable>(value: T) -> Result<T, FieldError> {
    if value.is_storable() {
        return Ok(value);
    }
    let message = "expected a text without U+0000".to_owned();
    Err(FieldError::Argument(message))
}

/// Conditions that restrict a select.
pub(super) trait Filter {
    fn apply(self, select: &mut Select) -> Result<(), FieldError>;
}

/// The sort order of a select.
pub(super) trait Order {
    fn apply(self, select: &mut Select);
}

/// Conditions for products. All given conditions must hold.
#[derive(InputObject)]
#[graphql(name = "product_bool_exp", rename_fields = "snake_case")]
pub(super) struct ProductFilter {
    id: Option<Comparison<Id>>,
    name: Option<Comparison<String>>,
    price: Option<Comparison<i32>>,
    created_at: Option<Comparison<Moment>>,
    updated_at: Option<Comparison<Moment>>,
}

impl Filter for ProductFilter {
    fn apply(self, select: &mut Select) -> Result<(), FieldError> {
        // All values are parameters. Only names of this program's columns become SQL text.
        narrow(self.id, Column::ID, select)?;
        narrow(self.name, Column::NAME, select)?;
        narrow(self.price, Column::PRICE, select)?;
        narrow(self.created_at, Column::CREATED_AT, select)?;
        narrow(self.updated_at, Column::UPDATED_AT, select)
    }
}

/// Conditions for line items. All given conditions must hold.
#[derive(InputObject)]
#[graphql(name = "lineItem_bool_exp", rename_fields = "snake_case")]
pub(super) struct LineItemFilter {
    id: Option<Comparison<Id>>,
    units: Option<Comparison<i32>>,
    product_id: Option<Comparison<Id>>,
    created_at: Option<Comparison<Moment>>,
    updated_at: Option<Comparison<Moment>>,
}

impl Filter for LineItemFilter {
    fn apply(self, select: &mut Select) -> Result<(), FieldError> {
        narrow(self.id, Column::ID, select)?;
        narrow(self.units, Column::UNITS, select)?;
        narrow(self.product_id, Column::PRODUCT_ID, select)?;
        narrow(self.created_at, Column::CREATED_AT, select)?;
        narrow(self.updated_at, Column::UPDATED_AT, select)
    }
}

fn narrow<T: Comparable>(
    comparison: Option<Comparison<T>>,
    column: Column,
    select: &mut Select,
) -> Result<(), FieldError> {
    comparison.map_or(Ok(()), |comparison| comparison.apply(column, select))
}

/// Sort order of products. Rows with equal values are sorted by id.
#[derive(InputObject)]
#[graphql(name = "product_order_by", rename_fields = "snake_case")]
pub(super) struct ProductOrder {
    id: Option<Direction>,
    name: Option<Direction>,
    price: Option<Direction>,
    created_at: Option<Direction>,
    updated_at: Option<Direction>,
}

impl Order for ProductOrder {
    fn apply(self, select: &mut Select) {
        let columns = [
            (Column::ID, self.id),
            (Column::NAME, self.name),
            (Column::PRICE, self.price),
            (Column::CREATED_AT, self.created_at),
            (Column::UPDATED_AT, self.updated_at),
        ];
        sort(columns, select);
    }
}

/// Sort order of line items. Rows with equal values are sorted by id.
#[derive(InputObject)]
#[graphql(name = "lineItem_order_by", rename_fields = "snake_case")]
pub(super) struct LineItemOrder {
    id: Option<Direction>,
    units: Option<Direction>,
    product_id: Option<Direction>,
    created_at: Option<Direction>,
    updated_at: Option<Direction>,
}

impl Order for LineItemOrder {
    fn apply(self, select: &mut Select) {
        let columns = [
            (Column::ID, self.id),
            (Column::UNITS, self.units),
            (Column::PRODUCT_ID, self.product_id),
            (Column::CREATED_AT, self.created_at),
            (Column::UPDATED_AT, self.updated_at),
        ];
        sort(columns, select);
    }
}

fn sort<const N: usize>(columns: [(Column, Option<Direction>); N], select: &mut Select) {
    for (column, direction) in columns {
        if let Some(direction) = direction {
            // In the order of the type's fields, because async-graphql does not keep the order of the
            // client's text.
            select.sort(column, direction);
        }
    }
}
