//! Tests of collections.

use serde_json::json;

use super::*;

fn read_json(collection: &Value, environment: Option<&Path>) -> Requests {
    let text = serde_json::to_string_pretty(&collection).expect("JSON");
    read(Path::new("shop.json"), &text, environment, None).expect("a collection")
}

#[test]
fn a_login_a_folder_and_their_values_become_a_scenario() {
    let collection = json!({
        "info": {"name": "shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
        "variable": [{"key": "host", "value": "shop.example"}, {"key": "base", "value": "https://{{host}}/v1"}, {"key": "off", "value": "x", "disabled": true}],
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}", "type": "string"}]},
        "item": [
            {"name": "log in", "request": {
                "method": "POST", "auth": {"type": "noauth"},
                "header": [{"key": "X-A", "value": "1"}, {"key": "X-B", "value": "2", "disabled": true}],
                "body": {"mode": "raw", "raw": "{\"user\": \"ann\"}", "options": {"raw": {"language": "json"}}},
                "url": {"raw": "{{base}}/login", "host": ["{{base}}"], "path": ["login"]}},
             "event": [{"listen": "test", "script": {"exec": ["pm.test('ok', () => {", "  pm.response.to.have.status(201);", "});", "pm.environment.set(\"token\", pm.response.json().token);"]}}]},
            {"name": "boards", "item": [
                {"name": "one", "request": {"method": "GET",
                    "url": {"raw": "{{base}}/boards/:id?page=1&q=a b&x=1", "query": [{"key": "page", "value": "1"}, {"key": "q", "value": "a b"}, {"key": "x", "value": "1", "disabled": true}],
                            "variable": [{"key": "id", "value": "7/8"}]}},
                 "response": [{"name": "gone", "code": 404}]},
                {"name": "random", "request": {"method": "POST", "url": "{{base}}/boards",
                    "body": {"mode": "urlencoded", "urlencoded": [{"key": "n", "value": "{{$randomInt}}"}, {"key": "id", "value": "{{$guid}}"}]}}},
                {"name": "now", "request": {"method": "GET", "url": "{{base}}/at/{{$timestamp}}"}},
                {"name": "open", "request": {"method": "GET", "url": "{{base}}/at/:when"}},
                {"name": "off", "request": {"method": "GET", "url": "{{base}}/{{off}}"}},
            ]},
        ],
    });
    let requests = read_json(&collection, None);
    insta::assert_snapshot!(requests.load(), @r#"
    # Each step draws random numbers of its own, also within one iteration.
    # From shop.json, one after another. An iteration sends all of them.
    scenario:
      - name: "log in"
        method: "POST"
        path: "/v1/login"
        headers:
          "X-A": "1"
          "Content-Type": "application/json"
        body: "requests/1.json"
        expect: {status: 201}
        capture:
          "token": {json: "/token"}
      - name: "boards / one"
        method: "GET"
        path: "/v1/boards/7%2F8?page=1&q=a%20b"
        headers:
          "Authorization": "Bearer {{token}}"
        expect: {status: 404}
      - name: "boards / random"
        method: "POST"
        path: "/v1/boards"
        headers:
          "Authorization": "Bearer {{token}}"
          "Content-Type": "application/x-www-form-urlencoded"
        body: "requests/3.body"
      # Left out:
      # - line 126: boards / now: `$timestamp` is made for each request
      # - line 133: boards / open: its path variable `:when` has no value
      # - line 140: boards / off: `off` has no value. `--postman-env FILE` reads an environment
    "#);
    assert_eq!(requests.counts(), (3, 6));
    assert_eq!(
        requests.texts(),
        [
            "{\"user\": \"ann\"}",
            "n={{random:0..1000}}&id=7b2a4c10-5d3e-4f6a-8b9c-{{random:100000000000..999999999999}}"
        ]
    );
}

#[test]
fn bodies_of_each_mode_are_those_of_postman() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.png"), [0_u8, 255]).expect("a file");
    let item = |name: &str, body: Value| json!({"name": name, "request": {"method": "POST", "url": format!("http://h/{name}"), "body": body}});
    let collection = json!({"item": [
        item("graphql", json!({"mode": "graphql", "graphql": {"query": "{ a }", "variables": "{\"n\": 1}"}})),
        item("form", json!({"mode": "formdata", "formdata": [
            {"key": "a", "value": "1", "type": "text"}, {"key": "f", "type": "file", "src": "a.png"},
            {"key": "b", "value": "2", "disabled": true}]})),
        item("file", json!({"mode": "file", "file": {"src": "a.png"}})),
        item("missing", json!({"mode": "file", "file": {"src": "b.png"}})),
        json!({"name": "pruned", "request": {"method": "GET", "url": "http://h/get", "body": {"mode": "raw", "raw": "x"}}}),
        json!({"name": "kept", "protocolProfileBehavior": {"disableBodyPruning": true},
               "request": {"method": "GET", "url": "http://h/kept", "body": {"mode": "raw", "raw": "x"}}}),
    ]});
    let path = folder.path().join("shop.json");
    let requests = read(&path, &collection.to_string(), None, None).expect("a collection");
    let bodies: Vec<Vec<u8>> = requests.files().map(|(_, body)| body).collect();
    assert_eq!(bodies[0], br#"{"query":"{ a }","variables":{"n": 1}}"#);
    let form = String::from_utf8_lossy(&bodies[1]).into_owned();
    assert!(
        form.contains("name=\"a\"\r\n\r\n1\r\n") && form.contains("filename=\"a.png\""),
        "{form}"
    );
    assert!(!form.contains("name=\"b\""));
    assert_eq!(bodies[2], [0, 255]);
    assert_eq!(bodies[3], b"x");
    let text = requests.load();
    assert!(
        text.contains("# without its body, which Postman does not send\n    - name: \"pruned\""),
        "{text}"
    );
    assert!(
        text.contains("- line 1: missing: its file `b.png` cannot be read"),
        "{text}"
    );
}

#[test]
fn environments_win_and_credentials_are_hidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let environment = folder.path().join("env.json");
    let values = json!({"values": [{"key": "base", "value": "http://staging:1", "enabled": true}, {"key": "key", "value": "abcdefghij", "type": "secret"}]});
    fs::write(&environment, values.to_string()).expect("a file");
    let collection = json!({
        "variable": [{"id": "base", "value": "http://local:1"}],
        "item": [
            {"name": "a", "request": {"url": "{{base}}/a", "method": "GET", "auth": {"type": "apikey", "apikey": {"key": "X-Key", "value": "{{key}}", "in": "header"}}}},
            {"name": "b", "request": {"url": "http://ann:pw@staging:1/b", "method": "GET", "header": "X-C: 1\nAuthorization: Basic abc="}},
            {"name": "c", "request": "{{other}}/c"},
            {"name": "d", "request": {"url": "{{base}}/d/{{other}}", "method": "GET"}},
            {"name": "e", "request": {"url": "{{base}}/e", "method": "DELETE"}},
        ],
    });
    let requests = read_json(&collection, Some(&environment));
    let text = requests.load();
    assert!(
        text.contains("may be secret: X-Key, Authorization."),
        "{text}"
    );
    assert!(
        !text.contains("abcdefghij") && !text.contains("pw"),
        "{text}"
    );
    assert!(text.contains("\"X-C\": \"1\""), "{text}");
    assert!(
        text.contains(": d: `other` has no value. `--postman-env FILE`"),
        "{text}"
    );
    assert!(
        text.contains("to the server of `{{other}}`, but the lab takes staging:1"),
        "{text}"
    );
    assert_eq!(requests.counts(), (2, 5));
}

#[test]
fn other_files_are_refused_by_name() {
    let refused = |value: Value| read(Path::new("x"), &value.to_string(), None, None).unwrap_err();
    assert!(refused(json!({"id": "1", "requests": [], "order": []})).contains("found v1"));
    assert!(refused(json!({"a": 1})).contains("with `item`"));
}
