//! Claims about `grpc`: calls with messages from descriptors.

use insta::assert_snapshot;
use std::time::Duration;

use model::{Framing, GrpcDescriptors, RpcProtocol, Version};

use crate::{Folder, changed};

const LOAD: &str = "connections: 10\n  duration: 1s";

const PROTO: &str = "syntax = \"proto3\";\npackage hello;\n\
    service Greeter {\n  rpc Say (Request) returns (Reply);\n  rpc Watch (Request) returns (stream Reply);\n  \
    rpc Chat (stream Request) returns (stream Reply);\n}\n\
    message Request { string name = 1; int32 times = 2; }\nmessage Reply { string text = 1; }\n";

/// The example lab with these keys of a call, next to its `.proto` file.
fn folder(load: &str, call: &str) -> Folder {
    let requests = format!("{LOAD}\n  {load}\n  requests: [{{grpc: {{{call}}}}}]");
    Folder::with_lab(changed(&[(LOAD, &requests)])).file("labs/api/hello.proto", PROTO)
}

#[test]
fn a_call_is_a_post_with_a_binary_message() {
    let call = "method: hello.Greeter/Say, proto: api/hello.proto, message: {name: Ada, times: 2}, \
                deadline: 2s, metadata: {x-tenant: a}, status: 5";
    let lab = folder("http2: on", call).parse().unwrap();
    let [request] = lab.baseline.requests.as_slice() else {
        panic!("one request");
    };
    assert_eq!(
        (&*request.method, &*request.path),
        ("POST", "/hello.Greeter/Say")
    );
    assert_eq!(request.name, "hello.Greeter/Say");
    let call = request.grpc.as_ref().unwrap();
    assert_eq!(call.text(), r#"{"name":"Ada","times":2}"#);
    assert_eq!(
        (call.status, call.deadline),
        (5, Some(Duration::from_secs(2)))
    );
    assert!(call.set().is_some() && !call.is_spaced());
    assert_eq!(request.stream, None, "one answer is a body");
    let header = |name: &str| {
        let mut all = request.headers.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(header("x-tenant"), Some("a"));
    let target = lab.baseline.systems().last().unwrap().http;
    assert_eq!(target, Version::Http2 { streams: 1 });
}

#[test]
fn a_call_of_connect_or_grpc_web_needs_no_http_2() {
    let say = "method: hello.Greeter/Say, proto: api/hello.proto";
    for (word, protocol) in [
        ("connect", RpcProtocol::Connect),
        ("grpc-web", RpcProtocol::GrpcWeb),
        ("grpc", RpcProtocol::Grpc),
    ] {
        let call = format!("{say}, protocol: {word}, compression: gzip");
        for load in ["timeout: 2s", "http2: on"] {
            if protocol.needs_http2() && load != "http2: on" {
                continue;
            }
            let lab = folder(load, &call).parse().unwrap();
            let call = lab.baseline.requests[0].grpc.as_ref().unwrap();
            assert_eq!((call.protocol, call.is_compressed), (protocol, true));
        }
    }
    let chat = "method: hello.Greeter/Chat, proto: api/hello.proto, messages: [{}, {}]";
    let connect = format!("{chat}, protocol: connect");
    folder("http2: on", &connect).parse().unwrap();
    assert_snapshot!(folder("timeout: 2s", &connect).mistakes());
    let web = format!("{chat}, protocol: grpc-web");
    assert_snapshot!(folder("http2: on", &web).mistakes());
    let later =
        "method: a.B/C, reflection: on, sends: [{message: {}, after: 1s}], protocol: connect";
    folder("http2: on", later).parse().unwrap();
    assert_snapshot!(folder("timeout: 2s", later).mistakes());
    assert_snapshot!(folder("http2: on", &format!("{say}, protocol: json")).mistakes());
}

#[test]
fn messages_of_a_stream_leave_together_and_answers_are_events() {
    let call = "method: hello.Greeter/Chat, proto: api/hello.proto, messages: [{name: a}, {}]";
    let lab = folder("http2: on", call).parse().unwrap();
    let request = &lab.baseline.requests[0];
    let call = request.grpc.as_ref().unwrap();
    assert_eq!(call.text(), "{\"name\":\"a\"}\n{}");
    assert!(!call.is_spaced());
    assert_eq!(request.stream.as_ref().unwrap().framing, Framing::Grpc);
}

#[test]
fn messages_have_times_and_replies() {
    let call = "method: hello.Greeter/Chat, proto: api/hello.proto, replies: order, compression: gzip, \
                sends: [{message: {name: a}, every: 20ms, count: 5}, {message: {}, after: 1s}]";
    let lab = folder("http2: on", call).parse().unwrap();
    let call = lab.baseline.requests[0].grpc.as_ref().unwrap();
    assert!(call.has_replies && call.is_compressed && call.is_spaced());
    assert_eq!(call.messages[0].every, Some(Duration::from_millis(20)));
    assert_eq!(call.messages[0].count, Some(5));
    assert_eq!(call.messages[1].after, Duration::from_secs(1));
}

#[test]
fn a_server_with_reflection_is_asked_later() {
    let call = "method: hello.Greeter/Say, reflection: on, message: {anything: 1}, answer: {b: 2}";
    let lab = folder("http2: on", call).parse().unwrap();
    let call = lab.baseline.requests[0].grpc.as_ref().unwrap();
    assert_eq!(call.descriptors, GrpcDescriptors::Reflection);
    assert_eq!(call.answer.as_deref(), Some(r#"{"b":2}"#));
}

#[test]
fn an_answer_contains_texts() {
    let call = "method: hello.Greeter/Say, proto: api/hello.proto, contains: [Ada, '\"text\":']";
    let lab = folder("http2: on", call).parse().unwrap();
    let call = lab.baseline.requests[0].grpc.as_ref().unwrap();
    assert_eq!(call.contains, ["Ada", "\"text\":"]);
    let call = "method: hello.Greeter/Say, proto: api/hello.proto, contains: ''";
    let found = folder("http2: on", call).mistakes();
    assert!(
        found.contains("every answer contains an empty text"),
        "{found}"
    );
}

#[test]
fn values_of_the_load_stay_texts_in_messages() {
    let call = "method: hello.Greeter/Say, proto: api/hello.proto, message: {name: '{{index}}', times: '{{random:1..9}}'}";
    let lab = folder("http2: on", call).parse().unwrap();
    let call = lab.baseline.requests[0].grpc.as_ref().unwrap();
    assert_eq!(
        call.text(),
        r#"{"name":"{{index}}","times":"{{random:1..9}}"}"#
    );
}

#[test]
fn headers_of_the_lab_for_requests_of_http_stay_away_from_calls() {
    let call = "method: hello.Greeter/Say, proto: api/hello.proto";
    let load = "http2: on\n  headers: {Content-Type: text/plain, x-tenant: a}";
    let lab = folder(load, call).parse().unwrap();
    let headers = &lab.baseline.requests[0].headers;
    assert_eq!(headers, &[("x-tenant".to_owned(), "a".to_owned())]);
}

#[test]
fn a_stream_of_answers_has_rules_without_a_framing() {
    let keys = |stream: &str, method: &str| {
        let call = format!("grpc: {{method: hello.Greeter/{method}, proto: api/hello.proto}}");
        let requests = format!("{LOAD}\n  http2: on\n  requests: [{{{call}, stream: {stream}}}]");
        Folder::with_lab(changed(&[(LOAD, &requests)])).file("labs/api/hello.proto", PROTO)
    };
    let lab = keys("{events: 5, sent-at: /text}", "Watch")
        .parse()
        .unwrap();
    let rule = lab.baseline.requests[0].stream.as_ref().unwrap();
    assert_eq!((rule.framing, rule.events), (Framing::Grpc, Some(5)));
    assert_snapshot!(keys("{framing: sse}", "Watch").mistakes());
    assert_snapshot!(keys("{events: 5}", "Say").mistakes());
}

#[test]
fn a_call_that_cannot_be_is_refused_at_its_place() {
    let say = "method: hello.Greeter/Say, proto: api/hello.proto";
    let with = |more: &str| folder("http2: on", &format!("{say}{more}")).mistakes();
    assert_snapshot!(folder("timeout: 1s", say).mistakes());
    assert_snapshot!(with(", message: {nam: Ada}"));
    assert_snapshot!(with(", message: {times: x}"));
    assert_snapshot!(with(", messages: [{}, {}]"));
    assert_snapshot!(with(", sends: [{message: {}}]"));
    assert_snapshot!(with(", hold: 1s"));
    assert_snapshot!(with(", replies: order"));
    assert_snapshot!(with(", reflection: on"));
    assert_snapshot!(with(", answer: {txt: a}"));
    assert_snapshot!(with(", metadata: {grpc-timeout: 1S}"));
    let other = |call: &str| folder("http2: on", call).mistakes();
    assert_snapshot!(other("method: hello.Greeter/Tell, proto: api/hello.proto"));
    assert_snapshot!(other("method: hello.Greeter/Say, proto: api/none.proto"));
    assert_snapshot!(other("method: hello.Greeter/Say"));
    let chat = "method: hello.Greeter/Chat, proto: api/hello.proto";
    let chat = |more: &str| folder("http2: on", &format!("{chat}{more}")).mistakes();
    assert_snapshot!(chat(", sends: [{message: {}, every: 5ms}]"));
    assert_snapshot!(chat(", sends: [{message: {}, count: 5}]"));
    assert_snapshot!(chat(", message: {}, messages: [{}]"));
    assert_snapshot!(chat(", replies: /id"));
    let both = format!("{LOAD}\n  http2: on\n  requests: [{{path: /, grpc: {{{say}}}}}]");
    let folder = Folder::with_lab(changed(&[(LOAD, &both)])).file("labs/api/hello.proto", PROTO);
    assert_snapshot!(folder.mistakes());
}
