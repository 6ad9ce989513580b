//! Tests of `.http` files.

use super::*;

const SHOP: &str = "\
@host = http://localhost:8080
@base = {{host}}/api
# a comment
GET {{base}}/items
    ?page=1
    &kind=a b HTTP/1.1
Accept: application/json // not a comment

### log in
# @name login
POST {{base}}/login HTTP/1.1
Content-Type: application/json

{
  \"user\": \"ann\"
}

###
// the list of the user
GET {{base}}/boards/{{login.response.body.$.user.id}}
Authorization: Bearer {{login.response.body.token}}
X-Trace: {{$guid}}

### a form
POST {{base}}/search
Content-Type: application/x-www-form-urlencoded

q=tea
&page={{$randomInt 1 10}}

###
DELETE {{base}}/boards/1

###
POST {{base}}/now

{{$timestamp}}

###
WEBSOCKET ws://localhost/x
";

fn read_text(text: &str) -> Requests {
    read(Path::new("shop.http"), text, None, None).expect("a file")
}

#[test]
fn names_and_answers_become_a_scenario() {
    let requests = read_text(SHOP);
    insta::assert_snapshot!(requests.load(), @r#"
    # Each step draws random numbers of its own, also within one iteration.
    # From shop.http, one after another. An iteration sends all of them.
    scenario:
      - name: "GET /api/items?page=1&kind=a%20b"
        method: "GET"
        path: "/api/items?page=1&kind=a%20b"
        headers:
          "Accept": "application/json // not a comment"
      - name: "login"
        method: "POST"
        path: "/api/login"
        headers:
          "Content-Type": "application/json"
        body: "requests/2.json"
        capture:
          "login-body-user-id": {json: "/user/id"}
          "login-body-token": {json: "/token"}
      - name: "GET /api/boards/{{raw:login-body-user-id}}"
        method: "GET"
        path: "/api/boards/{{raw:login-body-user-id}}"
        headers:
          "Authorization": "Bearer {{login-body-token}}"
          "X-Trace": "7b2a4c10-5d3e-4f6a-8b9c-{{random:100000000000..999999999999}}"
      - name: "a form"
        method: "POST"
        path: "/api/search"
        headers:
          "Content-Type": "application/x-www-form-urlencoded"
        body: "requests/4.body"
      # Left out:
      # - line 32: DELETE {{base}}/boards/1: the next request would not find the deleted object
      # - line 35: POST {{base}}/now: `$timestamp` is made for each request
      # - line 40: WEBSOCKET ws://localhost/x: it is not HTTP
    "#);
    let bodies: Vec<String> = requests
        .files()
        .map(|(_, body)| String::from_utf8_lossy(&body).into_owned())
        .collect();
    assert_eq!(
        bodies,
        ["{\n  \"user\": \"ann\"\n}", "q=tea&page={{random:1..9}}"]
    );
    assert_eq!(requests.counts(), (4, 7));
}

#[test]
fn environments_and_files_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    write(
        "http-client.env.json",
        "{\"dev\": {\"host\": \"http://h:1\"}, \"$shared\": {\"v\": \"v1\"}}",
    );
    write("http-client.private.env.json", "{\"dev\": {\"id\": 7}}");
    write("a.json", "{\"id\": {{id}}}");
    let path = folder.path().join("x.http");
    let text = "POST {{host}}/{{v}}/a\nContent-Type: application/json\n\n<@ ./a.json\n\n\
                ###\nPOST {{host}}/b\n\n< a.json\n";
    let requests = read(&path, text, Some("dev"), None).expect("a file");
    let bodies: Vec<String> = requests
        .files()
        .map(|(_, body)| String::from_utf8_lossy(&body).into_owned())
        .collect();
    assert_eq!(bodies, ["{\"id\": 7}"]);
    assert!(requests.load().contains("POST /v1/a"));
    assert!(requests.summary().contains("line 7: POST /b: `{{`"));
    let refused = read(&path, text, Some("prod"), None).unwrap_err();
    assert!(
        refused.contains("found `prod`. The environments there are: dev"),
        "{refused}"
    );
    let without = read(&path, text, None, None).expect("a file").summary();
    assert!(without.contains("`--http-env NAME`"), "{without}");
}

#[test]
fn scripts_after_an_answer_are_captures() {
    let text = "\
### login
POST http://h/login
Content-Type: application/json

{\"a\": 1}

> {%
  client.test('ok', function () { client.assert(response.status === 201, 'made'); });
  client.global.set(\"token\", response.body.token);
%}

### list
< {% request.variables.set('x', 1) %}
GET http://h/items
Authorization: Bearer {{token}}

### graph
GRAPHQL http://h/graphql

query Q { a }

{\"n\": 1}

<> 2026.json
";
    let requests = read_text(text);
    insta::assert_snapshot!(requests.load(), @r#"
    # From shop.http, one after another. An iteration sends all of them.
    scenario:
      - name: "login"
        method: "POST"
        path: "/login"
        headers:
          "Content-Type": "application/json"
        body: "requests/1.json"
        expect: {status: 201}
        capture:
          "token": {json: "/token"}
      # without the script before it
      - name: "list"
        method: "GET"
        path: "/items"
        headers:
          "Authorization": "Bearer {{token}}"
      - name: "graph"
        method: "POST"
        path: "/graphql"
        headers:
          "Content-Type": "application/json"
        body: "requests/3.json"
    "#);
    let bodies: Vec<String> = requests
        .files()
        .map(|(_, body)| String::from_utf8_lossy(&body).into_owned())
        .collect();
    assert_eq!(
        bodies[1],
        r#"{"query":"query Q { a }","variables":{"n": 1}}"#
    );
}

#[test]
fn parts_and_curl_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.bin"), [0_u8, 255]).expect("a file");
    let path = folder.path().join("x.rest");
    let text = "POST http://h/up\nContent-Type: multipart/form-data; boundary=b\n\n--b\n\
                Content-Disposition: form-data; name=\"f\"\n\n< a.bin\n--b--\n\n###\n\
                curl http://h/c \\\n  -d a=1\n";
    let requests = read(&path, text, None, None).expect("a file");
    let bodies: Vec<Vec<u8>> = requests.files().map(|(_, body)| body).collect();
    let mut expected = b"--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n".to_vec();
    expected.extend([0, 255]);
    expected.extend(b"\r\n--b--\r\n");
    assert_eq!(bodies, [expected, b"a=1".to_vec()]);
    assert!(read(&path, "# nothing\n", None, None).is_err());
}

#[test]
fn variables_after_a_body_are_no_part_of_it() {
    let requests = read_text(
        "@token = {{login.response.body.token}}\n\n### log in\n# @name login\nPOST http://h/login\n\n{\"a\": 1}\n\n\
         @id = {{login.response.body.user.id}}\n\n# ====\n# 2. TEAMS\n# ====\n\n### team\n\
         GET http://h/teams/{{id}}\nAuthorization: Bearer {{token}}\n",
    );
    let bodies: Vec<Vec<u8>> = requests.files().map(|(_, body)| body).collect();
    assert_eq!(bodies, [b"{\"a\": 1}".to_vec()]);
    let text = requests.load();
    assert!(
        text.contains("path: \"/teams/{{raw:login-body-user-id}}\""),
        "{text}"
    );
    assert!(text.contains("\"Bearer {{login-body-token}}\""), "{text}");
}

#[test]
fn a_location_is_followed_as_it_is() {
    let requests = read_text(
        "@base = http://h:1\n# @name made\nPOST {{base}}/orders\n\n###\n\
         GET {{base}}{{made.response.headers.Location}}?full=1\n\n###\n\
         GET {{base}}/next?after={{made.response.body.$.cursor}}\n",
    );
    assert_eq!(requests.counts(), (3, 3));
    let load = requests.load();
    let paths: Vec<&str> = load
        .lines()
        .filter_map(|line| line.trim().strip_prefix("path: "))
        .collect();
    assert_eq!(
        paths,
        [
            "\"/orders\"",
            "\"{{raw:made-headers-Location}}?full=1\"",
            "\"/next?after={{raw:made-body-cursor}}\"",
        ]
    );
}

#[test]
fn a_script_before_a_request_has_constants_and_values_that_are_named() {
    let requests = read_text(
        "< {%\n  client.global.set(\"word\", \"tea\");\n  client.global.set(\"now\", \"x\" + Date.now());\n%}\n\
         POST http://h/a\n\n{\"q\": \"{{word}}\"}\n\n###\n< {% request.variables.set(\"id\", \"7\") %}\n\
         GET http://h/b/{{id}}\n\n###\nGET http://h/c/{{now}}\n",
    );
    assert_eq!(requests.texts(), ["{\"q\": \"tea\"}"]);
    let load = requests.load();
    assert!(load.contains("path: \"/b/7\""), "{load}");
    assert!(load.contains("`now` is made by a script"), "{load}");
    assert_eq!(requests.counts(), (2, 3));
}
