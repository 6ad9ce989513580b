//! Calls of gRPC.

use std::sync::Arc;
use std::time::Duration;

use crate::PlannedMessage;

/// The protocol of a call. The messages are binary in every protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RpcProtocol {
    /// gRPC over HTTP/2.
    #[default]
    Grpc,
    /// gRPC-Web over any version of HTTP. The last message of an answer has the trailers.
    GrpcWeb,
    /// Connect over any version of HTTP.
    Connect,
}

impl RpcProtocol {
    /// All protocols.
    pub const ALL: [RpcProtocol; 3] = [
        RpcProtocol::Grpc,
        RpcProtocol::GrpcWeb,
        RpcProtocol::Connect,
    ];

    /// The name of the protocol in labs and flags.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RpcProtocol::Grpc => "grpc",
            RpcProtocol::GrpcWeb => "grpc-web",
            RpcProtocol::Connect => "connect",
        }
    }

    /// True if calls travel over HTTP/2 only.
    #[must_use]
    pub fn needs_http2(self) -> bool {
        self == RpcProtocol::Grpc
    }

    /// The header that marks a call of this protocol. gRPC has no such header.
    #[must_use]
    pub fn mark(self) -> Option<(&'static str, &'static str)> {
        match self {
            RpcProtocol::Grpc => None,
            RpcProtocol::GrpcWeb => Some(("X-Grpc-Web", "1")),
            RpcProtocol::Connect => Some(("Connect-Protocol-Version", "1")),
        }
    }
}

/// A call of gRPC, gRPC-Web or Connect, instead of a body. Its messages are written as JSON until they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCall {
    /// The method: `package.Service/Method`.
    pub method: String,
    /// The protocol of the call.
    pub protocol: RpcProtocol,
    /// The descriptors of the method.
    pub descriptors: GrpcDescriptors,
    /// The messages in order, each as the text of its JSON.
    pub messages: Vec<PlannedMessage>,
    /// True if each answer is the reply to the oldest message without a reply. Round trips count from the
    /// planned time of a message.
    pub has_replies: bool,
    /// The time after which no further message is sent. `None` if the last message ends the sending.
    pub hold: Option<Duration>,
    /// The time limit that the server receives, and after which the generator ends the call.
    pub deadline: Option<Duration>,
    /// True if messages are compressed with gzip.
    pub is_compressed: bool,
    /// The correct status, 0 to 16.
    pub status: u32,
    /// The fields that each answer must have, as the text of a JSON object. `None` for any answer.
    pub answer: Option<String>,
    /// Texts that the JSON of each answer must contain.
    pub contains: Vec<String>,
}

/// The source of the descriptors of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrpcDescriptors {
    /// A set of descriptors (`FileDescriptorSet`).
    Set(Arc<[u8]>),
    /// The server sends them before the load.
    Reflection,
}

/// The rule of the answers to a call of gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcRule {
    /// The protocol of the call.
    pub protocol: RpcProtocol,
    /// The correct status, 0 to 16.
    pub status: u32,
    /// The form of the answers. `None` if they are not read.
    pub answers: Option<GrpcAnswers>,
}

/// The form of the answers to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcAnswers {
    /// The method: `package.Service/Method`.
    pub method: String,
    /// The set of descriptors.
    pub descriptors: Arc<[u8]>,
    /// The fields that each answer must have, as the text of a JSON object. `None` for any answer.
    pub fields: Option<String>,
    /// Texts that the JSON of each answer must contain.
    pub contains: Vec<String>,
}

impl GrpcRule {
    /// Returns a rule for the status alone.
    #[must_use]
    pub fn of_status(status: u32) -> GrpcRule {
        GrpcRule {
            protocol: RpcProtocol::Grpc,
            status,
            answers: None,
        }
    }
}

impl GrpcCall {
    /// Returns a call with the expected status 0 (OK), and without a deadline, a hold or compression.
    #[must_use]
    pub fn new(
        method: String,
        descriptors: GrpcDescriptors,
        messages: Vec<PlannedMessage>,
    ) -> GrpcCall {
        GrpcCall {
            method,
            protocol: RpcProtocol::Grpc,
            descriptors,
            messages,
            has_replies: false,
            hold: None,
            deadline: None,
            is_compressed: false,
            status: 0,
            answer: None,
            contains: Vec::new(),
        }
    }

    /// The rule of its answers.
    #[must_use]
    pub fn rule(&self) -> GrpcRule {
        let answers = self.set().map(|set| GrpcAnswers {
            method: self.method.clone(),
            descriptors: Arc::clone(set),
            fields: self.answer.clone(),
            contains: self.contains.clone(),
        });
        GrpcRule {
            protocol: self.protocol,
            status: self.status,
            answers,
        }
    }

    /// The set of descriptors. `None` before the server has sent them.
    #[must_use]
    pub fn set(&self) -> Option<&Arc<[u8]>> {
        match &self.descriptors {
            GrpcDescriptors::Set(set) => Some(set),
            GrpcDescriptors::Reflection => None,
        }
    }

    /// The path of its request.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}", self.method)
    }

    /// True if its messages leave at times of their own, and not together with the head.
    #[must_use]
    pub fn is_spaced(&self) -> bool {
        let is_timed = |message: &PlannedMessage| {
            message.every.is_some() || message.count.is_some() || !message.after.is_zero()
        };
        self.has_replies || self.hold.is_some() || self.messages.iter().any(is_timed)
    }

    /// The time from its start to its last planned message.
    #[must_use]
    pub fn length(&self) -> Duration {
        let last = |message: &PlannedMessage| {
            let repeats = message.count.unwrap_or(1).saturating_sub(1);
            let repeats = u32::try_from(repeats).unwrap_or(u32::MAX);
            let all = message.every.unwrap_or_default().saturating_mul(repeats);
            message.after.saturating_add(all)
        };
        let planned = self.messages.iter().map(last).max().unwrap_or_default();
        self.hold.unwrap_or(planned)
    }

    /// The messages as lines of JSON.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.messages.iter().map(PlannedMessage::text).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_lasts_until_its_last_message() {
        let message = PlannedMessage::of_text("{}");
        let method = "a.B/C".to_owned();
        let reflection = GrpcDescriptors::Reflection;
        let mut call = GrpcCall::new(method, reflection, vec![message.clone()]);
        assert!(!call.is_spaced());
        assert_eq!(
            (call.length(), call.path()),
            (Duration::ZERO, "/a.B/C".to_owned())
        );
        call.messages.push(PlannedMessage {
            after: Duration::from_millis(5),
            every: Some(Duration::from_millis(10)),
            count: Some(4),
            ..message
        });
        assert!(call.is_spaced());
        assert_eq!(call.length(), Duration::from_millis(35));
        call.hold = Some(Duration::from_millis(20));
        assert_eq!(call.length(), Duration::from_millis(20));
        assert_eq!(call.text(), "{}\n{}");
    }
}
