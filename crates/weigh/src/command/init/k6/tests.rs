mod streams;

use std::collections::BTreeMap;
use std::path::Path;

use super::*;

const NO_CHOICES: Choices<'_> = Choices {
    environment: &[],
    host: None,
    root: None,
};

/// The folder with scripts for these tests.
fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/command/init/k6/cases")
}

fn read_case(name: &str, choices: Choices<'_>) -> Result<Requests, String> {
    let folder = cases();
    let choices = Choices {
        root: choices.root.or(Some(&folder)),
        ..choices
    };
    read(&folder.join(name), name, choices)
}

fn case(name: &str) -> Requests {
    match read_case(name, NO_CHOICES) {
        Ok(requests) => requests,
        Err(why) => panic!("{name}: {why}"),
    }
}

fn case_with(
    name: &str,
    environment: &[(&str, &str)],
    host: Option<&str>,
) -> Result<Requests, String> {
    let pairs = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: Vec<(String, String)> = pairs.collect();
    read_case(
        name,
        Choices {
            environment: &environment,
            host,
            root: None,
        },
    )
}

fn script(text: &str) -> Requests {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shop.js");
    std::fs::write(&path, text).expect("a file");
    read(&path, "shop.js", NO_CHOICES).unwrap_or_else(|why| panic!("{why}"))
}

/// The requests of the lab, one line each: method, path, headers, body, statuses, captures and weight.
fn sent(requests: &Requests) -> Vec<String> {
    let files: BTreeMap<String, String> = requests
        .files()
        .map(|(path, text)| {
            (
                path.display().to_string(),
                String::from_utf8_lossy(&text).into_owned(),
            )
        })
        .collect();
    let mut lines: Vec<String> = Vec::new();
    let load = requests.load();
    let (mut shared, mut is_shared) = (String::new(), false);
    let plain =
        |text: &str| serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned());
    for line in load.lines() {
        let (indent, text) = (line.len() - line.trim_start().len(), line.trim_start());
        let (key, value) = text
            .split_once(": ")
            .unwrap_or((text.trim_end_matches(':'), ""));
        is_shared = match indent {
            2 => key == "headers",
            4 => is_shared && !text.starts_with('-'),
            _ => false,
        };
        match (indent, key) {
            _ if text.starts_with('#') => {}
            (4, _) if is_shared => shared += &format!(" {}: {}", plain(key), plain(value)),
            (4, "- name") => lines.push(String::new()),
            (6, "method" | "path") => lines
                .last_mut()
                .expect("a request")
                .push_str(&format!("{} ", plain(value))),
            (6, "body") => {
                let body = files.get(&plain(value)).expect("its body");
                lines
                    .last_mut()
                    .expect("a request")
                    .push_str(&format!("| {body} "));
            }
            (6, "expect") => {
                let status = value
                    .trim_matches(['{', '}'])
                    .replace(", same-as: baseline", "");
                lines
                    .last_mut()
                    .expect("a request")
                    .push_str(&format!("-> {status} "));
            }
            (6, "weight") => lines
                .last_mut()
                .expect("a request")
                .push_str(&format!("x{value} ")),
            (8, _) => lines.last_mut().expect("a request").push_str(&format!(
                "{}: {} ",
                plain(key),
                plain(value)
            )),
            _ => {}
        }
    }
    let all = |line: String| format!("{}{shared}", line.trim_end());
    lines.into_iter().map(all).collect()
}

/// The comments of the lab.
fn comments(requests: &Requests) -> String {
    let load = requests.load();
    let comments = load
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('#'));
    comments.map(|line| format!("{line}\n")).collect()
}

#[track_caller]
fn has(requests: &Requests, words: &[&str]) {
    let comments = comments(requests);
    for words in words {
        assert!(
            comments.contains(words),
            "`{words}` is missing in\n{comments}"
        );
    }
}

#[test]
fn headers_that_a_script_builds_are_kept() {
    assert_eq!(
        sent(&case("headers-built.js")),
        [
            "GET /a X-Tenant: north Content-Type: application/json",
            "GET /b Accept: application/json X-Kind: b",
            "POST /c Content-Type: application/json Accept: application/json X-C: 1 | {\"n\":1}",
            "POST /d Content-Type: application/json Accept: application/json X-D: 1 | {\"n\":1}",
        ]
    );
    let requests = case("setup-headers.js");
    assert!(requests.is_scenario());
    assert_eq!(
        sent(&requests),
        [
            "POST /login | {} token: {json: \"/token\"}",
            "GET /a Authorization: Bearer {{token}}",
            "POST /b Authorization: Bearer {{token}} Content-Type: application/json X-Tenant: north | {\"n\":1}",
            "GET /c?ids=1%2C2",
            "GET /d X-Tenant: north",
        ]
    );
    has(&requests, &["requests of `setup` begin each iteration"]);
}

#[test]
fn functions_classes_and_objects_run() {
    assert_eq!(
        sent(&case("group-named.js")),
        ["GET /health", "GET /", "GET /cart"]
    );
    assert_eq!(
        sent(&case("class.js")),
        [
            "GET /health",
            "GET /stock Content-Type: application/json -> status: 200",
            "POST /stock Content-Type: application/json | {\"sku\":1}",
        ]
    );
    assert_eq!(
        sent(&case("object-methods.js")),
        [
            "GET /health",
            "GET /list",
            "GET /one/7",
            "POST /add Content-Type: application/json | {\"n\":3}",
        ]
    );
    assert_eq!(
        sent(&case("aliased.js")),
        ["POST /one/3 Content-Type: application/json | {\"a\":1}"]
    );
    assert_eq!(sent(&case("require.js")), ["GET /"]);
}

#[test]
fn rates_set_the_weights() {
    let weighed = [
        "GET /read x20",
        "POST /write Content-Type: application/json | {}",
    ];
    assert_eq!(sent(&case("rates.js")), weighed);
    assert_eq!(sent(&case("rates-without-unit.js")), weighed);
    let users = case("vus.js");
    assert_eq!(sent(&users), ["GET /read", "GET /write"]);
    has(&users, &["shares of the scenarios are not known"]);
}

#[test]
fn files_of_the_script_are_read() {
    let requests = case("imported.js");
    assert_eq!(
        sent(&requests),
        [
            "POST /login | {}",
            "GET /items X-Tenant: north",
            "GET /fixed X-Tenant: north"
        ]
    );
    let gates = requests.gates();
    assert!(
        gates.contains("p95 value < 300ms") && gates.contains("failures value < 7%"),
        "{gates}"
    );
}

#[test]
fn types_are_removed() {
    let requests = case("typed.ts");
    assert_eq!(sent(&requests), ["GET /items -> status: 200"]);
    assert!(requests.gates().contains("p95 value < 300ms"));
}

#[test]
fn texts_in_utf_16_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(cases().join("typed.ts")).expect("a script");
    for (name, mark, bytes) in [
        (
            "little.ts",
            [0xFF, 0xFE],
            u16::to_le_bytes as fn(u16) -> [u8; 2],
        ),
        ("big.ts", [0xFE, 0xFF], u16::to_be_bytes),
    ] {
        let path = folder.path().join(name);
        let wide: Vec<u8> = mark
            .into_iter()
            .chain(text.encode_utf16().flat_map(bytes))
            .collect();
        std::fs::write(&path, wide).expect("a file");
        let requests = read(&path, name, NO_CHOICES).expect("a script");
        assert_eq!(sent(&requests), ["GET /items -> status: 200"]);
    }
}

#[test]
fn the_environment_hides_hosts_and_no_paths() {
    let requests = case("env-host.js");
    assert_eq!(sent(&requests), ["GET /stock/list?page=1 -> status: 200"]);
    has(
        &requests,
        &[
            "to __ENV.SHOP_HOST:8080",
            "`--host`",
            "Without a value: __ENV.SHOP_HOST",
        ],
    );
    let other = case_with(
        "env-host.js",
        &[("SHOP_HOST", "shop.example")],
        Some("shop.example:8080"),
    );
    assert_eq!(sent(&other.expect("its requests")), ["GET /stock/count"]);

    let without = case("only-url-env.js");
    assert_eq!(without.counts(), (0, 3));
    has(&without, &["--env URL=http://HOST/PATH"]);
    let with =
        case_with("only-url-env.js", &[("URL", "http://a/x?a=1")], None).expect("its requests");
    assert_eq!(
        sent(&with),
        ["GET /x?a=1", "GET /x?a=1&id={{index}}", "GET /x?a=1&x=1"]
    );

    let without = case("concat.js");
    assert_eq!(without.counts(), (0, 1));
    has(&without, &["--env FN=VALUE"]);
    let values = [("NODE_IP", "10.0.0.1"), ("FN", "echo"), ("BODY", "text")];
    let with = case_with("concat.js", &values, None).expect("its requests");
    assert_eq!(sent(&with), ["POST /fn/echo | text"]);
}

#[test]
fn bodies_are_those_of_the_language() {
    assert_eq!(
        sent(&case("batch.js")),
        [
            "GET /one Accept: application/json",
            "POST /two Content-Type: application/json | {\"1\":\"y\",\"2\":\"x\",\"a\":1,\"b\":[1.5,1e+21,0]}",
            "PUT /three Accept: application/json | {\"z\":1}",
            "GET /four",
            "GET /a",
            "GET /b",
            "GET /five",
        ]
    );
    let graphql = case("graphql.js");
    let query =
        "\\n  query Items($first: Int!) { items(first: $first) { nodes { id owner { name } } } }";
    assert_eq!(
        sent(&graphql),
        [
            format!(
                "POST /graphql apollographql-client-name: k6 | \
                 {{\"query\":\"{query}\",\"variables\":{{\"first\":3}}}} Content-Type: application/json"
            ),
            "POST /graphql | {\n  \"query\": \"mutation{add(item:{a:{b:1}}){id}}\"\n} Content-Type: application/json"
                .to_owned(),
        ]
    );
    has(
        &graphql,
        &["`{{` in a path or a body would be a placeholder"],
    );
    let recorded = case("recorder.js");
    let lines = sent(&recorded);
    assert!(
        lines[0].starts_with("GET /todo/ upgrade-insecure-requests: 1 "),
        "{lines:?}"
    );
    assert!(
        !lines[0].contains("Cookie") && !lines[0].contains("Host"),
        "{lines:?}"
    );
    assert_eq!(
        lines[1..],
        [
            "POST /form content-type: application/x-www-form-urlencoded | name=A+B&x%5B%5D=1",
            "POST /json content-type: application/json | {\"a\":{\"b\":\"c\"}}",
            "OPTIONS /json accept: */*",
            "GET /search?q=a%20b|c",
        ]
    );
    has(
        &recorded,
        &["Cookie, ?token=", "what it deletes is missing", "sleep"],
    );
}

#[test]
fn statuses_come_from_checks_and_callbacks() {
    let requests = case("statuses.js");
    assert_eq!(
        sent(&requests),
        [
            "GET /gone -> status: 404",
            "GET /moved -> status: 302",
            "GET /moved2 -> status: 302",
            "POST /gz | aaaa -> status: [200, 404]",
        ]
    );
    has(
        &requests,
        &[
            "the script compresses its body (gzip)",
            "check: an answer is right",
        ],
    );
    assert_eq!(
        sent(&case("httpx.js")),
        ["GET /items Content-Type: application/json -> status: 200"]
    );
}

#[test]
fn lists_and_loops_count_as_often_as_they_run() {
    assert_eq!(
        sent(&case("shared.js")),
        [
            "GET /u/11",
            // The identifiers of both rows follow each other.
            "GET /u/{{random:11..12}}",
            "POST /visit Content-Type: application/x-www-form-urlencoded | id=11&name=a+b",
            "POST /visit Content-Type: application/x-www-form-urlencoded | id=12&name=a+b",
            "GET /fixed x3",
            "GET /m/11",
            "GET /m/12",
        ]
    );
}

#[test]
fn credentials_stay_out_of_the_lab() {
    let requests = case("basic-auth.js");
    assert_eq!(sent(&requests), ["GET /private/a", "GET /private/b"]);
    has(
        &requests,
        &[
            "Omitted because they may be secret: Authorization",
            "its authentication (digest)",
        ],
    );
    assert!(!requests.load().contains("ann") && !requests.load().contains("Basic"));
}

#[test]
fn thresholds_become_gates() {
    let gates = case("thresholds.js").gates();
    for gate in [
        "p95 value < 500ms",
        "p99.9 value < 1500ms",
        "mean value < 100ms",
        "p50 value <= 80ms",
        "max value < 3000ms",
        "failures value < 7%",
        "failures value < 0.1%",
    ] {
        assert!(gates.contains(&format!("\"{gate}\"")), "{gate}: {gates}");
    }
}

#[test]
fn scripts_without_requests_are_refused() {
    let why = read_case("config.js", NO_CHOICES)
        .map(|_| ())
        .expect_err("it has no call");
    assert!(why.contains("calls `k6/http`"), "{why}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("browser.js");
    std::fs::write(
        &path,
        "import { browser } from 'k6/browser';\nexport default () => browser.newPage();",
    )
    .expect("a file");
    let why = read(&path, "browser.js", NO_CHOICES)
        .map(|_| ())
        .expect_err("it has no call");
    assert!(
        why.contains("`k6/browser` in line 1: it sends nothing that a lab can send"),
        "{why}"
    );
    let helper = case("auth.js");
    assert_eq!(helper.counts(), (0, 1));
    has(
        &helper,
        &[
            "line 1: http.post: it is not reached",
            "default: the script exports no such function",
        ],
    );
}

#[test]
fn a_login_and_its_requests_become_a_scenario() {
    let requests = script(
        "import http from 'k6/http'; import { check, sleep } from 'k6';
         export default function () {
           const res = http.post('http://a/login', JSON.stringify({ user: 'ann' }), { headers: { 'Content-Type': 'application/json' } });
           check(res, { ok: (r) => r.status === 201 });
           const token = res.json('data.token');
           const made = http.post('http://a/orders', JSON.stringify({ item: 1 }), { headers: { Authorization: `Bearer ${token}` } });
           if (made.status !== 201) { return; }
           http.get(`http://a/orders/${made.json().id}`);
           http.put('http://a/orders', JSON.stringify({ id: made.json().id, lines: [1] }));
           http.get('http://a' + made.headers.Location);
           http.get(`http://a/find?q=${encodeURIComponent(made.json().label)}`);
           const page = http.get('http://a/form');
           const csrf = /name=\"csrf\" value=\"([^\"]+)\"/.exec(page.body)[1];
           http.post('http://a/form', { csrf });
           http.del(`http://a/orders/${made.json().id}`);
           http.get(`http://a/page/${made.html().find('a').text()}`);
         }",
    );
    assert!(requests.is_scenario());
    assert_eq!(
        sent(&requests),
        [
            "POST /login Content-Type: application/json | {\"user\":\"ann\"} -> status: 201 token: {json: \"/data/token\"}",
            "POST /orders Authorization: Bearer {{token}} | {\"item\":1} id: {json: \"/id\"} label: {json: \"/label\"} Location: {header: \"Location\"}",
            "GET /orders/{{raw:id}}",
            "PUT /orders | {\"id\":{{json:id}},\"lines\":[1]}",
            "GET {{raw:Location}}",
            "GET /find?q={{encoded:label}}",
            "GET /form found: {regex: \"name=\\\"csrf\\\" value=\\\"([^\\\"]+)\\\"\"}",
            "POST /form Content-Type: application/x-www-form-urlencoded | csrf={{encoded:found}}",
            "DELETE /orders/{{raw:id}}",
        ]
    );
    has(
        &requests,
        &["GET http://a/page/", "known only when it runs"],
    );
}

#[test]
fn the_server_with_the_most_requests_is_taken_unless_the_user_chooses() {
    let text = "import http from 'k6/http';
        export default function () {
          http.post('http://login.example/token'); http.get('http://login.example/me');
          for (let i = 0; i < 10; i++) { http.get('http://api.example/items'); }
        }";
    let requests = script(text);
    assert_eq!(sent(&requests), ["GET /items x10"]);
    assert_eq!(requests.counts(), (10, 12));
    has(
        &requests,
        &["2 requests: to login.example:80, but the lab takes api.example:80"],
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shop.js");
    std::fs::write(&path, text).expect("a file");
    let chosen = |host| {
        read(
            &path,
            "shop.js",
            Choices {
                host: Some(host),
                ..NO_CHOICES
            },
        )
    };
    assert_eq!(
        sent(&chosen("login.example").expect("its requests")),
        ["POST /token", "GET /me"]
    );
    let why = chosen("cdn.example")
        .map(|_| ())
        .expect_err("no such server");
    assert!(why.contains("login.example:80, api.example:80"), "{why}");
}

#[test]
fn values_that_differ_become_data_or_drawn_numbers() {
    let requests = script(
        "import http from 'k6/http'; import { SharedArray } from 'k6/data';
         import { randomIntBetween, uuidv4 } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
         const users = new SharedArray('users', () => [{ id: 11, name: 'ann' }, { id: 12, name: 'bob' }, { id: 13, name: 'cy' }]);
         export default function () {
           const user = users[Math.floor(Math.random() * users.length)];
           http.get(`http://a/u/${user.id}`, { headers: { 'X-Name': user.name } });
           http.get(`http://a/page/${randomIntBetween(1, 20)}`);
           http.get('http://a/roll/' + (Math.floor(Math.random() * 6) + 1));
           const n = randomIntBetween(5, 9);
           http.get(`http://a/twice/${n}?n=${n}`);
           http.post('http://a/once', JSON.stringify({ at: Math.random() }));
           http.get('http://a/c/' + ['x', 'y'][Math.floor(Math.random() * 2)]);
           if (Math.random() < 0.25) http.get('http://a/rare');
         }",
    );
    let lines = sent(&requests);
    assert_eq!(
        lines[..4],
        [
            "GET /u/{{id}} X-Name: {{own-name}} x4",
            "GET /page/{{random:1..20}} x4",
            "GET /roll/{{random:1..6}} x4",
            "GET /twice/{{drawn-3}}?n={{drawn-3}} x4",
        ]
    );
    assert!(lines[4].starts_with("POST /once | {\"at\":0."), "{lines:?}");
    assert_eq!(lines[5..], ["GET /c/y x2", "GET /c/x x2", "GET /rare"]);
    has(
        &requests,
        &["computes a value of it for each iteration. Here it is fixed"],
    );
    let data: Vec<_> = requests
        .files()
        .filter(|(path, _)| path == Path::new("data.csv"))
        .collect();
    let text = String::from_utf8_lossy(&data[0].1).into_owned();
    assert!(text.starts_with("id,own-name,drawn-3\n11,ann,"), "{text}");
}

#[test]
fn hostile_scripts_end() {
    let head = "import http from 'k6/http';\n";
    let refused = |body: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop.js");
        std::fs::write(&path, format!("{head}{body}")).expect("a file");
        let found = read(&path, "shop.js", NO_CHOICES);
        found
            .map(|requests| format!("{} {}", requests.counts().0, comments(&requests)))
            .unwrap_or_else(|why| why)
    };
    let deep = format!(
        "export default () => http.get({}'/'{});",
        "(".repeat(50_000),
        ")".repeat(50_000)
    );
    assert!(refused(&deep).contains("brackets"));
    let again = "export default function again() { again(); again(); http.get('http://a/'); }";
    assert!(refused(again).contains("RangeError"), "{}", refused(again));
    let large =
        "export default () => { let text = 'x'; for (;;) text += text; }; http.get('http://a/');";
    assert!(
        refused(large).contains("memory") || refused(large).contains("string"),
        "{}",
        refused(large)
    );
    let thrown =
        "const a = {};\nexport default function () {\n  a.b.c();\n  http.get('http://a/');\n}";
    let why = refused(thrown);
    assert!(why.contains("line 4") && why.contains("TypeError"), "{why}");
    assert!(refused("export default () => { const a: string = 'x'; }").contains("line 2"));
    assert!(
        refused("import x from './absent.js';\nexport default x;")
            .contains("`./absent.js` cannot be imported")
    );
    assert!(
        refused("import x from '../../../up.js';\nexport default x;").contains("--root FOLDER")
    );
}

#[test]
fn fixed_pauses_are_pauses_of_steps_and_other_pauses_are_named() {
    let requests = script(
        "import http from 'k6/http'; import { sleep } from 'k6';
         export default function () {
           const id = http.post('http://a/orders').json('id');
           sleep(1.5);
           http.del('http://a/orders/1');
           sleep(0.25);
           http.get(`http://a/orders/${id}`);
           sleep(1 + Math.random() * 2);
           http.get('http://a/random');
           sleep(id);
           http.get('http://a/last');
           sleep(3);
         }",
    );
    let load = requests.load();
    let pauses: Vec<&str> = load
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("path:") || line.starts_with("pause:"))
        .collect();
    assert_eq!(
        pauses,
        [
            "path: \"/orders\"",
            "path: \"/orders/{{raw:id}}\"",
            "pause: 1750ms",
            "path: \"/random\"",
            "path: \"/last\"",
        ]
    );
    has(
        &requests,
        &[
            "line 9: Left out: a random pause of 1.0",
            "before GET http://a/random. A lab has fixed pauses: add `pause: 1s`.",
            "line 10: the length of a pause is not known: json('id') of the answer to POST in line 3",
            "Left out: the pause at the end of `default`.",
        ],
    );
    let rotation = script(
        "import http from 'k6/http'; import { sleep } from 'k6';
         export default function () { http.get('http://a/'); sleep(1); }",
    );
    assert!(!rotation.load().contains("pause:"));
    has(
        &rotation,
        &["sleep: the load decides when requests are sent"],
    );
}

#[test]
fn a_selection_of_html_does_not_end_the_script() {
    let requests = script(
        "import http from 'k6/http';
         export default function () {
           const res = http.get('http://a/form');
           const found = res.html().find('input').map((index, it) => it.attr('value'))[0];
           http.post('http://a/form', { found: `${found}` });
           http.get('http://a/last');
         }",
    );
    assert_eq!(sent(&requests), ["GET /form", "GET /last"]);
    has(
        &requests,
        &["line 5: POST http://a/form: its body contains html() of the answer"],
    );
}
