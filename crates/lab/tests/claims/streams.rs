//! Claims about `stream`: answers that are streams of events.

use insta::assert_snapshot;
use model::{EventCheck, Framing, StreamEnd, StreamRule};

use crate::{check, lab};

const LOAD: &str = "connections: 10\n  duration: 1s";

/// The rules of the requests of the example lab with more keys in its load.
fn rules(keys: &str) -> Vec<Option<StreamRule>> {
    let lab = lab(&[(LOAD, &format!("{LOAD}\n  {keys}"))]);
    let requests = lab.baseline.requests.iter();
    requests.map(|request| request.stream.clone()).collect()
}

#[test]
fn a_word_is_a_stream_that_ends_with_its_answer() {
    for (word, framing) in [
        ("sse", Framing::ServerSent),
        ("lines", Framing::Lines),
        ("chunks", Framing::Chunks),
        ("multipart", Framing::Multipart),
    ] {
        let expected = StreamRule {
            framing,
            end: None,
            events: None,
            each: EventCheck::Any,
            sent_at: None,
        };
        assert_eq!(rules(&format!("stream: {word}")), [Some(expected)]);
    }
    assert_eq!(rules("path: /"), [None]);
}

#[test]
fn a_request_has_its_own_stream_or_that_of_the_load() {
    let keys = "stream: {framing: sse, ends: {data: '[DONE]'}, events: 50, each: json, sent-at: /at}\n  \
                requests: [{name: a}, {name: b, stream: {framing: lines, ends: {count: 3}, each: graphql}}]";
    let found = rules(keys);
    let first = found[0].as_ref().unwrap();
    assert_eq!(first.end, Some(StreamEnd::Data(b"[DONE]".to_vec())));
    assert_eq!((first.events, first.each), (Some(50), EventCheck::Json));
    assert_eq!(first.sent_at.as_deref(), Some("/at"));
    let second = found[1].as_ref().unwrap();
    assert_eq!(second.framing, Framing::Lines);
    assert_eq!(second.end, Some(StreamEnd::Count(3)));
    assert_eq!((second.events, second.each), (None, EventCheck::Graphql));
}

#[test]
fn a_stream_that_cannot_be_is_refused_at_its_place() {
    let with = |stream: &str| check(&[(LOAD, &format!("{LOAD}\n  stream: {stream}"))]);
    assert_snapshot!(with("json"));
    assert_snapshot!(with("{framing: sse, ends: {data: a, count: 3}}"));
    assert_snapshot!(with("{framing: chunks, events: 0}"));
    assert_snapshot!(with("{framing: lines, ends: {type: complete}}"));
}

#[test]
fn a_stream_is_not_checked_as_a_whole_body() {
    assert_snapshot!(check(&[
        (LOAD, &format!("{LOAD}\n  stream: sse")),
        (
            "target: server",
            "target: server\nexpect: {same-as: baseline}"
        ),
    ]));
    let own = "requests: [{stream: sse, expect: {graphql: no-errors}}]";
    assert_snapshot!(check(&[(LOAD, &format!("{LOAD}\n  {own}"))]));
}
