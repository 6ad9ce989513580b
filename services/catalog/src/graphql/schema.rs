//! The schema in async-graphql's terms.

use std::sync::Arc;

use async_graphql::{
    ComplexObject, Context, EmptySubscription, InputObject, MaybeUndefined, Object,
};

use super::filter::{
    Filter, LineItemFilter, LineItemOrder, Order, ProductFilter, ProductOrder, storable,
};
use super::{Allowance, FieldError};
use crate::clock;
use crate::datum::Datum;
use crate::entity::{Entity, LineItem, NAME_LENGTH_MAX, Product};
use crate::id::Id;
use crate::rest::{LIMIT_DEFAULT, OFFSET_MAX};
use crate::select::{Column, Select, Statement, Test};
use crate::store::{Store, Visitor};
use graphql_document::DEPTH_MAX;

/// The schema of one worker.
pub(super) type Schema = async_graphql::Schema<QueryRoot, MutationRoot, EmptySubscription>;

/// Maximum number of rows in one list.
struct LimitMax(u32);

pub(super) fn schema(store: Store, limit_max: u32) -> Schema {
    // The library counts the selection set of the operation as 0, `DEPTH_MAX` counts it as 1.
    async_graphql::Schema::build(QueryRoot, MutationRoot, EmptySubscription)
        .limit_recursive_depth(DEPTH_MAX - 1)
        .data(store)
        .data(LimitMax(limit_max))
        .finish()
}

/// The root type of queries.
pub(super) struct QueryRoot;

#[Object(
    name = "query_root",
    rename_fields = "snake_case",
    rename_args = "snake_case"
)]
impl QueryRoot {
    /// Products that match the arguments. The default is the first 100 by id.
    async fn product(
        &self,
        context: &Context<'_>,
        #[graphql(name = "where")] filter: Option<ProductFilter>,
        order_by: Option<Vec<ProductOrder>>,
        limit: Option<i32>,
        offset: Option<i32>,
    ) -> Result<Vec<Product>, FieldError> {
        list(context, filter, order_by, limit, offset).await
    }

    /// Product with this id, or null if there is no such product.
    #[graphql(name = "product_by_pk")]
    async fn product_by_pk(
        &self,
        context: &Context<'_>,
        id: Id,
    ) -> Result<Option<Product>, FieldError> {
        one(context, id).await
    }

    /// Line items that match the arguments. The default is the first 100 by id.
    #[graphql(name = "lineItem")]
    async fn line_item(
        &self,
        context: &Context<'_>,
        #[graphql(name = "where")] filter: Option<LineItemFilter>,
        order_by: Option<Vec<LineItemOrder>>,
        limit: Option<i32>,
        offset: Option<i32>,
    ) -> Result<Vec<LineItem>, FieldError> {
        let mut items: Vec<LineItem> = list(context, filter, order_by, limit, offset).await?;
        // Otherwise each item would load its product separately: a list of a hundred would need a hundred and
        // one statements.
        if context.look_ahead().field("product").exists() && !items.is_empty() {
            // Spent before the statement is sent. A list has at most `limit_max` items, which fits.
            allow(context, u32::try_from(items.len()).unwrap_or(u32::MAX))?;
            load_products(context, &mut items).await?;
        }
        Ok(items)
    }

    /// Line item with this id, or null if there is no such line item.
    #[graphql(name = "lineItem_by_pk")]
    async fn line_item_by_pk(
        &self,
        context: &Context<'_>,
        id: Id,
    ) -> Result<Option<LineItem>, FieldError> {
        one(context, id).await
    }
}

#[ComplexObject]
impl LineItem {
    /// Product of this line item.
    async fn product(&self, context: &Context<'_>) -> Result<Product, FieldError> {
        if let Some(product) = &self.loaded {
            // The list of line items has already loaded it. See `line_item`.
            return Ok(Product::clone(product));
        }
        // The foreign key protects a product with line items. It is missing only if both were deleted after
        // the item was read.
        one(context, self.product_id).await?.ok_or(FieldError::Gone)
    }
}

fn allow(context: &Context<'_>, rows: u32) -> Result<(), FieldError> {
    context.data_unchecked::<Allowance>().spend(rows)
}

/// The database, and the request that uses it.
fn store<'a>(context: &Context<'a>) -> (&'a Store, &'a Visitor) {
    (context.data_unchecked(), context.data_unchecked())
}

/// Loads the products of all line items of a list with one statement.
async fn load_products(context: &Context<'_>, items: &mut [LineItem]) -> Result<(), FieldError> {
    let mut ids: Vec<Id> = items.iter().map(|item| item.product_id).collect();
    // Each product once, in the order of the database's result.
    ids.sort_unstable();
    ids.dedup();
    // As many rows as ids, independent of the limit of lists.
    let mut select = Select::of(Product::TABLE, u32::try_from(ids.len()).unwrap_or(u32::MAX));
    select.test(Column::ID, Test::OneOf(Datum::Ids(ids)));
    let (store, visitor) = store(context);
    let products: Vec<Product> = store.rows(select, visitor).await?;
    let products: Vec<Arc<Product>> = products.into_iter().map(Arc::new).collect();
    for item in items {
        // Both lists are sorted by id.
        let found = products.binary_search_by_key(&item.product_id, |product| product.id);
        // A missing product stays `None`. The field then loads it separately and reports the error.
        item.loaded = found.ok().map(|at| Arc::clone(&products[at]));
    }
    Ok(())
}

async fn list<E: Entity>(
    context: &Context<'_>,
    filter: Option<impl Filter>,
    order: Option<Vec<impl Order>>,
    limit: Option<i32>,
    offset: Option<i32>,
) -> Result<Vec<E>, FieldError> {
    let LimitMax(limit_max) = context.data_unchecked();
    let limit = bounded("limit", limit, *limit_max)?.unwrap_or(LIMIT_DEFAULT.min(*limit_max));
    let mut select = Select::of(E::TABLE, limit);
    if let Some(offset) = bounded("offset", offset, OFFSET_MAX)? {
        select.skip(offset);
    }
    if let Some(filter) = filter {
        filter.apply(&mut select)?;
    }
    for order in order.into_iter().flatten() {
        order.apply(&mut select);
    }
    // By the limit and not by the number of found rows, because the allowance must be spent before the
    // database works.
    allow(context, limit)?;
    let (store, visitor) = store(context);
    Ok(store.rows(select, visitor).await?)
}

async fn one<E: Entity>(context: &Context<'_>, id: Id) -> Result<Option<E>, FieldError> {
    allow(context, 1)?;
    let (store, visitor) = store(context);
    Ok(store.one(Select::by_id(E::TABLE, id), visitor).await?)
}

async fn change<E: Entity>(
    context: &Context<'_>,
    statement: Statement,
) -> Result<Option<E>, FieldError> {
    allow(context, 1)?;
    let (store, visitor) = store(context);
    Ok(store.change(statement, visitor).await?)
}

fn bounded(name: &str, number: Option<i32>, max: u32) -> Result<Option<u32>, FieldError> {
    let Some(found) = number else {
        return Ok(None);
    };
    let number = u32::try_from(found).ok().filter(|number| *number <= max);
    number.map(Some).ok_or_else(|| {
        FieldError::Argument(format!(
            "{name}: expected a whole number from 0 to {max}, found {found}"
        ))
    })
}

/// A new product.
#[derive(InputObject)]
#[graphql(name = "product_insert_input")]
struct NewProduct {
    /// Id of the new row. The default is a new random id. A second insert with the same id is refused.
    id: Option<Id>,
    name: String,
    price: i32,
}

/// New values for a product.
#[derive(InputObject)]
#[graphql(name = "product_set_input")]
struct ProductValues {
    name: MaybeUndefined<String>,
    price: MaybeUndefined<i32>,
}

/// A new line item.
#[derive(InputObject)]
#[graphql(name = "lineItem_insert_input", rename_fields = "snake_case")]
struct NewLineItem {
    /// Id of the new row. The default is a new random id. A second insert with the same id is refused.
    id: Option<Id>,
    units: i32,
    product_id: Id,
}

/// New values for a line item.
#[derive(InputObject)]
#[graphql(name = "lineItem_set_input")]
struct LineItemValues {
    units: MaybeUndefined<i32>,
}

/// Id of the product to change.
#[derive(InputObject)]
#[graphql(name = "product_pk_columns_input")]
struct ProductKey {
    id: Id,
}

/// Id of the line item to change.
#[derive(InputObject)]
#[graphql(name = "lineItem_pk_columns_input")]
struct LineItemKey {
    id: Id,
}

/// The root type of mutations.
pub(super) struct MutationRoot;

#[Object(
    name = "mutation_root",
    rename_fields = "snake_case",
    rename_args = "snake_case"
)]
impl MutationRoot {
    /// Adds a product.
    async fn insert_product_one(
        &self,
        context: &Context<'_>,
        object: NewProduct,
    ) -> Result<Option<Product>, FieldError> {
        let now = clock::time_of_day();
        let product = Product {
            id: object.id.unwrap_or_else(Id::fresh),
            name: name(object.name)?,
            price: at_least("price", 0, object.price)?,
            created_at: now,
            updated_at: now,
        };
        change(context, Statement::insert(Product::TABLE, product.data())).await
    }

    /// Changes a product. Returns null if there is no product with this id.
    async fn update_product_by_pk(
        &self,
        context: &Context<'_>,
        pk_columns: ProductKey,
        #[graphql(name = "_set")] set: ProductValues,
    ) -> Result<Option<Product>, FieldError> {
        let mut values = Vec::new();
        if let Some(text) = given("name", set.name)? {
            values.push((Column::NAME, Datum::Text(name(text)?)));
        }
        if let Some(price) = given("price", set.price)? {
            values.push((Column::PRICE, Datum::Integer(at_least("price", 0, price)?)));
        }
        // Also if no other column changes, so that the statement always sets a column.
        values.push((Column::UPDATED_AT, Datum::Moment(clock::time_of_day())));
        let statement = Statement::update(Product::TABLE, pk_columns.id, values);
        change(context, statement).await
    }

    /// Removes a product without line items, and returns it.
    async fn delete_product_by_pk(
        &self,
        context: &Context<'_>,
        id: Id,
    ) -> Result<Option<Product>, FieldError> {
        change(context, Statement::delete(Product::TABLE, id)).await
    }

    /// Adds a line item.
    #[graphql(name = "insert_lineItem_one")]
    async fn insert_line_item_one(
        &self,
        context: &Context<'_>,
        object: NewLineItem,
    ) -> Result<Option<LineItem>, FieldError> {
        let now = clock::time_of_day();
        let item = LineItem {
            id: object.id.unwrap_or_else(Id::fresh),
            units: at_least("units", 1, object.units)?,
            product_id: object.product_id,
            created_at: now,
            updated_at: now,
            loaded: None,
        };
        change(context, Statement::insert(LineItem::TABLE, item.data())).await
    }

    /// Changes a line item. Returns null if there is no line item with this id.
    #[graphql(name = "update_lineItem_by_pk")]
    async fn update_line_item_by_pk(
        &self,
        context: &Context<'_>,
        pk_columns: LineItemKey,
        #[graphql(name = "_set")] set: LineItemValues,
    ) -> Result<Option<LineItem>, FieldError> {
        let mut values = Vec::new();
        if let Some(units) = given("units", set.units)? {
            values.push((Column::UNITS, Datum::Integer(at_least("units", 1, units)?)));
        }
        values.push((Column::UPDATED_AT, Datum::Moment(clock::time_of_day())));
        let statement = Statement::update(LineItem::TABLE, pk_columns.id, values);
        change(context, statement).await
    }

    /// Removes a line item, and returns it.
    #[graphql(name = "delete_lineItem_by_pk")]
    async fn delete_line_item_by_pk(
        &self,
        context: &Context<'_>,
        id: Id,
    ) -> Result<Option<LineItem>, FieldError> {
        change(context, Statement::delete(LineItem::TABLE, id)).await
    }
}

/// A new value for a column. No column may become null.
fn given<T>(column: &str, value: MaybeUndefined<T>) -> Result<Option<T>, FieldError> {
    match value {
        MaybeUndefined::Undefined => Ok(None),
        MaybeUndefined::Value(value) => Ok(Some(value)),
        MaybeUndefined::Null => Err(FieldError::Argument(format!(
            "{column}: expected a value, found null"
        ))),
    }
}

fn name(text: String) -> Result<String, FieldError> {
    // In characters, like in PostgreSQL.
    let length = text.chars().count();
    if !(1..=NAME_LENGTH_MAX).contains(&length) {
        return Err(FieldError::Argument(format!(
            "name: expected 1 to {NAME_LENGTH_MAX} characters, found {length}"
        )));
    }
    storable(text)
}

fn at_least(column: &str, least: i32, number: i32) -> Result<i32, FieldError> {
    if number < least {
        return Err(FieldError::Argument(format!(
            "{column}: expected at least {least}, found {number}"
        )));
    }
    Ok(number)
}
