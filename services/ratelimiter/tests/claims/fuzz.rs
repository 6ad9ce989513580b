//! Tests that every response to random input is a GraphQL response of the contract.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use test_client::Response;

use crate::server::start;

fn run<S: Strategy>(strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let mut runner = TestRunner::new(Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    });
    runner.run(strategy, test).unwrap();
}

/// Checks the shape of a response, and that its status matches.
fn check(response: &Response) -> Result<Value, TestCaseError> {
    prop_assert!(matches!(response.status, 200 | 400), "{:?}", response);
    let answer = response.json();
    let one = |answer: &Value| {
        answer.get("data").is_some()
            || answer["errors"].as_array().is_some_and(|errors| {
                errors.iter().all(|error| {
                    error["message"].is_string() && error["extensions"]["code"].is_string()
                })
            })
    };
    let is_answer = match &answer {
        Value::Array(answers) => !answers.is_empty() && answers.iter().all(one),
        answer => one(answer),
    };
    prop_assert!(is_answer, "{}", answer);
    for word in ["stacktrace", "panicked", "src/"] {
        prop_assert!(!response.body.contains(word), "{}", answer);
    }
    Ok(answer)
}

/// JSON of any shape.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("LOGIN_FAILED")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            "ip",
            "email",
            "eventName",
            "query",
            "variables",
            "i",
            "\\PC{0,4}"
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn any_address_and_email_is_answered() {
    let server = start(&[]);
    let client = RefCell::new(server.client());
    let ip = prop_oneof![
        "\\PC{0,40}",
        "[0-9a-f:.%/]{0,45}",
        "[0-9]{1,4}(\\.[0-9]{1,4}){3}"
    ];
    let email = prop_oneof![
        "\\PC{0,40}",
        "[a-z.\"\\\\ ]{0,9}@[a-z0-9.-]{0,70}",
        "[^@]{0,80}@\\PC{0,20}"
    ];
    run(&(ip, email, any::<bool>()), |(ip, email, failed)| {
        let event = if failed {
            "LOGIN_FAILED"
        } else {
            "LOGIN_SUCCEEDED"
        };
        let query = format!(
            "query($ip:String!,$email:String!){{ratelimit(ratelimitInput:{{eventName:{event},ip:$ip,email:$email}}){{ipFrom isRateLimited}}}}"
        );
        let body = json!({"query": query, "variables": {"ip": ip, "email": email}});
        let response = client.borrow_mut().post("/", body.to_string().as_bytes());
        let answer = check(&response)?;
        prop_assert_eq!(response.status, 200);
        let decided = &answer["data"]["ratelimit"];
        if decided.is_null() {
            prop_assert_eq!(&answer["errors"][0]["message"], "Argument Validation Error");
        } else {
            prop_assert_eq!(&decided["ipFrom"], &json!(ip));
        }
        Ok(())
    });
}

#[test]
fn any_variables_are_answered() {
    let server = start(&[]);
    let client = RefCell::new(server.client());
    let query = "query($i: RatelimitInput!) { ratelimit(ratelimitInput: $i) { isRateLimited } }";
    run(&(any_json(), any::<bool>()), |(variables, as_text)| {
        for variables in [variables.clone(), json!({ "i": variables })] {
            let variables = if as_text {
                Value::from(variables.to_string())
            } else {
                variables
            };
            let body = json!({"query": query, "variables": variables}).to_string();
            check(&client.borrow_mut().post("/", body.as_bytes()))?;
        }
        Ok(())
    });
}

/// An executed document is not validated again. The response must not depend on that.
#[test]
fn an_answer_is_the_same_whether_or_not_the_document_is_known() {
    let server = start(&[]);
    let client = RefCell::new(server.client());
    let good = json!({"e": "LOGIN_FAILED", "i": "1.2.3.4", "m": "a@b.se", "x": {"eventName": "LOGIN_FAILED", "ip": "1.2.3.4", "email": "a@b.se"}});
    let input = "ratelimit(ratelimitInput: {eventName: $e, ip: $i, email: $m}) { ipFrom }";
    let documents = [
        format!("query($e: EventName!, $i: String!, $m: String!) {{ {input} }}"),
        format!("query($e: EventName!, $i: String, $m: String = \"c@d.se\") {{ {input} }}"),
        format!("query($e: EventName! = LOGIN_FAILED, $i: String! = \"1.1.1.1\", $m: String!) {{ {input} }}"),
        "query($x: RatelimitInput!) { ratelimit(ratelimitInput: $x) { ipFrom } }".to_owned(),
        "query A($x: RatelimitInput!) { ratelimit(ratelimitInput: $x) { ipFrom } } query B { nothing }".to_owned(),
        "query($m: Boolean!) { __typename @include(if: $m) }".to_owned(),
    ];
    let post = |document: &str, variables: &Value| {
        let name = document.contains("query A").then_some("A");
        let body = json!({"query": document, "variables": variables, "operationName": name});
        client.borrow_mut().post("/", body.to_string().as_bytes())
    };
    for document in &documents {
        check(&post(document, &good)).unwrap();
    }
    let value = || prop_oneof![Just(None), any_json().prop_map(Some)];
    let changes = (
        value(),
        value(),
        value(),
        value(),
        any::<u8>(),
        any::<u64>(),
    );
    run(&changes, |(e, i, m, x, kept, unique)| {
        let mut variables = good.clone();
        for (bit, (name, value)) in [("e", e), ("i", i), ("m", m), ("x", x)]
            .into_iter()
            .enumerate()
        {
            if kept & (1 << bit) != 0 {
                continue;
            }
            let object = variables.as_object_mut().unwrap();
            match value {
                Some(value) => object.insert(name.to_owned(), value),
                None => object.remove(name),
            };
        }
        for document in &documents {
            let known = post(document, &variables);
            // A comment at the end moves no position, but makes it another text.
            let unknown = post(&format!("{document} # {unique}"), &variables);
            prop_assert_eq!(
                (known.status, known.json()),
                (unknown.status, unknown.json())
            );
        }
        Ok(())
    });
}

#[test]
fn any_query_and_any_body_is_answered() {
    let server = start(&[]);
    let client = RefCell::new(server.client());
    let words: [&str; 14] = [
        "query ",
        "mutation ",
        "fragment F on Query ",
        "...F ",
        "... on Query ",
        "ratelimit",
        "ratelimitInput",
        "eventName",
        "LOGIN_FAILED ",
        "serverinfo{hostname}",
        "__typename ",
        "__schema{types{name}}",
        "$x:Int=1 ",
        "\"\"\"",
    ];
    let word = prop_oneof![
        1 => "[{}()\\[\\]:!$\"#@.,|=& \n]",
        2 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
    ];
    let query = proptest::collection::vec(word, 0..30).prop_map(|words| words.concat());
    run(
        &(
            query,
            any_json(),
            proptest::collection::vec(any::<u8>(), 0..200),
        ),
        |(query, body, bytes)| {
            let mut client = client.borrow_mut();
            let request = json!({ "query": query }).to_string();
            check(&client.post("/", request.as_bytes()))?;
            check(&client.post("/", body.to_string().as_bytes()))?;
            check(&client.post("/", &bytes))?;
            Ok(())
        },
    );
}

#[test]
fn hostile_sizes_are_refused_quickly() {
    let server = start(&[]);
    let mut client = server.client();
    let deep = ["[", "{a", "{a(b:[", "{\"a\":"].map(|part| part.repeat(40_000 / part.len()));
    for text in deep {
        assert_eq!(client.query(&text).status, 400);
        assert_eq!(client.post("/", text.as_bytes()).status, 400);
    }
    let long = client.query(&"a".repeat(200_000));
    assert_eq!(long.status, 413);
    long.json();
    assert_eq!(server.client().query("{__typename}").status, 200);
}
