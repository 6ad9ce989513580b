use std::collections::HashMap;
use std::path::Path;

use insta::assert_snapshot;

use super::*;

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
fn a_stage_is_on_as_soon_as_a_key_differs_from_its_default() {
    let config = config(
        "coprocessor:\n  url: http://localhost:1\n  router: {request: {headers: true}, response: {headers: false}}\n  supergraph: {request: {}, response: {body: {errors: true}}}\n  execution: {response: {condition: {exists: {response_header: x-a}}}}\n  subgraph: {all: {request: {url: 'unix:///s?path=/p', context: {selective: [a]}}}}\n",
    );
    let coprocessor = config.coprocessor.unwrap();
    assert!(coprocessor.router.request.unwrap().headers);
    assert!(coprocessor.router.response.is_none());
    assert!(coprocessor.supergraph.request.is_none());
    let body = coprocessor.supergraph.response.unwrap().body;
    let only_errors = BodyParts::Selected {
        data: false,
        errors: true,
        extensions: false,
    };
    assert_eq!(body, only_errors);
    assert!(coprocessor.execution.response.unwrap().condition.is_some());
    let stage = coprocessor.subgraph.request.unwrap();
    assert_eq!(stage.context, ContextParts::Selective(vec!["a".to_owned()]));
    let unix = ServiceAddress::Unix {
        socket: "/s".into(),
        path: "/p".to_owned(),
    };
    assert_eq!(stage.url, Some(unix));
}

#[test]
fn a_switch_of_another_stage_is_an_unknown_key() {
    assert_snapshot!(mistakes("coprocessor:\n  url: http://localhost:1\n  router: {request: {service_name: true}}\n  subgraph: {planets: {request: {headers: true}}}\n"), @r"
    error: unknown key `service_name`
     --> router.yaml:3:22
      |
    3 |   router: {request: {service_name: true}}
      |                      ^^^^^^^^^^^^
      |
      = help: the keys here are body, condition, context, headers, method, path, sdl, url

    error: unknown key `planets`
     --> router.yaml:4:14
      |
    4 |   subgraph: {planets: {request: {headers: true}}}
      |              ^^^^^^^
      |
      = help: the keys here are all
    ");
}

#[test]
fn conditions_nest_and_name_their_selectors() {
    let text = "coprocessor: {url: 'http://h', router: {request: {condition: {all: [{eq: [{request_header: x-a, default: none}, b]}, {not: {gt: [{env: N}, 3]}}, true]}}}}";
    let condition = config(text)
        .coprocessor
        .unwrap()
        .router
        .request
        .unwrap()
        .condition;
    let header = Selector {
        source: SelectorSource::RequestHeader(http::HeaderName::from_static("x-a")),
        default: Some("none".into()),
        redact: None,
    };
    let environment = Selector {
        source: SelectorSource::Environment("N".to_owned()),
        default: None,
        redact: None,
    };
    let expected = Condition::All(vec![
        Condition::Equal(Operand::Selector(header), Operand::Literal("b".into())),
        Condition::Not(Box::new(Condition::Greater(
            Operand::Selector(environment),
            Operand::Literal(3.into()),
        ))),
        Condition::Always(true),
    ]);
    assert_eq!(condition, Some(expected));
}

#[test]
fn wrong_conditions_say_what_is_expected() {
    assert_snapshot!(mistakes("coprocessor:\n  url: http://h\n  router:\n    request:\n      condition: {eq: [{requst_header: x-a}, b]}\n    response:\n      condition: {eq: [1], exists: {env: X}}\n"), @"
    error: unknown key `requst_header`
     --> router.yaml:5:25
      |
    5 |       condition: {eq: [{requst_header: x-a}, b]}
      |                         ^^^^^^^^^^^^^
      |
      = help: did you mean `request_header`?

    error: expected exactly one of `all` or `any` or `eq` or `exists` or `gt` or `lt` or `not`, found `eq` and `exists`
     --> router.yaml:7:7
      |
    7 |       condition: {eq: [1], exists: {env: X}}
      |       ^^^^^^^^^

    error: expected a list of 2 values, found 1
     --> router.yaml:7:23
      |
    7 |       condition: {eq: [1], exists: {env: X}}
      |                       ^^^
    ");
    assert_snapshot!(mistakes("coprocessor:\n  url: http://h\n  router:\n    request:\n      condition: {exists: {response_header: x-a}}\n"), @r"
    error: the condition of a request stage cannot look at the response
     --> router.yaml:5:7
      |
    5 |       condition: {exists: {response_header: x-a}}
      |       ^^^^^^^^^
    ");
}

#[test]
fn a_condition_cannot_read_messages_that_its_stage_lacks() {
    for (stages, message) in [
        (
            "router: {request: {condition: {exists: {query: string}}}}",
            "the router does not know",
        ),
        (
            "router: {request: {condition: {exists: {response_data: '$.a'}}}}",
            "cannot look at the response",
        ),
        (
            "supergraph: {request: {condition: {exists: {subgraph_name: true}}}}",
            "only the subgraph stage",
        ),
        (
            "execution: {response: {condition: {exists: {subgraph_query: string}}}}",
            "only the subgraph stage",
        ),
        (
            "subgraph: {all: {response: {condition: {exists: {subgraph_query: string}}}}}",
            "does not have the request",
        ),
        (
            "router: {response: {condition: {exists: {error: reason}}}}",
            "conditions do not support it",
        ),
    ] {
        let text = format!("coprocessor: {{url: 'http://h', {stages}}}\n");
        let mistakes = mistakes(&text);
        assert!(mistakes.contains(message), "{stages}: {mistakes}");
    }
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
fn patterns_that_fit_longer_origins_are_warned_about() {
    let text = r"cors:
  policies:
    - match_origins: ['^https://shop\.example$', '^https://shop\.example']
    - match_origins:
        - '^https://(a|b$)'
        - '\.shop\.example(:\d+)?$'
        - '(?m)example$'
";
    let warned = |text| {
        read(Path::new("r.yaml"), text, &table(), false)
            .unwrap()
            .warnings
    };
    assert_snapshot!(warned(text).join("\n"), @r"
    line 3: `^https://shop\.example` also fits longer origins, which may belong to another site; end it with `$`
    line 5: `^https://(a|b$)` also fits longer origins, which may belong to another site; end it with `$`
    ");
    let version_1 = warned("cors: {match_origins: ['^https://b', 'c$']}");
    assert_eq!(version_1.len(), 1, "{version_1:?}");
    assert!(
        version_1[0].starts_with("line 1: `^https://b` "),
        "{version_1:?}"
    );
    assert!(warned("cors: {policies: [{origins: ['https://a.example']}]}").is_empty());
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
fn header_rules_without_effect_are_said() {
    let text = r"
headers:
  all:
    request:
      - propagate: {matching: '^GraphStore-.*'}
      - propagate: {matching: '(?i)^GraphStore-.*'}
      - propagate: {matching: '^(x-a|X-B)$'}
      - remove: {matching: '[A-Z]+x'}
      - propagate: {named: X-Own}
      - propagate: {named: host}
      - propagate: {named: host, rename: x-host}
      - remove: {named: Content-Length}
      - insert: {name: te, value: trailers}
  subgraphs:
    a:
      response:
        operations: [{propagate: {matching: 'X-.*'}}]
        masking: {replace_defaults: true}
";
    let reading = read(Path::new("r.yaml"), text, &table(), false).unwrap();
    assert_snapshot!(reading.warnings.join("\n"), @r"
    `headers.all`: `^GraphStore-.*` matches no header, because names are in lower case: write `(?i)^GraphStore-.*`
    `headers.all`: `[A-Z]+x` matches no header, because names are in lower case: write `(?i)[A-Z]+x`
    `headers.all`: a rule for `host` has no effect, because the gateway writes this header itself: remove the rule
    `headers.all`: a rule for `content-length` has no effect, because the gateway writes this header itself: remove the rule
    `headers.all`: a rule for `te` has no effect, because the gateway writes this header itself: remove the rule
    `headers.subgraphs.a`: `X-.*` matches no header, because names are in lower case: write `(?i)X-.*`
    `headers.subgraphs.a.response.masking` masks no header, so telemetry shows credentials: remove `replace_defaults`, or name headers in `sensitive_headers`
    ");
}

#[test]
fn keys_without_effect_are_said_with_their_lines() {
    let text = "homepage:\n  graph_ref: a@b\nsupergraph: {generate_query_fragments: false}\n";
    let reading = read(Path::new("r.yaml"), text, &table(), false).unwrap();
    assert_snapshot!(reading.warnings.join("\n"), @r"
    line 2: `homepage.graph_ref` has no effect here: the homepage has no links
    line 3: `supergraph.generate_query_fragments` has no effect here: the query planner decides about fragments
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
fn endpoints_that_both_fit_are_warned_about() {
    let text = r#"query_collections: [{name: a, queries: [{name: q, query: 'query ($x: ID) { a(x: $x) }'}]}]
rest_endpoints:
  - {name: one, url: '/p/:x/', methods: [GET, PUT], query: {collection_name: a, query_name: q}}
  - {name: two, url: p/all, methods: [PUT], query: {collection_name: a, query_name: q}}
  - {name: three, url: p/all, methods: [POST], query: {collection_name: a, query_name: q}}
"#;
    let reading = read(Path::new("router.yaml"), text, &table(), false).unwrap();
    assert_eq!(reading.warnings.len(), 1, "{:?}", reading.warnings);
    assert!(
        reading.warnings[0].starts_with("line 4: "),
        "{:?}",
        reading.warnings
    );
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
