//! Tests that both servers return equal responses to equal documents.

use serde_json::{Value, json};
use test_client::{Process, aliased};

use crate::http::{Request, Response, post};
use crate::server::{both, same_answer};

const LEGACY: &str = "application/json";
const MODERN: &str = "application/graphql-response+json";

fn body(query: &str, variables: &Value) -> String {
    json!({"query": query, "variables": variables}).to_string()
}

fn headers(accept: &str) -> [(&str, &str); 2] {
    [("Content-Type", "application/json"), ("Accept", accept)]
}

/// The common response of both servers, in both media types. Also checks the statuses.
fn answer(servers: &[Process; 2], query: &str, variables: &Value) -> Response {
    let body = body(query, variables);
    let [modern, legacy] = [MODERN, LEGACY].map(|accept| {
        let headers = &headers(accept);
        let request = Request {
            headers,
            ..post(&body)
        };
        same_answer(servers, &request)
    });
    assert_eq!(legacy.body, modern.body, "{query}");
    assert_eq!((legacy.status, modern.status), (200, 200), "{query}");
    legacy
}

/// Sends queries without variables to both servers, and returns their common responses.
fn show(servers: &[Process; 2], queries: &[&str]) -> String {
    let shown = queries.iter().map(|query| {
        let answer = answer(servers, query, &Value::Null);
        format!("{query}\n  {}\n", answer.body)
    });
    shown.collect()
}

#[test]
fn the_seeds_query_is_answered() {
    let servers = both(&[]);
    let request = post(r#"{"query":"{\n  test {\n    id\n  }\n}\n","variables":null}"#);
    let answer = same_answer(&servers, &request);
    assert_eq!(answer.body, r#"{"data":{"test":{"id":"1"}}}"#);
    assert_eq!(
        answer.header("content-type"),
        Some("application/json; charset=utf-8")
    );
}

#[test]
fn data_is_the_same() {
    let queries = [
        "{ items(count: 3) { id name quantity inStock note } }",
        "{ items(count: 0) { id } }",
        "{ a: item(id: \"10000\") { id } b: item(id: 3) { note } c: item(id: \"unknown\") { id } }",
        "{ test { id ...More } __typename } fragment More on Test { id kind: __typename }",
        "{ test { id @skip(if: true) } total @include(if: false) }",
        "{ echo(text: \"\"\"\n  block\n    text\n\"\"\") }",
        "{ t: __type(name: \"Item\") { name kind } n: __type(name: \"No\") { name } }",
        "query A { total } query B { total }",
    ];
    let servers = both(&[]);
    insta::assert_snapshot!(show(&servers, &queries[..7]), @r#"
    { items(count: 3) { id name quantity inStock note } }
      {"data":{"items":[{"id":"1","name":"item 1","quantity":7,"inStock":true,"note":null},{"id":"2","name":"item 2","quantity":14,"inStock":true,"note":null},{"id":"3","name":"item 3","quantity":21,"inStock":true,"note":"item 3 is one of every third"}]}}
    { items(count: 0) { id } }
      {"data":{"items":[]}}
    { a: item(id: "10000") { id } b: item(id: 3) { note } c: item(id: "unknown") { id } }
      {"data":{"a":{"id":"10000"},"b":{"note":"item 3 is one of every third"},"c":null}}
    { test { id ...More } __typename } fragment More on Test { id kind: __typename }
      {"data":{"test":{"id":"1","kind":"Test"},"__typename":"Query"}}
    { test { id @skip(if: true) } total @include(if: false) }
      {"data":{"test":{}}}
    { echo(text: """
      block
        text
    """) }
      {"data":{"echo":"block\n  text"}}
    { t: __type(name: "Item") { name kind } n: __type(name: "No") { name } }
      {"data":{"t":{"name":"Item","kind":"OBJECT"},"n":null}}
    "#);
    let named = json!({"query": queries[7], "operationName": "B"}).to_string();
    let answer = same_answer(&servers, &post(&named));
    assert_eq!(answer.json(), json!({"data": {"total": 0}}));
}

#[test]
fn a_list_is_as_long_as_asked() {
    let servers = both(&[]);
    let length = |query: &str, variables: Value| {
        let answer = answer(&servers, query, &variables).json();
        answer["data"]["items"].as_array().unwrap().len()
    };
    assert_eq!(length("{ items { id } }", Value::Null), 10);
    assert_eq!(length("{ items(count: null) { id } }", Value::Null), 10);
    let with_variable = "query($count: Int) { items(count: $count) { id name } }";
    for (variables, expected) in [
        (json!({}), 10),
        (json!({"count": null}), 10),
        (json!({"count": 0}), 0),
        (json!({"count": 1234}), 1234),
        (json!({"count": 10_000}), 10_000),
    ] {
        assert_eq!(
            length(with_variable, variables.clone()),
            expected,
            "{variables}"
        );
    }
    let required = "query($count: Int! = 3) { items(count: $count) { id } }";
    assert_eq!(length(required, json!({})), 3);
}

#[test]
fn a_text_comes_back_unchanged() {
    let servers = both(&[]);
    let query = "query($text: String!) { echo(text: $text) }";
    for text in [
        "",
        "a",
        "\"quoted\\\"",
        "é 🏃 \u{2028}\u{0}\u{7f}\n\t/",
        "</script>",
    ] {
        let answer = answer(&servers, query, &json!({"text": text, "unknown": [1, {}]}));
        assert_eq!(answer.json(), json!({"data": {"echo": text}}));
    }
}

#[test]
fn a_failed_field_is_null_up_to_what_may_be_null() {
    let queries = [
        "{ fail }",
        "{ a: fail(message: \"as asked\") total b: fail(message: null) }",
        "{ test { id fail } total }",
        "{ items(count: 10001) { id } total }",
        "{ total items(count: -1) { id } }",
        "{ test { fail } items(count: -1) { id } }",
    ];
    let servers = both(&[]);
    insta::assert_snapshot!(show(&servers, &queries), @r#"
    { fail }
      {"data":{"fail":null},"errors":[{"message":"this field always fails","locations":[{"line":1,"column":3}],"path":["fail"]}]}
    { a: fail(message: "as asked") total b: fail(message: null) }
      {"data":{"a":null,"total":0,"b":null},"errors":[{"message":"as asked","locations":[{"line":1,"column":3}],"path":["a"]},{"message":"this field always fails","locations":[{"line":1,"column":38}],"path":["b"]}]}
    { test { id fail } total }
      {"data":{"test":null,"total":0},"errors":[{"message":"this field always fails","locations":[{"line":1,"column":13}],"path":["test","fail"]}]}
    { items(count: 10001) { id } total }
      {"data":null,"errors":[{"message":"`count` must be between 0 and 10000, found 10001","locations":[{"line":1,"column":3}],"path":["items"]}]}
    { total items(count: -1) { id } }
      {"data":null,"errors":[{"message":"`count` must be between 0 and 10000, found -1","locations":[{"line":1,"column":9}],"path":["items"]}]}
    { test { fail } items(count: -1) { id } }
      {"data":null,"errors":[{"message":"this field always fails","locations":[{"line":1,"column":10}],"path":["test","fail"]},{"message":"`count` must be between 0 and 10000, found -1","locations":[{"line":1,"column":17}],"path":["items"]}]}
    "#);
}

#[test]
fn a_mutation_adds_in_the_order_of_the_document() {
    let servers = both(&[]);
    let ask = |query: &str| answer_once(&servers, query).body;
    assert_eq!(
        ask("mutation { a: add b: add(amount: 2) }"),
        r#"{"data":{"a":1,"b":3}}"#
    );
    assert_eq!(ask("{ total }"), r#"{"data":{"total":3}}"#);
    insta::assert_snapshot!(ask("mutation { add(amount: 2147483647) }"), @r#"{"data":null,"errors":[{"message":"the counter cannot go beyond 2147483647; add less","locations":[{"line":1,"column":12}],"path":["add"]}]}"#);
    assert_eq!(
        ask("mutation { add(amount: null) }"),
        r#"{"data":{"add":4}}"#
    );
}

fn answer_once(servers: &[Process; 2], query: &str) -> Response {
    same_answer(servers, &post(&body(query, &Value::Null)))
}

#[test]
fn a_request_can_ask_for_so_many_items_only() {
    let servers = both(&[]);
    let query = "{ a: items(count: 10000) { id } b: items(count: 10000) { id } c: items { id } }";
    let answer = answer(&servers, query, &Value::Null);
    insta::assert_snapshot!(answer.body, @r#"{"data":null,"errors":[{"message":"a request may return at most 20000 items; ask for fewer","locations":[{"line":1,"column":63}],"path":["c"]}]}"#);
}

#[test]
fn a_short_document_cannot_ask_for_a_long_answer() {
    let servers = both(&[]);
    let told = |query: &str, variables: Value| {
        let answer = same_answer(&servers, &post(&body(query, &variables)));
        let size = (query.len(), answer.body.len());
        let answer = answer.json();
        assert!(answer["data"].is_null(), "{size:?} bytes");
        answer["errors"][0]["message"].as_str().unwrap().to_owned()
    };
    let wide = format!("{{ items(count: 10000) {{ {} }} }}", aliased(7, "a", "id"));
    insta::assert_snapshot!(told(&wide, Value::Null), @"the items of a request may have 60000 fields together, found 70000; ask for fewer");
    let fragments = "{ a: items(count: 8000) { ...F } b: items(count: 8000) { ...F } } \
        fragment F on Item { id name quantity inStock }";
    insta::assert_snapshot!(told(fragments, Value::Null), @"the items of a request may have 60000 fields together, found 64000; ask for fewer");
    let long = aliased(5, &"x".repeat(200), "id");
    let long = format!("{{ items(count: 10000) {{ {long} }} }}");
    insta::assert_snapshot!(told(&long, Value::Null), @"the names of fields in items may have 2097152 bytes together, found 10050000; ask for fewer, or by shorter aliases");
    let name = format!("{{ {}: total }}", "x".repeat(257));
    insta::assert_snapshot!(told(&name, Value::Null), @"a name of the document has 257 bytes; a name may have 256");
    let text = json!({"t": "x".repeat(600 << 10)});
    let echoes = format!(
        "query($t: String!) {{ {} }}",
        aliased(100, "a", "echo(text: $t)")
    );
    insta::assert_snapshot!(told(&echoes, text.clone()), @"a request gets back at most 1048576 bytes of its own texts, found 1228800 before this one; ask for fewer");
    let failures = format!(
        "query($t: String!) {{ {} }}",
        aliased(100, "a", "fail(message: $t)")
    );
    let answer = same_answer(&servers, &post(&body(&failures, &text)));
    assert!(answer.body.len() < 2 << 20, "{} bytes", answer.body.len());
    // Types refer to each other, so an introspection query has no natural end.
    let round = "fields { type { ".repeat(6) + "name" + &" } }".repeat(6);
    let round = format!("{{ __type(name: \"__Type\") {{ {round} }} }}");
    insta::assert_snapshot!(told(&round, Value::Null), @"the answer may have 6514874 fields, each counted in every object of a list; an answer may have 60000: ask for less at once");
}

#[test]
fn the_schema_is_no_larger_than_the_limit_of_answers_takes_it_to_be() {
    let servers = both(&[]);
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
    let length = |value: &Value| value.as_array().map_or(0, Vec::len);
    for server in &servers {
        let answer = server.send(&post(&body(&query, &Value::Null))).json();
        let schema = &answer["data"]["__schema"];
        let types = schema["types"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        let longest = |lists: &[&str]| {
            let of_type = |one: &Value| lists.iter().map(|list| length(&one[*list])).max();
            types.iter().filter_map(of_type).max().unwrap()
        };
        let fields = types.iter().filter_map(|one| one["fields"].as_array());
        let arguments = fields.flatten().map(|field| length(&field["args"])).max();
        assert!(types.len() <= 24, "{} types", types.len());
        assert!(longest(&["fields", "inputFields"]) <= 12);
        assert!(longest(&["interfaces", "possibleTypes"]) <= 1);
        assert!(longest(&["enumValues"]) <= 20 && length(&schema["directives"]) <= 20);
        assert!(arguments <= Some(3), "{arguments:?}");
    }
}

/// Documents and variables that both servers refuse, with different messages.
fn refused() -> Vec<(String, Value)> {
    let plain = [
        "",
        "{",
        "{ nobody }",
        "{ test }",
        "{ test { id { x } } }",
        "{ echo }",
        "{ echo(text: null) }",
        "{ echo(text: 1) }",
        "{ items(count: \"1\") { id } }",
        "{ items(count: 1, count: 2) { id } }",
        "{ a: total a: test { id } }",
        "{ test { ...Nobody } }",
        "{ test { ...F } } fragment F on Item { id }",
        "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
        "{ test { id @nobody } }",
        "{ test { id @skip } }",
        "query A { total } query B { total }",
        "{ total } { total }",
        "fragment F on Test { id }",
        "subscription { total }",
        "query($x: Nobody) { total }",
        "query($x: Test) { total }",
        "query($x: Int) { total }",
        "{ echo(text: $undeclared) }",
    ];
    let mut cases: Vec<_> = plain.map(|query| (query.to_owned(), Value::Null)).into();
    let int = "query($v: Int!) { items(count: $v) { id } }";
    let text = "query($v: String!) { echo(text: $v) }";
    let id = "query($v: ID!) { item(id: $v) { id } }";
    for (query, value) in [
        (int, Value::Null),
        (int, json!("1")),
        (int, json!(1.5)),
        (int, json!(true)),
        (int, json!([1])),
        (int, json!(2_147_483_648_i64)),
        (text, json!(1)),
        (text, Value::Null),
        (id, json!(true)),
        (id, json!(1.5)),
    ] {
        cases.push((query.to_owned(), json!({"v": value})));
    }
    cases.push((int.to_owned(), json!({})));
    cases.extend(over_the_limits().map(|query| (query, Value::Null)));
    cases
}

/// Documents that would take much time or exhaust the stack.
fn over_the_limits() -> [String; 7] {
    let fragments = |count: usize, spreads: usize, end: &str| {
        let mut text = "{ ...F0 }".to_owned();
        for level in 0..count {
            let spread = format!("...F{} ", level + 1).repeat(spreads);
            text += &format!(" fragment F{level} on Query {{ {spread} }}");
        }
        text + &format!(" fragment F{count} on Query {{ {end} }}")
    };
    [
        "{ test ".repeat(33),
        "{ test ".repeat(100_000),
        format!("{{ echo(text: {}", "[".repeat(100_000)),
        format!("{{ {} }}", "total ".repeat(4_000)),
        fragments(40, 1, "total"),
        fragments(28, 2, "total"),
        fragments(28, 2, "...Nobody"),
    ]
}

#[test]
fn both_refuse_what_is_wrong_before_anything_is_executed() {
    let servers = both(&[]);
    for (query, variables) in refused() {
        let body = body(&query, &variables);
        for (accept, status) in [(LEGACY, 200), (MODERN, 400)] {
            let request = Request {
                headers: &headers(accept),
                ..post(&body)
            };
            for server in &servers {
                let answer = server.send(&request);
                let read = answer.json();
                let shown = query.get(..200).unwrap_or(&query);
                assert_eq!(answer.status, status, "{shown} {variables}: {read}");
                assert!(read.get("data").is_none(), "{shown} {variables}: {read}");
                let errors = read["errors"].as_array().unwrap();
                assert!(!errors.is_empty(), "{shown}");
                assert!(errors.iter().all(|error| error["message"].is_string()));
            }
        }
    }
}

/// Compares with a table of the README. If a library changes its behaviour, this test fails and the table
/// gets shorter.
#[test]
fn the_known_differences_are_as_the_readme_says() {
    let [juniper, async_graphql] = both(&[]);
    let nullable = "query($t: String) { echo(text: $t) }";
    let with_default = "query($t: String = \"d\") { echo(text: $t) }";
    let differences = [
        (nullable, json!({"t": "a"}), 400, 200),
        (with_default, json!({"t": null}), 200, 400),
        ("{ items(count: 2147483648) { id } }", json!({}), 400, 200),
    ];
    for (query, variables, in_juniper, in_async_graphql) in differences {
        let body = body(query, &variables);
        let request = Request {
            headers: &headers(MODERN),
            ..post(&body)
        };
        let statuses = [&juniper, &async_graphql].map(|server| server.send(&request).status);
        assert_eq!(statuses, [in_juniper, in_async_graphql], "{query}");
    }
}

#[test]
fn the_schema_is_the_same() {
    let query = "{ __schema { queryType { name } mutationType { name } subscriptionType { name }
          types { name kind description
            fields { name description isDeprecated type { ...T }
                     args { name description defaultValue type { ...T } } } } } }
        fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { name } } } }";
    let body = body(query, &Value::Null);
    let schemas = both(&[]).map(|server| {
        let mut schema = server.send(&post(&body)).json()["data"]["__schema"].take();
        let types = schema["types"].as_array_mut().unwrap();
        // Each library describes and orders built-in types differently.
        types.retain(|entry| {
            let name = entry["name"].as_str().unwrap();
            entry["kind"] == "OBJECT" && !name.starts_with("__")
        });
        types.sort_by_key(|entry| entry["name"].to_string());
        schema
    });
    let [one, other] = schemas;
    assert_eq!(one, other);
    assert_eq!(one["types"].as_array().unwrap().len(), 4, "{one:#}");
}

#[test]
fn a_whole_number_with_a_fraction_of_zero_is_an_int() {
    let servers = both(&[]);
    let body = r#"{"query":"query($v: Int!) { items(count: $v) { id } }","variables":{"v":1.0}}"#;
    let answer = same_answer(&servers, &post(body));
    assert_eq!(answer.body, r#"{"data":{"items":[{"id":"1"}]}}"#);
}
