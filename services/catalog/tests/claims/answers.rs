//! Tests that responses are equal on both databases, byte for byte.

use serde_json::{Value, json};
use test_client::{JSON, Response, TestClient};

use crate::databases::Database;
use crate::server::{PRODUCTS, start};

/// Runs the same steps on both databases. Returns the responses of SQLite after a comparison with PostgreSQL.
fn alike(flags: &[&str], steps: impl Fn(&mut TestClient) -> Vec<Response>) -> Vec<Response> {
    let [sqlite, postgres] = Database::both().map(|database| {
        let server = start(&database, flags);
        let mut answers = steps(&mut server.client());
        for answer in &mut answers {
            // Only the date differs.
            answer.headers.retain(|(name, _)| name != "date");
            answer.head = answer.head.split("date:").next().unwrap().to_owned();
        }
        answers
    });
    assert_eq!(sqlite, postgres);
    sqlite
}

fn get_all(flags: &[&str], paths: &[String]) -> Vec<Response> {
    alike(flags, |client| {
        paths.iter().map(|path| client.get(path)).collect()
    })
}

#[test]
fn lists_are_paged_in_the_order_of_ids() {
    let paths = [
        "",
        "?limit=1000",
        "?limit=7&offset=5",
        "?limit=0",
        "?limit=&offset=299",
    ];
    let paths = paths.map(|end| format!("/api/rest/product{end}"));
    let answers = get_all(&[], &paths);
    let [first, all, page, none, last] = answers.as_slice() else {
        panic!("five answers");
    };
    assert!(
        first
            .head
            .contains("content-type: application/json; charset=utf-8")
    );
    let rows = |answer: &Response| -> Vec<Value> {
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["product"].as_array().unwrap().clone()
    };
    let all = rows(all);
    assert_eq!(all.len(), PRODUCTS);
    assert!(all.is_sorted_by_key(|row| row["id"].as_str().unwrap().to_owned()));
    assert_eq!(rows(first), all[..100]);
    assert_eq!(rows(page), all[5..12]);
    assert_eq!(rows(none), Vec::<Value>::new());
    assert_eq!(rows(last), all[299..]);
    let keys: Vec<_> = all[0].as_object().unwrap().keys().cloned().collect();
    // `serde_json` sorts the keys. The text has the order of the columns.
    assert_eq!(keys, ["created_at", "id", "name", "price", "updated_at"]);
    assert!(
        first.body.starts_with("{\"product\":[{\"id\":\""),
        "{}",
        first.body
    );
}

#[test]
fn one_row_and_rows_of_one_product_are_found() {
    let answers = alike(&[], |client| {
        let items = client.get("/api/rest/lineItem?limit=3");
        let item = items.json()["lineItem"][0].clone();
        let text = |key: &str| item[key].as_str().unwrap().to_owned();
        let mut answers = vec![
            client.get(&format!("/api/rest/lineItem/{}", text("id"))),
            client.get(&format!("/api/rest/product/{}/", text("product_id"))),
            client.get(&format!(
                "/api/rest/lineItem?product_id={}",
                text("product_id")
            )),
            client.get("/api/rest/product/00000000-0000-8000-8000-000000000000"),
        ];
        let name = answers[1].json()["product_by_pk"]["name"].clone();
        let name = name.as_str().unwrap().replace(' ', "+");
        answers.push(client.get(&format!("/api/rest/product?name={name}")));
        answers.push(items);
        answers
    });
    let bodies: Vec<Value> = answers.iter().map(Response::json).collect();
    let item = &bodies[5]["lineItem"][0];
    assert_eq!(bodies[0], json!({ "lineItem_by_pk": item }));
    let product = &bodies[1]["product_by_pk"];
    assert_eq!(product["id"], item["product_id"]);
    let items = bodies[2]["lineItem"].as_array().unwrap();
    assert!(items.contains(item) && items.iter().all(|it| it["product_id"] == product["id"]));
    assert_eq!(bodies[3], json!({"product_by_pk": null}));
    assert_eq!(bodies[4], json!({"product": [product]}));
}

/// Method, path, status and code of refusals by REST.
const REFUSED: [(&str, u16, &str); 12] = [
    ("GET /api/rest/product?units=1", 400, "bad-request"),
    ("GET /api/rest/product?limit=51", 400, "bad-request"),
    ("GET /api/rest/product?limit=x", 400, "bad-request"),
    ("GET /api/rest/product?offset=1000001", 400, "bad-request"),
    ("GET /api/rest/product/7", 400, "bad-request"),
    ("GET /api/rest/product/7?limit=1", 400, "bad-request"),
    ("GET /api/rest/products", 404, "not-found"),
    ("GET /nowhere", 404, "not-found"),
    ("POST /api/rest/product", 405, "method-not-allowed"),
    ("DELETE /api/rest/lineItem/7", 405, "method-not-allowed"),
    ("POST /health", 405, "method-not-allowed"),
    ("PUT /v1/graphql", 405, "method-not-allowed"),
];

#[test]
fn refusals_of_rest_have_their_status_and_code() {
    let answers = alike(&["--limit-max", "50"], |client| {
        let request =
            |line: &str| format!("{line} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
        let ask = |(line, ..): &(&str, u16, &str)| client.ask(request(line).as_bytes());
        REFUSED.iter().map(ask).collect()
    });
    for ((line, status, code), answer) in REFUSED.iter().zip(&answers) {
        let body = answer.json();
        assert_eq!(answer.status, *status, "{line}: {answer:?}");
        assert_eq!((&body["code"], &body["path"]), (&json!(code), &json!("$")));
        let says_methods = answer.head.contains("\r\nallow:");
        assert_eq!(says_methods, *status == 405, "{answer:?}");
    }
    assert_eq!(answers[0].json()["error"], "Unexpected variable \"units\"");
    assert_eq!(answers[8].json()["error"], "Allowed methods: GET");
}

#[test]
fn graphql_selects_sorts_joins_and_renames() {
    let query = "query($most: Int!) {
        cheap: product(where: {price: {_lt: $most}}, order_by: [{price: desc}, {name: asc}], limit: 5)
            { __typename name price }
        lineItem(order_by: {units: desc}, limit: 4) { units product { name ...Id } }
        none: product(where: {id: {_is_null: true}}) { id }
        product_by_pk(id: \"00000000-0000-8000-8000-000000000000\") { id }
        __typename
    } fragment Id on product { id }";
    let body = json!({"query": query, "variables": {"most": 50_000}}).to_string();
    let answers = alike(&[], |client| vec![client.post("/graphql", &body)]);
    let data = &answers[0].json()["data"];
    let cheap = data["cheap"].as_array().unwrap();
    let prices: Vec<_> = cheap
        .iter()
        .map(|row| row["price"].as_i64().unwrap())
        .collect();
    assert_eq!(cheap.len(), 5);
    assert!(
        prices.is_sorted_by(|one, next| one >= next) && prices[0] < 50_000,
        "{prices:?}"
    );
    assert_eq!(cheap[0]["__typename"], "product");
    let items = data["lineItem"].as_array().unwrap();
    assert!(items.iter().all(|item| item["units"] == 12), "{items:?}");
    assert!(
        items.iter().all(|item| item["product"]["id"].is_string()),
        "{items:?}"
    );
    assert_eq!(data["none"], json!([]));
    assert_eq!(data["product_by_pk"], Value::Null);
    assert_eq!(data["__typename"], "query_root");
}

#[test]
fn line_items_with_their_products_cost_two_statements() {
    for database in Database::both() {
        let server = start(&database, &[]);
        let mut client = server.client();
        let query = "{ lineItem(limit: 500) { product { name } } }";
        let answer = client.graphql(query, &json!({})).json();
        assert_eq!(answer["data"]["lineItem"].as_array().unwrap().len(), 500);
        assert_eq!(client.metric("catalog_statements_total "), 2);
    }
}

#[test]
fn a_request_of_too_many_rows_or_statements_is_refused() {
    let wide = |field: &str, times: usize| {
        let fields: String = (0..times).map(|n| format!(" f{n}: {field}")).collect();
        json!({"query": format!("{{{fields} }}")}).to_string()
    };
    let id = "00000000-0000-8000-8000-000000000000";
    let bodies = [
        wide("product(limit: 1000) { id }", 11),
        wide(&format!("product_by_pk(id: \"{id}\") {{ id }}"), 101),
        wide("product(limit: 1001) { id }", 1),
        wide("product(limit: -1) { id }", 1),
    ];
    let answers = alike(&[], |client| {
        let post = |body: &String| client.post("/v1/graphql", body);
        bodies.iter().map(post).collect()
    });
    for answer in &answers {
        let error = &answer.json()["errors"][0];
        assert_eq!(error["extensions"]["code"], "validation-failed", "{error}");
    }
    let message = answers[2].json()["errors"][0]["message"].clone();
    assert_eq!(
        message,
        "limit: expected a whole number from 0 to 1000, found 1001"
    );
}

#[test]
fn mutations_change_rows_and_keep_the_rules() {
    let one = "00000000-0000-8000-8000-00000000aaaa";
    let item = "00000000-0000-8000-8000-00000000bbbb";
    let steps = [
        format!(
            "insert_product_one(object: {{id: \"{one}\", name: \"Jar\", price: 5}}) {{ id price }}"
        ),
        format!(
            "insert_product_one(object: {{id: \"{one}\", name: \"Jar\", price: 6}}) {{ id price }}"
        ),
        format!(
            "insert_lineItem_one(object: {{id: \"{item}\", units: 2, product_id: \"{one}\"}}) {{ units product {{ name }} }}"
        ),
        format!("insert_lineItem_one(object: {{units: 2, product_id: \"{item}\"}}) {{ id }}"),
        format!(
            "update_lineItem_by_pk(pk_columns: {{id: \"{item}\"}}, _set: {{units: 3}}) {{ units }}"
        ),
        format!(
            "update_lineItem_by_pk(pk_columns: {{id: \"{item}\"}}, _set: {{units: 0}}) {{ units }}"
        ),
        format!(
            "update_product_by_pk(pk_columns: {{id: \"{one}\"}}, _set: {{price: 9}}) {{ name price }}"
        ),
        format!(
            "update_product_by_pk(pk_columns: {{id: \"{one}\"}}, _set: {{name: null}}) {{ name }}"
        ),
        format!(
            "update_product_by_pk(pk_columns: {{id: \"{item}\"}}, _set: {{price: 9}}) {{ name }}"
        ),
        format!("delete_product_by_pk(id: \"{one}\") {{ id }}"),
        format!("delete_lineItem_by_pk(id: \"{item}\") {{ units }}"),
        format!("delete_product_by_pk(id: \"{one}\") {{ name price }}"),
        format!("delete_product_by_pk(id: \"{one}\") {{ id }}"),
    ];
    let answers = alike(&[], |client| {
        let post = |step: &String| {
            let body = json!({"query": format!("mutation {{ done: {step} }}")}).to_string();
            client.post("/graphql", &body)
        };
        steps.iter().map(post).collect()
    });
    let done: Vec<Value> = answers
        .iter()
        .map(|answer| match &answer.json() {
            fine if fine["errors"].is_null() => fine["data"]["done"].clone(),
            wrong => wrong["errors"][0]["extensions"]["code"].clone(),
        })
        .collect();
    let expected = json!([
        {"id": one, "price": 5},
        "constraint-violation",
        {"units": 2, "product": {"name": "Jar"}},
        "constraint-violation",
        {"units": 3},
        "validation-failed",
        {"name": "Jar", "price": 9},
        "validation-failed",
        null,
        "constraint-violation",
        {"units": 3},
        {"name": "Jar", "price": 9},
        null,
    ]);
    assert_eq!(Value::Array(done), expected);
}

#[test]
fn a_get_changes_nothing() {
    let query = "mutation%20%7Bdelete_product_by_pk(id:%22x%22)%7Bid%7D%7D";
    let answers = get_all(&[], &[format!("/graphql?query={query}")]);
    assert_eq!(answers[0].status, 405);
    assert!(answers[0].head.contains("allow: post"), "{answers:?}");
}

#[test]
fn wrong_requests_of_graphql_have_their_status() {
    let long = json!({"query": " ".repeat(300)}).to_string();
    let modern = "application/graphql-response+json";
    let deep = json!({"query": "{a".repeat(40)}).to_string();
    let cases = [
        ("*/*", "{", 400),
        ("*/*", "[]", 400),
        ("*/*", "{\"query\": 7}", 400),
        ("*/*", &long, 413),
        ("image/png", "{}", 406),
        (modern, "{\"query\": \"{ nothing }\"}", 400),
        (modern, "{\"query\": \"{\"}", 400),
        (modern, &deep, 400),
        ("*/*", "{\"query\": \"{ nothing }\"}", 200),
        (modern, "{\"query\": \"{ __typename }\"}", 200),
    ];
    let answers = alike(&["--body-limit", "250"], |client| {
        let post = |(accept, body, _): &(&str, &str, u16)| {
            let headers = [JSON, ("accept", *accept)];
            client.request("POST", "/graphql", &headers, body)
        };
        cases.iter().map(post).collect()
    });
    for ((_, body, status), answer) in cases.iter().zip(&answers) {
        assert_eq!(answer.status, *status, "{body}: {answer:?}");
    }
}

#[test]
fn counted_headers_and_requests_are_in_the_metrics() {
    for database in Database::both() {
        let server = start(&database, &["--count-headers", "x-client,X-Other"]);
        let mut client = server.client();
        for header in ["X-Client: a\r\n", "x-client: b\r\nx-other: c\r\n", ""] {
            let request =
                format!("GET /api/rest/product?limit=2 HTTP/1.1\r\nHost: test\r\n{header}\r\n");
            assert_eq!(client.ask(request.as_bytes()).status, 200);
        }
        client.get("/api/rest/product?limit=x");
        let mut metric = |series: &str| client.metric(&format!("catalog_{series}"));
        assert_eq!(metric("header_requests_total{header=\"x-client\"}"), 2);
        assert_eq!(metric("header_requests_total{header=\"x-other\"}"), 1);
        let product = "requests_total{endpoint=\"product\",status=";
        assert_eq!(metric(&format!("{product}\"2xx\"}}")), 3);
        assert_eq!(metric(&format!("{product}\"4xx\"}}")), 1);
        assert_eq!(metric("statements_total "), 3);
        assert_eq!(metric("rows_total "), 6);
    }
}
