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

impl crate::Surroundings for Urls {
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
    assert_snapshot!(import.notes.join("\n"), @r#"
        remote_schemas.yaml: the `permissions` of `product`
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
    assert_eq!(
        import.notes,
        ["actions.yaml: `ignored_client_headers` of the action `pay`"]
    );
    let reading = crate::read(Path::new("imported.yaml"), &import.yaml, &Urls, false);
    if let Err(mistakes) = reading {
        panic!("{mistakes}\n{}", import.yaml);
    }
}

#[test]
fn what_is_written_is_a_configuration() {
    let import = folder(FOLDER);
    let reading = crate::read(Path::new("imported.yaml"), &import.yaml, &Urls, false);
    let config = match reading {
        Ok(reading) => reading.config,
        Err(mistakes) => panic!("{mistakes}\n{}", import.yaml),
    };
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
    crate::read(Path::new("imported.yaml"), &import.yaml, &Urls, false).unwrap();
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
        let tree = crate::expansion::expand(tree, &Urls, &mut findings);
        // In Hasura's texts, `{{NAME}}` is an environment variable.
        let expected = value.to_string();
        let is_variable = expected.contains("{{");
        proptest::prop_assert!(is_variable || tree.json() == value, "{}", yaml);
    }
}
