use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

type Variables = BTreeMap<String, serde_json::Value>;
type Decoded<'a> = GraphqlRequest<'a, Variables>;
type Raw<'a> = GraphqlRequest<'a, RawObject<'a>, RawObject<'a>>;

fn body(text: &str) -> Result<Decoded<'_>, String> {
    from_body(text.as_bytes()).map_err(|error| error.to_string())
}

fn parameters(text: &str) -> Result<Decoded<'_>, String> {
    from_parameters(text).map_err(|error| error.to_string())
}

fn raw(text: &[u8]) -> Result<Raw<'_>, DecodeError> {
    from_body(text)
}

#[test]
fn the_same_request_reads_the_same_from_both_places() {
    let posted =
        body(r#"{"query":"{a}","operationName":"A","variables":{"n":1},"extensions":{"x":[]}}"#);
    let got =
        parameters("query=%7Ba%7D&operationName=A&variables=%7B%22n%22%3A1%7D&extensions=%7B%7D");
    assert_eq!(posted, got);
    assert_eq!(posted.unwrap().variables.unwrap()["n"], 1);
}

#[test]
fn null_and_empty_entries_count_as_absent() {
    let expected = Ok(GraphqlRequest {
        query: "{a}".into(),
        operation_name: None,
        variables: None,
        extensions: None,
    });
    let nulls = r#"{"query":"{a}","operationName":null,"variables":null,"extensions":null}"#;
    assert_eq!(body(nulls), expected);
    let empty = "query={a}&operationName=&variables=&extensions=&unknown=1";
    assert_eq!(parameters(empty), expected);
}

#[test]
fn what_can_be_borrowed_is_borrowed() {
    let request = body(r#"{"query":"{ test { id } }"}"#).unwrap();
    assert!(matches!(request.query, Cow::Borrowed(_)));
    let escaped = body(r#"{"query":"{\n  test {\n    id\n  }\n}\n"}"#).unwrap();
    assert_eq!(escaped.query, "{\n  test {\n    id\n  }\n}\n");
    let text = br#"{"query":"{a}","variables":{"x": [1]},"operationName":null,"more":1}"#;
    let request = raw(text).unwrap();
    assert!(matches!(request.query, Cow::Borrowed("{a}")));
    assert_eq!(request.variables.unwrap().text(), r#"{"x": [1]}"#);
    assert!(request.operation_name.is_none() && request.extensions.is_none());
}

#[test]
fn new_escapes_of_a_document_become_their_characters() {
    let wanted = "{a(s: \"\u{1F600}\")}";
    for posted in [
        r#"{"query":"{a(s: \"\\u{1F600}\")}"}"#,
        r#"{"query":"{a(s: \"\\uD83D\\uDE00\")}"}"#,
    ] {
        assert_eq!(body(posted).unwrap().query, wanted, "{posted}");
    }
    let got = parameters("query={a(s: \"\\u{1F600}\")}").unwrap();
    assert_eq!(got.query, wanted);
}

#[test]
fn each_mistake_is_named() {
    let mistakes = [
        "",
        "{",
        "[]",
        "[",
        r#"["{a}"]"#,
        "7",
        "{}",
        r#"{"query":null}"#,
        r#"{"query":7}"#,
        r#"{"query":"{a}","variables":[]}"#,
        r#"{"query":"{a}","operationName":{}}"#,
        r#"{"query":"{a}","extensions":"x"}"#,
        r#"{"query":"{a}"} x"#,
        r#"{"query":"{a}","query":"{b}"}"#,
    ];
    let named: Vec<_> = mistakes
        .iter()
        .map(|text| body(text).unwrap_err())
        .collect();
    insta::assert_snapshot!(named.join("\n"), @r#"
    the body is not JSON: EOF while parsing a value at line 1 column 0
    the body is not JSON: EOF while parsing an object at line 1 column 1
    the body must be one JSON object; batches are not served
    the body is not JSON: EOF while parsing a list at line 1 column 1
    the body must be one JSON object; batches are not served
    the body is not a GraphQL request: invalid type: integer `7`, expected a JSON object at line 1 column 1
    the body is not a GraphQL request: `query` is missing
    the body is not a GraphQL request: `query` is missing
    the body is not a GraphQL request: invalid type: integer `7`, expected a string at line 1 column 10
    the body is not a GraphQL request: invalid type: sequence, expected a map at line 1 column 27
    the body is not a GraphQL request: invalid type: map, expected a string at line 1 column 31
    the body is not a GraphQL request: invalid type: string "x", expected a map at line 1 column 31
    the body is not JSON: trailing characters at line 1 column 17
    the body is not a GraphQL request: the key `query` is given twice in one object, at byte 15; give it once
    "#);
    for wrong in [
        r#"{"query":"{a}","variables":[]}"#,
        r#"{"query":"{a}","extensions":"x"}"#,
    ] {
        let error = raw(wrong.as_bytes()).unwrap_err();
        assert!(matches!(error, DecodeError::NotARequest(_)), "{error}");
    }
    assert!(raw(b"{\"query\":\"\xff\"}").is_err());
}

#[test]
fn each_wrong_parameter_is_named() {
    let mistakes = [
        "",
        "variables={}",
        "query={a}&query={b}",
        "query={a}&variables=[]",
        "query={a}&variables=x",
        "query={a}&extensions=0",
    ];
    let named: Vec<_> = mistakes
        .iter()
        .map(|text| parameters(text).unwrap_err())
        .collect();
    insta::assert_snapshot!(named.join("\n"), @"
    the parameter `query` is missing; send ?query=… or a POST
    the parameter `query` is missing; send ?query=… or a POST
    the parameter `query` is given twice
    the parameter `variables` must be a JSON object: invalid type: sequence, expected a map at line 1 column 0
    the parameter `variables` must be a JSON object: expected value at line 1 column 1
    the parameter `extensions` must be a JSON object: invalid type: integer `0`, expected a map at line 1 column 1
    ");
}

#[test]
fn parameters_can_be_written_as_a_body() {
    let read = from_parameters::<RawObjectBuf, RawObjectBuf>;
    let request = read("query=%7Ba%7D&variables=%7B%22x%22%3A1%7D&operationName=&z=1").unwrap();
    assert_eq!(to_json(&request), br#"{"query":"{a}","variables":{"x":1}}"#);
    for wrong in [
        "",
        "query=a&query=b",
        "query=a&variables=1",
        "query=a&variables=x",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_two_readers_could_understand_differently_is_refused() {
    let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let deep = format!(r#"{{"query":"{{a}}","variables":{{"x":{nested}}}}}"#);
    let mistakes = [
        r#"{"query":"{a}","variables":{"id":2,"id":1}}"#,
        r#"{"query":"{a}","variables":{"id":2,"\u0069d":1}}"#,
        r#"{"query":"{a}","variables":{"x":[{"y":{"a":1,"a":2}}]}}"#,
        r#"{"query":"{a}","extensions":{"role":"a","role":"b"}}"#,
        r#"{"query":"{a}","more":1,"more":2}"#,
        r#"{"query":"{a}","variables":{"x":"\ud800"}}"#,
        r#"{"query":"{a}","variables":{"x":1e999}}"#,
        &deep,
    ];
    let named: Vec<_> = mistakes
        .iter()
        .map(|text| raw(text.as_bytes()).unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(named.join("\n"), @r"
    the body is not a GraphQL request: the key `id` is given twice in one object, at byte 35; give it once
    the body is not a GraphQL request: the key `id` is given twice in one object, at byte 35; give it once
    the body is not a GraphQL request: the key `a` is given twice in one object, at byte 45; give it once
    the body is not a GraphQL request: the key `role` is given twice in one object, at byte 40; give it once
    the body is not a GraphQL request: the key `more` is given twice in one object, at byte 24; give it once
    the body is not a GraphQL request: a string has half a surrogate pair, at byte 39; send both halves or the character
    the body is not a GraphQL request: a number is larger than any 64-bit float, at byte 32; send it as a string
    the body is not a GraphQL request: lists and objects are nested deeper than 100 levels, at byte 130
    ");
    let error = raw(b"{\"query\":\"{a}\",\"more\":\"\xff\"}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the body is not JSON: not UTF-8 at byte 23"
    );
    let parameters = parameters(r#"query={a}&variables={"id":2,"id":1}"#);
    assert_eq!(
        parameters.unwrap_err(),
        "the parameter `variables` must be a JSON object: the key `id` is given twice in one \
         object, at byte 8; give it once"
    );
    // JSON that is valid in a parameter is also valid in a body.
    for depth in 95..105 {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"query={{a}}&variables={{"x":{nested}}}"#);
        let read = from_parameters::<RawObjectBuf, RawObjectBuf>(&text);
        assert_eq!(read.is_ok(), depth <= 98, "{depth}");
        if let Ok(request) = read {
            assert!(raw(&to_json(&request)).is_ok(), "{depth}");
        }
    }
    // Equal keys in different objects are not duplicates.
    assert!(raw(br#"{"query":"{a}","variables":{"a":{"a":1},"b":[{"a":1},{"a":1}]}}"#).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_a_request_or_a_mistake(bytes: Vec<u8>, text in ".*") {
        let _ = from_body::<Variables, DiscardedObject>(&bytes);
        let _ = raw(&bytes);
        let _ = from_parameters::<Variables, DiscardedObject>(&text);
    }
}

/// The result of a reader as text, for comparisons.
fn shown(read: &Incomplete<'_, Value, Value>) -> String {
    format!("{read:?}")
}

#[test]
fn what_the_check_has_found_is_what_serde_reads() {
    for (body, is_found) in [
        (r#"{"query":"{ a }"}"#, true),
        (
            " {\n \"query\" : \"{\\n a }\", \"variables\":{\"b\":[1]}, \"operationName\": null} ",
            true,
        ),
        (r#"{"extensions":{"persistedQuery":{"version":1}}}"#, true),
        (r#"{"query":"{ a }","x":"y"}"#, false),
        (r#"{"qu\u0065ry":"{ a }"}"#, true),
        ("{}", true),
    ] {
        let entries = check_entries(body.as_bytes()).unwrap();
        let found: Option<Incomplete<'_, Value, Value>> = entries.find(body.as_bytes());
        assert_eq!(found.is_some(), is_found, "{body}");
        let read = entries.read(body.as_bytes()).unwrap();
        let theirs = from_checked_body_or_hash(body.as_bytes()).unwrap();
        assert_eq!(shown(&read), shown(&theirs), "{body}");
    }
    for body in [
        r#"{"query":1}"#,
        r#"{"query":"{ a }","x":["\q"]}"#,
        r#"{"variables":"{}"}"#,
        r#"{"variables":{"a":"\q"}}"#,
        r#"[{"query":"{ a }"}]"#,
    ] {
        let entries = check_entries(body.as_bytes()).unwrap();
        let ours = entries.read::<Value, DiscardedObject>(body.as_bytes());
        let theirs = from_checked_body_or_hash::<Value, DiscardedObject>(body.as_bytes());
        let told = |read: Result<Incomplete<'_, Value, DiscardedObject>, DecodeError>| {
            format!("{:?}", read.map_err(|error| error.to_string()))
        };
        assert_eq!(told(ours), told(theirs), "{body}");
    }
}

proptest! {
    #[test]
    fn whatever_passes_the_check_is_read_alike(
        members in proptest::collection::vec(
            (
                "query|operationName|variables|extensions|x|qu\\\\u0065ry",
                "null|1|\"[a\\\\n\u{1}é]{0,3}\"|\\{\\}|\\{\"a\":\"[b\\\\q\u{1}]{0,2}\"\\}|\\[\\]|x",
            ),
            0..5,
        ),
    ) {
        let members: Vec<String> =
            members.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        let body = format!("{{{}}}", members.join(", "));
        // With two mistakes, either may be reported: the check that finds entries reads more of their
        // strings.
        let theirs = check_body(body.as_bytes())
            .and_then(|()| from_checked_body_or_hash(body.as_bytes()));
        let ours = check_entries(body.as_bytes()).and_then(|it| it.read(body.as_bytes()));
        let told = |read: Incomplete<'_, Value, Value>| shown(&read);
        prop_assert_eq!(ours.ok().map(told), theirs.ok().map(told), "{}", body);
    }
}
