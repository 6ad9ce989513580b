//! Tests of Artillery tests, most of them in files of their own.

use super::*;

const SHOP: &str = "\
config:
  target: https://shop.example/v1/
  phases: [{duration: 60, arrivalRate: 5}]
  variables: {kind: 'te\"a', size: [small, large]}
  http: {defaults: {headers: {Accept: application/json}}}
scenarios:
  - name: browse
    weight: 3
    flow:
      - get: {url: '/items?kind=tea', qs: {page: 1, tags: [a, b]}}
      - think: 2
      - loop:
          - get: {url: /items/7, headers: {Authorization: Bearer x, accept: text/html}}
        count: 2
      - get: {url: '/items?size={{ size }}'}
      - get: {url: '/items/{{ id }}'}
  - name: order
    flow:
      - post: {url: /orders, json: {item: 7, note: '{{ kind }}'}, capture: {json: $.id, as: order}}
      - delete: {url: '/orders/1'}
      - get: {url: 'https://elsewhere.example/'}
  - engine: ws
    flow: [{send: hello}]
";

fn read_text(text: &str) -> Requests {
    read(Path::new("shop.yaml"), text, None, false).expect("a test")
}

#[test]
fn what_is_known_beforehand_becomes_requests_and_the_rest_is_named() {
    let requests = read_text(SHOP);
    insta::assert_snapshot!(requests.load(), @r#"
    # Omitted because they may be secret: Authorization.
    # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
    #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
    # The values of shop.yaml.
    data: {file: data.csv, order: random}
    # From shop.yaml, in rotation.
    requests:
      - name: "GET /v1/items?page=1&tags=a&tags=b"
        method: "GET"
        path: "/v1/items?page=1&tags=a&tags=b"
        headers:
          "Accept": "application/json"
        weight: 3
      - name: "GET /v1/items/7"
        method: "GET"
        path: "/v1/items/7"
        headers:
          "accept": "text/html"
        weight: 6
      - name: "GET /v1/items?size={{size}}"
        method: "GET"
        path: "/v1/items?size={{size}}"
        headers:
          "Accept": "application/json"
        weight: 3
      - name: "POST /v1/orders"
        method: "POST"
        path: "/v1/orders"
        headers:
          "Accept": "application/json"
          "Content-Type": "application/json"
        body: "requests/4.json"
      # Left out:
      # - line 22: scenario 3: its engine is `ws` and not HTTP
      # - browse: think: the load defines the times of requests
      # - line 16: browse: get /items/{{ id }}: `id` is known only at run time
      # - line 20: order: delete /orders/1: the next request would not find the deleted object
      # - line 21: order: get https://elsewhere.example/: it goes to another server
      # - config.phases: keys of the lab define this
    "#);
    assert_eq!(
        requests.texts(),
        [r#"{"item":7,"note":"te\"a"}"#, "size\nsmall\nlarge\n"]
    );
}

#[test]
fn merge_keys_and_nulls_are_read_as_artillery_reads_them() {
    let requests = read_text(include_str!("../fixtures/artillery/merge-body.yml"));
    assert_eq!(
        requests.texts(),
        [r#"{"count":2,"coupon":null,"gift":null,"note":"hello","sku":"tea"}"#]
    );
    let text = requests.load();
    assert!(text.contains("path: \"/merged?a=1\""), "{text}");
    assert!(text.contains("\"X-A\": \"1\""), "{text}");
    assert!(text.contains("\"Accept\": \"application/json\""), "{text}");
}

#[test]
fn a_variable_alone_keeps_its_type() {
    let requests = read_text(include_str!("../fixtures/artillery/types.yml"));
    assert_eq!(
        requests.texts(),
        [r#"{"kind":"tea","limit":5,"many":3,"nested":{"list":[5]},"on":true,"text":"n 5"}"#]
    );
    assert!(requests.load().contains("path: \"/search?limit=5\""));
}

#[test]
fn a_token_of_before_makes_a_scenario() {
    let requests = read_text(include_str!("../fixtures/artillery/bearer.yml"));
    assert_eq!(requests.counts(), (3, 3));
    insta::assert_snapshot!(requests.load(), @r#"
    # The steps of `before` run in each iteration, because they capture values.
    # From shop.yaml, one after another. An iteration sends all of them.
    scenario:
      # its body contains `password` from shop.yaml
      - name: "POST /login"
        method: "POST"
        path: "/login"
        headers:
          "Content-Type": "application/json"
        body: "requests/1.json"
        capture:
          "token": {json: "/token"}
      - name: "POST /boards"
        method: "POST"
        path: "/boards"
        headers:
          "authorization": "Bearer {{token}}"
          "Content-Type": "application/json"
        body: "requests/2.json"
      - name: "GET /boards"
        method: "GET"
        path: "/boards"
        headers:
          "authorization": "Bearer {{token}}"
    "#);
    let several = read_text(include_str!("../fixtures/artillery/before.yml"));
    assert_eq!(several.counts(), (4, 5));
    let summary = several.summary();
    assert!(
        summary.contains("line 11: after: POST /logout: it is sent once, after the load"),
        "{summary}"
    );
    assert!(
        summary.contains("config.environments: choose one with --artillery-env: staging"),
        "{summary}"
    );
}

#[test]
fn scenarios_with_captured_values_follow_each_other() {
    let text = "config: {target: 'http://x'}\nscenarios:\n  - {name: a, weight: 20, flow: [{post: {url: /in, capture: {json: $.t, as: t}}}, {get: {url: '/a/{{ t }}'}}]}\n  \
                - {name: b, weight: 10, flow: [{post: {url: /in, capture: {json: $.u.t, as: t}}}, {get: {url: '/b/{{ t }}'}}]}\n";
    let requests = read_text(text);
    assert_eq!(requests.counts(), (4, 4));
    let load = requests.load();
    assert_eq!(load.matches("path: \"/a/{{raw:t}}\"").count(), 2, "{load}");
    assert_eq!(load.matches("path: \"/b/{{raw:t}}\"").count(), 1, "{load}");
    assert!(load.contains("An iteration runs all scenarios"), "{load}");
    let heavy = text
        .replace("weight: 20", "weight: 77")
        .replace("weight: 10", "weight: 3");
    let load = read_text(&heavy).load();
    assert_eq!(load.matches("path: \"/a/{{raw:t}}\"").count(), 1, "{load}");
    assert!(
        load.contains("Each scenario runs once, without its weight."),
        "{load}"
    );
}

#[test]
fn an_environment_changes_the_configuration() {
    let text = include_str!("../fixtures/artillery/before.yml");
    let tree = Tree::read("x.yml", text, false).expect("YAML");
    let config = config(&tree.root, Some("staging")).expect("an environment");
    assert_eq!(config["target"], "https://staging.shop.example");
    assert!(config.contains_key("phases"));
    let refused = read(Path::new("x.yml"), text, Some("live"), false).unwrap_err();
    assert!(
        refused.contains("found `live`. It has staging"),
        "{refused}"
    );
}

#[test]
fn expected_statuses_are_those_of_the_plugin() {
    let text = read_text(include_str!("../fixtures/artillery/expect.yml")).load();
    assert!(
        text.contains("\"/gone\"\n      expect: {status: 404, same-as: baseline}"),
        "{text}"
    );
    assert!(
        text.contains("\"/moved\"\n      expect: {status: 302, same-as: baseline}"),
        "{text}"
    );
    assert!(
        text.contains("\"/ok\"\n      expect: {status: [200, 201], same-as: baseline}"),
        "{text}"
    );
    assert!(text.contains("# without its checks: contentType"), "{text}");
}

#[test]
fn urls_are_those_of_the_engine() {
    let requests = read_text(include_str!("../fixtures/artillery/uri.yml"));
    insta::assert_snapshot!(requests.load(), @r#"
    # From shop.yaml, in rotation.
    requests:
      - name: "GET /api/by-uri"
        method: "GET"
        path: "/api/by-uri"
      - name: "POST /api/p"
        method: "POST"
        path: "/api/p"
        headers:
          "Content-Type": "application/json"
        body: "requests/2.json"
      - name: "POST /api/raw"
        method: "POST"
        path: "/api/raw"
        headers:
          "content-type": "application/json"
        body: "requests/3.json"
      - name: "GET /abs"
        method: "GET"
        path: "/abs"
      - name: "GET /api/abs2"
        method: "GET"
        path: "/api/abs2"
      - name: "GET /api/q?x=a%20b&y=%C3%BC"
        method: "GET"
        path: "/api/q?x=a%20b&y=%C3%BC"
      # Left out:
      # - line 5: scenario 1: get : it has no URL
      # - line 11: scenario 1: get no-slash: its URL has neither a server nor a `/` at its beginning
    "#);
    assert_eq!(
        requests.texts(),
        [
            r#"{"empty":null,"no":"off","when":"2026-01-02","yes":"yes"}"#,
            r#"{"a":1}"#
        ]
    );
    assert_eq!(requests.counts(), (6, 8));
    let hidden = read_text(include_str!("../fixtures/artillery/userinfo.yml")).load();
    assert!(hidden.contains("may be secret: Authorization"), "{hidden}");
    assert!(hidden.contains("path: \"/api/a\""), "{hidden}");
    let split = read_text(include_str!("../fixtures/artillery/split.yml"));
    assert_eq!(split.counts(), (1, 1));
}

#[test]
fn weights_keep_their_proportion() {
    let text = read_text(include_str!("../fixtures/artillery/weights.yml")).load();
    assert!(text.contains("path: \"/half\"\n    - name"), "{text}");
    assert!(text.contains("path: \"/three\"\n      weight: 6"), "{text}");
    assert!(text.contains("path: \"/two\"\n      weight: 4"), "{text}");
    assert!(
        text.contains("# - c: its weight is 0, so it never runs"),
        "{text}"
    );
    assert!(!text.contains("/zero"), "{text}");
}

#[test]
fn loops_and_parallel_steps_are_walked() {
    let requests = read_text(
        "config: {target: 'http://x', variables: {ids: [[7, 8]]}}\nscenarios:\n  - flow:\n      \
         - loop: [{get: {url: '/items/{{ $loopElement }}'}}]\n        over: [a, {b: 1}]\n      \
         - loop: [{get: {url: '/ids/{{ $loopElement }}'}}]\n        over: ids\n      \
         - loop: [{get: {url: '/pages/{{ $loopCount }}'}}]\n        count: '1-3'\n      \
         - loop: [{get: {url: /same}}]\n        count: 3\n      \
         - parallel: [{get: {url: /p}}, {get: {url: '/r/{{ $randomNumber(1, 9) }}'}}]\n      \
         - loop: [{get: {url: /w}}]\n        whileTrue: more\n      \
         - get: {url: /kept, name: 'the name', probability: 20, tls: {}}\n",
    );
    let text = requests.load();
    for path in [
        "/items/a",
        "/items/%7B%22b%22:1%7D",
        "/ids/7",
        "/ids/8",
        "/pages/1",
        "/pages/2",
        "/p",
        "/r/{{random:1..9}}",
    ] {
        assert!(
            text.contains(&format!("path: \"{path}\"")),
            "{path}\n{text}"
        );
    }
    assert!(
        !text.contains("/pages/3") && !text.contains("/pages/0"),
        "{text}"
    );
    assert!(text.contains("path: \"/same\"\n      weight: 3"), "{text}");
    assert!(
        text.contains("sent always, without its probability"),
        "{text}"
    );
    assert!(text.contains("without its `tls`"), "{text}");
    assert!(
        text.contains("scenario 1: loop: the number of turns is known only at run time"),
        "{text}"
    );
}

#[test]
fn variables_in_variables_are_replaced() {
    let requests = read_text(
        "config: {target: 'http://x', variables: {a: 'v-{{ b }}', b: '{{ $randomString(3) }}', c: '{{ d }}', d: '{{ c }}'}}\n\
         scenarios: [{flow: [{get: {url: '/{{ a }}'}}, {get: {url: '/{{ c }}'}}]}]\n",
    );
    let text = requests.load();
    assert!(text.contains("path: \"/v-{{random:100..999}}\""), "{text}");
    assert!(text.contains("refers to itself"), "{text}");
}

#[test]
fn rows_of_a_file_become_data() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("users.csv"),
        "user,age\nann,7\n\"b, c\",8\n",
    )
    .expect("a file");
    let path = folder.path().join("x.yml");
    let text = "config:\n  target: http://x\n  payload: {path: users.csv, fields: [name, age], skipHeader: true, order: sequence}\n\
                scenarios: [{flow: [{post: {url: '/u/{{ name }}', json: {age: '{{ age }}', both: '{{ name }} {{ age }}'}}}]}]\n";
    let requests = read(&path, text, None, false).expect("a test");
    assert_eq!(
        requests.texts(),
        ["name-value,age,name-value-in-path\nann,7,ann\n\"b, c\",8,\"b,%20c\"\n"]
    );
    let load = requests.load();
    assert!(load.contains("data: data.csv\n"), "{load}");
    assert!(
        load.contains("path: \"/u/{{raw:name-value-in-path}}\""),
        "{load}"
    );
    assert!(
        load.contains(r#"json: {"age":"{{age}}","both":"{{name-value}} {{age}}"}"#),
        "{load}"
    );
    let begin = text.replace("'/u/{{ name }}'", "'{{ name }}'");
    let summary = read(&path, &begin, None, false).expect("a test").summary();
    assert!(
        summary.contains(
            "its path begins with `name-value`, and the value `ann` does not begin with `/`"
        ),
        "{summary}"
    );
    let missing = text.replace("users.csv", "other.csv");
    let summary = read(&path, &missing, None, false)
        .expect("a test")
        .summary();
    assert!(
        summary.contains("`name` comes from `other.csv`: it cannot be read"),
        "{summary}"
    );
}

#[test]
fn loops_in_loops_cost_nothing_and_other_files_are_refused() {
    let mut flow = "{get: {url: /}}".to_owned();
    for _ in 0..20 {
        flow = format!("{{loop: [{flow}], count: 1000000000}}");
    }
    let text = format!("config: {{target: 'http://x'}}\nscenarios: [{{flow: [{flow}]}}]");
    let requests = read_text(&text);
    assert!(requests.is_empty());
    assert!(requests.summary().contains("too deep"));
    let refused = |name: &str, text: &str| {
        read(Path::new(name), text, None, false)
            .map(|_| ())
            .unwrap_err()
    };
    assert!(refused("x", "a: b").contains("a list of `scenarios`"));
    assert!(refused("x", "a: [").contains("it has mistakes"));
    let script = include_str!("../fixtures/artillery/script.js");
    assert!(refused("script.js", script).contains("found a script"));
}

#[test]
fn a_credential_without_a_value_is_hidden_and_its_request_stays() {
    let requests = read_text(
        "config: {target: 'http://x', http: {defaults: {headers: {Authorization: 'Bearer {{ other }}'}}}}\n\
         scenarios: [{beforeRequest: login, flow: [{get: {url: /a, headers: {x-auth-token: '{{ t }}'}}}, \
         {get: {url: /b, headers: {x-user: '{{ t }}'}}}]}]",
    );
    assert_eq!(requests.counts(), (1, 2));
    let summary = requests.summary();
    assert!(
        summary.contains("Omitted because they may be secret: x-auth-token, Authorization."),
        "{summary}"
    );
    assert!(
        summary.contains("get /b: `t` is known only at run time"),
        "{summary}"
    );
}
