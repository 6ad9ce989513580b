//! Requests that are more than one request of HTTP: streams, conversations over WebSocket, calls of gRPC.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::yaml_text::quoted;

/// The kind of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) enum Wire {
    #[default]
    Http,
    /// Its answer is a stream of server-sent events, which ends after a number of events or by itself.
    Sse {
        ends: Option<u64>,
    },
    WebSocket(Conversation),
    Grpc(Call),
}

/// A conversation over WebSocket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Conversation {
    pub(in super::super) protocol: Option<String>,
    /// The number of messages of the server after which it ends.
    pub(in super::super) ends: Option<u64>,
    pub(in super::super) hold: Option<Duration>,
    pub(in super::super) messages: Vec<Message>,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Message {
    pub(in super::super) content: Content,
    pub(in super::super) after: Duration,
    pub(in super::super) every: Option<Duration>,
    pub(in super::super) count: Option<u64>,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

/// A call of gRPC.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Call {
    pub(in super::super) method: String,
    /// The names of `.proto` files next to the lab.
    pub(in super::super) files: Vec<String>,
    pub(in super::super) descriptors: Option<String>,
    /// Messages in JSON.
    pub(in super::super) messages: Vec<String>,
    /// True if the messages are a stream.
    pub(in super::super) is_stream: bool,
    pub(in super::super) deadline: Option<Duration>,
    pub(in super::super) status: u32,
}

/// The folder of `.proto` files, relative to the lab.
pub(in super::super) const PROTO: &str = "proto";

/// The protocols of subscriptions of GraphQL.
const GRAPHQL: [&str; 2] = ["graphql-transport-ws", "graphql-ws"];

impl Wire {
    /// True if the lab's method and path are lines of the request.
    pub(super) fn has_method(&self) -> bool {
        matches!(self, Wire::Http | Wire::Sse { .. })
    }

    /// The texts that the lab contains, which can have placeholders.
    pub(super) fn texts(&self) -> Vec<&str> {
        match self {
            Wire::Http | Wire::Sse { .. } => Vec::new(),
            Wire::WebSocket(own) => own
                .messages
                .iter()
                .filter_map(|message| match &message.content {
                    Content::Text(text) => Some(text.as_str()),
                    Content::Bytes(_) => None,
                })
                .collect(),
            Wire::Grpc(call) => call.messages.iter().map(String::as_str).collect(),
        }
    }

    /// The files of binary messages. `number` is the number of the request.
    pub(super) fn files(&self, number: usize) -> Vec<(PathBuf, Vec<u8>)> {
        let Wire::WebSocket(own) = self else {
            return Vec::new();
        };
        let numbered = own.messages.iter().enumerate();
        numbered
            .filter_map(|(index, message)| match &message.content {
                Content::Text(_) => None,
                Content::Bytes(bytes) => Some((PathBuf::from(file(number, index)), bytes.clone())),
            })
            .collect()
    }

    /// The lines of the request in a lab.
    pub(super) fn lines(&self, number: usize) -> String {
        match self {
            Wire::Http => String::new(),
            Wire::Sse { ends: None } => "      stream: sse\n".to_owned(),
            Wire::Sse { ends: Some(count) } => {
                format!("      stream: {{framing: sse, ends: {{count: {count}}}}}\n")
            }
            Wire::WebSocket(own) => own.lines(number),
            Wire::Grpc(call) => call.lines(),
        }
    }

    /// The line of `expect`, if the rule of the lab is for whole bodies.
    pub(super) fn expect(&self, status: Option<String>) -> Option<String> {
        match (self, status) {
            (Wire::Http, _) => None,
            (Wire::Sse { .. }, status) => {
                let status = status.unwrap_or_else(|| "2xx".to_owned());
                Some(format!("      expect: {{status: {status}}}\n"))
            }
            (Wire::Grpc(call), _) if !call.is_stream => Some(String::new()),
            _ => Some("      expect: {}\n".to_owned()),
        }
    }

    /// The shortest time of one request, if it is planned.
    pub(super) fn length(&self) -> Duration {
        let Wire::WebSocket(own) = self else {
            return Duration::ZERO;
        };
        let sent = own.messages.iter().map(|message| message.after).max();
        own.hold.or(sent).unwrap_or_default()
    }
}

/// The file of a binary message, relative to the lab.
fn file(number: usize, index: usize) -> String {
    format!("requests/{number}-{}.bin", index + 1)
}

/// A time in a lab.
fn time(length: Duration) -> String {
    match length.subsec_micros() % 1000 {
        0 => format!("{}ms", length.as_millis()),
        _ => format!("{}us", length.as_micros()),
    }
}

impl Conversation {
    /// Checks that a lab can hold it.
    ///
    /// # Errors
    /// The reason.
    pub(in super::super) fn check(&self) -> Result<(), String> {
        let is_graphql = self.is_graphql();
        if is_graphql && self.subscription().is_none() {
            return Err(
                "its messages are not one subscription of GraphQL: `connection_init`, then `subscribe`"
                    .to_owned(),
            );
        }
        let is_open = |it: &Message| it.every.is_some() && it.count.is_none();
        if self.hold.is_none() && self.messages.iter().any(is_open) {
            return Err("a repeated message has no end".to_owned());
        }
        Ok(())
    }

    fn is_graphql(&self) -> bool {
        let protocol = self.protocol.as_deref();
        protocol.is_some_and(|protocol| GRAPHQL.contains(&protocol))
    }

    /// The payloads of the first message and of the subscription.
    fn subscription(&self) -> Option<(Option<Value>, Value)> {
        let mut payloads = Vec::new();
        for message in &self.messages {
            let Content::Text(text) = &message.content else {
                return None;
            };
            let json: Value = serde_json::from_str(text).ok()?;
            let kind = json.get("type")?.as_str()?.to_owned();
            payloads.push((kind, json.get("payload").cloned()));
        }
        match payloads.as_slice() {
            [(first, init), (second, Some(payload))]
                if first == "connection_init"
                    && ["subscribe", "start"].contains(&second.as_str())
                    && payload.get("query").is_some_and(Value::is_string) =>
            {
                Some((init.clone(), payload.clone()))
            }
            _ => None,
        }
    }

    fn lines(&self, number: usize) -> String {
        let mut text = String::new();
        if let Some(protocol) = &self.protocol {
            let _ = writeln!(text, "        protocol: {}", quoted(protocol));
        }
        if let Some(hold) = self.hold.filter(|hold| !hold.is_zero()) {
            let _ = writeln!(text, "        hold: {}", time(hold));
        }
        if let (true, Some((init, payload))) = (self.is_graphql(), self.subscription()) {
            if let Some(init) = init {
                let _ = writeln!(text, "        init: {init}");
            }
            let member = |name: &str, key: &str| {
                let value = payload.get(name).filter(|it| !it.is_null())?;
                Some(format!("{key}: {value}"))
            };
            let members = [
                member("query", "query"),
                member("variables", "variables"),
                member("operationName", "operation-name"),
            ];
            let members: Vec<String> = members.into_iter().flatten().collect();
            let _ = writeln!(text, "        subscribe: {{{}}}", members.join(", "));
        } else if !self.messages.is_empty() {
            text += "        messages:\n";
            for (index, message) in self.messages.iter().enumerate() {
                let _ = writeln!(text, "          - {}", message.text(&file(number, index)));
            }
        }
        let mut text = match text.as_str() {
            "" => "      websocket: {}\n".to_owned(),
            members => format!("      websocket:\n{members}"),
        };
        if let Some(count) = self.ends {
            let _ = writeln!(text, "      stream: {{ends: {{count: {count}}}}}");
        }
        text
    }
}

impl Message {
    fn text(&self, file: &str) -> String {
        let mut members = vec![match &self.content {
            Content::Text(text) => format!("text: {}", quoted(text)),
            Content::Bytes(_) => format!("file: {}", quoted(file)),
        }];
        if !self.after.is_zero() {
            members.push(format!("after: {}", time(self.after)));
        }
        members.extend(self.every.map(|every| format!("every: {}", time(every))));
        members.extend(self.count.map(|count| format!("count: {count}")));
        format!("{{{}}}", members.join(", "))
    }
}

impl Call {
    fn lines(&self) -> String {
        let mut text = format!("      grpc:\n        method: {}\n", quoted(&self.method));
        let file = |name: &String| quoted(&format!("{PROTO}/{name}"));
        match &self.descriptors {
            Some(name) => {
                let _ = writeln!(text, "        descriptors: {}", file(name));
            }
            None => {
                let files: Vec<String> = self.files.iter().map(file).collect();
                let _ = writeln!(text, "        proto: [{}]", files.join(", "));
                let _ = writeln!(text, "        import-paths: {PROTO}");
            }
        }
        match (self.is_stream, self.messages.as_slice()) {
            (false, [message]) => {
                let _ = writeln!(text, "        message: {message}");
            }
            (_, messages) => {
                let _ = writeln!(text, "        messages: [{}]", messages.join(", "));
            }
        }
        if let Some(deadline) = self.deadline {
            let _ = writeln!(text, "        deadline: {}", time(deadline));
        }
        if self.status != 0 {
            let _ = writeln!(text, "        status: {}", self.status);
        }
        text
    }
}
