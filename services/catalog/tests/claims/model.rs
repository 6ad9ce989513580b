//! Random queries: both databases must return the result of a simple filter over all rows.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::databases::Database;
use crate::server::{PRODUCTS, start};

const COLUMNS: [&str; 5] = ["id", "name", "price", "created_at", "updated_at"];
const TESTS: [&str; 5] = ["_eq", "_gt", "_gte", "_lt", "_lte"];

/// A query for products in numbers. Rows provide the values for comparisons.
#[derive(Debug, Clone)]
struct Asked {
    tests: Vec<(usize, usize, usize)>,
    listed: Option<(usize, Vec<usize>)>,
    order: Vec<(usize, bool)>,
    limit: usize,
    offset: usize,
}

fn asked() -> impl Strategy<Value = Asked> {
    let row = 0..PRODUCTS;
    (
        prop::collection::vec((0..COLUMNS.len(), 0..TESTS.len(), row.clone()), 0..3),
        prop::option::of((0..COLUMNS.len(), prop::collection::vec(row, 0..40))),
        prop::collection::vec((0..COLUMNS.len(), any::<bool>()), 0..3),
        0..60_usize,
        0..20_usize,
    )
        .prop_map(|(tests, listed, order, limit, offset)| Asked {
            tests,
            listed,
            order,
            limit,
            offset,
        })
}

impl Asked {
    /// The query as the argument `where`. A second test on a column replaces the first.
    fn filter(&self, rows: &[Value]) -> Map<String, Value> {
        let mut filter = Map::new();
        let mut add = |column: &str, test: &str, value: Value| {
            let tests = filter.entry(column).or_insert_with(|| json!({}));
            tests[test] = value;
        };
        for (column, test, row) in &self.tests {
            let column = COLUMNS[*column];
            add(column, TESTS[*test], rows[*row][column].clone());
        }
        if let Some((column, listed)) = &self.listed {
            let column = COLUMNS[*column];
            let values = listed.iter().map(|row| rows[*row][column].clone());
            add(column, "_in", values.collect());
        }
        filter
    }

    fn variables(&self, rows: &[Value]) -> Value {
        let order: Vec<Value> = self
            .order
            .iter()
            .map(|(column, is_up)| json!({COLUMNS[*column]: if *is_up { "asc" } else { "desc" }}))
            .collect();
        json!({
            "where": self.filter(rows),
            "order": order,
            "limit": self.limit,
            "offset": self.offset,
        })
    }

    /// The ids of the rows that match.
    fn right(&self, rows: &[Value]) -> Vec<Value> {
        let filter = self.filter(rows);
        let mut kept: Vec<&Value> = rows
            .iter()
            .filter(|row| {
                filter
                    .iter()
                    .all(|(column, tests)| passes(&row[column], tests))
            })
            .collect();
        // Already sorted by id, and a stable sort keeps that order for equal rows.
        kept.sort_by(|one, other| {
            let mut known: Vec<usize> = Vec::new();
            for (column, is_up) in &self.order {
                if known.contains(column) {
                    continue;
                }
                known.push(*column);
                let column = COLUMNS[*column];
                let order = compare(&one[column], &other[column]);
                let order = if *is_up { order } else { order.reverse() };
                if order.is_ne() {
                    return order;
                }
            }
            std::cmp::Ordering::Equal
        });
        let page = kept.into_iter().skip(self.offset).take(self.limit);
        page.map(|row| json!({"id": row["id"]})).collect()
    }
}

fn passes(value: &Value, tests: &Value) -> bool {
    tests.as_object().unwrap().iter().all(|(test, other)| {
        if test == "_in" {
            return other.as_array().unwrap().contains(value);
        }
        let order = compare(value, other);
        match test.as_str() {
            "_eq" => order.is_eq(),
            "_gt" => order.is_gt(),
            "_gte" => order.is_ge(),
            "_lt" => order.is_lt(),
            _ => order.is_le(),
        }
    })
}

/// Compares ids, names and times by their texts.
fn compare(one: &Value, other: &Value) -> std::cmp::Ordering {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.as_str().unwrap().cmp(other.as_str().unwrap()),
    }
}

#[test]
fn both_databases_answer_what_a_plain_reading_says() {
    let query = "query($where: product_bool_exp, $order: [product_order_by!], $limit: Int, \
        $offset: Int) { product(where: $where, order_by: $order, limit: $limit, offset: $offset) \
        { id } }";
    for database in Database::both() {
        let server = start(&database, &[]);
        let client = RefCell::new(server.client());
        let all = client
            .borrow_mut()
            .get("/api/rest/product?limit=1000")
            .json();
        let rows = all["product"].as_array().unwrap();
        let config = Config {
            cases: 150,
            failure_persistence: None,
            ..Config::default()
        };
        let checked = TestRunner::new(config).run(&asked(), |asked| {
            let answer = client
                .borrow_mut()
                .graphql(query, &asked.variables(rows))
                .json();
            prop_assert_eq!(
                &answer["data"]["product"],
                &json!(asked.right(rows)),
                "{}",
                answer
            );
            Ok(())
        });
        checked.unwrap();
    }
}
