//! Tests remote schemas through the whole gateway: merging, names, requests and responses.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::client::{Request, post};
use crate::gateway::Gateway;
use crate::stub::{self, Answer, Seen, Stub};

/// The schema of a service with products, for a gateway that serves it by actions.
pub(crate) const PRODUCTS: &str = "
supergraph: {introspection: true}
types: |
  scalar uuid
  type product { id: uuid! name: String! parts: [product!] }
  input wish { name: String! count: Int = 2 }
actions:
  - {name: product, type: query, arguments: [{name: id, type: 'uuid'}], output_type: product, handler: 'http://127.0.0.1:9'}
  - {name: products, type: query, arguments: [{name: wish, type: wish}], output_type: '[product!]!', handler: 'http://127.0.0.1:9'}
  - {name: add_product, arguments: [{name: wish, type: 'wish!'}], output_type: product, handler: 'http://127.0.0.1:9'}
  - {name: drop_product, arguments: [{name: id, type: 'uuid!'}], output_type: Boolean, handler: 'http://127.0.0.1:9'}
";

/// The introspection response of a service with this configuration.
pub(crate) fn introspection(config: &str) -> String {
    let body = r#"{"query":"{ __schema { queryType { name } mutationType { name } subscriptionType { name } directives { name locations args { ...I } } types { kind name description fields(includeDeprecated: true) { name description args { ...I } type { ...R } isDeprecated deprecationReason } inputFields { ...I } interfaces { ...R } enumValues(includeDeprecated: true) { name isDeprecated } possibleTypes { ...R } } } } fragment I on __InputValue { name type { ...R } defaultValue } fragment R on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }"}"#;
    let response = Gateway::merged(config).send(&post(body));
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(
        response.text().starts_with(r#"{"data":"#),
        "{}",
        response.text()
    );
    response.text().to_owned()
}

/// A service that answers introspection, and responds to operations with `answer`.
pub(crate) fn service(
    introspection: String,
    answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
) -> Stub {
    Stub::start(answering(introspection, answer))
}

pub(crate) fn answering(
    introspection: String,
    answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    move |seen| {
        if seen.body.contains("__schema") {
            stub::json(&introspection)
        } else {
            answer(seen)
        }
    }
}

/// The operations that a service received, without the introspection.
pub(crate) fn operations(stub: &Stub) -> Vec<Value> {
    let seen = stub.seen().into_iter();
    seen.filter(|it| !it.body.contains("__schema"))
        .map(|it| it.json())
        .collect()
}

pub(crate) fn root(services: &[(&str, &Stub, &str)]) -> Gateway {
    root_of(services, "")
}

pub(crate) fn root_of(services: &[(&str, &Stub, &str)], keys: &str) -> Gateway {
    let mut config = format!("supergraph: {{introspection: true}}\n{keys}\nremote_schemas:\n");
    for (name, stub, more) in services {
        config += &format!(
            "  - {{name: {name}, url: '{}/v1/graphql', {more}}}\n",
            stub.url
        );
    }
    Gateway::merged(&config)
}

pub(crate) const PRODUCT: &str = r#"{"data":{"product":{"id":"1","name":"A"}}}"#;

#[test]
fn the_answer_to_an_operation_of_one_service_is_passed_on_byte_for_byte() {
    // Spaces and an unknown member. Decoding and encoding would lose them.
    let odd = "{ \"data\" : {\"product\" :{\"id\": \"1\",\"n\":1.10}},\n\"extensions\":{\"t\":1}}";
    let products = service(introspection(PRODUCTS), move |_| stub::json(odd));
    let gateway = root(&[("products", &products, "")]);
    let query = "query Q($id: uuid, $unused: Boolean = false) { product(id: $id) { id n: name @skip(if: $unused) } }";
    assert_eq!(gateway.ask_with(query, json!({"id": "1"})), odd);
    assert_eq!(
        operations(&products),
        [json!({
            "query": "query Q($id:uuid$unused:Boolean=false){product(id:$id){id n:name@skip(if:$unused)}}",
            "operationName": "Q",
            "variables": {"id": "1"},
        })]
    );
}

#[test]
fn aliases_fragments_and_variables_reach_the_service() {
    let answer = r#"{"data":{"a":{"id":"1"},"b":[{"id":"2","parts":null}]}}"#;
    let products = service(introspection(PRODUCTS), move |_| stub::json(answer));
    let gateway = root(&[("products", &products, "")]);
    let query = "query Q($id: uuid!, $name: String!) { ...R } fragment R on query_root { a: product(id: $id) { ...P } b: products(wish: {name: $name, count: 3}) { ...P parts { ... on product { name } } } } fragment P on product { id }";
    assert_eq!(
        gateway.ask_with(query, json!({"id": "1", "name": "x\"y"})),
        answer
    );
    assert_eq!(
        operations(&products)[0]["query"],
        "query Q($id:uuid!$name:String!){a:product(id:$id){...P}b:products(wish:{name:$name count:3}){...P parts{...on product{name}}}}fragment P on product{id}"
    );
}

#[test]
fn a_query_over_two_services_is_answered_in_the_clients_order() {
    let products = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    let orders = "supergraph: {introspection: true}\nactions: [{name: count, type: query, output_type: Int, handler: 'http://127.0.0.1:9'}]\n";
    let orders = service(introspection(orders), |_| {
        stub::json(r#"{"data":{"n":12345678901234567890}}"#)
    });
    let gateway = root(&[("products", &products, ""), ("orders", &orders, "")]);
    let query = "query ($no: Boolean = false) { n: count __typename product { id name } m: count @include(if: $no) }";
    assert_eq!(
        gateway.ask(query),
        r#"{"data":{"n":12345678901234567890,"__typename":"query_root","product":{"id":"1","name":"A"}}}"#
    );
    assert_eq!(
        operations(&orders)[0]["query"],
        "query($no:Boolean=false){n:count m:count@include(if:$no)}"
    );
}

#[test]
fn mutations_are_carried_out_in_order_and_stop_at_the_first_failure() {
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let say = |name: &'static str, answer: &'static str| {
        let order = std::sync::Arc::clone(&order);
        move |_: &Seen| {
            order.lock().unwrap().push(name);
            stub::json(answer)
        }
    };
    let add = say(
        "products",
        r#"{"data":{"add_product":{"id":"1"},"drop_product":true,"again":{"id":"2"}}}"#,
    );
    let products = service(introspection(PRODUCTS), add);
    let orders = "supergraph: {introspection: true}\nactions: [{name: order, output_type: Int, handler: 'http://127.0.0.1:9'}]\n";
    let orders = service(
        introspection(orders),
        say(
            "orders",
            r#"{"errors":[{"message":"sold out"}],"data":null}"#,
        ),
    );
    let gateway = root(&[("products", &products, ""), ("orders", &orders, "")]);
    let query = "mutation { add_product(wish: {name: \"a\"}) { id } drop_product(id: \"7\") order again: add_product(wish: {name: \"b\"}) { id } }";
    assert_eq!(
        gateway.ask(query),
        r#"{"errors":[{"message":"sold out"}],"data":null}"#
    );
    assert_eq!(*order.lock().unwrap(), ["products", "orders"]);
    assert_eq!(
        operations(&products)[0]["query"],
        r#"mutation{add_product(wish:{name:"a"}){id}drop_product(id:"7")}"#
    );
}

#[test]
fn what_does_not_fit_the_merged_schema_reaches_no_service() {
    let products = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    let gateway = root(&[("products", &products, "")]);
    for (query, path, code) in [
        (
            "{ product { id nothing } }",
            "$.selectionSet.product.selectionSet.nothing",
            "validation-failed",
        ),
        ("{ nothing }", "$.selectionSet.nothing", "validation-failed"),
        ("{", "$", "validation-failed"),
        (
            "query ($id: uuid!) { product(id: $id) { id } }",
            "$.variables.id",
            "validation-failed",
        ),
        ("subscription { product { id } }", "$", "validation-failed"),
    ] {
        let answer: Value = serde_json::from_str(&gateway.ask(query)).unwrap();
        let error = &answer["errors"][0];
        assert_eq!(
            error["extensions"],
            json!({"path": path, "code": code}),
            "{answer}"
        );
        assert_eq!(error.as_object().unwrap().len(), 2, "{answer}");
    }
    assert!(operations(&products).is_empty());
}

#[test]
fn a_namespace_nests_and_answers_its_own_typename() {
    let answer = r#"{"data":{"p":{"id":"1"},"add_product":null}}"#;
    let products = service(introspection(PRODUCTS), move |_| stub::json(answer));
    let more = "customization: {root_fields_namespace: shop}";
    let gateway = root(&[("products", &products, more)]);
    assert_eq!(
        gateway.ask("{ s: shop { __typename p: product { id } ... on shopQuery { t: __typename } } __typename }"),
        r#"{"data":{"s":{"__typename":"shopQuery","p":{"id":"1"},"t":"shopQuery"},"__typename":"query_root"}}"#
    );
    assert_eq!(
        gateway.ask("mutation { shop { add_product(wish: {name: \"a\"}) { id } } }"),
        r#"{"data":{"shop":{"add_product":null}}}"#
    );
    // This query needs no request to the service.
    let before = operations(&products).len();
    assert_eq!(
        gateway.ask("{ shop { __typename } }"),
        r#"{"data":{"shop":{"__typename":"shopQuery"}}}"#
    );
    assert_eq!(operations(&products).len(), before);
    assert_eq!(operations(&products)[0]["query"], "{p:product{id}}");
    assert!(
        gateway
            .ask("{ product { id } }")
            .contains("validation-failed")
    );
}

#[test]
fn names_are_changed_back_on_the_way_out_and_forth_on_the_way_in() {
    let answer =
        r#"{"data":{"item":{"__typename":"product","key":"1","parts":[{"t":"product"}]}}}"#;
    let products = service(introspection(PRODUCTS), move |_| stub::json(answer));
    let more = "customization: {type_names: {prefix: S_, mapping: {wish: Wish}}, field_names: [{parent_type: product, mapping: {id: key}}, {parent_type: query_root, mapping: {product: item}}]}";
    let gateway = root(&[("products", &products, more)]);
    let query = "query ($id: S_uuid) { item(id: $id) { ...P parts { t: __typename } } } fragment P on S_product { __typename key }";
    assert_eq!(
        gateway.ask_with(query, json!({"id": "1"})),
        r#"{"data":{"item":{"__typename":"S_product","key":"1","parts":[{"t":"S_product"}]}}}"#
    );
    assert_eq!(
        operations(&products)[0]["query"],
        "query($id:uuid){item:product(id:$id){...P parts{t:__typename}}}fragment P on product{__typename key:id}"
    );
    let types = gateway.ask("{ a: __type(name: \"S_product\") { fields { name type { ofType { name } } } } b: __type(name: \"Wish\") { name } c: __type(name: \"product\") { name } }");
    let types: Value = serde_json::from_str(&types).unwrap();
    assert_eq!(
        types["data"]["a"]["fields"][0],
        json!({"name": "key", "type": {"ofType": {"name": "S_uuid"}}})
    );
    assert_eq!(types["data"]["b"]["name"], "Wish");
    assert_eq!(types["data"]["c"], Value::Null);
}

/// The introspection of a service with products, with other names of its root types, and changed by `change`.
fn products_with(change: impl FnOnce(&mut Value)) -> String {
    let text = introspection(PRODUCTS)
        .replace("\"query_root\"", "\"Query\"")
        .replace("\"mutation_root\"", "\"Mutation\"");
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    change(&mut answer["data"]["__schema"]);
    answer.to_string()
}

/// graphql-js 16.14 added `DIRECTIVE_DEFINITION`.
#[test]
fn unknown_locations_of_directives_do_not_matter() {
    let introspection = products_with(|schema| {
        let directive =
            json!({"name": "new", "locations": ["DIRECTIVE_DEFINITION", "NEWER"], "args": []});
        schema["directives"].as_array_mut().unwrap().push(directive);
    });
    let products = service(introspection, |_| stub::json(PRODUCT));
    let gateway = root(&[("products", &products, "")]);
    assert_eq!(gateway.ask("{ product(id: \"1\") { id } }"), PRODUCT);
}

#[test]
fn fields_that_lead_back_to_a_root_are_left_out_of_every_type() {
    let back = json!({
        "name": "query", "description": null, "args": [], "isDeprecated": false, "deprecationReason": null,
        "type": {"kind": "NON_NULL", "name": null, "ofType": {"kind": "OBJECT", "name": "Query", "ofType": null}},
    });
    let introspection = products_with(|schema| {
        for kind in schema["types"].as_array_mut().unwrap() {
            if ["Query", "Mutation", "product"].contains(&kind["name"].as_str().unwrap()) {
                kind["fields"].as_array_mut().unwrap().push(back.clone());
            }
        }
    });
    let products = service(introspection, |_| stub::json(PRODUCT));
    let mut gateway = root(&[("products", &products, "")]);
    assert_eq!(gateway.ask("{ product(id: \"1\") { id } }"), PRODUCT);
    for query in [
        "{ query { __typename } }",
        "{ product(id: \"1\") { query { __typename } } }",
        "mutation { query { __typename } }",
    ] {
        assert!(gateway.ask(query).contains("errors"), "{query}");
    }
    let line = gateway.wait_for("lead back to a root type");
    let line = line["message"].as_str().unwrap();
    for field in ["query_root.query", "mutation_root.query", "product.query"] {
        assert!(line.contains(field), "{line}");
    }
}

#[test]
fn names_of_root_fields_are_changed_back_whatever_the_root_is_called() {
    for (namespace, query, sent) in [
        (
            "",
            "{ item(id: \"1\") { id } }",
            "{item:product(id:\"1\"){id}}",
        ),
        (
            ", root_fields_namespace: shop",
            "{ shop { item(id: \"1\") { id } } }",
            "{item:product(id:\"1\"){id}}",
        ),
        (
            "",
            "mutation { it: discard(id: \"1\") }",
            "mutation{it:drop_product(id:\"1\")}",
        ),
    ] {
        let products = service(products_with(|_| {}), |_| {
            stub::json(r#"{"data":{"item":{"id":"1"},"it":true}}"#)
        });
        let more = format!(
            "customization: {{field_names: [{{parent_type: Query, mapping: {{product: item}}}}, {{parent_type: Mutation, mapping: {{drop_product: discard}}}}]{namespace}}}"
        );
        let gateway = root(&[("products", &products, &more)]);
        let answer = gateway.ask(query);
        assert!(!answer.contains("errors"), "{query}: {answer}");
        assert_eq!(operations(&products)[0]["query"], sent, "{query}");
    }
}

#[test]
fn errors_of_a_service_are_passed_on_as_they_came_and_its_data_is_dropped() {
    let partial = r#"{"data":{"product":{"id":"1"}},"errors":[ {"message":"half", "path":["product"],"x":1} ]}"#;
    let products = service(introspection(PRODUCTS), move |seen| {
        match seen.body.contains("refuse") {
            true => Answer::With(
                500,
                Some("text/plain"),
                br#"{"errors":[{"message":"no"}]}"#.to_vec(),
            ),
            false => stub::json(partial),
        }
    });
    let gateway = root(&[("products", &products, "")]);
    assert_eq!(
        gateway.ask("{ product { id } }"),
        r#"{"errors":[ {"message":"half", "path":["product"],"x":1} ],"data":null}"#
    );
    // The body decides, not the status.
    assert_eq!(
        gateway.ask("{ refuse: product { id } }"),
        r#"{"errors":[{"message":"no"}],"data":null}"#
    );
}

#[test]
fn an_answer_that_is_none_is_told() {
    let products = service(
        introspection(PRODUCTS),
        |seen| match &seen.json()["query"] {
            it if it == "{html:product{id}}" => {
                Answer::With(502, Some("text/html"), b"<html>".to_vec())
            }
            it if it == "{list:product{id}}" => stub::json("[]"),
            it if it == "{absent:product{id}}" => stub::json(r#"{"data":{"other":1}}"#),
            it if it == "{nothing:product{id}}" => stub::json(r#"{"data":null}"#),
            it if it == "{cut:product{id}}" => {
                Answer::Raw(b"HTTP/1.1 200 x\r\ncontent-length: 99\r\n\r\n{".to_vec())
            }
            _ => Answer::Hang,
        },
    );
    let gateway = root(&[("products", &products, "timeout: 200ms")]);
    for (key, message) in [
        ("html", "Received invalid JSON value from remote".to_owned()),
        (
            "list",
            "Received invalid JSON value from remote: expecting a GraphQL response".to_owned(),
        ),
        (
            "absent",
            "expecting key \"absent\" in the answer of remote".to_owned(),
        ),
        (
            "nothing",
            "expecting key \"nothing\" in the answer of remote".to_owned(),
        ),
        (
            "cut",
            "HTTP exception occurred while sending the request to `products`".to_owned(),
        ),
        (
            "hang",
            "HTTP exception occurred while sending the request to `products`".to_owned(),
        ),
    ] {
        let answer: Value =
            serde_json::from_str(&gateway.ask(&format!("{{ {key}: product {{ id }} }}"))).unwrap();
        let error = json!({"message": message, "extensions": {"code": "remote-schema-error", "path": "$.selectionSet.product"}});
        assert_eq!(answer, json!({"errors": [error], "data": null}));
    }
}

#[test]
fn headers_go_out_by_rank_and_cookies_come_back() {
    let products = service(introspection(PRODUCTS), |_| {
        Answer::Full(
            200,
            "content-type: application/json\r\nSet-Cookie: a=1\r\nset-cookie:b=2\r\nx-secret: 1\r\n".to_owned(),
            PRODUCT.as_bytes().to_vec(),
        )
    });
    let closed =
        "headers: [{name: x-key, value: '${env.KEY:-k}'}, {name: x-hasura-user-id, value: '7'}]";
    let open = format!("{closed}, forward_client_headers: true");
    for (more, x_own, user_agent) in [(closed, None, None), (&open, Some("mine"), None)] {
        let before = products.seen().len();
        // The gateway trusts clients that send session headers.
        let trusted = "session_variables: {trust_clients: true}";
        let gateway = root_of(&[("products", &products, more)], trusted);
        let request = Request {
            headers: &[
                ("content-type", "application/json"),
                ("x-hasura-admin-secret", "s"),
                ("x-own", "mine"),
                ("x-key", "theirs"),
                ("user-agent", "browser"),
                ("x-hasura-user-id", "1"),
                ("x-hasura-org", "o"),
            ],
            ..post(r#"{"query":"{ product { id name } }"}"#)
        };
        let response = gateway.send(&request);
        assert_eq!(response.text(), PRODUCT);
        let cookies: Vec<&str> = response
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie")
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
        assert_eq!(response.header("x-secret"), None);
        let seen = products.seen();
        let [asked, sent] = &seen[before..] else {
            panic!("{seen:?}")
        };
        // The introspection request has the configured headers, but no headers of a client.
        assert_eq!(asked.header("x-key"), Some("k"));
        assert_eq!(asked.header("x-hasura-org"), None);
        assert_eq!(sent.header("x-key"), Some("k"));
        assert_eq!(sent.header("x-hasura-user-id"), Some("7"));
        assert_eq!(sent.header("x-hasura-org"), Some("o"));
        assert_eq!(sent.header("x-hasura-role"), Some("admin"));
        assert_eq!(sent.header("x-hasura-admin-secret"), None);
        assert_eq!(sent.header("x-own"), x_own);
        assert_eq!(sent.header("user-agent"), user_agent);
        assert_eq!(sent.header("content-type"), Some("application/json"));
    }
}

#[test]
fn rules_scripts_and_coprocessors_see_requests_to_services() {
    let products = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    let coprocessor = Stub::coprocessor(|message| {
        message["headers"]["x-coprocessor"] = json!(["yes"]);
    });
    let script = "fn subgraph_service(service, subgraph) { service.map_request(|request| { request.subgraph.headers[\"x-script\"] = subgraph; }); }";
    let config = format!(
        "remote_schemas: [{{name: products, url: '{}'}}]\nheaders: {{subgraphs: {{products: {{request: [{{insert: {{name: x-rule, value: r}}}}]}}}}}}\nrhai: {{scripts: rhai}}\ncoprocessor: {{url: '{}', subgraph: {{all: {{request: {{headers: true}}}}}}}}\n",
        products.url, coprocessor.url
    );
    let gateway = crate::gateway::Setup::merged(&config)
        .file("rhai/main.rhai", script)
        .start();
    assert_eq!(gateway.ask("{ product { id name } }"), PRODUCT);
    let seen = products.seen();
    let sent = seen.last().unwrap();
    assert_eq!(sent.header("x-rule"), Some("r"));
    assert_eq!(sent.header("x-script"), Some("products"));
    assert_eq!(sent.header("x-coprocessor"), Some("yes"));
    assert_eq!(seen.len(), 2);
}

#[test]
fn what_two_services_disagree_about_is_said_and_the_first_is_served() {
    let one = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    let two = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    let other_types = PRODUCTS
        .replace("name: String!", "name: Int")
        .replace("{name: product", "{name: thing")
        .replace("{name: add_product", "{name: add_thing")
        .replace("{name: drop_product", "{name: drop_thing");
    let three = service(introspection(&other_types), |_| stub::json(PRODUCT));
    let gateway = root(&[("one", &one, ""), ("two", &two, ""), ("three", &three, "")]);
    assert_eq!(gateway.ask("{ product { id name } }"), PRODUCT);
    let health = gateway.ask_health("/health?ready");
    assert_eq!(health.status, 503);
    let missing = &health.json()["missing_sources"];
    let two = missing["two"].as_str().unwrap();
    assert!(
        two.contains("root field `product` is there already, from the remote schema `one`"),
        "{two}"
    );
    let three = missing["three"].as_str().unwrap();
    assert!(
        three.contains("differs from the one of the remote schema `one`"),
        "{three}"
    );
    assert_eq!(gateway.ask_health("/health").status, 200);
}

#[test]
fn names_that_cannot_be_changed_are_said() {
    let products = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    let more = "customization: {field_names: [{parent_type: product, mapping: {id: name}}]}";
    let gateway = root(&[("products", &products, more)]);
    let health = gateway.ask_health("/health?ready");
    assert!(
        health.text().contains("would both be called `name`"),
        "{}",
        health.text()
    );
    let placeholder = r#"{"data":{"no_queries_available":null}}"#;
    assert_eq!(gateway.ask("{ no_queries_available }"), placeholder);
}

#[test]
fn a_supergraph_and_merged_schemas_together_are_refused_and_neither_too() {
    let both = crate::gateway::Setup::new("remote_schemas: [{name: a, url: 'http://a'}]").fail();
    assert_eq!(both.0.code(), Some(2));
    assert!(both.1.contains("cannot be served together"), "{}", both.1);
    let none = crate::gateway::Setup::merged("").fail();
    assert!(none.1.contains("--supergraph"), "{}", none.1);
}

/// An address without a listener. Few programs use this network, so another program is unlikely to take it.
pub(crate) fn quiet_address() -> String {
    let id = std::process::id();
    let host = format!(
        "127.{}.{}.{}",
        64 + id % 64,
        id / 64 % 256,
        1 + id / 16384 % 250
    );
    let listener = TcpListener::bind(format!("{host}:0")).unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn probes_of_hasura_find_the_health_on_the_port_of_queries() {
    let health = |gateway: &Gateway| {
        let answer = gateway.send(&test_client::get("/healthz"));
        (answer.status, answer.text().to_owned())
    };
    let ready = Gateway::merged(PRODUCTS);
    assert_eq!(health(&ready), (200, "OK".to_owned()));
    let version = ready.send(&test_client::get("/v1/version"));
    let found: Value = serde_json::from_str(version.text()).unwrap();
    assert_eq!(
        (version.status, &found["server_type"]),
        (200, &json!("weighbridge-gateway"))
    );
    assert!(
        found["version"].as_str().is_some_and(|it| it.contains('.')),
        "{found}"
    );
    let missing = "remote_schemas: [{name: a, url: 'http://127.0.0.1:9'}]\n";
    let waiting = Gateway::merged(missing);
    assert_eq!(health(&waiting), (500, "ERROR".to_owned()));
    let federated = Gateway::start(&Stub::planets().config(""));
    assert_eq!(health(&federated).0, 404);
    assert_eq!(federated.send(&test_client::get("/v1/version")).status, 404);
}
