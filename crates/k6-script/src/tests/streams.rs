//! Conversations over WebSocket, streams of events, and calls of gRPC.

use super::*;

fn wires(recording: &ScriptRecording) -> Vec<String> {
    let calls = recording.scenarios.iter().flat_map(|it| &it.calls);
    calls
        .map(|call| format!("{} {:?}", line(call).replace(SEPARATOR, " ; "), call.wire))
        .collect()
}

fn message(after: u64, every: Option<u64>, count: Option<u64>) -> ScriptMessage {
    ScriptMessage {
        after: Duration::from_millis(after),
        every: every.map(Duration::from_millis),
        count,
        is_binary: false,
    }
}

#[test]
fn a_conversation_has_its_messages_with_their_times() {
    let recording = run("import ws from 'k6/ws';
         export default function () {
           const res = ws.connect('wss://a:81/chat?x=1', { headers: { 'X-A': 'b' } }, function (socket) {
             socket.on('open', () => {
               socket.send('hello');
               socket.setInterval(() => { socket.send(JSON.stringify({ kind: 'beat' })); }, 1000);
               socket.setTimeout(function () { socket.send('late'); }, 1500);
             });
             socket.on('message', (data) => { console.log(data.length); });
             socket.setTimeout(() => socket.close(), 5000);
           });
         }");
    let calls = &recording.scenarios[0].calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(
        line(&calls[0]).replace(SEPARATOR, " ; "),
        "WEBSOCKET https://a:81/chat?x=1 X-A: b | hello ; {\"kind\":\"beat\"} ; late"
    );
    let expected = CallWire::WebSocket {
        protocol: None,
        ends: None,
        hold: Some(Duration::from_secs(5)),
        messages: vec![
            message(0, None, None),
            message(1000, Some(1000), None),
            message(1500, None, None),
        ],
    };
    assert_eq!(calls[0].wire, expected);
}

#[test]
fn the_class_websocket_shares_the_timers_of_the_script() {
    let recording = run("import { WebSocket } from 'k6/experimental/websockets';
         import { setTimeout, setInterval, clearInterval } from 'k6/timers';
         export default function () {
           const ws = new WebSocket('ws://a/', ['chat', 'x']);
           ws.onopen = () => {
             const id = setInterval(() => { ws.send('tick'); }, 200);
             setTimeout(() => { clearInterval(id); ws.close(); }, 1000);
           };
           ws.addEventListener('message', (e) => { JSON.parse(e.data).user; });
         }");
    let expected = CallWire::WebSocket {
        protocol: Some("chat, x".to_owned()),
        ends: None,
        hold: Some(Duration::from_secs(1)),
        messages: vec![message(200, Some(200), Some(5))],
    };
    assert_eq!(recording.scenarios[0].calls[0].wire, expected);
}

#[test]
fn an_end_by_the_first_event_is_an_end_and_other_reactions_are_named() {
    let recording = run("import ws from 'k6/ws';
import sse from 'k6/x/sse';
export default function () {
  ws.connect('ws://a/1', (socket) => {
    socket.on('open', () => { socket.ping(); socket.send('a'); });
    socket.on('message', (data) => { socket.send('again'); socket.close(); });
  });
  ws.connect('ws://a/2', null, (socket) => {
    socket.on('message', (data) => { if (JSON.parse(data).done === 1) { socket.close(); } socket.setTimeout(() => 1, 5); });
  });
  sse.open('http://a/3', { method: 'POST', body: '{}', headers: { A: 'b' } }, (client) => {
    client.on('event', (event) => { if (parseInt(event.id) === 2) client.close(); });
  });
  sse.open('http://a/4', (client) => { client.on('event', () => client.close()); });
}");
    let found = wires(&recording);
    assert_eq!(found.len(), 4, "{found:?}");
    for (found, words) in found.iter().zip([
        "WEBSOCKET http://a/1 | a WebSocket { protocol: None, ends: Some(1), hold: None",
        "WEBSOCKET http://a/2 |  WebSocket { protocol: None, ends: None, hold: None",
        "POST http://a/3 A: b | {} Sse { ends: None }",
        "GET http://a/4 Sse { ends: Some(1) }",
    ]) {
        assert!(found.starts_with(words), "{found}");
    }
    let problems = &recording.scenarios[0].calls[1].problems;
    assert!(problems[0].contains("it has no end"), "{problems:?}");
    let notes = notes(&recording);
    for words in [
        "line 5: a ping is left out",
        "line 6: a message after an event is left out",
        "line 8: a timer after an event is left out",
        "line 8: the script ends the stream by a value of an event",
        "line 11: the script ends the stream by a value of an event",
    ] {
        assert!(
            notes.iter().any(|it| it.contains(words)),
            "{words}: {notes:?}"
        );
    }
}

#[test]
fn a_call_of_grpc_has_its_method_its_message_and_the_files_with_imports() {
    let files = [
        (
            "/shop/test.js",
            "import grpc from 'k6/net/grpc'; import { check } from 'k6';
             const client = new grpc.Client();
             client.load(['./protos'], 'route/guide.proto');
             export default () => {
               client.connect('127.0.0.1:10000', { plaintext: true });
               const response = client.invoke('/main.Guide/Get', { id: 1, tags: ['a'] }, { metadata: { 'x-a': 'b' }, timeout: '2s' });
               check(response, { found: (r) => r && r.status === grpc.StatusNotFound });
               const other = client.invoke('main.Guide/Get', { id: response.message.id });
               check(other, { ok: (r) => r.status === grpc.StatusOK });
               const stream = new grpc.Stream(client, 'main.Guide/Watch');
               stream.on('data', () => 1);
               stream.write({ id: 2 });
               stream.write({ id: 3 });
               stream.end();
               client.close();
             };",
        ),
        (
            "/shop/protos/route/guide.proto",
            "syntax = \"proto3\";\nimport \"route/point.proto\";\nimport \"google/protobuf/empty.proto\";\n// import \"x.proto\";\n",
        ),
        ("/shop/protos/route/point.proto", "syntax = \"proto3\";\n"),
    ];
    let recording = run_with(&files, &[]).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&String> = recording.protos.keys().collect();
    assert_eq!(names, ["route/guide.proto", "route/point.proto"]);
    let found = wires(&recording);
    let wire = |is_stream: bool, method: &str, deadline: &str| {
        format!(
            "Grpc {{ method: \"main.Guide/{method}\", files: [\"route/guide.proto\"], descriptors: None, \
             is_stream: {is_stream}, deadline: {deadline} }}"
        )
    };
    let url = "http://127.0.0.1:10000/main.Guide";
    assert_eq!(
        found,
        [
            format!(
                "GRPC {url}/Get x-a: b | {{\"id\":1,\"tags\":[\"a\"]}} -> These([105]) {}",
                wire(false, "Get", "Some(2s)")
            ),
            format!(
                "GRPC {url}/Get | {{\"id\":<? the answer to a call of gRPC in line 6.id>}} -> These([100]) {}",
                wire(false, "Get", "None")
            ),
            format!(
                "GRPC {url}/Watch | {{\"id\":2}} ; {{\"id\":3}} {}",
                wire(true, "Watch", "None")
            ),
        ]
    );
}

#[test]
fn pauses_and_counts_of_handlers_are_those_of_the_conversation() {
    let recording = run("import { WebSocket } from 'k6/experimental/websockets';
         import { sleep } from 'k6';
         export default function () {
           const sender = new WebSocket('ws://a/send');
           sender.addEventListener('open', () => {
             sender.send('one'); sleep(0.2); sender.send('two'); sleep(0.1); sender.close();
           });
           let count = 0;
           const receiver = WebSocket('ws://a/hear');
           receiver.onopen = () => { receiver.onmessage = (e) => { count += 1; if (count === 40) receiver.close(); }; };
           const early = new WebSocket('ws://a/early');
           early.onopen = () => early.send('x');
           early.close();
         }");
    let calls = &recording.scenarios[0].calls;
    let socket =
        |ends: Option<u64>, hold: Option<u64>, messages: Vec<ScriptMessage>| CallWire::WebSocket {
            protocol: None,
            ends,
            hold: hold.map(Duration::from_millis),
            messages,
        };
    let sent = vec![message(0, None, None), message(200, None, None)];
    assert_eq!(calls[0].wire, socket(None, Some(300), sent));
    assert_eq!(calls[1].wire, socket(Some(40), None, Vec::new()));
    assert!(
        calls[2].problems[0].contains("before it is open"),
        "{:?}",
        calls[2].problems
    );
    assert!(calls.iter().all(|call| call.pause.most.is_zero()));
}
