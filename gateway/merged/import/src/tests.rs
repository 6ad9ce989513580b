use std::collections::HashMap;
use std::path::Path;

use insta::assert_snapshot;

use super::*;

fn folder(files: &'static [(&'static str, &'static str)]) -> Import {
    let files: HashMap<&str, &str> = files.iter().copied().collect();
    match import(&|name| files.get(name).map(|text| (*text).to_owned())) {
        Ok(import) => import,
        Err(mistakes) => panic!("{mistakes}"),
    }
}

/// An environment with a URL as the value of every variable.
struct Urls;

impl gateway_config::Surroundings for Urls {
    fn variable(&self, _: &str) -> Option<String> {
        Some("http://127.0.0.1:1".to_owned())
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

const FOLDER: &[(&str, &str)] = &[
    (
        "remote_schemas.yaml",
        r#"
- name: product
  definition:
    url: '{{PRODUCT_HOST}}/v1/graphql'
    timeout_seconds: 20
    headers:
      - {name: x-a, value: "1 ${x}"}
      - {name: x-b, value_from_env: KEY}
    customization:
      root_fields_namespace: shop
      type_names: {prefix: S_, mapping: {product: Item}}
      field_names: [{parent_type: product, mapping: {id: key}}]
  permissions: [{role: user, definition: {schema: "type Query { a: Int }"}}]
- name: plain
  definition: {url_from_env: PLAIN_URL}
  comment: 'a "note"'
"#,
    ),
    (
        "actions.yaml",
        r#"
actions:
  - name: product
    definition:
      kind: ""
      handler: '{{PRODUCTS}}'
      request_transform:
        version: 2
        template_engine: Kriti
        method: GET
        url: '{{$base_url}}/api/rest/product'
        query_params: {limit: "{{$body.input?.limit}}"}
        body: {action: remove}
        request_headers: {remove_headers: [content-type]}
      response_transform: {version: 1, template_engine: Kriti, body: '{{$body.product}}'}
    permissions: [{role: user}]
  - name: later
    definition: {kind: asynchronous, handler: 'http://h'}
  - name: change
    definition: {kind: synchronous, handler: 'http://h', forward_client_headers: true, timeout: 5}
  - name: lost
    definition: {handler: 'http://h'}
custom_types:
  enums: []
  input_objects: [{name: wish}]
  objects: [{name: product, relationships: [{name: a}]}]
  scalars: [{name: uuid}]
"#,
    ),
    (
        "actions.graphql",
        r#"
type Query { product(limit: Int): [product!]! }
extend type Mutation { change(wish: wish!): product }
type Query { other: Int }
type product { id: uuid! name: String }
input wish { name: String = "$$" }
scalar uuid
"#,
    ),
    (
        "query_collections.yaml",
        "- name: allowed-queries\n  definition:\n    queries:\n      - name: products\n        query: |\n          query ($limit: Int) {\n            product(limit: $limit) { id }\n          }\n",
    ),
    (
        "rest_endpoints.yaml",
        "- comment: ''\n  definition: {query: {collection_name: allowed-queries, query_name: products}}\n  methods: [GET]\n  name: products\n  url: products/:limit\n",
    ),
    (
        "databases/databases.yaml",
        "- {name: default, kind: postgres}\n",
    ),
    ("allow_list.yaml", "[]\n"),
];

#[test]
fn a_folder_becomes_a_configuration_and_the_rest_is_named() {
    let import = folder(FOLDER);
    assert_eq!(import.yaml, include_str!("expected.yaml"));
    assert_eq!(
        import.lost_restrictions,
        ["remote_schemas.yaml: the `permissions` of `product`"]
    );
    assert_snapshot!(import.notes.join("\n"), @r#"
        actions.yaml: the asynchronous action `later`
        actions.yaml: actions.graphql has no field for the action `lost`
        actions.yaml: the relationships of the type `product`
        databases/databases.yaml: databases, their tables and permissions
        "#);
}

/// In Hasura, these scalars come from the database, and `Subscription` is an ordinary type.
#[test]
fn scalars_of_the_database_are_added_and_ordinary_names_stay() {
    let import = folder(&[
        (
            "actions.yaml",
            "actions:\n  - {name: pay, definition: {kind: synchronous, handler: 'http://h', ignored_client_headers: [x-a], arguments: [{name: of, type: 'numeric!'}], output_type: Subscription}}\n",
        ),
        (
            "actions.graphql",
            "type Mutation { book(at: timestamptz!, note: [jsonb!]): Subscription }\n\
             type Subscription { id: uuid! paid: numeric since: date kind: Kind }\n\
             scalar date\nenum Kind { A }\n",
        ),
    ]);
    for name in ["uuid", "numeric", "timestamptz", "jsonb", "date"] {
        let definition = format!("scalar {name}\n");
        assert_eq!(
            import.yaml.matches(&definition).count(),
            1,
            "{}",
            import.yaml
        );
    }
    assert!(
        import.yaml.contains("type Subscription {"),
        "{}",
        import.yaml
    );
    assert!(import.notes.is_empty(), "{:?}", import.notes);
    let config = configuration(&import);
    let ignored = config.actions[0].ignored_client_headers.as_deref();
    assert_eq!(ignored.map(|names| names[0].0.as_str()), Some("x-a"));
}

/// Reads an imported configuration.
#[track_caller]
fn configuration(import: &Import) -> gateway_config::Config {
    match gateway_config::read(Path::new("imported.yaml"), &import.yaml, &Urls, false) {
        Ok(reading) => reading.config,
        Err(mistakes) => panic!("{mistakes}\n{}", import.yaml),
    }
}

/// Without its types, all actions would be missing in the configuration.
#[test]
fn unreadable_types_end_the_import() {
    let files = [
        ("actions.yaml", "actions: [{name: a}]"),
        ("actions.graphql", "type Query { a("),
    ];
    let read = |name: &str| {
        let found = files.iter().find(|(file, _)| *file == name);
        found.map(|(_, text)| (*text).to_owned())
    };
    let mistakes = import(&read).expect_err("no types").to_string();
    assert!(mistakes.contains("expected GraphQL types"), "{mistakes}");
    assert!(mistakes.contains("actions.graphql"), "{mistakes}");
}

#[test]
fn parts_that_restrict_clients_are_listed_apart() {
    let import = folder(&[
        ("allow_list.yaml", "[{collection: allowed}]"),
        ("api_limits.yaml", "{disabled: false}"),
        (
            "graphql_schema_introspection.yaml",
            "{disabled_for_roles: [user]}",
        ),
        ("network.yaml", "{tls_allowlist: [{host: a}]}"),
    ]);
    assert_eq!(import.notes, ["network.yaml: TLS exceptions"]);
    assert_eq!(
        import.lost_restrictions,
        [
            "allow_list.yaml: the allow list",
            "api_limits.yaml: API limits",
            "graphql_schema_introspection.yaml: introspection by role"
        ]
    );
}

/// The console writes one file with the signatures and types of the actions.
#[test]
fn an_export_of_the_console_becomes_the_same_configuration() {
    let export = r#"{"resource_version": 7, "metadata": {"version": 3,
        "sources": [{"name": "default", "kind": "postgres"}],
        "remote_schemas": [{"name": "shop", "definition": {"url": "http://h/${x}"}}],
        "actions": [{"name": "price", "permissions": [{"role": "user"}], "definition": {
            "handler": "{{BASE}}/price", "type": "query", "kind": "synchronous", "output_type": "Price",
            "arguments": [{"name": "of", "type": "Wish!"}],
            "request_transform": {"version": 2, "query_params": "a={{$body.input.of.id}}"}}}],
        "custom_types": {
            "scalars": [{"name": "Money", "description": "a \"sum\""}],
            "enums": [{"name": "Kind", "values": [{"value": "A"}, {"value": "B", "description": "second"}]}],
            "input_objects": [{"name": "Wish", "fields": [{"name": "id", "type": "uuid!"}]}],
            "objects": [{"name": "Price", "fields": [
                {"name": "amount", "type": "Money!"}, {"name": "kind", "type": "Kind"},
                {"name": "tags", "type": "_text", "arguments": [{"name": "first", "type": "Int"}]}]}]}}}"#;
    let file = MetadataFile::read(export).expect("an export");
    let import = import(&|name| file.file(name)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let config = configuration(&import);
    assert_eq!(config.remote_schemas.len(), 1);
    let price = &config.actions[0];
    assert_eq!(price.arguments[0].name.0.0, "of");
    let roles = price.permissions.as_deref();
    assert_eq!(roles.map(|roles| roles[0].role.as_str()), Some("user"));
    assert_snapshot!(config.types.0.0, @r#"
    "a \"sum\""
    scalar Money

    enum Kind {
      A
      "second" B
    }

    input Wish {
      id: uuid!
    }

    type Price {
      amount: Money!
      kind: Kind
      tags(first: Int): _text
    }

    scalar _text

    scalar uuid
    "#);
    assert_eq!(
        import.notes,
        ["databases/databases.yaml: databases, their tables and permissions"]
    );
}

#[test]
fn other_files_than_an_export_are_refused() {
    for (text, expected) in [
        ("- a", "expected the JSON of an export"),
        ("{}", "expected `version: 3` in the metadata, found none"),
        ("[]", "expected `version: 3` in the metadata, found none"),
        (r#"{"version": 2}"#, "found version 2"),
    ] {
        let reason = MetadataFile::read(text).expect_err(text);
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn what_is_written_is_a_configuration() {
    let import = folder(FOLDER);
    let config = configuration(&import);
    assert_eq!(config.remote_schemas.len(), 2);
    assert_eq!(config.remote_schemas[0].headers[0].value.0, "1 ${x}");
    assert_eq!(config.actions.len(), 2);
    assert!(config.types.0.0.contains("\"$$\""), "{}", config.types.0.0);
    assert_eq!(config.rest_endpoints.len(), 1);
}

#[test]
fn an_empty_folder_is_a_configuration_without_sources() {
    let import = folder(&[]);
    assert!(import.notes.is_empty());
    gateway_config::read(Path::new("imported.yaml"), &import.yaml, &Urls, false).unwrap();
}

#[test]
fn runs_of_dollars_are_doubled_whole() {
    for (text, written) in [
        ("5 $", "5 $"),
        ("$$", "$$$$"),
        ("${x}", "$${x}"),
        ("$${x}", "$$$${x}"),
        ("$$$ ${", "$$$$$$ $${"),
        ("${{HOST}}", "$$${env.HOST}"),
    ] {
        assert_eq!(text::expanded(text), written, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_survives_being_written(text in "([ -~\\n]|[${} ]){0,40}", key in "[a-z:#-]{1,8}") {
        let value = serde_json::json!({ key: [text, {"a": text}], "b": {}, "c": [] });
        let mut yaml = String::new();
        Out::of(&value).write(0, &mut yaml);
        let mut findings = Findings::default();
        let document = yaml_with_places::read(0, &yaml, "", &mut findings);
        let Document::Tree(tree) = document else { panic!("{yaml}") };
        let tree = gateway_config::expand(tree, &Urls, &mut findings);
        // In Hasura's texts, `{{NAME}}` is an environment variable.
        let expected = value.to_string();
        let is_variable = expected.contains("{{");
        proptest::prop_assert!(is_variable || tree.json() == value, "{}", yaml);
    }
}
