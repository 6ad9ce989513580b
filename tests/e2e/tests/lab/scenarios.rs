//! Requests that follow one another, with `weigh load --scenario` and in labs. Data in labs.

use e2e::{Run, Server, World, shop, weigh_command};
use serde_json::Value;

const STEPS: &str = "
  - name: log in
    path: /login
    json: {user: '{{user}}'}
    expect: {status: 201}
    capture: {token: {json: /token}, mine: {header: location, regex: '^/(.*)$'}}
  - name: look
    path: /{{mine}}?page={{page}}
    headers: {X-Token: '{{token}}'}
  - name: look again
    pause: 5ms
    path: /{{mine}}
    headers: {X-Token: '{{token}}'}
";

fn scenario(users: &str, flags: &[&str]) -> Run {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("shopping.yaml");
    let text = format!("data: {{file: users.csv, ranges: {{page: 1..9}}}}\nsteps:{STEPS}");
    std::fs::write(&file, text).expect("it can be written");
    std::fs::write(folder.path().join("users.csv"), users).expect("it can be written");
    let server = Server::of(&shop(), &[]);
    let output = weigh_command()
        .arg("load")
        .arg(format!("http://{}/", server.address()))
        .args(["-c", "2", "--scenario"])
        .arg(&file)
        .args(flags)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.answer())
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.answer(), run.talk()))
}

#[test]
fn a_scenario_sends_its_steps_in_order_with_what_was_captured() {
    for flags in [&["-n", "6"][..], &["-r", "100", "-z", "60ms"]] {
        let run = scenario("user\nann\nbo\n", flags).ran();
        for words in ["log in", "look again", "passed 6", "6 complete"] {
            run.shows(words);
        }
    }
    let run = scenario(
        "user\nann\n",
        &["-n", "3", "--format", "json", "--record", "/dev/null"],
    );
    let result = json(&run.ran());
    let outcomes = &result["summary"]["variants"][0]["outcomes"];
    assert_eq!(outcomes["passed"], 9, "{result:#}");
    assert_eq!(result["load"]["is_scenario"], true);
}

#[test]
fn a_capture_that_finds_nothing_is_mismatched_and_the_rest_of_its_iteration_is_skipped() {
    let run = scenario("user\nann\nstranger\n", &["-n", "4"]).exits_with(3);
    // The response to the login of `stranger` has status 200 instead of the expected one, and has no token
    // either.
    for words in [
        "expected status 201, found 200",
        "passed 2, mismatched 2 (status 2)",
        "skipped 2",
        "2 ended by a step that did not pass",
    ] {
        run.shows(words);
    }
}

#[test]
fn captured_values_keep_their_kind_in_json_and_cannot_break_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("values.yaml");
    // The echo is captured, so an iteration completes only if the body has exactly this text.
    let steps = r#"
steps:
  - path: /values
    capture: {id: {json: /id}, text: {json: /text}, list: {json: /list}}
  - path: /echo
    json: {a: '{{json:id}}', b: '{{json:text}}', c: 'no {{text}} {{id}}', d: '{{json:list}}'}
    capture:
      same: {regex: '^\{"a":7,"b":"a\\"b\\\\c","c":"no a\\"b\\\\c 7","d":\[true\]\}$'}
"#;
    std::fs::write(&file, steps).expect("it can be written");
    let server = Server::of(&shop(), &[]);
    let output = weigh_command()
        .arg("load")
        .arg(format!("http://{}/", server.address()))
        .args(["-c", "1", "-n", "3", "--scenario"])
        .arg(&file)
        .output()
        .expect("weigh starts");
    let run = Run::of(output).ran();
    run.shows("3 complete");
}

#[test]
fn mistakes_in_a_scenario_are_shown_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("wrong.yaml");
    std::fs::write(&file, "steps:\n  - {path: '/{{tokn}}'}\n").expect("it can be written");
    let output = weigh_command()
        .args(["load", "http://127.0.0.1:1/", "--scenario"])
        .arg(&file)
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(2);
    run.says("`{{tokn}}` is not defined here");
    run.says("wrong.yaml:2:");
}

fn lab(load: &str, rest: &str) -> World {
    World::of_lab(&format!(
        "question: what do steps cost?\n\
         load:\n  connections: 2\n  count: 20\n{load}\
         rounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    settings: {{flags: ''}}\n    \
         run: SHOP --listen {{{{addr}}}}\n    ready: {{path: /health}}\n\
         baseline: {{name: a}}\nvariants: [{{name: b}}]\n{rest}"
    ))
}

#[test]
fn a_lab_measures_a_scenario_and_records_its_steps() {
    let steps = STEPS.replace("\n  ", "\n    ");
    let load = format!("  data: {{file: users.csv, ranges: {{page: 1..9}}}}\n  scenario:{steps}\n");
    let run = lab(&load, "")
        .file("users.csv", "user\nann\nbo\n")
        .run()
        .ran();
    let recording = run.recording();
    for round in recording["rounds"].as_array().expect("rounds") {
        assert_eq!(round["iterations"]["completed"], 20, "{round:#}");
        let steps = round["steps"].as_array().expect("steps");
        let passed: Vec<&Value> = steps.iter().map(|it| &it["outcomes"]["passed"]).collect();
        assert_eq!(passed, [20, 20, 20], "{round:#}");
    }
    run.shows_in_full("look again");
}

#[test]
fn rows_of_a_file_go_round_in_a_lab() {
    // The counts of the server show the requests that were sent.
    let proof = |path: &str, count: f64| {
        format!(
            "  - {{ask: '{{{{server.url}}}}/seen', json: '/by_path/~1{path}', exactly-per-request: {count}}}\n"
        )
    };
    let proofs = format!("proof:\n{}{}", proof("ann", 0.5), proof("bo", 0.5));
    let load = "  data: users.csv\n  path: '/{{user}}'\n";
    // The proof sends every request as the first slot would send it.
    let run = lab(load, "")
        .file("users.csv", "user\nann\nbo\n")
        .run()
        .ran();
    let recording = run.recording();
    assert_eq!(recording["load"]["requests"][0]["path"], "/{{user}}");
    let wrong = lab(load, &proofs)
        .file("users.csv", "user\nann\nbo\n")
        .run();
    let _ = wrong
        .exits_with(3)
        .row("a", &["did not do the work", "found 2 in 2 requests"]);
}

#[test]
fn an_iteration_is_one_of_k6_and_a_virtual_user_of_artillery() {
    let run = scenario("user\nann\nstranger\n", &["-n", "4", "--format", "k6"]).exits_with(3);
    let metrics = json(&run)["metrics"].clone();
    assert_eq!(metrics["iterations"]["count"], 4, "{metrics:#}");
    assert_eq!(metrics["http_reqs"]["count"], 8, "{metrics:#}");
    assert!(metrics["iteration_duration"].is_null(), "{metrics:#}");
    let flags = ["-n", "4", "--format", "artillery"];
    let run = scenario("user\nann\nstranger\n", &flags).exits_with(3);
    let counters = json(&run)["aggregate"]["counters"].clone();
    assert_eq!(counters["vusers.created"], 4, "{counters:#}");
    assert_eq!(counters["vusers.completed"], 2);
    assert_eq!(counters["vusers.failed"], 2);
    assert_eq!(counters["http.requests"], 8);
}

/// A login, a subscription with the token in five places, and a conversation with the token in its messages.
const NOTICES: &str = "
  - name: log in
    path: /login
    json: {user: '{{user}}'}
    expect: {status: 201}
    capture: {token: {json: /token}}
  - name: subscribe
    path: /notices?token={{token}}
    headers: {X-Token: '{{token}}'}
    websocket:
      protocol: graphql-transport-ws
      offers: bearer.{{token}}
      init: {token: '{{token}}'}
      subscribe: {query: 'subscription { notice(of: \"{{token}}\") { token } }'}
    stream: {events: 2, each: graphql}
  - name: talk
    path: /notices
    headers: {X-Token: '{{token}}'}
    websocket: {messages: [{json: {mine: '{{token}}'}}, {text: 'and {{token}}'}], replies: order}
    stream: {each: json}
  - {name: look, path: /mine, headers: {X-Token: '{{token}}'}}
";

#[test]
fn a_captured_token_opens_a_subscription_in_a_file_and_in_a_lab() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("notices.yaml");
    std::fs::write(&file, format!("data: users.csv\nsteps:{NOTICES}")).expect("it can be written");
    let users = folder.path().join("users.csv");
    std::fs::write(users, "user\nann\nbo\n").expect("it can be written");
    let server = Server::of(&shop(), &[]);
    let output = weigh_command()
        .arg("load")
        .arg(format!("http://{}/", server.address()))
        .args(["-c", "2", "-n", "6", "--format", "json", "--scenario"])
        .arg(&file)
        .output()
        .expect("weigh starts");
    let result = json(&Run::of(output).ran());
    let row = &result["summary"]["variants"][0];
    assert_eq!(row["outcomes"]["passed"], 24, "{result:#}");
    // Two results and two replies in each iteration.
    assert_eq!(row["metrics"]["events_per_stream"]["value"], 2.0);
    let steps = NOTICES.replace("\n  ", "\n    ");
    let load = format!("  data: users.csv\n  scenario:{steps}\n");
    let run = lab(&load, "")
        .file("users.csv", "user\nann\nbo\n")
        .run()
        .ran();
    for round in run.recording()["rounds"].as_array().expect("rounds") {
        assert_eq!(round["iterations"]["completed"], 20, "{round:#}");
    }
    run.shows_in_full("subscribe");
}

#[test]
fn a_subscription_without_the_token_of_its_login_is_refused_by_the_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("notices.yaml");
    let steps = NOTICES
        .replace("'{{user}}'", "ann")
        .replace("init: {token: '{{token}}'}", "init: {token: other}");
    std::fs::write(&file, format!("steps:{steps}")).expect("it can be written");
    let server = Server::of(&shop(), &[]);
    let output = weigh_command()
        .arg("load")
        .arg(format!("http://{}/", server.address()))
        .args(["-c", "1", "-n", "2", "--scenario"])
        .arg(&file)
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(3);
    run.shows("4403 (Forbidden)");
    run.shows("2 ended by a step that did not pass");
}
