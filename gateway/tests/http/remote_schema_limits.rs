//! Tests the limits of remote schemas, and schemas of newer and older specifications.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::remote_schemas::{PRODUCT, PRODUCTS, introspection, root, root_of, service};
use crate::stub::{self, Stub};

/// The introspection response of a service with `types` types of ten fields each.
fn introspection_of_many(types: usize) -> String {
    let leaf = json!({"kind": "SCALAR", "name": "String", "ofType": null});
    let field = |name: String, of: &Value| json!({"name": name, "description": null, "args": [], "type": of, "isDeprecated": false, "deprecationReason": null});
    let object = |name: String, fields: Vec<Value>| json!({"kind": "OBJECT", "name": name, "description": null, "fields": fields, "inputFields": null, "interfaces": [], "enumValues": null, "possibleTypes": null});
    let roots = (0..types).map(|number| {
        let of = json!({"kind": "OBJECT", "name": format!("Thing{number}"), "ofType": null});
        field(format!("thing{number}"), &of)
    });
    let mut all = vec![
        object("Query".to_owned(), roots.collect()),
        json!({"kind": "SCALAR", "name": "String", "description": null}),
    ];
    all.extend((0..types).map(|number| {
        let fields = (0..10).map(|index| field(format!("some_field_{index}"), &leaf));
        object(format!("Thing{number}"), fields.collect())
    }));
    json!({"data": {"__schema": {"queryType": {"name": "Query"}, "mutationType": null, "subscriptionType": null, "directives": [], "types": all}}}).to_string()
}

#[test]
fn a_schema_beyond_the_limits_is_missing_and_the_others_are_served() {
    let large = service(introspection_of_many(50), |_| stub::json("{}"));
    let products = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    for (limit, reason) in [
        (
            "remote_schema_max_types: 50",
            "the schema has 51 types, more than `limits.remote_schema_max_types` (50)",
        ),
        (
            "remote_schema_max_bytes: 64KiB",
            "the answer is longer than 65536 bytes",
        ),
    ] {
        let services = [("large", &large, ""), ("products", &products, "")];
        let gateway = root_of(&services, &format!("limits: {{{limit}}}"));
        let health = gateway.ask_health("/health?ready");
        assert_eq!(health.status, 503, "{limit}");
        let missing = &health.json()["missing_sources"];
        let told = missing["large"].as_str().unwrap();
        assert!(told.contains(reason), "{told}");
        assert_eq!(missing["products"], Value::Null);
        assert_eq!(gateway.ask("{ product { id name } }"), PRODUCT);
        assert!(
            gateway
                .ask("{ thing0 { some_field_0 } }")
                .contains("validation-failed")
        );
    }
    let gateway = root_of(
        &[("large", &large, "")],
        "limits: {remote_schema_max_types: 51}",
    );
    assert_eq!(gateway.ask_health("/health?ready").status, 200);
}

/// Memory of the gateway's process in bytes.
fn memory(gateway: &Gateway) -> f64 {
    let metrics = gateway.ask_health("/metrics");
    let mut lines = metrics.text().lines();
    let bytes = lines.find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    bytes.unwrap().parse().unwrap()
}

#[test]
fn a_reload_lets_go_of_the_former_schemas() {
    let large = service(introspection_of_many(2_000), |_| stub::json("{}"));
    let mut gateway = root(&[("large", &large, "")]);
    let mut reload = |count: usize| {
        for _ in 0..count {
            gateway.signal(rustix::process::Signal::HUP);
            gateway.wait_for("reloaded: SIGHUP");
        }
        // Workers use the new schema now.
        gateway.ask("{ __typename }");
        memory(&gateway)
    };
    let before = reload(4);
    let after = reload(16);
    // Sixteen schemas would take more than twice this. The allocator keeps freed memory for some time.
    let grown = after - before;
    assert!(grown < 40e6, "{grown} bytes more than {before}");
}

/// An introspection response with the additions of newer specifications.
fn modern() -> Value {
    let scalar = |name: &str| json!({"kind": "SCALAR", "name": name});
    let input = |name: &str, of: Value| json!({"name": name, "type": of});
    // Deeper than the query asks, so the innermost list has no type.
    let mut deep = json!({"kind": "LIST"});
    for _ in 0..9 {
        deep = json!({"kind": "LIST", "ofType": deep});
    }
    let mut old = input("old", scalar("Int"));
    old["isDeprecated"] = true.into();
    old["deprecationReason"] = "use by".into();
    let mut text = input("text", scalar("String"));
    text["defaultValue"] = r#""q\"ué\n""#.into();
    let non_null = json!({"kind": "NON_NULL", "ofType": {"kind": "INPUT_OBJECT", "name": "key"}});
    json!({"data": {"__schema": {
        "queryType": {"name": "Query"},
        "directives": [{"name": "x", "locations": ["LATER"], "args": []}],
        "types": [
            {"kind": "OBJECT", "name": "Query", "interfaces": [], "fields": [
                {"name": "find", "args": [input("by", non_null), old, text], "type": scalar("uuid")},
                {"name": "deep", "args": [], "type": deep},
            ]},
            {"kind": "INPUT_OBJECT", "name": "key", "isOneOf": true, "inputFields": [
                input("id", scalar("uuid")),
                {"name": "name", "type": scalar("String"), "isDeprecated": true, "deprecationReason": null},
            ]},
            {"kind": "SCALAR", "name": "uuid", "specifiedByURL": "https://tools.ietf.org/html/rfc4122"},
        ],
    }}})
}

#[test]
fn a_schema_keeps_one_of_specified_by_and_deprecated_inputs() {
    let service = service(modern().to_string(), |_| {
        stub::json(r#"{"data":{"find":"1"}}"#)
    });
    let mut gateway = Gateway::merged(&format!(
        "supergraph: {{introspection: true}}\nremote_schemas:\n  - {{name: s, url: '{}'}}\n",
        service.url
    ));
    let told = gateway.ask(
        "{ key: __type(name: \"key\") { isOneOf inputFields { name } all: inputFields(includeDeprecated: true) { name isDeprecated deprecationReason } } \
         uuid: __type(name: \"uuid\") { specifiedByURL } \
         query: __type(name: \"query_root\") { fields { name args { name defaultValue } } } \
         __schema { directives { name } } }",
    );
    let told: Value = serde_json::from_str(&told).unwrap();
    let data = &told["data"];
    assert_eq!(
        data["key"],
        json!({
            "isOneOf": true,
            "inputFields": [{"name": "id"}],
            "all": [
                {"name": "id", "isDeprecated": false, "deprecationReason": null},
                {"name": "name", "isDeprecated": true, "deprecationReason": "No longer supported"},
            ],
        })
    );
    assert_eq!(
        data["uuid"]["specifiedByURL"],
        "https://tools.ietf.org/html/rfc4122"
    );
    assert_eq!(
        data["query"]["fields"],
        json!([{"name": "find", "args": [
            {"name": "by", "defaultValue": null},
            {"name": "text", "defaultValue": r#""q\"ué\n""#},
        ]}])
    );
    let directives = data["__schema"]["directives"].as_array().unwrap();
    assert!(directives.iter().any(|it| it["name"] == "oneOf"), "{told}");
    // A deprecated argument can be used, and two keys of a `@oneOf` input are refused.
    assert_eq!(
        gateway.ask("{ find(by: {id: \"1\"}, old: 2) }"),
        r#"{"data":{"find":"1"}}"#
    );
    let refused = gateway.ask("{ find(by: {id: \"1\", name: \"a\"}) }");
    assert!(refused.contains("errors"), "{refused}");
    gateway.wait_for(
        "fields that have a type of more than nine lists and `!` are left out: Query.deep",
    );
}

#[test]
fn a_service_of_an_older_specification_is_asked_without_newer_fields() {
    let introspection = introspection(PRODUCTS);
    let service = Stub::start(move |seen| {
        for unknown in ["isOneOf", "specifiedByURL", "args(includeDeprecated"] {
            if seen.body.contains(unknown) {
                return stub::json(
                    r#"{"errors":[{"message":"Cannot query field \"isOneOf\" on type \"__Type\"."}]}"#,
                );
            }
        }
        match seen.body.contains("__schema") {
            true => stub::json(&introspection),
            false => stub::json(r#"{"data":{"product":{"id":"1"}}}"#),
        }
    });
    let gateway = Gateway::merged(&format!(
        "remote_schemas:\n  - {{name: s, url: '{}'}}\n",
        service.url
    ));
    assert_eq!(
        gateway.ask("{ product { id } }"),
        r#"{"data":{"product":{"id":"1"}}}"#
    );
    // Newer requests come first.
    assert_eq!(service.seen().len(), 4);
}
