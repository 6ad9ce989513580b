//! The entities: products, and line items that refer to them.

use std::sync::Arc;

use async_graphql::SimpleObject;
use serde::Serialize;

use crate::datum::Datum;
use crate::id::Id;
use crate::moment::Moment;
use crate::select::{Column, Table};

/// Longest name of a product, in characters.
pub(crate) const NAME_LENGTH_MAX: usize = 200;

/// Product of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, SimpleObject)]
#[graphql(name = "product", rename_fields = "snake_case")]
pub(crate) struct Product {
    pub(crate) id: Id,
    /// Name, with 1 to 200 characters.
    pub(crate) name: String,
    /// Price in cents.
    pub(crate) price: i32,
    pub(crate) created_at: Moment,
    pub(crate) updated_at: Moment,
}

/// A number of units of one product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, SimpleObject)]
#[graphql(name = "lineItem", complex, rename_fields = "snake_case")]
pub(crate) struct LineItem {
    pub(crate) id: Id,
    pub(crate) units: i32,
    pub(crate) product_id: Id,
    pub(crate) created_at: Moment,
    pub(crate) updated_at: Moment,
    /// The product, if a query requested it for a whole list of line items.
    #[graphql(skip)]
    #[serde(skip)]
    pub(crate) loaded: Option<Arc<Product>>,
}

/// A row that does not match its table, because another program changed the database.
#[derive(Debug, thiserror::Error)]
#[error("column {column} of a row is not as the migrations made it: {reason}")]
pub(crate) struct RowError {
    pub(crate) column: usize,
    pub(crate) reason: String,
}

/// A row from a database. The columns are in the order of the table's description.
pub(crate) trait Row {
    /// The value in the column of this number.
    fn id(&self, column: usize) -> Result<Id, RowError>;
    /// The value in the column of this number.
    fn text(&self, column: usize) -> Result<String, RowError>;
    /// The value in the column of this number.
    fn integer(&self, column: usize) -> Result<i32, RowError>;
    /// The value in the column of this number.
    fn moment(&self, column: usize) -> Result<Moment, RowError>;
}

/// The decoded form of a table's rows.
pub(crate) trait Entity: Sized + Send + Sync + 'static {
    /// The table of its rows.
    const TABLE: &'static Table;

    /// Decodes a row with the columns of [`Self::TABLE`].
    fn read(row: &impl Row) -> Result<Self, RowError>;

    /// All values of a new row, in the order of the columns.
    fn data(&self) -> Vec<Datum>;
}

impl Entity for Product {
    const TABLE: &'static Table = &Table {
        name: "product",
        columns: &[
            Column::ID,
            Column::NAME,
            Column::PRICE,
            Column::CREATED_AT,
            Column::UPDATED_AT,
        ],
    };

    fn read(row: &impl Row) -> Result<Self, RowError> {
        Ok(Self {
            id: row.id(0)?,
            name: row.text(1)?,
            price: row.integer(2)?,
            created_at: row.moment(3)?,
            updated_at: row.moment(4)?,
        })
    }

    fn data(&self) -> Vec<Datum> {
        vec![
            Datum::Id(self.id),
            Datum::Text(self.name.clone()),
            Datum::Integer(self.price),
            Datum::Moment(self.created_at),
            Datum::Moment(self.updated_at),
        ]
    }
}

impl Entity for LineItem {
    const TABLE: &'static Table = &Table {
        name: "line_item",
        columns: &[
            Column::ID,
            Column::UNITS,
            Column::PRODUCT_ID,
            Column::CREATED_AT,
            Column::UPDATED_AT,
        ],
    };

    fn read(row: &impl Row) -> Result<Self, RowError> {
        Ok(Self {
            id: row.id(0)?,
            units: row.integer(1)?,
            product_id: row.id(2)?,
            created_at: row.moment(3)?,
            updated_at: row.moment(4)?,
            loaded: None,
        })
    }

    fn data(&self) -> Vec<Datum> {
        vec![
            Datum::Id(self.id),
            Datum::Integer(self.units),
            Datum::Id(self.product_id),
            Datum::Moment(self.created_at),
            Datum::Moment(self.updated_at),
        ]
    }
}
