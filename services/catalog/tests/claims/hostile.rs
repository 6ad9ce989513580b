//! Tests that SQL in any argument is bound as a value and returned as data.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use test_client::{TestClient, aliased};

use crate::databases::Database;
use crate::server::{PRODUCTS, start};

const TEXTS: [&str; 14] = [
    "' OR '1'='1",
    "'; DROP TABLE product; --",
    "\"; DROP TABLE line_item; --",
    "x' UNION SELECT id, name, price, created_at, updated_at FROM product --",
    "\\'; DELETE FROM product; --",
    "1; UPDATE product SET price = 0",
    "$1",
    "$$; DROP TABLE product; $$",
    "%' OR 1=1 /*",
    "product\"); DROP TABLE product; --",
    "E'\\x27'",
    "\u{2019} OR 1=1 --",
    "name COLLATE \"C\"",
    "`; ATTACH DATABASE 'x' AS y; --",
];

/// Escapes a text for a URL.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Sends the text in places of REST that expect a text, an id or a number.
fn in_urls(client: &mut TestClient, text: &str) {
    let text = escaped(text);
    let named = client.get(&format!("/api/rest/product?name={text}"));
    assert_eq!((named.status, &*named.body), (200, r#"{"product":[]}"#));
    for refused in [
        format!("/api/rest/product/{text}"),
        format!("/api/rest/lineItem/{text}"),
        format!("/api/rest/product?limit={text}"),
        format!("/api/rest/product?offset={text}"),
        format!("/api/rest/lineItem?product_id={text}"),
        format!("/api/rest/product?{text}=1"),
    ] {
        let answer = client.get(&refused);
        assert_eq!(answer.status, 400, "{refused}: {answer:?}");
        assert_eq!(answer.json()["code"], "bad-request", "{refused}");
    }
}

/// Sends the text in places of GraphQL that expect a text: stored, found, changed, compared and removed.
fn in_arguments(client: &mut TestClient, text: &str) {
    let insert = "mutation($name: String!) \
        { insert_product_one(object: {name: $name, price: 7}) { id name } }";
    let inserted = client.graphql(insert, &json!({ "name": text })).json();
    let product = &inserted["data"]["insert_product_one"];
    assert_eq!(product["name"], text, "{inserted}");
    let find = "query($name: String!) { equal: product(where: {name: {_eq: $name}}) { name } \
        listed: product(where: {name: {_in: [$name], _gte: $name, _lte: $name}}) { name } \
        other: product(where: {name: {_gt: $name, _lt: $name}}) { name } }";
    let found = client.graphql(find, &json!({ "name": text })).json();
    let one = json!([{ "name": text }]);
    assert_eq!(
        found,
        json!({"data": {"equal": one, "listed": one, "other": []}})
    );
    let change = "mutation($id: uuid!, $name: String!) \
        { update_product_by_pk(pk_columns: {id: $id}, _set: {name: $name}) { name price } }";
    let changed = format!("{text}!");
    let answer = client
        .graphql(change, &json!({"id": product["id"], "name": changed}))
        .json();
    let expected = json!({"name": changed, "price": 7});
    assert_eq!(answer["data"]["update_product_by_pk"], expected, "{answer}");
    let remove = "mutation($id: uuid!) { delete_product_by_pk(id: $id) { name } }";
    let removed = client.graphql(remove, &json!({"id": product["id"]})).json();
    assert_eq!(removed["data"]["delete_product_by_pk"]["name"], changed);
}

/// Sends the text in places of GraphQL that expect another type.
fn in_wrong_places(client: &mut TestClient, text: &str) {
    for query in [
        "query($x: uuid!) { product_by_pk(id: $x) { id } }",
        "query($x: timestamptz) { product(where: {created_at: {_gt: $x}}) { id } }",
        "query($x: Int) { product(limit: $x) { id } }",
        "query($x: [product_order_by!]) { product(order_by: $x) { id } }",
        "query($x: order_by) { product(order_by: [{price: $x}]) { id } }",
        "query($x: [uuid!]) { lineItem(where: {product_id: {_in: $x}}) { id } }",
        "mutation($x: Int!) { insert_product_one(object: {name: \"n\", price: $x}) { id } }",
    ] {
        let answer = client.graphql(query, &json!({ "x": text })).json();
        assert!(
            answer["errors"][0]["message"].is_string(),
            "{query}: {answer}"
        );
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(
            !message.contains("the log of the service"),
            "{query}: {answer}"
        );
    }
}

fn count(client: &mut TestClient) -> usize {
    let all = client.get("/api/rest/product?limit=1000").json();
    all["product"].as_array().unwrap().len()
}

#[test]
fn hostile_texts_in_every_argument_come_back_as_data() {
    for database in Database::both() {
        let server = start(&database, &[]);
        let mut client = server.client();
        for text in TEXTS {
            in_urls(&mut client, text);
            in_arguments(&mut client, text);
            in_wrong_places(&mut client, text);
        }
        assert_eq!(count(&mut client), PRODUCTS);
        let failed = client.metric("catalog_statements_failed_total ");
        assert_eq!(failed, 0, "no text may reach a database as a mistake");
    }
}

#[test]
fn any_text_is_kept_as_it_is_or_refused_alike_by_both() {
    let servers = Database::both().map(|database| {
        let server = start(&database, &[]);
        (database, server)
    });
    let clients = servers
        .each_ref()
        .map(|(_, server)| RefCell::new(server.client()));
    // Only the name matters: a case leaves no other state.
    let mut runner = TestRunner::new(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    });
    let texts = "\\PC{0,20}[\u{0}-\u{1F}'\"\\\\$;%\u{80}-\u{FFFF}]{0,4}\\PC{0,190}";
    let insert = "mutation($name: String!) \
        { insert_product_one(object: {name: $name, price: 1}) { name } }";
    let checked = runner.run(&texts, |text| {
        let name = json!({ "name": text });
        let answers = clients
            .each_ref()
            .map(|client| client.borrow_mut().graphql(insert, &name).json());
        prop_assert_eq!(&answers[0], &answers[1]);
        let kept = &answers[0]["data"]["insert_product_one"]["name"];
        let length = text.chars().count();
        let is_fine = (1..=200).contains(&length) && !text.contains('\0');
        let expected = if is_fine { json!(text) } else { Value::Null };
        prop_assert_eq!(kept, &expected, "{}", &answers[0]);
        Ok(())
    });
    checked.unwrap();
}

/// The message of a refusal. Fails if the response contains anything else.
fn refusal(client: &mut TestClient, query: &str) -> String {
    let answer = client.query(query);
    let json = answer.json();
    assert!(
        json.get("data").is_none(),
        "an answer of {} bytes to {} bytes",
        answer.body.len(),
        query.len()
    );
    json["errors"][0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_short_document_cannot_ask_for_a_long_answer() {
    let server = start(&Database::sqlite(), &[]);
    let mut client = server.client();
    let wide = format!(
        "{{ product(limit: 1000) {{ {} }} }}",
        aliased(201, "a", "id")
    );
    let told = refusal(&mut client, &wide);
    assert!(told.contains("201001 fields"), "{told}");
    assert!(told.contains("may have 200000"), "{told}");
    let by_variable = format!(
        "query($n: Int = 1000) {{ product(limit: $n) {{ {} }} }}",
        aliased(201, "a", "id")
    );
    assert_eq!(refusal(&mut client, &by_variable), told);
    let few = client.graphql(&by_variable, &json!({"n": 2})).json();
    assert_eq!(
        few["data"]["product"][1]["a200"],
        few["data"]["product"][1]["a0"]
    );
    let long = aliased(100, &"x".repeat(250), "id");
    let told = refusal(
        &mut client,
        &format!("{{ product(limit: 1000) {{ {long} }} }}"),
    );
    assert!(told.contains("names and texts"), "{told}");
    let names = aliased(30, "n", "name");
    let told = refusal(
        &mut client,
        &format!("{{ product(limit: 1000) {{ {names} }} }}"),
    );
    assert!(told.contains("names and texts"), "{told}");
    let told = refusal(
        &mut client,
        &format!("{{ {}: product {{ id }} }}", "x".repeat(257)),
    );
    assert!(told.contains("257 bytes"), "{told}");
    // Types refer to each other, so an introspection query has no natural end.
    let round = "fields { type { ".repeat(8) + "name" + &" } }".repeat(8);
    refusal(
        &mut client,
        &format!("{{ __type(name: \"__Type\") {{ {round} }} }}"),
    );
}

#[test]
fn what_clients_ask_for_is_answered() {
    let database = Database::postgres();
    let server = start(&database, &[]);
    let mut client = server.client();
    let columns = "id created_at updated_at";
    let product = format!("product {{ {columns} name price }}");
    let items = format!("lineItem(limit: 1000) {{ {columns} units {product} }}");
    let all: String = (0..5).map(|at| format!("l{at}: {items} ")).collect();
    let answer = client.query(&format!("{{ {all} }}")).json();
    assert!(answer.get("errors").is_none(), "{}", answer["errors"]);
    assert_eq!(
        answer["data"]["l4"].as_array().unwrap().len(),
        900,
        "{}",
        answer["errors"]
    );
}

#[test]
fn the_schema_is_no_larger_than_the_limit_of_answers_takes_it_to_be() {
    let server = start(&Database::sqlite(), &[]);
    // The query of GraphiQL.
    let of_type = "kind name ofType { ".repeat(9) + "name" + &" }".repeat(9);
    let value = format!("name description type {{ {of_type} }} defaultValue");
    let query = format!(
        "{{ __schema {{ queryType {{ name }} mutationType {{ name }} subscriptionType {{ name }} \
         types {{ kind name description \
           fields(includeDeprecated: true) {{ name description args {{ {value} }} \
             type {{ {of_type} }} isDeprecated deprecationReason }} \
           inputFields {{ {value} }} interfaces {{ {of_type} }} \
           enumValues(includeDeprecated: true) {{ name description isDeprecated }} \
           possibleTypes {{ {of_type} }} }} \
         directives {{ name description locations args {{ {value} }} }} }} }}"
    );
    let answer = server.client().query(&query).json();
    let schema = &answer["data"]["__schema"];
    let length = |value: &Value| value.as_array().map_or(0, Vec::len);
    let types = schema["types"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let longest = |lists: &[&str]| {
        let of_type = |one: &Value| lists.iter().map(|list| length(&one[*list])).max();
        types.iter().filter_map(of_type).max().unwrap()
    };
    let fields = types.iter().filter_map(|one| one["fields"].as_array());
    let arguments = fields.flatten().map(|field| length(&field["args"])).max();
    assert!(types.len() <= 48, "{} types", types.len());
    assert!(longest(&["fields", "inputFields"]) <= 12);
    assert!(longest(&["interfaces", "possibleTypes"]) <= 1);
    assert!(longest(&["enumValues"]) <= 20 && length(&schema["directives"]) <= 20);
    assert!(arguments <= Some(6), "{arguments:?}");
}

#[test]
fn a_page_that_leads_its_name_here_reads_and_changes_nothing() {
    let server = start(&Database::sqlite(), &["--allowed-hosts", "shop.example"]);
    let mut client = server.client();
    let insert =
        r#"{"query":"mutation { insert_product_one(object: {name: \"n\", price: 1}) { name } }"}"#;
    let post = |host: &str| {
        let length = insert.len();
        format!(
            "POST /graphql HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{insert}"
        )
    };
    let foreign = client.ask(post("evil.example:4010").as_bytes());
    assert_eq!(
        (foreign.status, &foreign.json()["code"]),
        (421, &json!("foreign-host"))
    );
    let read = client.ask(b"GET /api/rest/product HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(read.status, 421, "{read:?}");
    assert!(read.body.contains("--allowed-hosts"), "{}", read.body);
    assert_eq!(count(&mut client), PRODUCTS);
    for own in [
        "localhost",
        "127.0.0.1:4010",
        "[::1]:4010",
        "SHOP.example:80",
    ] {
        assert_eq!(client.ask(post(own).as_bytes()).status, 200, "{own}");
    }
    assert_eq!(count(&mut client), PRODUCTS + 4);
}
