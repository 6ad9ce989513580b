//! No response of a service crashes the gateway, and the gateway rejects invalid responses.

use std::cell::Cell;
use std::sync::Arc;

use gateway_remote::{CallError, Merged, RestAnswer, SourceSchema, unwrap_response};
use proptest::prelude::*;
use serde_json::Value;

use crate::stand::{Functions, ask, config, introspected, options, schema};

const SERVICE: &str = "type Query { a(x: Int): Int b: [B] } type B { c: String }";

fn gateway(more: &str) -> Merged {
    let told = Arc::new(introspected(&schema(SERVICE)));
    let yaml = format!(
        "remote_schemas: [{{name: s, url: 'http://h', {more}}}]\ntypes: 'type T {{ x: Int! l: [T!] s: String }}'\nactions: [{{name: act, type: query, output_type: '[T!]', handler: 'http://h'}}]\n"
    );
    Merged::new(&config(&yaml), &[Some(told)], options(), true)
}

/// Text that resembles a GraphQL response.
fn body() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("null"),
        Just("1"),
        Just("\"data\":"),
        Just("\"errors\":"),
        Just("\"a\":"),
        Just("\"b\":"),
        Just("\"c\":\"x\""),
        Just("{\"data\":{\"a\":1}}"),
        Just("{\"x\":1,\"l\":[]}"),
        Just(" "),
        Just("\"__typename\":\"B\""),
        Just("\u{0}"),
        Just("\\"),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn whatever_a_service_answers_the_client_gets_a_response(body in body(), renames: bool) {
        let more = if renames { "customization: {type_names: {prefix: P_}}" } else { "" };
        let merged = gateway(more);
        let sources = Functions::new(|_: &str| Ok(body.clone().into_bytes()));
        for query in ["{ a }", "{ a b { c __typename } }", "{ act { x l { s } } }", "{ a act { x } __typename }"] {
            let (text, has_errors) = ask(&merged, query, &sources);
            let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            if has_errors {
                prop_assert!(answer["errors"].is_array() && answer["data"].is_null(), "{}", text);
            } else {
                prop_assert!(answer["data"].is_object(), "{}", text);
            }
        }
        let _ = SourceSchema::read(body.as_bytes(), 100);
        if let RestAnswer::Data(data) = unwrap_response(body.as_bytes()) {
            prop_assert!(serde_json::from_slice::<Value>(&data).is_ok());
        }
    }

    #[test]
    fn no_query_breaks_the_routing(query in "(query|mutation|\\{|\\}|a|b|c|act|x|l|__typename|__schema|\\.\\.\\.|on|query_root|B|F|fragment|@skip\\(if: true\\)|@include\\(if: \\$v\\)|\\(x: 1\\)|\\$v: Boolean!|\\(|\\)|:| ){0,24}") {
        let merged = gateway("customization: {root_fields_namespace: ns}");
        let sources = Functions::new(|_: &str| Ok(br#"{"data":{}}"#.to_vec()));
        if merged.prepare(&query, None).is_ok_and(|it| it.coerce(None).is_ok()) {
            let (text, _) = ask(&merged, &query, &sources);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
    }
}

#[test]
fn a_query_that_was_seen_is_not_prepared_again() {
    let merged = gateway("");
    let sources = Functions::new(|_: &str| Ok(br#"{"data":{"a":1}}"#.to_vec()));
    for _ in 0..3 {
        assert_eq!(ask(&merged, "{ a }", &sources).0, r#"{"data":{"a":1}}"#);
    }
    let stats = merged.cache_stats();
    assert_eq!((stats.misses, stats.entries), (1, 1));
    assert!(stats.hits >= 2);
}

#[test]
fn only_a_whole_operation_of_one_service_passes_through() {
    let passes =
        |merged: &Merged, query: &str| merged.prepare(query, None).unwrap().passes_through();
    let plain = gateway("");
    assert!(passes(
        &plain,
        "query Q($x: Int) { n: a(x: $x) ... on query_root { b { __typename } } }"
    ));
    assert!(!passes(&plain, "{ a __typename }"));
    assert!(!passes(&plain, "{ a act { x } }"));
    assert!(!passes(&plain, "{ __schema { queryType { name } } }"));
    assert!(!passes(
        &gateway("customization: {root_fields_namespace: ns}"),
        "{ ns { a } }"
    ));
    let renamed = gateway("customization: {type_names: {prefix: P_}}");
    assert!(!passes(&renamed, "{ b { __typename } }"));
    // The response contains no type name.
    assert!(passes(&renamed, "{ b { c } }"));
}

#[test]
fn of_several_failures_the_first_in_the_document_is_told() {
    let merged = gateway("");
    let count = Cell::new(0);
    let sources = Functions::new(|body: &str| {
        count.set(count.get() + 1);
        if body.contains("\"action\"") {
            return Err(CallError("gone".to_owned()));
        }
        Ok(br#"{"errors":[{"message":"first"}]}"#.to_vec())
    });
    let (text, has_errors) = ask(&merged, "{ a act { x } }", &sources);
    assert!(has_errors);
    assert_eq!(text, r#"{"errors":[{"message":"first"}],"data":null}"#);
    // Both services received a request: parts of a query do not wait for each other.
    assert_eq!(count.get(), 2);
    let (text, _) = ask(&merged, "{ act { x } a }", &sources);
    assert!(
        text.contains("http exception when calling webhook"),
        "{text}"
    );
}

/// A query with `count` aliases of an action and at least `bytes` bytes.
fn aliases(count: usize, bytes: usize) -> String {
    let members: Vec<String> = (0..count)
        .map(|index| format!("a{index}: act {{ x }}"))
        .collect();
    format!("{{ {} }} # {}", members.join(" "), "x".repeat(bytes))
}

#[test]
fn what_all_handlers_of_an_operation_are_sent_is_bounded() {
    let told = Arc::new(introspected(&schema(SERVICE)));
    let start = |limits: &str| {
        let yaml = format!(
            "{limits}types: 'type T {{ x: Int! }}'\nactions: [{{name: act, type: query, output_type: 'T', handler: 'http://h'}}]\n"
        );
        Merged::new(&config(&yaml), &[Some(Arc::clone(&told))], options(), true)
    };
    let handlers = || Functions::new(|_: &str| Ok(br#"{"x":1}"#.to_vec()));
    // Each payload contains the whole query, as in Hasura: 100 MB in total.
    let refusing = handlers();
    let (text, has_errors) = ask(&start(""), &aliases(100, 1_000_000), &refusing);
    assert!(has_errors, "{}", &text[..200]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    let error = &answer["errors"][0];
    assert_eq!(error["extensions"]["code"], "validation-failed");
    assert_eq!(error["extensions"]["path"], "$");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("more than 16777216 bytes"), "{message}");
    assert!(refusing.asked.borrow().is_empty(), "before any is asked");
    // Exactly the limit.
    let two = aliases(2, 1_000);
    let asking = handlers();
    assert!(!ask(&start(""), &two, &asking).1);
    let sent: usize = asking.asked.borrow().iter().map(String::len).sum();
    assert!(
        asking
            .asked
            .borrow()
            .iter()
            .all(|it| it.contains(&"x".repeat(1_000)))
    );
    for (most, is_refused) in [(sent, false), (sent - 1, true)] {
        let limits = format!("limits: {{action_payloads_max_bytes: {most}}}\n");
        assert_eq!(
            ask(&start(&limits), &two, &handlers()).1,
            is_refused,
            "{most}"
        );
    }
    // The limit does not apply to a single action: its payload is as long as the client's request.
    let limits = "limits: {action_payloads_max_bytes: 100}\n";
    let one = handlers();
    assert!(!ask(&start(limits), &aliases(1, 1_000), &one).1);
    assert_eq!(one.asked.borrow().len(), 1);
}

#[test]
fn what_templates_of_actions_make_is_bounded() {
    let told = Arc::new(introspected(&schema(SERVICE)));
    // A common template: each item gets the note.
    let transform = |whole: &str, list: &str, note: &str| {
        format!(
            "{whole}: {{body: {{action: transform, template: '{{{{range _, x := {list}}}}}{{\"x\": {{{{x}}}}, \"note\": {{{{{note}}}}}}}{{{{end}}}}'}}}}"
        )
    };
    let start = |transform: &str, (payload_bytes, answers_bytes): (usize, usize)| {
        let yaml = format!(
            "limits: {{action_payloads_max_bytes: {payload_bytes}}}\ntypes: 'type T {{ x: Int! }}'\nactions: [{{name: act, type: query, output_type: '[T!]', arguments: [{{name: xs, type: '[Int!]'}}, {{name: note, type: String}}], handler: 'http://h', {transform}}}]\n"
        );
        let mut options = options();
        options.bounds.answers_bytes = answers_bytes;
        Merged::new(&config(&yaml), &[Some(Arc::clone(&told))], options, true)
    };
    let most = 16 << 20;
    let request = transform("request_transform", "$body.input.xs", "$body.input.note");
    let query = |members: &[(usize, usize)]| {
        let members = members.iter().enumerate().map(|(at, (items, note))| {
            let xs = vec!["1"; *items].join(",");
            format!(
                "a{at}: act(xs: [{xs}], note: \"{}\") {{ x }} ",
                "n".repeat(*note)
            )
        });
        format!("{{ {} }}", members.collect::<String>())
    };
    let handlers = || Functions::new(|_: &str| Ok(b"[]".to_vec()));
    let asking = handlers();
    let merged = start(&request, (most, most));
    let (text, has_errors) = ask(&merged, &query(&[(100, 100)]), &asking);
    assert!(!has_errors, "{text}");
    let sent: usize = asking.asked.borrow().iter().map(String::len).sum();
    assert!(sent > 100 * 100, "{sent}");
    // 24 KB become 40 MB for the handler: with one action, and with four actions that are each within the
    // limit.
    for members in [&[(2_000, 20_000)][..], &[(500, 10_000); 4]] {
        let refusing = handlers();
        let (text, has_errors) = ask(&merged, &query(members), &refusing);
        assert!(has_errors, "{} bytes", text.len());
        let answer: Value = serde_json::from_str(&text).unwrap();
        let error = &answer["errors"][0];
        assert_eq!(error["extensions"]["code"], "validation-failed", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("may make 16777216 bytes"), "{message}");
        assert!(
            refusing
                .asked
                .borrow()
                .iter()
                .map(String::len)
                .sum::<usize>()
                < 2 * most
        );
    }
    // The transformed response has the same limit as the responses.
    let response = transform("response_transform", "$body.xs", "$body.note");
    let xs = vec!["1"; 2_000].join(",");
    let answer = format!(r#"{{"xs":[{xs}],"note":"{}"}}"#, "n".repeat(20_000));
    for (answers_bytes, is_refused) in [(1 << 20, true), (64 << 20, false)] {
        let answering = Functions::new(|_: &str| Ok(answer.clone().into_bytes()));
        let merged = start(&response, (most, answers_bytes));
        let (text, has_errors) = ask(&merged, "{ act { x } }", &answering);
        assert_eq!(has_errors, is_refused, "{}", &text[..200]);
        if is_refused {
            assert!(text.contains("SUBGRAPH_ANSWERS_TOO_LARGE"), "{text}");
        }
    }
}

#[test]
fn what_a_merged_schema_says_of_itself_is_bounded_and_told_in_turns() {
    let told = Arc::new(introspected(&schema(SERVICE)));
    let yaml = "remote_schemas: [{name: s, url: 'http://h'}]\n";
    let start = |response_bytes| {
        let mut options = options();
        options.bounds.response_bytes = response_bytes;
        Merged::new(&config(yaml), &[Some(Arc::clone(&told))], options, true)
    };
    let services = Functions::new(|_: &str| Ok(br#"{"data":{"a":1}}"#.to_vec()));
    let mut types = "name".to_owned();
    for _ in 0..7 {
        types =
            format!("name fields {{ name type {{ ofType {{ {types} ofType {{ {types} }} }} }} }}");
    }
    let query =
        format!("{{ a __schema {{ types {{ {types} }} }} b: __schema {{ types {{ {types} }} }} }}");
    let (text, has_errors) = ask(&start(64 << 20), &query, &services);
    assert!(!has_errors, "{}", &text[..200]);
    assert!(services.pauses.get() > 0, "{} bytes at once", text.len());
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["data"]["__schema"], answer["data"]["b"]);
    // The limit applies to both together.
    let (text, has_errors) = ask(&start(text.len() / 2 + 100), &query, &services);
    assert!(has_errors && text.len() < 1_000);
    assert!(text.contains("RESPONSE_TOO_LARGE"), "{text}");
}

/// A gateway with these limits, and an action that returns a list.
fn listing(response_bytes: usize, answers_bytes: usize) -> Merged {
    let told = Arc::new(introspected(&schema(SERVICE)));
    let yaml = "types: 'type T { x: Int! }'\nactions: [{name: act, type: query, output_type: '[T!]', handler: 'http://h'}]\n";
    let mut options = options();
    options.bounds.response_bytes = response_bytes;
    options.bounds.answers_bytes = answers_bytes;
    Merged::new(&config(yaml), &[Some(told)], options, true)
}

fn error_code(text: &str) -> String {
    let answer: Value = serde_json::from_str(text).unwrap();
    let code = &answer["errors"][0]["extensions"]["code"];
    code.as_str().unwrap_or("none").to_owned()
}

#[test]
fn what_a_client_makes_of_the_answer_of_a_handler_is_bounded() {
    let list = format!("[{}]", vec![r#"{"x":1}"#; 1_000].join(","));
    let handler = Functions::new(|_: &str| Ok(list.clone().into_bytes()));
    // A hundred times as long as the handler's response.
    let members: Vec<String> = (100..200).map(|index| format!("a{index}: x")).collect();
    let query = format!("{{ act {{ {} }} }}", members.join(" "));
    let (text, has_errors) = ask(&listing(2_000_000, 1 << 20), &query, &handler);
    assert!(!has_errors && text.len() > 800_000, "{}", text.len());
    let (text, has_errors) = ask(&listing(500_000, 1 << 20), &query, &handler);
    assert!(has_errors && text.len() < 1_000, "{}", text.len());
    assert_eq!(error_code(&text), "RESPONSE_TOO_LARGE");
    // The limit applies to all actions of an operation together.
    let two = "{ a: act { x } b: act { x } }";
    assert!(!ask(&listing(20_000, 1 << 20), two, &handler).1);
    let (text, _) = ask(&listing(12_000, 1 << 20), two, &handler);
    assert_eq!(error_code(&text), "RESPONSE_TOO_LARGE");
}

#[test]
fn the_answers_to_one_operation_are_bounded_together() {
    let list = format!("[{}]", vec![r#"{"x":1}"#; 1_000].join(","));
    let handler = Functions::new(|_: &str| Ok(list.clone().into_bytes()));
    let three = "{ a: act { x } b: act { x } c: act { x } }";
    assert!(!ask(&listing(1 << 20, 3 * list.len()), three, &handler).1);
    let (text, has_errors) = ask(&listing(1 << 20, 3 * list.len() - 1), three, &handler);
    assert!(has_errors);
    assert_eq!(error_code(&text), "SUBGRAPH_ANSWERS_TOO_LARGE");
}
