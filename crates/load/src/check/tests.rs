use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::job::EncodedBody;
use crate::measurement::FailureKind;

fn answer(body: &str) -> Answer {
    Answer {
        status: 200,
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: body.as_bytes().to_vec(),
        messages: None,
        trailers: Vec::new(),
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

/// Judges and returns the result in one line.
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
        (429, StatusRule::read("2xx,429").unwrap(), true),
        (503, StatusRule::read("2xx,429").unwrap(), false),
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
fn a_redirect_says_where_it_leads() {
    let mut moved = answer("");
    moved.status = 301;
    let location = "https://a.test/\u{1b}[31m".to_owned();
    moved.headers.push(("location".to_owned(), location));
    insta::assert_snapshot!(
        verdict(&Expectation::default(), &moved),
        @r"status: expected status 2xx, found 301 with `Location: https://a.test/\x1b[31m`"
    );
    moved.status = 500;
    insta::assert_snapshot!(verdict(&Expectation::default(), &moved), @"status: expected status 2xx, found 500");
}

#[test]
fn a_body_is_compared_within_its_status_only() {
    let mut expect = Expectation {
        status: StatusRule::read("[2xx, 429]").unwrap(),
        graphql: true,
        ..equal_to(r#"{"data":1}"#)
    };
    let judge = |expect: &Expectation, status, body: &str| {
        let found = Answer {
            status,
            ..answer(body)
        };
        check(expect, &found).map_err(|mismatch| mismatch.kind())
    };
    let slow_down = r#"{"errors":["slow down"]}"#;
    assert_eq!(judge(&expect, 200, r#"{"data":1}"#), Ok(()));
    assert_eq!(judge(&expect, 200, r#"{"data":2}"#), Err(FailureKind::Body));
    assert_eq!(judge(&expect, 200, slow_down), Err(FailureKind::Graphql));
    assert_eq!(judge(&expect, 429, slow_down), Ok(()));
    // The proof saw this body with this status.
    expect.body_of = Some(201);
    assert_eq!(judge(&expect, 201, r#"{"data":2}"#), Err(FailureKind::Body));
    assert_eq!(judge(&expect, 200, r#"{"data":2}"#), Ok(()));
}

/// Returns a response with an encoded body.
fn coded(coding: &str, body: &str) -> Answer {
    let mut answer = answer(body);
    answer.body = crate::encoded(coding, body.as_bytes()).unwrap();
    answer
        .headers
        .push(("Content-Encoding".to_owned(), coding.to_owned()));
    answer
}

#[test]
fn every_rule_looks_at_the_content_of_an_encoded_body() {
    let right = r#"{"data":{"a":1,"at":5}}"#;
    let other = r#"{"data":{"a":2,"at":5}}"#;
    let later = r#"{"data":{"a":1,"at":6}}"#;
    let alike = Expectation {
        body: BodyRule::known(right.as_bytes(), &["/data/at".to_owned()]),
        ..graphql()
    };
    for coding in ["gzip", "deflate", "br", "zstd", "gzip, br", "GZIP"] {
        let judge = |expect: &Expectation, body: &str| {
            check(expect, &coded(coding, body)).map_err(|mismatch| mismatch.kind())
        };
        assert_eq!(judge(&equal_to(right), right), Ok(()), "{coding}");
        assert_eq!(judge(&equal_to(right), other), Err(FailureKind::Body));
        assert_eq!(judge(&alike, later), Ok(()));
        assert_eq!(judge(&alike, other), Err(FailureKind::Body));
        assert_eq!(judge(&graphql(), right), Ok(()));
        let errors = judge(&graphql(), r#"{"errors":[1]}"#);
        assert_eq!(errors, Err(FailureKind::Graphql));
    }
    insta::assert_snapshot!(
        verdict(&equal_to(right), &coded("gzip", other)),
        @"body: expected the known body of 23 bytes, found 23 bytes that differ at byte 13 (decoded from `Content-Encoding: gzip`)"
    );
    insta::assert_snapshot!(
        verdict(&graphql(), &coded("br", r#"{"errors":[1]}"#)),
        @"graphql: expected a GraphQL answer without errors, found a top-level `errors` member (decoded from `Content-Encoding: br`)"
    );
    let mut cut = coded("gzip", right);
    cut.body.truncate(20);
    insta::assert_snapshot!(
        verdict(&graphql(), &cut),
        @"body: the body is truncated: its 20 bytes of `Content-Encoding: gzip` end before the content does"
    );
    let mut unknown = answer(right);
    let header = ("Content-Encoding".to_owned(), "compress".to_owned());
    unknown.headers.push(header);
    insta::assert_snapshot!(
        verdict(&equal_to(right), &unknown),
        @"body: the body has the content coding `compress`, which cannot be decoded. Supported codings are gzip, deflate, br and zstd"
    );
    // Without a rule about bodies, no body is decoded.
    assert_eq!(verdict(&Expectation::default(), &unknown), "right");
}

#[test]
fn a_bomb_is_a_wrong_answer_and_no_more() {
    let zeros = "0".repeat(20_000_000);
    insta::assert_snapshot!(
        verdict(&equal_to("0"), &coded("gzip, gzip", &zeros)),
        @"body: the body is too large: its 149 bytes of `Content-Encoding: gzip, gzip` decode to more than 16777216 bytes"
    );
}

/// Returns the method of judgment for each of several encoded bodies under the same rules.
fn judged_by(
    expect: &Expectation,
    answers: &[Answer],
) -> Vec<Result<Option<JudgedBy>, FailureKind>> {
    let mut rules = Rules::new(expect);
    let mut findings = Findings::default();
    let judge = |answer: &Answer| {
        let headers = headers_of(answer);
        findings.start();
        let mut judge = Judge {
            rules: &rules,
            findings: &mut findings,
            at: stream::Arrival::untimed(),
        };
        judge.head(&Head::new(answer.status, &headers));
        for piece in answer.body.chunks(7) {
            judge.body(piece);
        }
        match findings.conclude(&mut rules) {
            None => Ok(findings.judged_by),
            Some(mismatch) => Err(mismatch.kind()),
        }
    };
    answers.iter().map(judge).collect()
}

/// Returns the same content in other bytes, like a server that writes the time into the header.
fn at_another_time(mut answer: Answer) -> Answer {
    answer.body[4] ^= 0xff;
    answer
}

#[test]
fn nothing_is_decoded_whose_bytes_were_decoded_before() {
    let right = r#"{"data":{"a":1,"at":5}}"#;
    let (once, plain) = (coded("gzip", right), answer(right));
    let later = at_another_time(once.clone());
    let other = at_another_time(coded("gzip", r#"{"data":{"a":2,"at":5}}"#));
    let mut cut = once.clone();
    cut.body.truncate(20);
    let answers = [&once, &once, &later, &other, &cut, &plain, &once].map(Clone::clone);
    let (same, sum) = (Some(JudgedBy::SameBytes), Some(JudgedBy::Checksum));
    let wrong = Err(FailureKind::Body);
    assert_eq!(
        judged_by(&equal_to(right), &answers),
        [
            Ok(Some(JudgedBy::Decoding)),
            Ok(same),
            Ok(sum),
            wrong,
            wrong,
            Ok(None),
            Ok(same)
        ]
    );
    // As after a proof: even the first response is not decoded.
    let proven = Expectation {
        encoded: Some(EncodedBody {
            coding: "gzip".to_owned(),
            bytes: Arc::from(once.body.as_slice()),
        }),
        ..equal_to(right)
    };
    assert_eq!(judged_by(&proven, &answers)[0], Ok(same));
    // If the content differs by nature, a rule has to read it.
    let decoded = Some(JudgedBy::Decoding);
    assert_eq!(
        judged_by(&graphql(), &answers[..4]),
        [Ok(decoded), Ok(same), Ok(decoded), Ok(decoded)]
    );
}

#[test]
fn bytes_without_a_checksum_that_differ_are_left_to_the_sample() {
    let right = "a body of some length";
    let once = coded("deflate", right);
    // The same content, stored instead of compressed.
    let mut stored = once.clone();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut encoder, right.as_bytes()).unwrap();
    stored.body = encoder.finish().unwrap();
    assert_ne!(stored.body, once.body);
    assert_eq!(
        judged_by(&equal_to(right), &[once, stored]),
        [Ok(Some(JudgedBy::Decoding)), Ok(Some(JudgedBy::Sample))]
    );
}

#[test]
fn the_first_broken_rule_names_the_mismatch() {
    let expect = Expectation {
        status: StatusRule::Success,
        graphql: true,
        body: BodyRule::Equals(Arc::from(br#"{"data":1}"#.as_slice())),
        headers: vec![("X".to_owned(), "y".to_owned())],
        ..Expectation::default()
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

/// Judges several bodies by the same rules, each in pieces of a size.
fn judge_all(rules: &mut Rules, bodies: &[&str], piece: usize) -> Vec<Option<FailureKind>> {
    let mut findings = Findings::default();
    bodies
        .iter()
        .map(|body| {
            findings.start();
            let mut judge = Judge {
                rules,
                findings: &mut findings,
                at: stream::Arrival::untimed(),
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
