//! Claims about `load`: the arrival of requests, and the requests.

use std::time::Duration;

use insta::{assert_debug_snapshot, assert_snapshot};
use lab::RequestTemplate;
use model::{Arrival, Load, Phase, Rate, Stop};

use crate::{Folder, changed, check, lab};

fn load(keys: &str) -> Load {
    lab(&[("connections: 10\n  duration: 1s", keys)]).load
}

fn rate(per_second: f64) -> Rate {
    Rate::new(per_second).unwrap()
}

#[test]
fn connections_make_a_closed_loop() {
    let stop = |requests, seconds| Stop {
        requests,
        duration: Option::map(seconds, Duration::from_secs),
    };
    assert_eq!(
        load("connections: 3\n  duration: 5s"),
        Load::Closed {
            connections: 3,
            stop: stop(None, Some(5))
        }
    );
    assert_eq!(
        load("connections: 3\n  count: 1000\n  duration: 1m"),
        Load::Closed {
            connections: 3,
            stop: stop(Some(1000), Some(60))
        }
    );
}

#[test]
fn a_rate_makes_an_open_loop() {
    assert_eq!(
        load("rate: 100/s\n  duration: 5s"),
        Load::Open {
            phases: vec![Phase::constant(Duration::from_secs(5), rate(100.0))],
            arrival: Arrival::Uniform,
            connections_max: 1000,
            requests_max: None,
        }
    );
}

#[test]
fn a_rate_with_a_count_alone_lasts_until_the_count() {
    let Load::Open {
        phases,
        arrival,
        requests_max,
        ..
    } = load("rate: 100/s\n  count: 250")
    else {
        panic!("a rate makes an open loop");
    };
    let plan = schedule::OpenPlan::new(&phases, arrival, requests_max).unwrap();
    assert_eq!(plan.len(), 250);
    assert_eq!(plan.duration(), Duration::from_millis(2500));
}

#[test]
fn phases_follow_each_other_and_may_ramp() {
    let lab = lab(&[
        (
            "connections: 10\n  duration: 1s",
            "phases: [{duration: 10s, rate: 100/s}, {duration: 5s, rate: 100/s, to: 0/s}]\n  arrival: poisson",
        ),
        ("target: server", "target: server\nseed: 7"),
    ]);
    assert_eq!(
        lab.load,
        Load::Open {
            phases: vec![
                Phase::constant(Duration::from_secs(10), rate(100.0)),
                Phase {
                    duration: Duration::from_secs(5),
                    from: rate(100.0),
                    to: Rate::ZERO
                },
            ],
            arrival: Arrival::Poisson { seed: 7 },
            connections_max: 1000,
            requests_max: None,
        }
    );
}

#[test]
fn a_load_is_closed_or_open() {
    assert_snapshot!(check(&[("connections: 10", "connections: 10\n  rate: 5/s")]), @"
    error: `connections` and `rate` exclude each other
     --> labs/x.yaml:4:3
      |
    3 |   connections: 10
      |   ----------- given here
    4 |   rate: 5/s
      |   ^^^^
      |
      = help: `connections` makes a closed loop, and `rate` and `phases` make an open loop. `connections-max` limits the connections of an open loop
    ");
    assert_snapshot!(check(&[("connections: 10\n  duration: 1s", "timeout: 1s")]), @"
    error: the load has no rate and no number of connections
     --> labs/x.yaml:2:1
      |
    2 | load:
      | ^^^^
      |
      = help: give `connections: 100` (closed loop), `rate: 100/s` or `phases` (open loop), `capacity` (search for the highest rate), or `sweep` (several loads)
    ");
}

#[test]
fn a_load_has_an_end() {
    assert_snapshot!(check(&[("  duration: 1s\n", "")]), @"
    error: the load has no end
     --> labs/x.yaml:3:3
      |
    3 |   connections: 10
      |   ^^^^^^^^^^^
      |
      = help: give `duration: 5s`, `count: 10000`, or both. The load ends at the first of the two
    ");
}

#[test]
fn a_wrong_rate_is_not_a_missing_one() {
    assert_snapshot!(check(&[("connections: 10", "rate: 100")]), @"
    error: `100` is not a rate: the unit is missing
     --> labs/x.yaml:3:9
      |
    3 |   rate: 100
      |         ^^^
      |
      = help: write `100/s`
    ");
    assert_snapshot!(check(&[("connections: 10", "rate: 0/s")]), @"
    error: `0/s` is not a rate: it must be above 0
     --> labs/x.yaml:3:9
      |
    3 |   rate: 0/s
      |         ^^^
      |
      = help: write for example `100/s`
    ");
}

#[test]
fn keys_of_one_kind_of_load_are_refused_by_the_other() {
    assert_snapshot!(check(&[("duration: 1s", "duration: 1s\n  arrival: poisson\n  connections-max: 5")]), @"
    error: `arrival` cannot be used with `connections`
     --> labs/x.yaml:5:3
      |
    3 |   connections: 10
      |   ----------- given here
    4 |   duration: 1s
    5 |   arrival: poisson
      |   ^^^^^^^
      |
      = help: a closed loop sends when the previous answer is complete. Only `rate` and `phases` have arrivals

    error: `connections-max` cannot be used with `connections`
     --> labs/x.yaml:6:3
      |
    3 |   connections: 10
      |   ----------- given here
    ...
    6 |   connections-max: 5
      |   ^^^^^^^^^^^^^^^
      |
      = help: a closed loop has exactly `connections`. Only `rate` and `phases` need a limit
    ");
    assert_snapshot!(check(&[("connections: 10", "phases: [{duration: 1s, rate: 1/s}]")]), @"
    error: `duration` cannot be used with `phases`
     --> labs/x.yaml:4:3
      |
    3 |   phases: [{duration: 1s, rate: 1/s}]
      |   ------ given here
    4 |   duration: 1s
      |   ^^^^^^^^
      |
      = help: each phase has its own duration. Remove this one
    ");
}

#[test]
fn a_plan_that_sends_nothing_is_refused() {
    assert_snapshot!(check(&[("connections: 10\n  duration: 1s", "phases: [{duration: 1s, rate: 0/s}]")]), @"
    error: expected a plan that sends at least one request, found none. Give a phase with a rate above 0 and a duration
     --> labs/x.yaml:3:3
      |
    3 |   phases: [{duration: 1s, rate: 0/s}]
      |   ^^^^^^
    ");
}

#[test]
fn threads_without_connections_are_refused() {
    assert_snapshot!(check(&[("connections: 10", "connections: 2\n  threads: 3")]), @"
    error: 3 threads for 2 connections
     --> labs/x.yaml:4:12
      |
    4 |   threads: 3
      |            ^
      |
      = help: each thread needs a connection. Lower `threads` to 2
    ");
}

/// Returns the requests of the lab as readable text.
fn requests(load: &str, files: &[(&str, &str)]) -> String {
    let text = changed(&[("duration: 1s", &format!("duration: 1s\n{load}"))]);
    let folder = files
        .iter()
        .fold(Folder::with_lab(text), |folder, (path, text)| {
            folder.file(path, text)
        });
    match folder.parse() {
        Ok(lab) => lab.requests.iter().map(show).collect(),
        Err(mistakes) => mistakes.render(false),
    }
}

fn show(request: &RequestTemplate) -> String {
    let RequestTemplate {
        name,
        method,
        path,
        headers,
        body,
        weight,
        ..
    } = request;
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect();
    let body = String::from_utf8_lossy(body);
    format!("# {name} x{weight}\n{method} {path}\n{headers}\n{body}\n")
}

#[test]
fn without_requests_one_goes_to_the_path() {
    assert_snapshot!(requests("", &[]), @"
    # / x1
    GET /
    ");
    assert_snapshot!(requests("  path: /health?x=1", &[]), @"
    # /health?x=1 x1
    GET /health?x=1
    ");
}

#[test]
fn files_become_requests_in_the_order_of_their_names() {
    assert_snapshot!(requests(
        "  requests: queries/*.*\n  path: /graphql\n  headers: {x-trace: 1}",
        &[
            ("labs/queries/b.json", "{\"query\": \"{b}\" }\n"),
            ("labs/queries/a.graphql", "query A {\n  \"a\"\n}\n"),
            ("labs/queries/.hidden.json", "{}"),
            ("labs/other.json", "{}"),
        ],
    ), @r#"
    # a x1
    POST /graphql
    x-trace: 1
    Content-Type: application/json

    {"query":"query A {\n  \"a\"\n}\n"}
    # b x1
    POST /graphql
    x-trace: 1
    Content-Type: application/json

    {"query": "{b}" }
    "#);
}

#[test]
fn requests_can_be_written_in_the_lab() {
    assert_snapshot!(requests(
        "  path: /graphql
  headers: {Accept: text/html, X-A: '1'}
  requests:
    - queries/test.json
    - {name: list, query: '{ items }', variables: {z: 1, a: [1.50, null, x]}, weight: 3}
    - {path: /rest, json: {b: 1, a: true}, headers: {content-type: application/x, accept: '*/*'}}
    - {name: form, method: PUT, body: form.txt}
    - {name: plain, path: /, method: GET}
",
        &[
            ("labs/queries/test.json", "{}"),
            ("labs/form.txt", "a=b&c=d"),
        ],
    ), @r#"
    # test x1
    POST /graphql
    Accept: text/html
    X-A: 1
    Content-Type: application/json

    {}
    # list x3
    POST /graphql
    Accept: text/html
    X-A: 1
    Content-Type: application/json

    {"query":"{ items }","variables":{"z":1,"a":[1.5,null,"x"]}}
    # /rest x1
    POST /rest
    X-A: 1
    content-type: application/x
    accept: */*

    {"b":1,"a":true}
    # form x1
    PUT /graphql
    Accept: text/html
    X-A: 1

    a=b&c=d
    # plain x1
    GET /
    Accept: text/html
    X-A: 1
    "#);
}

#[test]
fn a_missing_request_file_shows_the_path_tried() {
    assert_snapshot!(requests("  requests: [queries/none.json, none/*.json, '*.graphql', '*/x.json', x.yaml]", &[]), @"
    error: cannot read `labs/queries/none.json`: no such file
     --> labs/x.yaml:5:14
      |
    5 |   requests: [queries/none.json, none/*.json, '*.graphql', '*/x.json', x.yaml]
      |              ^^^^^^^^^^^^^^^^^
      |
      = help: paths are relative to the file that contains them

    error: cannot list `labs/none`: no such folder
     --> labs/x.yaml:5:33
      |
    5 |   requests: [queries/none.json, none/*.json, '*.graphql', '*/x.json', x.yaml]
      |                                 ^^^^^^^^^^^
      |
      = help: paths are relative to the file that contains them

    error: no file matches `labs/*.graphql`
     --> labs/x.yaml:5:46
      |
    5 |   requests: [queries/none.json, none/*.json, '*.graphql', '*/x.json', x.yaml]
      |                                              ^^^^^^^^^^^
      |
      = help: paths are relative to the file that contains them

    error: `*/x.json` has a `*` in a folder name
     --> labs/x.yaml:5:59
      |
    5 |   requests: [queries/none.json, none/*.json, '*.graphql', '*/x.json', x.yaml]
      |                                                           ^^^^^^^^^^
      |
      = help: write `*` only in the name of the file: `queries/*.json`

    error: `labs/x.yaml` is not a request
     --> labs/x.yaml:5:71
      |
    5 |   requests: [queries/none.json, none/*.json, '*.graphql', '*/x.json', x.yaml]
      |                                                                       ^^^^^^
      |
      = help: request files are `.json` (a body) or `.graphql` (a query). For any other body write `{body: file, headers: {Content-Type: …}}`
    ");
}

#[test]
fn a_request_file_that_is_not_json_is_shown_where_it_breaks() {
    assert_snapshot!(requests("  requests: queries/*.json", &[("labs/queries/a.json", "{\n  \"query\": \"{a}\",\n}\n"), ("labs/queries/b.json", "")]), @"
    error: this is not JSON: key must be a string
     --> labs/queries/a.json:3:1
      |
    3 | }
      | ^
      |
     ::: labs/x.yaml:5:13
      |
    5 |   requests: queries/*.json
      |             -------------- this names the file

    error: this is not JSON: EOF while parsing a value
     --> labs/queries/b.json
      |
     ::: labs/x.yaml:5:13
      |
    5 |   requests: queries/*.json
      |             -------------- this names the file
    ");
}

#[test]
fn a_request_has_one_body() {
    assert_snapshot!(requests("  requests: [{name: a, json: {}, query: '{a}'}, {name: b, variables: {}}]", &[]), @"
    error: `json` and `query` exclude each other
     --> labs/x.yaml:5:41
      |
    5 |   requests: [{name: a, json: {}, query: '{a}'}, {name: b, variables: {}}]
      |                              --         ^^^^^
      |                              |
      |                              `json` is given here
      |
      = help: a request has one body. Remove one of the two

    error: `variables` without `query`
     --> labs/x.yaml:5:70
      |
    5 |   requests: [{name: a, json: {}, query: '{a}'}, {name: b, variables: {}}]
      |                                                                      ^^
      |
      = help: `variables` belong to a `query`. For another body write `json`
    ");
}

#[test]
fn requests_have_names_of_their_own() {
    assert_snapshot!(requests("  requests: [{path: /a}, {path: /a, method: PUT}]", &[]), @"
    error: two requests are named `/a`
     --> labs/x.yaml:5:26
      |
    5 |   requests: [{path: /a}, {path: /a, method: PUT}]
      |              ----------  ^^^^^^^^^^^^^^^^^^^^^^^
      |              |
      |              the first request with this name
      |
      = help: give each request its own `name`. To send one more often, give it a `weight`
    ");
}

#[test]
fn headers_that_the_connection_depends_on_are_the_generators() {
    assert_snapshot!(requests("  headers: {Connection: close, Host: example.org}\n  requests: {path: /, headers: {content-length: 5}}", &[]), @"
    error: the generator itself writes `Connection`
     --> labs/x.yaml:5:13
      |
    5 |   headers: {Connection: close, Host: example.org}
      |             ^^^^^^^^^^
      |
      = help: remove it. For a new connection per request write `keep-alive: off`

    error: the generator itself writes `content-length`
     --> labs/x.yaml:6:33
      |
    6 |   requests: {path: /, headers: {content-length: 5}}
      |                                 ^^^^^^^^^^^^^^
      |
      = help: remove it. For a new connection per request write `keep-alive: off`
    ");
}

#[test]
fn a_place_that_means_nothing_is_refused_and_not_sent() {
    assert_snapshot!(requests("  path: /{{stack}}", &[]), @"
    error: `{{stack}}` is not defined here
     --> labs/x.yaml:5:10
      |
    5 |   path: /{{stack}}
      |          ^^^^^^^^^
      |
      = help: the names here are name, index, random:1..9
    ");
}

#[test]
fn expectations_hold_for_every_answer() {
    let text = changed(&[(
        "target: server",
        "target: server\nexpect: {status: 201, graphql: no-errors, same-as: baseline, headers: {X-A: 5}, body: golden.json, ignore: [/extensions/ms]}",
    )]);
    let folder = Folder::with_lab(text).file("labs/golden.json", "{\"a\":1}");
    assert_debug_snapshot!(folder.parse().unwrap().expect, @r#"
    Expect {
        answer: Expectation {
            status: Exactly(
                201,
            ),
            graphql: true,
            body: Alike {
                body: [
                    123,
                    34,
                    97,
                    34,
                    58,
                    49,
                    125,
                ],
                ignore: [
                    "/extensions/ms",
                ],
            },
            headers: [
                (
                    "X-A",
                    "5",
                ),
            ],
            encoded: None,
            body_of: None,
            stream: None,
            grpc: None,
        },
        same_as_baseline: true,
        ignore: [
            "/extensions/ms",
        ],
    }
    "#);
    assert_snapshot!(check(&[("target: server", "target: server\nexpect: {ignore: timing}")]), @"
    error: `timing` is not a JSON pointer: it must begin with `/` and name a member
     --> labs/x.yaml:6:18
      |
    6 | expect: {ignore: timing}
      |                  ^^^^^^
      |
      = help: write for example `/extensions/timing`
    ");
    assert_snapshot!(check(&[("target: server", "target: server\nexpect: {body: golden.json}")]), @"
    error: cannot read `labs/golden.json`: no such file
     --> labs/x.yaml:6:16
      |
    6 | expect: {body: golden.json}
      |                ^^^^^^^^^^^
      |
      = help: paths are relative to the file that contains them
    ");
}
