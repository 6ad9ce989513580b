//! Claims about requests that open a conversation over WebSocket.

use std::time::Duration;

use model::{
    GraphqlProtocol, MessageContent, PlannedMessage, ReplyRule, StreamEnd, WebSocketCall,
    WebSocketDialect,
};

use crate::{Folder, changed};

fn folder(request: &str) -> Folder {
    let load = format!("  duration: 1s\n  requests:\n    - {request}\n");
    Folder::with_lab(changed(&[("  duration: 1s\n", &load)])).file("labs/bytes.bin", "\u{1}ab")
}

fn call(request: &str) -> WebSocketCall {
    let lab = folder(request).parse();
    let lab = lab.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    lab.requests[0].websocket.clone().unwrap()
}

fn refused(request: &str) -> String {
    folder(request).parse().unwrap_err().render(false)
}

#[test]
fn a_subscription_is_written_in_three_lines() {
    let request = "{name: price, path: /graphql, websocket: {protocol: graphql-transport-ws, \
                   init: {token: a}, subscribe: {query: 'subscription { price }', variables: \
                   {of: 1}}}, stream: {ends: {count: 50}, each: graphql}}";
    assert_eq!(
        call(request),
        WebSocketCall {
            dialect: WebSocketDialect::Graphql {
                protocol: GraphqlProtocol::TransportWs,
                init: Some(r#"{"token":"a"}"#.to_owned()),
                subscribe: r#"{"query":"subscription { price }","variables":{"of":1}}"#.to_owned(),
            },
            hold: None,
            is_kept: true,
        }
    );
    let lab = folder(request).parse().unwrap();
    let request = &lab.requests[0];
    let rule = request.stream.as_ref().unwrap();
    assert_eq!(rule.framing.word(), "messages");
    assert_eq!(rule.end, Some(StreamEnd::Count(50)));
    assert_eq!((request.method.as_str(), request.body.len()), ("GET", 0));
}

#[test]
fn messages_have_times_and_replies() {
    let request = "{path: /ws, websocket: {protocol: chat, hold: 10s, replies: /id, messages: \
                   [{json: {id: 0, say: hello}, every: 100ms}, {file: bytes.bin, after: 1s}]}}";
    let call = call(request);
    let WebSocketDialect::Raw {
        subprotocol,
        messages,
        replies,
    } = call.dialect
    else {
        panic!("{call:?}");
    };
    assert_eq!(subprotocol.as_deref(), Some("chat"));
    assert_eq!(replies, ReplyRule::Id("/id".to_owned()));
    assert_eq!(
        (call.hold, call.is_kept),
        (Some(Duration::from_secs(10)), false)
    );
    assert_eq!(
        messages,
        [
            PlannedMessage {
                content: MessageContent::Text(r#"{"id":0,"say":"hello"}"#.to_owned()),
                after: Duration::ZERO,
                every: Some(Duration::from_millis(100)),
                count: None,
            },
            PlannedMessage {
                content: MessageContent::Binary(vec![1, b'a', b'b']),
                after: Duration::from_secs(1),
                every: None,
                count: None,
            },
        ]
    );
}

#[test]
fn keys_that_exclude_each_other_are_refused_by_name() {
    for (request, words) in [
        (
            "{websocket: {messages: {text: a}}, json: {a: 1}}",
            "`json` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, query: '{ a }'}",
            "`websocket.subscribe: {query: …}`",
        ),
        (
            "{websocket: {messages: {text: a}}, batch: q/*.json}",
            "`batch` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, method: POST}",
            "`method` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, expect: {status: 200}}",
            "`expect.status` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, expect: {graphql: no-errors}}",
            "`graphql` is a rule for a whole body",
        ),
        (
            "{websocket: {protocol: graphql-ws}}",
            "`graphql-ws` without `subscribe`",
        ),
        (
            "{websocket: {protocol: graphql-ws, subscribe: {query: a}, messages: {text: a}}}",
            "`messages` is not for `graphql-ws`",
        ),
        (
            "{websocket: {subscribe: {query: a}}}",
            "`subscribe` without a protocol of GraphQL",
        ),
        (
            "{websocket: {protocol: 'a b'}}",
            "expected the name of a subprotocol, found `a b`",
        ),
        (
            "{websocket: {messages: {text: a, every: 1s}}}",
            "a repeated message without an end",
        ),
        (
            "{websocket: {messages: {text: a, count: 2}}}",
            "`count` without `every`",
        ),
        (
            "{websocket: {messages: {every: 1s, count: 2}}}",
            "expected one of `text`, `json` and `file`, found 0",
        ),
        (
            "{websocket: {replies: order}}",
            "`replies` without `messages`",
        ),
        (
            "{websocket: {messages: {text: a}, replies: id}}",
            "expected `order` or a JSON pointer, found `id`",
        ),
        (
            "{websocket: {hold: 1s}, stream: {ends: {count: 2}}}",
            "`ends` and `websocket.hold` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}, replies: order}, stream: {ends: {count: 2}}}",
            "`ends` and `websocket.replies` exclude each other",
        ),
        (
            "{websocket: {hold: 1s}, stream: sse}",
            "the events of `websocket` are its messages",
        ),
        (
            "{path: /, stream: messages}",
            "`messages` without `websocket`",
        ),
        (
            "{path: /, stream: {events: 2}}",
            "a stream without `framing`",
        ),
        (
            "{websocket: {hold: 1s}}\n    - {path: /b}",
            "requests of HTTP and of WebSocket are in one load",
        ),
    ] {
        let found = refused(request);
        assert!(found.contains(words), "{request}\n{found}");
    }
}

#[test]
fn a_conversation_that_is_held_may_be_idle() {
    let held = call("{websocket: {hold: 1s}, stream: {events: 0}}");
    assert_eq!(held.hold, Some(Duration::from_secs(1)));
    let found = refused("{websocket: {messages: {text: a}}, stream: {events: 0}}");
    assert!(found.contains("expected at least 1 event"), "{found}");
}
