use std::collections::HashMap;
use std::path::Path;

use insta::assert_snapshot;

use super::*;

mod coprocessor;
mod warnings;

/// An environment and a file system from a table.
struct Table(HashMap<&'static str, &'static str>);

impl Surroundings for Table {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| (*value).to_owned())
    }

    fn file(&self, path: &Path) -> Option<String> {
        self.variable(path.to_str()?)
    }
}

fn table() -> Table {
    Table(HashMap::from([
        ("COPROCESSOR", "http://127.0.0.1:3000"),
        ("FLAG", "true"),
        ("NUMBER", "7"),
        ("/run/key", "secret"),
    ]))
}

fn config(text: &str) -> Config {
    match read(Path::new("router.yaml"), text, &table(), false) {
        Ok(reading) => reading.config,
        Err(mistakes) => panic!("{mistakes}"),
    }
}

fn mistakes(text: &str) -> String {
    match read(Path::new("router.yaml"), text, &table(), false) {
        Ok(_) => "none".to_owned(),
        Err(mistakes) => mistakes.render(false),
    }
}

/// Place and message of each mistake.
fn told(text: &str) -> String {
    let mistakes = read(Path::new("router.yaml"), text, &table(), false).unwrap_err();
    let lines = mistakes
        .iter()
        .map(|it| format!("{}:{} {}", it.line, it.column, it.message));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_file_without_keys_gives_the_defaults() {
    for text in ["", "# nothing\n", "supergraph:\n"] {
        let config = config(text);
        assert_eq!(
            config.supergraph.listen.0,
            Listen::Tcp("127.0.0.1:4000".to_owned())
        );
        assert_eq!(config.limits.http_max_request_bytes, 2_000_000);
        assert_eq!(config.traffic_shaping.router.timeout.as_secs(), 30);
        assert!(config.coprocessor.is_none() && config.rhai.is_none());
        let shaping = config.traffic_shaping.of_subgraph("any");
        assert_eq!(shaping.timeout, None);
    }
}

#[test]
fn every_mistake_is_reported_at_once_with_its_line() {
    assert_snapshot!(mistakes("supergraph:\n  introspecton: true\n  path: graphql\nlimits:\n  parser_max_tokens: many\nheaders:\n  all:\n    request:\n      - insert: {name: source}\n      - propagate: {matching: '('}\ncors:\n  origins: ['*', 'https://a.example/']\n"), @r"
    error: unknown key `introspecton`
     --> router.yaml:2:3
      |
    2 |   introspecton: true
      |   ^^^^^^^^^^^^
      |
      = help: did you mean `introspection`?

    error: expected a path that starts with `/`, found `graphql`
     --> router.yaml:3:9
      |
    3 |   path: graphql
      |         ^^^^^^^

    error: expected a whole number, found the text `many`
     --> router.yaml:5:22
      |
    5 |   parser_max_tokens: many
      |                      ^^^^

    error: expected exactly one of `value` or `from_context` or `path`, found none
     --> router.yaml:9:9
      |
    9 |       - insert: {name: source}
      |         ^^^^^^

    error: `(` is not a regular expression: unclosed group
      --> router.yaml:10:31
       |
    10 |       - propagate: {matching: '('}
       |                               ^^^

    error: `*` is not an origin; set `allow_any_origin: true` instead
      --> router.yaml:12:13
       |
    12 |   origins: ['*', 'https://a.example/']
       |             ^^^

    error: an origin has no `/` at its end: write `https://a.example`
      --> router.yaml:12:18
       |
    12 |   origins: ['*', 'https://a.example/']
       |                  ^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn keys_of_header_rules_that_would_do_nothing_are_refused() {
    for (rule, expected) in [
        (
            "insert: {name: a, value: b, default: c}",
            "expected `default` beside `path` only",
        ),
        (
            "propagate: {matching: 'x-.*', rename: b}",
            "expected `rename` and `default` beside `named` only",
        ),
        (
            "propagate: {matching: 'x-.*', default: b}",
            "expected `rename` and `default` beside `named` only",
        ),
    ] {
        let text = format!("headers:\n  all:\n    request:\n      - {rule}\n");
        let found = mistakes(&text);
        assert!(found.contains(expected), "{rule}: {found}");
    }
    let path = "headers:\n  all:\n    request:\n      - insert: {name: a, path: .x, default: c}\n";
    let _ = config(path);
}

#[test]
fn variables_are_filled_in_and_typed_again() {
    let config = config(
        "coprocessor:\n  url: ${env.COPROCESSOR}/guid-response\n  timeout: ${env.X:-5s}\n  response_validation: \"${env.FLAG:-false}\"\nlimits: {max_depth: \"${env.NUMBER}\"}\nheaders: {all: {request: [{insert: {name: a, value: \"$$1 ${file./run/key}\"}}]}}\n",
    );
    let coprocessor = config.coprocessor.unwrap();
    assert_eq!(coprocessor.timeout.as_secs(), 5);
    assert!(coprocessor.response_validation);
    assert_eq!(config.limits.max_depth, Some(7));
    let ServiceAddress::Http(url) = coprocessor.url.0 else {
        panic!("not http")
    };
    assert_eq!(url, "http://127.0.0.1:3000/guid-response");
    let HeaderRule::Insert {
        value: InsertedValue::Static(value),
        ..
    } = &config.headers.all.request.operations[0]
    else {
        panic!("not a static insertion")
    };
    assert_eq!(value, "$1 secret");
}

#[test]
fn a_variable_that_is_missing_is_named() {
    assert_snapshot!(mistakes("coprocessor: {url: '${env.NOWHERE}'}\nsupergraph: {path: '${secret.X}'}\n"), @"
    error: could not expand variable: the environment has no `NOWHERE`
     --> router.yaml:1:20
      |
    1 | coprocessor: {url: '${env.NOWHERE}'}
      |                    ^^^^^^^^^^^^^^^^
      |
      = help: write `${env.NAME}`, `${env.NAME:-default}` or `${file.path}`; `$$` is a literal `$`

    error: could not expand variable: `secret.X` must begin with one of the allowed modes `env|file`
     --> router.yaml:2:20
      |
    2 | supergraph: {path: '${secret.X}'}
      |                    ^^^^^^^^^^^^^
      |
      = help: write `${env.NAME}`, `${env.NAME:-default}` or `${file.path}`; `$$` is a literal `$`
    ");
}

#[test]
fn keys_that_contradict_each_other_are_reported() {
    assert_snapshot!(mistakes("sandbox: {enabled: true}\ninclude_subgraph_errors: {all: true, subgraphs: {a: {redact_message: true}}}\ncors: {allow_any_origin: true, allow_credentials: true}\n"), @"
    error: the sandbox and the homepage cannot both be on: set `homepage.enabled: false`
     --> router.yaml:1:11
      |
    1 | sandbox: {enabled: true}
      |           ^^^^^^^

    error: the sandbox asks for the schema: set `supergraph.introspection: true`
     --> router.yaml:1:11
      |
    1 | sandbox: {enabled: true}
      |           ^^^^^^^

    error: a subgraph can have keys of its own only where `all` has keys, too: give `all` `redact_message`, or write `true` or `false` here
     --> router.yaml:2:50
      |
    2 | include_subgraph_errors: {all: true, subgraphs: {a: {redact_message: true}}}
      |                                                  ^

    error: `allow_credentials` and `allow_any_origin` cannot be used together: name the origins
     --> router.yaml:3:8
      |
    3 | cors: {allow_any_origin: true, allow_credentials: true}
      |        ^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn development_settles_what_would_contradict_itself() {
    let reading = read(
        Path::new("r.yaml"),
        "homepage: {enabled: true}",
        &table(),
        true,
    )
    .unwrap();
    assert!(reading.config.sandbox.enabled && !reading.config.homepage.enabled);
    assert!(reading.config.supergraph.introspection);
    assert!(matches!(
        reading.config.include_subgraph_errors.of_subgraph("any"),
        ErrorPolicy::Include { .. }
    ));
}

#[test]
fn a_subgraph_adds_to_the_keys_of_all() {
    let config = config(
        "include_subgraph_errors:\n  all: {redact_message: true, allow_extensions_keys: [code, trace]}\n  subgraphs:\n    a: {exclude_global_keys: [trace], allow_extensions_keys: [service]}\n    b: false\n    c: {redact_message: false, deny_extensions_keys: [x]}\n",
    );
    let of = |name| config.include_subgraph_errors.of_subgraph(name);
    let only =
        |keys: &[&str]| ExtensionKeys::Only(keys.iter().map(|key| (*key).to_owned()).collect());
    assert_eq!(
        of("other"),
        ErrorPolicy::Include {
            redact_message: true,
            extensions: only(&["code", "trace"]),
        }
    );
    assert_eq!(
        of("a"),
        ErrorPolicy::Include {
            redact_message: true,
            extensions: only(&["code", "service"]),
        }
    );
    assert_eq!(of("b"), ErrorPolicy::Redact);
    assert_eq!(
        of("c"),
        ErrorPolicy::Include {
            redact_message: false,
            extensions: ExtensionKeys::Except(vec!["x".to_owned()]),
        }
    );
}

#[test]
fn shaping_of_a_subgraph_wins_key_by_key() {
    let config = config(
        "traffic_shaping:\n  all: {timeout: 50s, deduplicate_query: true, compression: br}\n  subgraphs: {a: {timeout: 250ms, compression: gzip}, c: {compression: identity}}\n",
    );
    let a = config.traffic_shaping.of_subgraph("a");
    assert_eq!(a.timeout, Some(std::time::Duration::from_millis(250)));
    assert_eq!(a.compression, Some(Compression::Gzip));
    assert!(a.deduplicate_query);
    let b = config.traffic_shaping.of_subgraph("b");
    assert_eq!(b.timeout, Some(std::time::Duration::from_secs(50)));
    assert_eq!(b.compression, Some(Compression::Br));
    assert_eq!(config.traffic_shaping.of_subgraph("c").compression, None);
}

#[test]
fn origins_of_version_1_become_one_policy() {
    let config = config("cors: {origins: ['https://a.example'], match_origins: ['^https://b']}");
    let policies = config.cors.effective_policies();
    assert_eq!(policies.len(), 1);
    assert_eq!(policies[0].origins[0].0.0, "https://a.example");
    assert!(policies[0].match_origins[0].is_match("https://b.example"));
}

#[test]
fn the_admin_secret_is_not_empty() {
    assert_snapshot!(mistakes("session_variables: {admin_secret: ''}\n"), @r"
    error: the admin secret is empty, so an empty header would make any client an administrator: give it a value, or remove the key
     --> router.yaml:1:21
      |
    1 | session_variables: {admin_secret: ''}
      |                     ^^^^^^^^^^^^
    ");
}

#[test]
fn broken_yaml_has_a_line() {
    assert_snapshot!(mistakes("a: 1\nb: [1, 2\nc: 3\n"), @r"
    error: this is not YAML: illegal placement of ':' indicator
     --> router.yaml:3:2
      |
    3 | c: 3
      |  ^
    ");
    assert_snapshot!(mistakes("cors: {}\ncors: {}\n"), @"
    error: the key `cors` is here twice
     --> router.yaml:2:1
      |
    1 | cors: {}
      | ---- first here
    2 | cors: {}
      | ^^^^ and again here
      |
      = help: keep one of the two
    ");
}

#[test]
fn the_seed_s_files_are_understood() {
    for text in [
        "supergraph:\n  listen: 0.0.0.0:4040\n  path: /\n  introspection: true\ninclude_subgraph_errors:\n  all: true\nheaders:\n  all:\n    request:\n      - insert:\n          name: \"source\"\n          value: \"config\"\n",
        "supergraph: {listen: 0.0.0.0:4040}\ncors:\n  allow_headers: []\nrhai:\n  scripts: ./rhai\n",
        "coprocessor:\n  timeout: 30s\n  url: ${env.COPROCESSOR}/static-subgraph\n  subgraph:\n    all:\n      request:\n        headers: true\n",
        "authentication: {router: {jwt: {header_name: authentication, jwks: [{url: 'file:///k.json', algorithms: [HS256]}]}}}\n",
    ] {
        config(text);
    }
}

#[test]
fn values_of_the_keys_of_merged_schemas_are_checked() {
    let text = r#"types: |
  type product { id: uuid! }
  interface thing { id: ID }
  input wish { of: product }
remote_schemas:
  - {name: a, url: 'http://a', timeout: 5, customization: {root_fields_namespace: '1'}}
  - {name: a, url: 'http://a', header: []}
actions:
  - name: product
    output_type: '[products'
    handler: http://h
    request_transform: {version: 1, url: '{{$body.input'}
  - name: product
    output_type: wish
    arguments: [{name: x, type: product}]
    handler: http://h
    response_transform: {body: {action: transform}}
"#;
    assert_snapshot!(mistakes(text), @r#"
        error: expected a time such as `30s`, `250ms` or `1h 5s`, found `5`
         --> router.yaml:6:41
          |
        6 |   - {name: a, url: 'http://a', timeout: 5, customization: {root_fields_namespace: '1'}}
          |                                         ^

        error: expected a GraphQL name: letters, digits and `_`, not `__` in front; found `1`
         --> router.yaml:6:83
          |
        6 |   - {name: a, url: 'http://a', timeout: 5, customization: {root_fields_namespace: '1'}}
          |                                                                                   ^^^

        error: unknown key `header`
         --> router.yaml:7:32
          |
        7 |   - {name: a, url: 'http://a', header: []}
          |                                ^^^^^^
          |
          = help: did you mean `headers`?

        error: expected a GraphQL type such as `Int`, `uuid!` or `[product!]!`, found `[products`
          --> router.yaml:10:18
           |
        10 |     output_type: '[products'
           |                  ^^^^^^^^^^^

        error: expected at least 2, found `1`
          --> router.yaml:12:34
           |
        12 |     request_transform: {version: 1, url: '{{$body.input'}
           |                                  ^

        error: the template is wrong at line 1, column 14: expected `}}`
          --> router.yaml:12:42
           |
        12 |     request_transform: {version: 1, url: '{{$body.input'}
           |                                          ^^^^^^^^^^^^^^^
        "#);
}

#[test]
fn names_that_lead_nowhere_are_told_with_their_lines() {
    let text = r#"types: |
  type product { id: uuid! }
  interface thing { id: ID }
  input wish { of: product }
actions:
  - {name: product, output_type: wish, arguments: [{name: x, type: product}], handler: 'http://h', response_transform: {body: {action: transform}}}
  - {name: product, output_type: product, handler: 'http://h', response_transform: {body: {action: x_www_form_urlencoded}}}
query_collections:
  - name: all
    queries: [{name: q, query: 'query ($a: Int) { product(id: $a) { id } }'}]
rest_endpoints:
  - {name: one, url: 'x/:b', methods: [GET], query: {collection_name: all, query_name: q}}
  - {name: two, url: 'x', methods: [GET], query: {collection_name: none, query_name: q}}
  - {name: two, url: 'x', methods: [GET], query: {collection_name: all, query_name: r}}
"#;
    assert_snapshot!(told(text), @r"
    1:1 `thing` is an interface, which an action cannot return
    1:1 the type `product`: `uuid` is not defined in `types`
    1:1 the type `wish`: `product` is an object; arguments take an `input`
    6:34 `wish` is an `input`, which nothing can return
    6:51 the argument `x`: `product` is an object; arguments take an `input`
    6:127 `transform` needs a `template`
    7:12 the name `product` is in `actions` twice
    7:91 an answer cannot become a form: write `transform` or `remove`
    12:22 the query `q` declares no variable `$b`
    13:68 there is no query collection `none`
    14:12 the name `two` is in `rest_endpoints` twice
    14:85 the collection `all` has no query `r`
    ");
}

#[test]
fn a_stored_mutation_is_not_for_get() {
    let endpoint = |methods: &str| {
        format!(
            "query_collections: [{{name: a, queries: [{{name: q, query: 'mutation {{ a }}'}}]}}]\nrest_endpoints: [{{name: e, url: x, methods: {methods}, query: {{collection_name: a, query_name: q}}}}]\n"
        )
    };
    let wrong = "2:45 the query `q` is a mutation, which GET must not carry out";
    assert_eq!(told(&endpoint("[POST, GET]")), wrong);
    assert_eq!(mistakes(&endpoint("[POST, DELETE]")), "none");
}

#[test]
fn scripts_have_limits_that_can_be_changed_but_not_left_out() {
    let limits = |text: &str| config(text).rhai.unwrap().limits;
    let usual = limits("rhai: {scripts: rhai}");
    assert_eq!(usual.timeout.0, std::time::Duration::from_secs(1));
    assert_eq!(usual.max_operations.get(), 10_000_000);
    let own = limits("rhai: {limits: {max_string_size: 1MiB, max_map_size: 0}}");
    assert_eq!((own.max_string_size.0.0, own.max_map_size), (1 << 20, 0));
    let zero = "rhai: {limits: {timeout: 0s}}";
    assert_eq!(told(zero), "1:17 expected a time above zero");
    assert_ne!(mistakes("rhai: {limits: {max_operations: 0}}"), "none");
    assert_ne!(mistakes("rhai: {limits: {max_call_depth: 0}}"), "none");
}

#[test]
fn stored_queries_hold_one_operation() {
    let with = |query: &str| {
        mistakes(&format!(
            "query_collections: [{{name: a, queries: [{{name: q, query: '{query}'}}]}}]\n"
        ))
    };
    assert_eq!(with("{ a }"), "none");
    for query in [
        "{ a } query B { b }",
        "subscription { a }",
        "{ a",
        "fragment F on Q { a }",
    ] {
        let told = with(query);
        assert!(told.contains("router.yaml:1:"), "{told}");
    }
}

#[test]
fn every_key_of_the_schema_is_described() {
    fn look(schema: &serde_json::Value) {
        if let Some(properties) = schema["properties"].as_object() {
            for (key, property) in properties {
                let is_described = property.get("description").is_some()
                    || property.get("$ref").is_some()
                    || property.get("allOf").is_some();
                assert!(is_described, "{key} in {schema}");
            }
        }
        match schema {
            serde_json::Value::Object(members) => members.values().for_each(look),
            serde_json::Value::Array(items) => items.iter().for_each(look),
            _ => {}
        }
    }
    look(&schema());
}

#[test]
fn the_committed_schema_is_the_schema() {
    generated::assert_schema("gateway", &schema());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z:{}\\[\\] \\n$.\\-\"'&*|>0-9]{0,80}") {
        let _ = read(Path::new("r.yaml"), &text, &table(), false);
    }
}
