//! Reads requests from a k6 script, if they do not depend on values at run time. The script does not run.

mod calls;
mod expressions;
mod js;
mod script;
mod walk;

use std::path::Path;

use model::Gate;
use tree_sitter::{Node, Parser};

use super::requests::Requests;
use js::Js;
use script::{Name, Script, children, is_function};
use walk::Walk;

/// Reads the requests of a script in JavaScript.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn read(path: &Path, source: &str, text: &str) -> Result<Requests, String> {
    let mut parser = Parser::new();
    let language = tree_sitter_javascript::LANGUAGE.into();
    parser
        .set_language(&language)
        .map_err(|error| error.to_string())?;
    let Some(tree) = parser.parse(text, None) else {
        return Err("it could not be read as JavaScript".to_owned());
    };
    let root = tree.root_node();
    if let Some(place) = mistake(root) {
        return Err(format!(
            "expected a script in JavaScript, found what it cannot be in line {}; of TypeScript, give \
             the file without types that a compiler writes",
            place.start_position().row + 1
        ));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut script = Script::new(root, text, folder);
    let mut requests = Requests::of(source);
    let entries = declared(root, &mut script, &mut requests);
    let is_http = |frame: &script::Frame<'_>| {
        let mut names = frame.iter();
        names.any(|(_, name)| matches!(name, Name::Http(_)))
    };
    if !script.frames.iter().any(is_http) {
        return Err("expected a script that imports `k6/http`, found none".to_owned());
    }
    let options = options(&mut script, &mut requests);
    let mut walk = Walk::new(script);
    for (entry, times) in scenarios(&options, &mut requests) {
        let Some((_, function)) = entries.iter().find(|(name, _)| *name == entry) else {
            requests.leave_out(&entry, "the script exports no such function");
            continue;
        };
        walk.times = times;
        walk.entry(*function);
    }
    for name in ["setup", "teardown"] {
        if entries.iter().any(|(entry, _)| entry == name) {
            requests.leave_out(name, "what it sends is not part of the load");
        }
    }
    walk.finish(&mut requests);
    Ok(requests)
}

/// The first place that is not JavaScript.
fn mistake(root: Node<'_>) -> Option<Node<'_>> {
    if !root.has_error() {
        return None;
    }
    let mut node = root;
    while !node.is_error() && !node.is_missing() {
        // Child nodes without a name in the grammar can also be missing.
        let mut cursor = node.walk();
        let found = node
            .children(&mut cursor)
            .find(|it| it.has_error() || it.is_missing());
        match found {
            Some(inner) => node = inner,
            None => break,
        }
    }
    Some(node)
}

/// Declares the names of the script itself, and returns its exported functions.
fn declared<'t>(
    root: Node<'t>,
    script: &mut Script<'t>,
    requests: &mut Requests,
) -> Vec<(String, Node<'t>)> {
    let mut exported = Vec::new();
    script.declare_functions(root);
    for statement in children(root) {
        match statement.kind() {
            "import_statement" => import(statement, script, requests),
            "lexical_declaration" | "variable_declaration" => {
                children(statement).for_each(|it| script.declarator(it));
            }
            "export_statement" => exported.extend(exports(statement, script)),
            _ => {}
        }
    }
    exported
}

/// Declares the names of an import.
fn import<'t>(statement: Node<'t>, script: &mut Script<'t>, requests: &mut Requests) {
    let module = statement.child_by_field_name("source");
    let module = module.map(|node| script.source(node)).unwrap_or_default();
    let module = module.trim_matches(['"', '\'']);
    let is_http = module == "k6/http";
    if [
        "k6/ws",
        "k6/websockets",
        "k6/net/",
        "k6/browser",
        "k6/experimental/",
    ]
    .iter()
    .any(|it| module.starts_with(it))
    {
        requests.leave_out(module, "it is not HTTP, or not part of k6 yet");
    } else if module.starts_with('.') {
        requests.leave_out(module, "other files of scripts are not read");
    }
    let mut waiting: Vec<Node<'t>> = children(statement).collect();
    while let Some(node) = waiting.pop() {
        match node.kind() {
            "import_specifier" => {
                let name = node.child_by_field_name("name");
                let own = node.child_by_field_name("alias").or(name);
                if let (Some(name), Some(own), true) = (name, own, is_http) {
                    let name = script.source(name).to_owned();
                    // The default export of the module is the module itself.
                    let function = (name != "default").then_some(name);
                    script.declare(script.source(own), Name::Http(function));
                }
            }
            "identifier" if is_http => script.declare(script.source(node), Name::Http(None)),
            "string" => {}
            _ => waiting.extend(children(node)),
        }
    }
}

/// The functions that a statement exports. Other names are declared.
fn exports<'t>(statement: Node<'t>, script: &mut Script<'t>) -> Vec<(String, Node<'t>)> {
    let is_default = script
        .source(statement)
        .trim_start_matches("export")
        .trim_start()
        .starts_with("default");
    let value = statement.child_by_field_name("value");
    let declaration = statement.child_by_field_name("declaration");
    let Some(node) = value.or(declaration) else {
        // A list such as `export { run as default, other }`.
        return named_exports(statement, script);
    };
    let called = |name: Option<Node<'t>>| name.map(|it| script.source(it)).unwrap_or_default();
    if is_function(node) {
        let name = if is_default {
            "default"
        } else {
            called(node.child_by_field_name("name"))
        };
        return vec![(name.to_owned(), node)];
    }
    if is_default {
        let found = match script.name(script.source(node)) {
            Some(Name::Function(function)) => Some(*function),
            _ => None,
        };
        return found
            .map(|it| ("default".to_owned(), it))
            .into_iter()
            .collect();
    }
    let mut found = Vec::new();
    for declarator in children(node) {
        script.declarator(declarator);
        let name = declarator.child_by_field_name("name");
        let name = name.map(|it| script.source(it)).unwrap_or_default();
        if let Some(value) = declarator
            .child_by_field_name("value")
            .filter(|it| is_function(*it))
        {
            found.push((name.to_owned(), value));
        }
    }
    found
}

fn named_exports<'t>(statement: Node<'t>, script: &Script<'t>) -> Vec<(String, Node<'t>)> {
    let mut found = Vec::new();
    for specifier in children(statement).flat_map(children) {
        let name = specifier.child_by_field_name("name");
        let own = specifier.child_by_field_name("alias").or(name);
        let named = name.and_then(|it| script.name(script.source(it)));
        if let (Some(Name::Function(function)), Some(own)) = (named, own) {
            found.push((script.source(own).to_owned(), *function));
        }
    }
    found
}

/// The options of the script. Empty if they are unknown before it runs.
fn options(script: &mut Script<'_>, requests: &mut Requests) -> Js {
    let options = match script.name("options") {
        Some(Name::Value(value)) => value.clone(),
        Some(Name::Unknown(why)) => {
            let why = why.clone();
            requests.leave_out("options", &why);
            return Js::Undefined;
        }
        _ => return Js::Undefined,
    };
    for (name, value) in options.members() {
        match name.as_str() {
            "thresholds" => thresholds(value, requests),
            "scenarios" => {}
            _ => requests.leave_out(
                &format!("options.{name}"),
                "what it says is for the lab to say",
            ),
        }
    }
    options
}

/// The functions that run, with their frequency relative to the greatest common divisor of the rates.
fn scenarios(options: &Js, requests: &mut Requests) -> Vec<(String, u32)> {
    let scenarios = options.member("scenarios");
    let mut found: Vec<(String, Option<u32>)> = Vec::new();
    for (name, scenario) in scenarios.members() {
        let function = match scenario.member("exec") {
            Js::Text(name) => name,
            _ => "default".to_owned(),
        };
        let rate = match (scenario.member("rate"), scenario.member("timeUnit")) {
            (Js::Number(rate), Js::Undefined) if rate.fract() == 0.0 && rate >= 1.0 => {
                rate.to_string().parse().ok()
            }
            _ => None,
        };
        found.push((function, rate));
        requests.leave_out(
            &format!("options.scenarios.{name}"),
            "when and how often it runs is for the lab to say",
        );
    }
    if found.is_empty() {
        return vec![("default".to_owned(), 1)];
    }
    let rates: Option<Vec<u32>> = found.iter().map(|(_, rate)| *rate).collect();
    let divisor = rates.iter().flatten().copied().reduce(common_divisor);
    let times = |rate: Option<u32>| match (rate, divisor) {
        (Some(rate), Some(divisor)) => rate / divisor,
        _ => 1,
    };
    found
        .into_iter()
        .map(|(function, rate)| (function, times(rate)))
        .collect()
}

/// The greatest common divisor.
fn common_divisor(left: u32, right: u32) -> u32 {
    if right == 0 {
        left
    } else {
        common_divisor(right, left % right)
    }
}

/// Converts the limits that a lab can judge to gates, and names the other limits.
fn thresholds(limits: &Js, requests: &mut Requests) {
    for (metric, limits) in limits.members() {
        let limits = match limits {
            Js::List(limits) => limits.as_slice(),
            single => std::slice::from_ref(single),
        };
        for limit in limits {
            // A limit may be an object that also sets a condition to abort the run.
            let text = match limit {
                Js::Object(_) => limit.member("threshold").text(),
                limit => limit.text(),
            };
            let gate = text.and_then(|text| {
                gate(metric, &text).map_err(|why| format!("`{text}` has no gate: {why}"))
            });
            match gate {
                Ok(gate) => requests.add_gate(gate),
                Err(why) => requests.leave_out(&format!("threshold of {metric}"), &why),
            }
        }
    }
}

/// A threshold as a gate: `p(95)<200` of `http_req_duration` is `p95 value < 200ms`.
fn gate(metric: &str, threshold: &str) -> Result<String, String> {
    let plain: String = threshold.chars().filter(|it| !it.is_whitespace()).collect();
    let begin = plain
        .find(['<', '>', '=', '!'])
        .ok_or("it has no `<` or `>`")?;
    let (figure, rest) = plain.split_at(begin);
    let limit = rest.trim_start_matches(['<', '>', '=', '!']);
    let relation = &rest[..rest.len() - limit.len()];
    let limit: f64 = limit.parse().map_err(|_| "its limit is not a number")?;
    let percentile = figure
        .strip_prefix("p(")
        .and_then(|rest| rest.strip_suffix(')'));
    let gate = match (metric, figure, percentile) {
        ("http_req_duration", _, Some(percentile)) => {
            format!("p{percentile} value {relation} {limit}ms")
        }
        ("http_req_duration", "med", _) => format!("p50 value {relation} {limit}ms"),
        ("http_req_duration", "avg", _) => format!("mean value {relation} {limit}ms"),
        ("http_req_duration", "max", _) => format!("max value {relation} {limit}ms"),
        ("http_req_failed", "rate", _) => format!("failures value {relation} {}%", limit * 100.0),
        ("checks", ..) => {
            return Err("every answer must be right for a row to have a number".to_owned());
        }
        _ => return Err("a lab measures no such figure of all requests".to_owned()),
    };
    match gate.parse::<Gate>() {
        Ok(_) => Ok(gate),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = r#"
import http, { batch as many } from 'k6/http';
import ws from 'k6/ws';
import { check, group, sleep } from 'k6';
import { randomItem } from './helpers.js';

const BASE = __ENV.BASE_URL || 'https://shop.example/v1';
const json = { 'Content-Type': 'application/json' };
const users = new SharedArray('users', () => JSON.parse('[{"id": 7}]'));
let turn = 0;

export const options = {
  vus: 10,
  thresholds: {
    http_req_duration: ['p(95)<200', { threshold: 'avg < 50', abortOnFail: true }, 'min<1'],
    http_req_failed: ['rate<0.01'],
    checks: ['rate>0.9'],
    'http_req_duration{name:x}': ['p(99)<1'],
  },
};

const page = (number, size = 20) => `${BASE}/items?page=${number}&size=${size}`;

function order(item) {
  const body = JSON.stringify({ item, note: 'a "b"', tags: [1, 2.5, null], skipped: undefined });
  return http.post(`${BASE}/orders`, body, { headers: { ...json, Authorization: `Bearer ${token()}` } });
}

export function setup() { return http.get(`${BASE}/token`).json(); }

export default function (data) {
  group('browse', () => {
    for (const number of [1, 2]) {
      http.get(page(number), { headers: { Accept: 'application/json' } });
    }
    const missing = http.get(BASE + '/items/' + users[0].id);
    check(missing, { 'is not there': (r) => r.status === 404, 'in time': (r) => r.timings.duration < 500 });
  });
  const res = order(12);
  http.post(`${BASE}/orders`, JSON.stringify({ item: 1, note: 'a "b"' }), { headers: json });
  http.put(`${BASE}/carts/1`, { item: 7, name: 'black tea' });
  if (res.status === 200) {
    http.get(`${BASE}/orders/${res.json('id')}`);
    http.request('GET', `${BASE}/orders`);
  }
  many([['GET', `${BASE}/a`], { method: 'HEAD', url: `${BASE}/b` }, `${BASE}/c`]);
  http.get(`${BASE}/items/${randomItem([1, 2])}`);
  http.get(`${BASE}/turns/${turn++}`);
  http.get(`${BASE}/me/${login('hunter2')}`, { headers: { 'X-Api-Key': 'topsecret' } });
  http.get('https://cdn.example/logo.png');
  http.del(`${BASE}/carts/1`);
  sleep(1);
}
"#;

    fn found(text: &str) -> Requests {
        read(Path::new("shop.js"), "shop.js", text).expect("a script")
    }

    #[test]
    #[expect(
        clippy::too_many_lines,
        reason = "one script, and all that is made of it"
    )]
    fn what_is_known_beforehand_becomes_requests_and_the_rest_is_named() {
        let requests = found(SHOP);
        insta::assert_snapshot!(requests.gates() + &requests.load(), @r#"
        # Limits of shop.js, for every row except the baseline.
        gates:
          - "p95 value < 200ms"
          - "mean value < 50ms"
          - "failures value < 1%"
          # Omitted because they may be secret: Authorization.
          # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
          #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
          # From shop.js, in rotation.
          requests:
            - name: "GET /v1/items?page=1&size=20"
              method: "GET"
              path: "/v1/items?page=1&size=20"
              headers:
                "Accept": "application/json"
            - name: "GET /v1/items?page=2&size=20"
              method: "GET"
              path: "/v1/items?page=2&size=20"
              headers:
                "Accept": "application/json"
            - name: "GET /v1/items/7"
              method: "GET"
              path: "/v1/items/7"
              expect: {status: 404, same-as: baseline}
            - name: "POST /v1/orders"
              method: "POST"
              path: "/v1/orders"
              headers:
                "Content-Type": "application/json"
              body: "requests/4.json"
            - name: "POST /v1/orders (2)"
              method: "POST"
              path: "/v1/orders"
              headers:
                "Content-Type": "application/json"
              body: "requests/5.json"
            - name: "PUT /v1/carts/1"
              method: "PUT"
              path: "/v1/carts/1"
              headers:
                "Content-Type": "application/x-www-form-urlencoded"
              body: "requests/6.body"
            # sent always, without its condition
            - name: "GET /v1/orders"
              method: "GET"
              path: "/v1/orders"
            - name: "GET /v1/a"
              method: "GET"
              path: "/v1/a"
            - name: "HEAD /v1/b"
              method: "HEAD"
              path: "/v1/b"
            - name: "GET /v1/c"
              method: "GET"
              path: "/v1/c"
            # Left out:
            # - k6/ws: it is not HTTP, or not part of k6 yet
            # - ./helpers.js: other files of scripts are not read
            # - options.vus: what it says is for the lab to say
            # - threshold of http_req_duration: `min<1` has no gate: a lab measures no such figure of all requests
            # - threshold of checks: `rate>0.9` has no gate: every answer must be right for a row to have a number
            # - threshold of http_req_duration{name:x}: `p(99)<1` has no gate: a lab measures no such figure of all requests
            # - setup: what it sends is not part of the load
            # - check: an answer is right when it is that of the baseline
            # - http.get `${BASE}/orders/${res.json('…')}`: `res.json('…')` is known only when it runs
            # - http.get `${BASE}/items/${randomItem([1, 2])}`: `randomItem([1, 2])` is known only when it runs
            # - http.get `${BASE}/turns/${turn++}`: `turn++` is known only when it runs
            # - http.get `${BASE}/me/${login('…')}`: `login('…')` is known only when it runs
            # - DELETE http.del `${BASE}/carts/1`: what it deletes is missing for the next request
            # - sleep: the load decides when requests are sent
            # - 1 request: to cdn.example:443, but most requests go to shop.example:443
        "#);
        assert!(!requests.load().contains("hunter2") && !requests.load().contains("topsecret"));
        let bodies: Vec<_> = requests.files().map(|(_, body)| body).collect();
        let bodies: Vec<_> = bodies
            .iter()
            .map(|it| String::from_utf8_lossy(it))
            .collect();
        let orders = [
            r#"{"item":12,"note":"a \"b\"","tags":[1,2.5,null]}"#,
            r#"{"item":1,"note":"a \"b\""}"#,
        ];
        assert_eq!(bodies, [orders[0], orders[1], "item=7&name=black%20tea"]);
    }

    #[test]
    fn functions_of_scenarios_run_in_proportion_to_their_rates() {
        let requests = found(
            "import * as http from 'k6/http';
             export const options = { scenarios: {
               reads: { executor: 'constant-arrival-rate', rate: 30, exec: 'read' },
               writes: { executor: 'constant-arrival-rate', rate: 10, exec: 'write' },
               gone: { exec: 'gone', rate: 10 } } };
             const send = (path) => http.get(`${__ENV.HOST}${path}`);
             export const read = () => send('/r');
             function write() { http.post(`${__ENV.HOST}/w?x=1`, 'text'); }
             export { write };",
        );
        insta::assert_snapshot!(requests.load(), @r#"
        # From shop.js, in rotation.
        requests:
          - name: "GET /r"
            method: "GET"
            path: "/r"
            weight: 3
          - name: "POST /w?x=1"
            method: "POST"
            path: "/w?x=1"
            body: "requests/2.body"
          # Left out:
          # - options.scenarios.reads: when and how often it runs is for the lab to say
          # - options.scenarios.writes: when and how often it runs is for the lab to say
          # - options.scenarios.gone: when and how often it runs is for the lab to say
          # - gone: the script exports no such function
        "#);
    }

    #[test]
    fn hostile_scripts_end_and_others_are_refused() {
        let head = "import http from 'k6/http';\n";
        let deep = format!("http.get({}'/'{})", "(".repeat(50_000), ")".repeat(50_000));
        let nested: String = (1..5_000).fold("const a0 = 1;".to_owned(), |text, index| {
            format!("{text}const a{index} = [a{}];", index - 1)
        });
        let doubled: String = (1..60).fold("const b0 = 'xxxxxxxx';".to_owned(), |text, index| {
            format!("{text}const b{index} = b{0} + b{0};", index - 1)
        });
        for body in [
            "again(); again(); function again() { again(); again(); http.get('x'); }".to_owned(),
            deep,
            format!("{nested} http.post('http://a/', JSON.stringify(a4999));"),
            format!("{doubled} http.post('http://a/', b59);"),
            "for (const a of ['/a']) { for (const b of [1]) { http.get(a); } }".to_owned(),
        ] {
            let text = format!("{head}export default function () {{ {body} }}");
            let requests = found(&text);
            assert!(requests.is_empty(), "{:.80}", body);
            assert_ne!(requests.counts().1, 0, "{:.80}", body);
        }
        let refused = |text: &str| {
            let read = read(Path::new("x.js"), "x.js", text);
            read.map(|_| ()).expect_err("it is refused")
        };
        assert!(refused("const a: string = 'x'; http.get(").contains("in line 1"));
        assert!(refused("console.log(1)").contains("imports `k6/http`"));
    }
}
