//! Scripts with WebSocket, server-sent events and gRPC. Each lab is read by the reader of labs.

use experiment::files::Unwritten;

use super::super::super::lab_text::{Draft, Setup};
use super::*;

/// The requests of a script, after the reader of labs accepted the written lab. The second text is its load.
fn written(files: &[(&str, &str)]) -> (Requests, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let entry = folder.path().join(files[0].0);
    let requests = read(&entry, "a.js", NO_CHOICES).unwrap_or_else(|why| panic!("{why}"));
    let setup = Setup::Alone("srv {{addr}}".to_owned());
    let draft = Draft {
        lab: "labs/a/a.yaml",
        folder: "../..",
        path: None,
        requests: Some(&requests),
        calls: None,
        setup: &setup,
    };
    let text = draft.text();
    let mut lab = vec![(PathBuf::from("a.yaml"), text.clone().into_bytes())];
    lab.extend(requests.files());
    if let Err(mistakes) = lab::parse(Path::new("a.yaml"), &Unwritten(lab)) {
        panic!("{text}\n{mistakes}");
    }
    (requests, text)
}

fn has_lines(text: &str, lines: &[&str]) {
    let found: Vec<&str> = text.lines().map(str::trim).collect();
    for line in lines {
        assert!(found.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_conversation_has_its_messages_and_its_end() {
    let (requests, text) = written(&[(
        "a.js",
        "import ws from 'k6/ws'; import { check } from 'k6'; import http from 'k6/http';
         export default function () {
           http.post('http://a/login');
           const res = ws.connect('ws://a/chat?room=1', { headers: { Authorization: 'Bearer x', 'X-A': 'b' } }, (socket) => {
             socket.on('open', () => {
               socket.send('hello');
               socket.sendBinary(new Uint8Array([1, 255]).buffer);
               socket.setInterval(() => socket.send(JSON.stringify({ beat: true })), 500);
             });
             socket.setTimeout(() => socket.close(), 6000);
           });
           check(res, { connected: (r) => r && r.status === 101 });
         }",
    )]);
    has_lines(
        &text,
        &[
            "rate: 10/s",
            "duration: 11s # of each round. One iteration takes at least 6 s",
            "timeout: 11s # longer than a conversation",
            "path: \"/chat?room=1\"",
            "\"X-A\": \"b\"",
            "websocket:",
            "hold: 6000ms",
            "- {text: \"hello\"}",
            "- {file: \"requests/1-2.bin\"}",
            "- {text: \"{\\\"beat\\\":true}\", after: 500ms, every: 500ms}",
            "expect: {}",
        ],
    );
    assert!(!text.contains("same-as"), "{text}");
    let binary = requests.files().find(|(path, _)| path.ends_with("1-2.bin"));
    assert_eq!(binary.expect("a file").1, [1, 255]);
    has(
        &requests,
        &[
            "line 3: POST http://a/login: it is HTTP, and the other requests of the lab are WebSocket",
            "check: the lab checks no message",
            "may be secret: Authorization.",
        ],
    );
}

#[test]
fn a_subscription_of_graphql_and_an_end_by_the_first_message_are_known() {
    let (_, text) = written(&[(
        "a.js",
        "import ws from 'k6/ws';
         export default function () {
           const params = { headers: { 'Sec-WebSocket-Protocol': 'graphql-transport-ws' } };
           ws.connect('ws://a/graphql', params, (socket) => {
             socket.on('open', () => {
               socket.send(JSON.stringify({ type: 'connection_init', payload: { a: 1 } }));
               const payload = { query: 'subscription { price }', variables: { id: 1 } };
               socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
             });
             socket.on('message', () => socket.close());
           });
           let count = 0;
           ws.connect('ws://a/hear', (socket) => {
             socket.on('message', () => { count += 1; if (count % 5 === 0) socket.close(); });
           });
         }",
    )]);
    has_lines(
        &text,
        &[
            "protocol: \"graphql-transport-ws\"",
            "init: {\"a\":1}",
            "subscribe: {query: \"subscription { price }\", variables: {\"id\":1}}",
            "stream: {ends: {count: 1}}",
            "websocket: {}",
            "stream: {ends: {count: 5}}",
        ],
    );
    let other = script(
        "import ws from 'k6/ws';
         export default function () {
           ws.connect('ws://a/1', { headers: { 'Sec-WebSocket-Protocol': 'graphql-ws' } }, (socket) => {
             socket.on('open', () => socket.send('x'));
             socket.setTimeout(() => socket.close(), 1);
           });
           ws.connect('ws://a/2', {}, (socket) => { socket.on('open', () => socket.send('x')); });
         }",
    );
    assert_eq!(other.counts(), (0, 2));
    has(
        &other,
        &[
            "line 3: WEBSOCKET /1: its messages are not one subscription of GraphQL",
            "line 7: WEBSOCKET http://a/2: it has no end",
        ],
    );
}

#[test]
fn a_stream_of_events_stands_beside_other_requests() {
    let (requests, text) = written(&[(
        "a.js",
        "import sse from 'k6/x/sse'; import http from 'k6/http'; import { check } from 'k6';
         export default function () {
           http.get('http://a/page');
           const res = sse.open('http://a/events', { method: 'POST', body: '{}' }, (client) => {
             client.on('event', (event) => client.close());
           });
           check(res, { ok: (r) => r && r.status === 201 });
           sse.open('http://a/all', (client) => { client.on('event', (event) => event.data); });
         }",
    )]);
    assert_eq!(requests.counts(), (3, 3));
    has_lines(
        &text,
        &[
            "stream: {framing: sse, ends: {count: 1}}",
            "expect: {status: 201}",
            "stream: sse",
            "expect: {status: 2xx}",
            "expect: {same-as: baseline}",
            "# if the stream does not end by itself, add `ends` to `stream`",
        ],
    );
}

#[test]
fn calls_of_grpc_have_their_files_next_to_the_lab() {
    let proto = "syntax = \"proto3\";\npackage main;\nimport \"point.proto\";\n\
                 service Guide {\n  rpc Get(Point) returns (Point);\n  rpc Watch(Point) returns (stream Point);\n}\n";
    let point = "syntax = \"proto3\";\npackage main;\nmessage Point { int32 id = 1; }\n";
    let (requests, text) = written(&[
        (
            "tests/a.js",
            "import grpc from 'k6/net/grpc'; import { check } from 'k6';
             const client = new grpc.Client();
             client.load(['protos'], 'guide.proto');
             export const options = { thresholds: { grpc_req_duration: ['p(95)<20'], http_req_duration: ['p(95)<30'] } };
             export default () => {
               client.connect('127.0.0.1:9000', { plaintext: true });
               const res = client.invoke('main.Guide/Get', { id: 7 }, { metadata: { 'x-a': 'b' }, timeout: '2s' });
               check(res, { gone: (r) => r && r.status === grpc.StatusNotFound });
               client.invoke('main.Guide/Get', { id: res.message.id });
               const stream = new grpc.Stream(client, 'main.Guide/Watch');
               stream.write({ id: 1 });
               stream.end();
             };",
        ),
        ("tests/protos/guide.proto", proto),
        ("tests/protos/point.proto", point),
    ]);
    has_lines(
        &text,
        &[
            "http2: on # as calls of gRPC need it",
            "method: \"main.Guide/Get\"",
            "proto: [\"proto/guide.proto\"]",
            "import-paths: proto",
            "message: {\"id\":7}",
            "deadline: 2000ms",
            "status: 5",
            "\"x-a\": \"b\"",
            "messages: [{\"id\":1}]",
            "- \"p95 value < 20ms\"",
        ],
    );
    assert_eq!(requests.counts(), (2, 3));
    has(
        &requests,
        &[
            "line 9: GRPC http://127.0.0.1:9000/main.Guide/Get: its message contains the answer to a call of gRPC in line 7.id",
            "`p(95)<30` has no gate: the lab sends no request of HTTP",
        ],
    );
    let reflected = script(
        "import grpc from 'k6/experimental/grpc';
         const client = new grpc.Client();
         export default () => { client.connect('a:1', { reflect: true }); client.invoke('m.S/M', {}); };",
    );
    has(
        &reflected,
        &["line 3: GRPC https://a:1/m.S/M: the server describes it by reflection"],
    );
}
