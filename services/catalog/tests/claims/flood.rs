//! Tests many concurrent requests: each gets its own response, and each insert is stored once.

use std::collections::BTreeMap;
use std::thread;

use serde_json::{Value, json};
use test_client::TestClient;

use crate::databases::Database;
use crate::server::{PRODUCTS, start};

const CONNECTIONS: usize = 20;
const PER_CONNECTION: usize = 500;

const INSERT: &str = "mutation($id: uuid!, $name: String!, $price: Int!) \
    { insert_product_one(object: {id: $id, name: $name, price: $price}) { id name price } }";
const BY_NAME: &str =
    "query($name: String!) { product(where: {name: {_eq: $name}}) { name price } }";

/// An id that is unique within the flood.
fn id(connection: usize, number: usize) -> String {
    format!("00000000-0000-8000-8000-{connection:04x}{number:08x}")
}

/// Sends one of several kinds of requests. Panics if the response belongs to another request.
fn ask(client: &mut TestClient, seeded: &Value, connection: usize, number: usize) {
    let own = (connection * PER_CONNECTION + number) % PRODUCTS;
    let product = &seeded[own];
    let name = format!("flood {connection} {number}");
    let variables = json!({"id": id(connection, number), "name": name, "price": number});
    match number % 5 {
        0 => {
            let answer = client.graphql(INSERT, &variables).json();
            let expected = json!({"data": {"insert_product_one": variables}});
            assert_eq!(answer, expected);
        }
        1 => {
            // Repeats the previous insert, as after a lost response.
            let id = id(connection, number - 1);
            let again = json!({"id": id, "name": "again", "price": 0});
            let answer = client.graphql(INSERT, &again).json();
            assert_eq!(
                answer["errors"][0]["extensions"]["code"],
                "constraint-violation"
            );
            assert_eq!(
                answer["data"]["insert_product_one"],
                Value::Null,
                "{answer}"
            );
        }
        2 => {
            let id = product["id"].as_str().unwrap();
            let answer = client.get(&format!("/api/rest/product/{id}"));
            assert_eq!(answer.json(), json!({"product_by_pk": product}));
        }
        3 => {
            let answer = client.get(&format!("/api/rest/product?limit=1&offset={own}"));
            // Inserted ids come first, so the test can only check the number of rows.
            assert_eq!(answer.json()["product"].as_array().unwrap().len(), 1);
        }
        _ => {
            let name = &product["name"];
            let answer = client.graphql(BY_NAME, &json!({ "name": name })).json();
            let expected = json!({"name": name, "price": product["price"]});
            assert_eq!(answer, json!({"data": {"product": [expected]}}));
        }
    }
}

/// The number of rows for each name of the flood.
fn inserted(client: &mut TestClient) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for offset in (0..).step_by(1_000) {
        let page = client.get(&format!("/api/rest/product?limit=1000&offset={offset}"));
        let page = page.json();
        let rows = page["product"].as_array().unwrap();
        for row in rows {
            let name = row["name"].as_str().unwrap();
            if name.starts_with("flood ") {
                *names.entry(name.to_owned()).or_default() += 1;
            }
        }
        if rows.len() < 1_000 {
            break;
        }
    }
    names
}

#[test]
fn of_ten_thousand_concurrent_requests_none_is_lost_or_done_twice() {
    for database in Database::both() {
        let server = start(&database, &["--workers", "2"]);
        let seeded = server.client().get("/api/rest/product?limit=1000").json();
        let seeded = &seeded["product"];
        assert_eq!(seeded.as_array().unwrap().len(), PRODUCTS);
        thread::scope(|scope| {
            for connection in 0..CONNECTIONS {
                let mut client = server.client();
                scope.spawn(move || {
                    for number in 0..PER_CONNECTION {
                        ask(&mut client, seeded, connection, number);
                    }
                });
            }
        });
        let mut client = server.client();
        let mut counted = |endpoint: &str| {
            client.metric(&format!(
                "catalog_requests_total{{endpoint=\"{endpoint}\",status=\"2xx\"}}"
            ))
        };
        let each = (CONNECTIONS * PER_CONNECTION / 5) as u64;
        assert_eq!(counted("product_by_pk"), each);
        // Plus the request for the seeded rows.
        assert_eq!(counted("product"), each + 1);
        assert_eq!(counted("graphql"), 3 * each);
        let names = inserted(&mut server.client());
        assert!(names.values().all(|count| *count == 1), "{names:?}");
        assert_eq!(names.len() as u64, each);
    }
}
