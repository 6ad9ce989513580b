//! Variants that receive other requests than their baseline: the same work, requested in another way.

use e2e::{World, fixture, summary_of, unwrapped};
use serde_json::Value;

/// A server that supports hashes and lists. The variant `hash` sends a hash, with or without its text once
/// after each start. The variant `list` sends the two requests in one.
fn world(load: &str, prepare: &str, answer: &str) -> World {
    World::of_lab(&format!(
        "question: what does another way of asking cost?\n\
         load:\n  {load}\n  requests: [one.json, two.json]\n\
         rounds: 2\nwarmup: 50ms\norder: side-by-side\ntarget: server\n\
         systems:\n  server:\n    settings: {{answer: operations}}\n    \
         run: {} --listen {{{{addr}}}} --answer {{{{answer}}}}\n    ready: {{path: /health}}\n\
         expect: {{graphql: no-errors, same-as: baseline}}\n\
         baseline: {{name: text}}\n\
         variants:\n  \
         - {{name: hash, load: {{{prepare}requests: [{{name: a, json: {{hash: 1}}}}, {{name: b, json: {{hash: 1}}}}]}}}}\n  \
         - {{name: list, with: {{server.answer: {answer}}}, load: {{requests: {{name: both, batch: [one.json, two.json, one.json]}}}}}}\n",
        fixture().display()
    ))
    .file("one.json", "{\"query\": \"{ test { id } }\"}\n")
    .file("two.json", "{\"query\": \"{ other: test { id } }\"}\n")
    .file("register.json", "{\"query\": \"{ test { id } }\", \"hash\": 1}\n")
}

const RATE: &str = "rate: 100/s\n  duration: 300ms";
const COUNT: &str = "connections: 1\n  count: 40";
const REGISTER: &str = "prepare: register.json, ";

fn named<'a>(recording: &'a Value, name: &str) -> &'a Value {
    let variants = recording["variants"].as_array().expect("variants");
    let found = variants.iter().find(|variant| variant["name"] == name);
    found.expect("a variant of this name")
}

#[test]
fn each_variant_is_sent_its_own_at_the_same_planned_times() {
    let run = world(RATE, REGISTER, "operations").run();
    let recording = run.recording();
    assert_eq!(recording["load"]["requests"][0]["name"], "one");
    let hash = named(&recording, "hash");
    assert_eq!(hash["status"]["state"], "measured", "{recording:#}");
    assert_eq!(hash["requests"][1]["body"], r#"{"hash":1}"#);
    assert_eq!(hash["prepared"][0]["name"], "register");
    let list = named(&recording, "list");
    assert_eq!(list["status"]["state"], "measured", "{recording:#}");
    assert_eq!(list["requests"][0]["operations"], 3);
    let body = list["requests"][0]["body"].as_str().expect("a body");
    let asked: Vec<Value> = serde_json::from_str(body).expect("an array");
    assert_eq!(asked.len(), 3);
    let text = named(&recording, "text");
    assert!(text["requests"].is_null() && text["prepared"].is_null());
    // The server had the hash after every start, and every list was complete, so no response was wrong.
    for round in recording["rounds"].as_array().expect("rounds") {
        assert_eq!(round["outcomes"]["passed"], 30, "{round:#}");
        assert_eq!(round["planned"], 30);
    }
}

#[test]
fn the_report_says_what_was_sent_and_what_an_operation_costs() {
    // The column appears only next to figures. A machine without time for the generator has no figures.
    let Some(run) = world(COUNT, REGISTER, "operations").believed() else {
        return;
    };
    let rows = &summary_of(&run.recording_folder())["variants"];
    let sent = |row: usize| &rows[row]["sent"];
    let bytes = |row: usize| sent(row)["bytes_sent_per_request"].as_f64().expect("bytes");
    assert_eq!(sent(2)["operations_per_request"], 3.0);
    assert!(bytes(1) < bytes(0) && bytes(0) < bytes(2), "{rows:#}");
    let cpu = sent(2)["cpu_us_per_operation"]["value"].as_f64();
    assert!(cpu.is_some_and(|cpu| cpu > 0.0), "{rows:#}");
    run.shows("`hash` and `list` are sent other requests than `text`");
    run.shows_in_full("Requests sent");
    run.shows_in_full("Each request to `list` contains several operations");
}

#[test]
fn what_was_not_registered_and_lists_that_lack_an_answer_have_no_number() {
    let checked = world(RATE, "", "short-lists").command("check").output();
    let checked = e2e::Run::of(checked.expect("weigh is built")).exits_with(3);
    let text = unwrapped(&checked.answer());
    assert!(text.contains("text`: proven"), "{text}");
    for words in [
        "`hash`: request `a`: expected a GraphQL answer without errors",
        "`list`: request `both`: the body differs from the baseline's body",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn an_operation_that_cannot_be_registered_is_a_proof_that_is_not_given() {
    let wrong = "prepare: {name: register, json: {hash: 1}}, ";
    let checked = world(RATE, wrong, "operations").command("check").output();
    let checked = e2e::Run::of(checked.expect("weigh is built")).exits_with(3);
    let text = unwrapped(&checked.answer());
    let words = "`hash`: did not do the work: preparing with request `register`: expected a GraphQL answer without errors";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("list`: proven"), "{text}");
}
