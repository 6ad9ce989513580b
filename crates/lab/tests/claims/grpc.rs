//! Claims about `grpc`: calls with messages from descriptors.

use insta::assert_snapshot;
use model::{Framing, Version};

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
    assert_eq!(request.body, b"\0\0\0\0\x07\x0a\x03Ada\x10\x02");
    assert_eq!(request.grpc_status, Some(5));
    assert_eq!(request.stream, None, "one answer is a body");
    let header = |name: &str| {
        let mut all = request.headers.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(header("Content-Type"), Some("application/grpc"));
    assert_eq!(header("TE"), Some("trailers"));
    assert_eq!(header("grpc-timeout"), Some("2000000u"));
    assert_eq!(header("x-tenant"), Some("a"));
    let target = lab.baseline.systems().last().unwrap().http;
    assert_eq!(target, Version::Http2 { streams: 1 });
}

#[test]
fn messages_of_a_stream_leave_together_and_answers_are_events() {
    let call = "method: hello.Greeter/Chat, proto: api/hello.proto, messages: [{name: a}, {}]";
    let lab = folder("http2: on", call).parse().unwrap();
    let request = &lab.baseline.requests[0];
    assert_eq!(request.body, b"\0\0\0\0\x03\x0a\x01a\0\0\0\0\0");
    assert_eq!(request.stream.as_ref().unwrap().framing, Framing::Grpc);
}

#[test]
fn a_call_that_cannot_be_is_refused_at_its_place() {
    let say = "method: hello.Greeter/Say, proto: api/hello.proto";
    let with = |more: &str| folder("http2: on", &format!("{say}{more}")).mistakes();
    assert_snapshot!(folder("timeout: 1s", say).mistakes());
    assert_snapshot!(with(", message: {nam: Ada}"));
    assert_snapshot!(with(", message: {name: '{{index}}'}"));
    assert_snapshot!(with(", messages: [{}, {}]"));
    let other = |call: &str| folder("http2: on", call).mistakes();
    assert_snapshot!(other("method: hello.Greeter/Tell, proto: api/hello.proto"));
    assert_snapshot!(other("method: hello.Greeter/Say, proto: api/none.proto"));
    assert_snapshot!(other("method: hello.Greeter/Say"));
    let both = format!("{LOAD}\n  http2: on\n  requests: [{{path: /, grpc: {{{say}}}}}]");
    let folder = Folder::with_lab(changed(&[(LOAD, &both)])).file("labs/api/hello.proto", PROTO);
    assert_snapshot!(folder.mistakes());
}
