//! Queries of a table, and their SQL.
//!
//! The text of a statement contains only text of this program: names of tables and columns, operators,
//! numbers of parameters. Values from clients are always parameters. Equal queries with other values have the
//! same text, so that databases prepare it once.

use std::fmt::Write as _;

use crate::datum::Datum;
use crate::id::Id;

/// A table: its name and its columns, in the order of the values in a row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

/// The name of a column. Only these constants exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column(&'static str);

impl Column {
    pub(crate) const ID: Self = Self("id");
    pub(crate) const NAME: Self = Self("name");
    pub(crate) const PRICE: Self = Self("price");
    pub(crate) const UNITS: Self = Self("units");
    pub(crate) const PRODUCT_ID: Self = Self("product_id");
    pub(crate) const CREATED_AT: Self = Self("created_at");
    pub(crate) const UPDATED_AT: Self = Self("updated_at");
}

/// A condition for the value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    Equal(Datum),
    Greater(Datum),
    AtLeast(Datum),
    Less(Datum),
    AtMost(Datum),
    /// One of a list of values.
    OneOf(Datum),
    IsNull(bool),
}

/// Direction of sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, async_graphql::Enum)]
#[graphql(name = "order_by", rename_items = "lowercase")]
pub(crate) enum Direction {
    /// Ascending order.
    Asc,
    /// Descending order.
    Desc,
}

/// The SQL dialect of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    Sqlite,
}

/// A statement and the values of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) data: Vec<Datum>,
}

/// A query for rows of one table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    table: &'static Table,
    tests: Vec<(Column, Test)>,
    order: Vec<(Column, Direction)>,
    limit: u32,
    offset: u32,
}

impl Select {
    /// Selects the first rows by id.
    pub(crate) fn of(table: &'static Table, limit: u32) -> Self {
        Self {
            table,
            tests: Vec::new(),
            order: Vec::new(),
            limit,
            offset: 0,
        }
    }

    /// Selects the row with this id.
    pub(crate) fn by_id(table: &'static Table, id: Id) -> Self {
        let mut select = Self::of(table, 1);
        select.test(Column::ID, Test::Equal(Datum::Id(id)));
        select
    }

    /// Sets the maximum number of rows.
    pub(crate) fn limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Sets the number of rows to skip.
    pub(crate) fn skip(&mut self, offset: u32) {
        self.offset = offset;
    }

    /// Excludes rows that do not pass the test.
    pub(crate) fn test(&mut self, column: Column, test: Test) {
        self.tests.push((column, test));
    }

    /// Sorts by this column if all columns before it are equal. A repeated column has no effect.
    pub(crate) fn sort(&mut self, column: Column, direction: Direction) {
        if self.order.iter().all(|(sorted, _)| *sorted != column) {
            self.order.push((column, direction));
        }
    }

    /// Writes the SQL statement of the query.
    pub(crate) fn into_statement(self, dialect: Dialect) -> Statement {
        let mut statement = Statement {
            text: format!(
                "SELECT {} FROM {}",
                names(self.table.columns),
                self.table.name
            ),
            data: Vec::with_capacity(self.tests.len() + 2),
        };
        let mut link = "WHERE";
        for (Column(column), test) in self.tests {
            statement.add(format_args!(" {link} {column}"));
            statement.add_test(test, dialect);
            link = "AND";
        }
        statement.add(format_args!(" ORDER BY "));
        let mut is_total = false;
        for (column, direction) in self.order {
            let word = match direction {
                Direction::Asc => "ASC",
                Direction::Desc => "DESC",
            };
            statement.add(format_args!("{} {word}", column.0));
            // The id is unique, so rows sorted by it have a single order. Columns after it have no effect.
            is_total = column == Column::ID;
            if is_total {
                // All rows already differ.
                break;
            }
            statement.add(format_args!(", "));
        }
        if !is_total {
            statement.add(format_args!("id ASC"));
        }
        // As parameters and not as text, so that all pages of a query share one statement.
        statement.add_datum(" LIMIT ", Datum::Count(self.limit.into()), "");
        statement.add_datum(" OFFSET ", Datum::Count(self.offset.into()), "");
        statement
    }
}

impl Statement {
    /// A statement that inserts a row with these values.
    pub(crate) fn insert(table: &'static Table, data: Vec<Datum>) -> Self {
        let columns = names(table.columns);
        let mut statement = Self {
            text: format!("INSERT INTO {} ({columns}) VALUES (", table.name),
            data: Vec::with_capacity(data.len()),
        };
        let mut link = "";
        for datum in data {
            statement.add_datum(link, datum, "");
            link = ", ";
        }
        // Returns the row as the database stored it, with defaults and rounding, without a second statement.
        statement.add(format_args!(") RETURNING {columns}"));
        statement
    }

    /// A statement that updates some columns of the row with this id.
    pub(crate) fn update(table: &'static Table, id: Id, values: Vec<(Column, Datum)>) -> Self {
        let mut statement = Self {
            text: format!("UPDATE {} SET ", table.name),
            data: Vec::with_capacity(values.len() + 1),
        };
        let mut link = "";
        for (Column(column), datum) in values {
            statement.add(format_args!("{link}{column}"));
            statement.add_datum(" = ", datum, "");
            link = ", ";
        }
        statement.add_datum(" WHERE id = ", Datum::Id(id), "");
        statement.add(format_args!(" RETURNING {}", names(table.columns)));
        statement
    }

    /// A statement that deletes the row with this id.
    pub(crate) fn delete(table: &'static Table, id: Id) -> Self {
        let mut statement = Self {
            text: format!("DELETE FROM {}", table.name),
            data: Vec::with_capacity(1),
        };
        statement.add_datum(" WHERE id = ", Datum::Id(id), "");
        statement.add(format_args!(" RETURNING {}", names(table.columns)));
        statement
    }

    fn add(&mut self, words: std::fmt::Arguments<'_>) {
        self.text
            .write_fmt(words)
            .expect("writing to a String cannot fail");
    }

    fn add_datum(&mut self, before: &str, datum: Datum, after: &str) {
        self.data.push(datum);
        // Parameters appear in the order of their numbers, and both databases number them that way.
        let number = self.data.len();
        self.add(format_args!("{before}${number}{after}"));
    }

    fn add_test(&mut self, test: Test, dialect: Dialect) {
        match test {
            Test::Equal(datum) => self.add_datum(" = ", datum, ""),
            Test::Greater(datum) => self.add_datum(" > ", datum, ""),
            Test::AtLeast(datum) => self.add_datum(" >= ", datum, ""),
            Test::Less(datum) => self.add_datum(" < ", datum, ""),
            Test::AtMost(datum) => self.add_datum(" <= ", datum, ""),
            Test::OneOf(data) => match dialect {
                // A list as one parameter keeps the text independent of its length. `IN ($1, $2, …)` would be
                // a new statement for each length.
                Dialect::Postgres => self.add_datum(" = ANY(", data, ")"),
                Dialect::Sqlite => self.add_datum(" IN rarray(", data, ")"),
            },
            Test::IsNull(true) => self.add(format_args!(" IS NULL")),
            Test::IsNull(false) => self.add(format_args!(" IS NOT NULL")),
        }
    }
}

fn names(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|Column(name)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entity::{Entity as _, LineItem, Product};

    #[test]
    fn tests_order_and_page_are_put_together() {
        let mut select = Select::of(Product::TABLE, 5);
        select.test(Column::NAME, Test::Equal(Datum::Text("'; --".to_owned())));
        select.test(Column::PRICE, Test::OneOf(Datum::Integers(vec![1, 2])));
        select.sort(Column::PRICE, Direction::Desc);
        select.sort(Column::PRICE, Direction::Asc);
        select.skip(7);
        let statement = select.clone().into_statement(Dialect::Postgres);
        assert_eq!(
            statement.text,
            "SELECT id, name, price, created_at, updated_at FROM product WHERE name = $1 AND \
             price = ANY($2) ORDER BY price DESC, id ASC LIMIT $3 OFFSET $4"
        );
        assert_eq!(statement.data.len(), 4);
        let other = select.into_statement(Dialect::Sqlite).text;
        assert_eq!(other, statement.text.replace("= ANY(", "IN rarray("));
    }

    #[test]
    fn changes_name_their_columns() {
        let (id, value) = (Id::fresh(), Datum::Integer(3));
        let update = Statement::update(LineItem::TABLE, id, vec![(Column::UNITS, value)]);
        assert_eq!(
            update.text,
            "UPDATE line_item SET units = $1 WHERE id = $2 RETURNING id, units, product_id, \
             created_at, updated_at"
        );
        let delete = Statement::delete(LineItem::TABLE, id);
        assert!(
            delete
                .text
                .starts_with("DELETE FROM line_item WHERE id = $1 RETURNING id")
        );
    }

    fn test() -> impl Strategy<Value = (Column, fn(Datum) -> Test, String)> {
        let columns = prop::sample::select(Product::TABLE.columns);
        let kinds: [fn(Datum) -> Test; 6] = [
            Test::Equal,
            Test::Greater,
            Test::AtLeast,
            Test::Less,
            Test::AtMost,
            Test::OneOf,
        ];
        (
            columns,
            prop::sample::select(kinds.to_vec()),
            "\\PC*['\";$\\\\-]*\\PC*",
        )
    }

    proptest! {
        /// Values cannot influence the text: it is equal for any two values.
        #[test]
        fn the_text_does_not_depend_on_values(
            tests in prop::collection::vec(test(), 0..6),
            limit: u32,
            offset: u32,
        ) {
            let text = |value: &dyn Fn(&str) -> String, limit, offset| {
                let mut select = Select::of(Product::TABLE, limit);
                select.skip(offset);
                for (column, kind, datum) in &tests {
                    select.test(*column, kind(Datum::Text(value(datum))));
                }
                select.into_statement(Dialect::Postgres)
            };
            let hostile = text(&|datum| datum.to_owned(), limit, offset);
            prop_assert_eq!(&hostile.text, &text(&|_| "x".to_owned(), 0, 0).text);
            prop_assert_eq!(hostile.data.len(), tests.len() + 2);
            let highest = format!("${}", hostile.data.len());
            prop_assert!(hostile.text.ends_with(&highest));
        }
    }
}
