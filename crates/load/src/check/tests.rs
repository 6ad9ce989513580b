use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::measurement::FailureKind;

fn answer(body: &str) -> Answer {
    Answer {
        status: 200,
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: body.as_bytes().to_vec(),
    }
}

fn graphql() -> Expectation {
    Expectation {
        graphql: true,
        ..Expectation::default()
    }
}

fn equal_to(body: &str) -> Expectation {
    Expectation {
        body: BodyRule::Equals(Arc::from(body.as_bytes())),
        ..Expectation::default()
    }
}

/// Judges and says the result in a line.
fn verdict(expect: &Expectation, answer: &Answer) -> String {
    match check(expect, answer) {
        Ok(()) => "right".to_owned(),
        Err(mismatch) => format!("{}: {mismatch}", mismatch.kind().name()),
    }
}

#[test]
fn the_status_must_follow_its_rule() {
    let mut answer = answer("");
    for (status, rule, is_right) in [
        (200, StatusRule::Success, true),
        (299, StatusRule::Success, true),
        (302, StatusRule::Success, false),
        (404, StatusRule::Exactly(404), true),
        (200, StatusRule::Exactly(404), false),
        (500, StatusRule::Any, true),
    ] {
        answer.status = status;
        let expect = Expectation {
            status: rule,
            ..Expectation::default()
        };
        assert_eq!(check(&expect, &answer).is_ok(), is_right, "{status} {rule}");
    }
    assert_eq!(
        verdict(
            &Expectation::default(),
            &Answer {
                status: 500,
                ..answer
            }
        ),
        "status: expected status 2xx, found 500"
    );
}

#[test]
fn only_a_top_level_errors_member_is_an_error() {
    for right in [
        r#"{}"#,
        r#" { "data" : { "a" : [1, 2, {"errors": []}], "b": "x" } } "#,
        r#"{"data":{"errors":[{"message":"m"}]}}"#,
        r#"{"data":"\"errors\":[1]"}"#,
        r#"{"data":"\\","x":"{\"errors\":1}"}"#,
        r#"{"data":null,"error":1,"errorsX":2,"Errors":3,"\"errors":4,"\u0065rrorz":5}"#,
        r#"{"data":1,"errors":null}"#,
        r#"{"errors" : [ ] ,"data":-1.5e7}"#,
        r#"{"a":[[[]]],"b":true,"c":"é\u00e9\n"}"#,
    ] {
        assert_eq!(verdict(&graphql(), &answer(right)), "right", "{right}");
    }
    for wrong in [
        r#"{"data":null,"errors":[{"message":"m"}]}"#,
        r#"{"errors":[1]}"#,
        r#"{"errors":{}}"#,
        r#"{"errors":"boom"}"#,
        r#"{"errors":true}"#,
        r#"{"data":{"a":"}"},"errors":[{}]}"#,
        r#"{"data":[1,"]"],"\u0065rrors":[{}]}"#,
        r#"{"data":1,"errors":[],"errors":[1]}"#,
        "{\n  \"errors\"\t:\r\n[ 1 ] }",
    ] {
        assert_eq!(
            verdict(&graphql(), &answer(wrong)),
            "graphql: expected a GraphQL answer without errors, found a top-level `errors` member",
            "{wrong}"
        );
    }
}

#[test]
fn what_is_no_json_object_is_no_graphql_answer() {
    for wrong in [
        "",
        "[]",
        "null",
        "<html></html>",
        "{",
        r#"{"data":1"#,
        "{}{}",
        r#"{"a" 1}"#,
        "{1:2}",
        r#"{"a":"#,
        r#"{"a":"x"#,
    ] {
        assert_eq!(
            verdict(&graphql(), &answer(wrong)),
            "graphql: expected a GraphQL answer without errors, found a body that is not one complete JSON object",
            "{wrong}"
        );
    }
}

#[test]
fn a_body_must_equal_the_known_one_to_the_last_byte() {
    let expect = equal_to("hello");
    assert_eq!(verdict(&expect, &answer("hello")), "right");
    assert_eq!(
        verdict(&expect, &answer("hellO")),
        "body: expected the known body of 5 bytes, found 5 bytes that differ at byte 4"
    );
    assert_eq!(
        verdict(&expect, &answer("hell")),
        "body: expected the known body of 5 bytes, found 4 bytes that differ at byte 4"
    );
    assert_eq!(
        verdict(&expect, &answer("hello!")),
        "body: expected the known body of 5 bytes, found 6 bytes that differ at byte 5"
    );
    assert_eq!(
        verdict(&equal_to(""), &answer("x")),
        "body: expected the known body of 0 bytes, found 1 bytes that differ at byte 0"
    );
    assert_eq!(verdict(&equal_to(""), &answer("")), "right");
}

#[test]
fn headers_must_be_there_with_their_value() {
    let expect = |name: &str, value: &str| Expectation {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..Expectation::default()
    };
    assert_eq!(
        verdict(&expect("content-type", "application/json"), &answer("")),
        "right"
    );
    assert_eq!(
        verdict(&expect("Content-Type", "text/html"), &answer("")),
        "header: expected header `Content-Type: text/html`, found `application/json`"
    );
    assert_eq!(
        verdict(&expect("X-Source", "rust"), &answer("")),
        "header: expected header `X-Source: rust`, found none"
    );
}

#[test]
fn the_first_broken_rule_names_the_mismatch() {
    let expect = Expectation {
        status: StatusRule::Success,
        graphql: true,
        body: BodyRule::Equals(Arc::from(br#"{"data":1}"#.as_slice())),
        headers: vec![("X".to_owned(), "y".to_owned())],
    };
    let kind = |answer: &Answer| check(&expect, answer).map_err(|mismatch| mismatch.kind());
    let with_errors = answer(r#"{"data":1,"errors":[1]}"#);
    assert_eq!(
        kind(&Answer {
            status: 500,
            ..with_errors.clone()
        }),
        Err(FailureKind::Status)
    );
    assert_eq!(kind(&with_errors), Err(FailureKind::Graphql));
    assert_eq!(kind(&answer(r#"{"data":2}"#)), Err(FailureKind::Body));
    assert_eq!(kind(&answer(r#"{"data":1}"#)), Err(FailureKind::Header));
}

#[test]
fn a_known_body_with_errors_is_still_wrong() {
    let body = r#"{"errors":[1]}"#;
    let expect = Expectation {
        graphql: true,
        ..equal_to(body)
    };
    assert_eq!(
        check(&expect, &answer(body)).map_err(|mismatch| mismatch.kind()),
        Err(FailureKind::Graphql)
    );
}

/// Judges one body after the other by the same rules, each in pieces of a size.
fn judge_all(rules: &mut Rules, bodies: &[&str], piece: usize) -> Vec<Option<FailureKind>> {
    let mut findings = Findings::default();
    bodies
        .iter()
        .map(|body| {
            findings.start();
            let mut judge = Judge {
                rules,
                findings: &mut findings,
            };
            judge.head(&Head::new(200, &[]));
            for part in body.as_bytes().chunks(piece) {
                judge.body(part);
            }
            findings.conclude(rules).map(|mismatch| mismatch.kind())
        })
        .collect()
}

#[test]
fn what_was_learned_from_a_right_body_does_not_excuse_a_wrong_one() {
    let right = r#"{"data":{"a":"b"}}"#;
    let bodies = [
        r#"{"data":1,"errors":[1]}"#,
        right,
        right,
        r#"{"data":{"a":"c"}}"#,
        r#"{"data":{"a":"b"},"errors":[1]}"#,
        r#"{"data":{"a":"b"}"#,
        r#"{"data":{"a":"b"}} "#,
        right,
    ];
    let graphql_fault = Some(FailureKind::Graphql);
    let expected = [
        graphql_fault,
        None,
        None,
        None,
        graphql_fault,
        graphql_fault,
        None,
        None,
    ];
    for piece in [1, 2, 7, 100] {
        let mut rules = Rules::new(&graphql());
        assert_eq!(
            judge_all(&mut rules, &bodies, piece),
            expected,
            "pieces of {piece}"
        );
        assert_eq!(rules.reference.as_deref(), Some(right.as_bytes()));
    }
}

fn json() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-z\"\\\\{}\\[\\]:,é]{0,8}", Just("errors".to_owned())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((text.clone(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_scanner_finds_what_a_json_parser_finds(value in json(), pretty: bool, piece in 1..40_usize) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        let expected = match value.as_object().map(|members| members.get("errors")) {
            None => Err(GraphqlFault::NotAnObject),
            Some(None | Some(Value::Null)) => Ok(()),
            Some(Some(Value::Array(list))) if list.is_empty() => Ok(()),
            Some(Some(_)) => Err(GraphqlFault::Errors),
        };
        let mut scan = ErrorsScan::new();
        for part in text.as_bytes().chunks(piece) {
            scan.feed(part);
        }
        prop_assert_eq!(scan.finish(), expected, "{}", text);
    }

    #[test]
    fn no_bytes_make_the_scanner_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = graphql::scan(&bytes);
        let opened = [br#"{"errors"#.as_slice(), &bytes].concat();
        let _ = graphql::scan(&opened);
    }
}
