//! A subgraph that sends events over WebSockets. The test controls each message.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};
use tokio_tungstenite::tungstenite::{WebSocket, accept_hdr};

/// More time than any step of these tests takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A subgraph on a free port. It runs until the end of the test.
pub(crate) struct Sockets {
    pub(crate) url: String,
    sessions: Receiver<Session>,
}

/// One connection of the gateway.
pub(crate) struct Session {
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The payload of the first message, `connection_init`.
    pub(crate) parameters: Value,
    socket: WebSocket<TcpStream>,
}

impl Sockets {
    /// Starts a subgraph that accepts every subprotocol.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, sessions) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                thread::spawn(move || {
                    if let Some(session) = Session::accept(stream) {
                        let _ = sender.send(session);
                    }
                });
            }
        });
        Self { url, sessions }
    }

    /// Waits for the next connection.
    pub(crate) fn connected(&self) -> Session {
        self.sessions.recv_timeout(PATIENCE).unwrap()
    }

    /// The next connection, or `None` after `time`.
    pub(crate) fn next_within(&self, time: Duration) -> Option<Session> {
        self.sessions.recv_timeout(time).ok()
    }

    /// Accepts the next connection. Also returns its subscribe message.
    pub(crate) fn subscribed(&self) -> (Session, Value) {
        let mut session = self.connected();
        let subscribe = session.agree();
        (session, subscribe)
    }

    /// True if there is no new connection.
    pub(crate) fn is_alone(&self) -> bool {
        self.sessions.try_recv().is_err()
    }
}

impl Session {
    fn accept(stream: TcpStream) -> Option<Self> {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut target, mut headers) = (String::new(), Vec::new());
        #[expect(clippy::result_large_err, reason = "the type is the library's")]
        let agree = |request: &Request, mut response: Response| {
            target = request.uri().to_string();
            for (name, value) in request.headers() {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                headers.push((name.to_string(), value));
            }
            if let Some(protocol) = request.headers().get("sec-websocket-protocol") {
                let headers = response.headers_mut();
                headers.insert("sec-websocket-protocol", protocol.clone());
            }
            Ok(response)
        };
        let socket = accept_hdr(stream, agree).ok()?;
        Some(Self {
            target,
            headers,
            parameters: Value::Null,
            socket,
        })
    }

    /// Accepts the gateway's first message. Returns its subscribe message.
    pub(crate) fn agree(&mut self) -> Value {
        let mut init = self.read();
        assert_eq!(init["type"], "connection_init");
        self.parameters = init["payload"].take();
        self.send(json!({"type": "connection_ack"}));
        let subscribe = self.read();
        assert_eq!(subscribe["id"], "1");
        subscribe
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn send(&mut self, message: Value) {
        self.send_text(&message.to_string());
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// Sends a message. Returns false if the connection is closed.
    pub(crate) fn try_send(&mut self, message: Value) -> bool {
        self.socket.send(Message::text(message.to_string())).is_ok()
    }

    /// Sends an event of the only operation.
    pub(crate) fn event(&mut self, data: Value) {
        self.send(event(data));
    }

    pub(crate) fn complete(&mut self) {
        self.send(json!({"type": "complete", "id": "1"}));
    }

    pub(crate) fn close(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame {
            code: CloseCode::from(code),
            reason: reason.into(),
        };
        self.socket.close(Some(frame)).unwrap();
        let _ = self.socket.flush();
    }

    /// Reads the next message of the gateway.
    pub(crate) fn read(&mut self) -> Value {
        self.try_read().expect("a message")
    }

    /// Reads the next message of the gateway. `None` if it closes the connection.
    pub(crate) fn try_read(&mut self) -> Option<Value> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(other) => panic!("{other:?}"),
            }
        }
    }
}

/// The message for an event.
pub(crate) fn event(data: Value) -> Value {
    json!({"type": "next", "id": "1", "payload": {"data": data}})
}
