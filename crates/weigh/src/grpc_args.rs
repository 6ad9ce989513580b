//! Flags for calls of gRPC.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use load::Request;
use model::{
    Expectation, Framing, GrpcCall, GrpcDescriptors, MessageContent, PlannedMessage, RpcProtocol,
    StreamRule,
};

use crate::yaml_text::quoted;

/// Flags for calls of gRPC.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GrpcArgs {
    /// Call this method of gRPC, `package.Service/Method`, over HTTP/2.
    ///
    /// The status at the end of the answer decides whether a call passed. A method with a stream of answers has events,
    /// as with --stream. Without --proto and --descriptors, the server sends the descriptors by
    /// reflection before the load.
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["method", "data", "stream", "messages", "subscribe"])]
    grpc: Option<String>,
    /// The protocol of the call: grpc, grpc-web or connect [default: grpc].
    ///
    /// gRPC always uses HTTP/2. The other protocols use the version of HTTP of a request, by default HTTP/1.1.
    #[arg(long, value_name = "PROTOCOL", requires = "grpc", value_parser = protocol, hide_short_help = true)]
    grpc_protocol: Option<RpcProtocol>,
    /// The .proto file of the method. Imports are found next to it and below --import-path.
    #[arg(
        long,
        value_name = "FILE",
        requires = "grpc",
        conflicts_with = "descriptors",
        hide_short_help = true
    )]
    proto: Vec<PathBuf>,
    /// A file with a set of descriptors instead of --proto.
    #[arg(long, value_name = "FILE", requires = "grpc", hide_short_help = true)]
    descriptors: Option<PathBuf>,
    /// A folder of imported .proto files.
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "proto",
        hide_short_help = true
    )]
    import_path: Vec<PathBuf>,
    /// The message of the call in JSON [default: an empty message]. Repeat the flag for a method that takes a
    /// stream of messages.
    #[arg(
        long = "grpc-message",
        value_name = "JSON",
        requires = "grpc",
        hide_short_help = true
    )]
    grpc_messages: Vec<String>,
    /// Send each message again after this time.
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires = "grpc", requires = "grpc_count", hide_short_help = true)]
    grpc_every: Option<Duration>,
    /// The number of sends of each message with --grpc-every.
    #[arg(long, value_name = "N", requires = "grpc_every", hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..))]
    grpc_count: Option<u64>,
    /// Each answer is the reply to the oldest message without a reply.
    ///
    /// The report then contains round trips from the planned time of each message to its reply. A call without
    /// a reply to each message did not pass.
    #[arg(long, requires = "grpc", hide_short_help = true)]
    grpc_replies: bool,
    /// Compress the messages with gzip, and let the server compress its answers.
    #[arg(long, requires = "grpc", hide_short_help = true)]
    grpc_gzip: bool,
    /// The time limit that the server receives. After it the call has the status 4.
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires = "grpc", hide_short_help = true)]
    grpc_deadline: Option<Duration>,
    /// Fields that each answer must have, in JSON. Other fields may have any value.
    #[arg(long, value_name = "JSON", requires = "grpc", hide_short_help = true)]
    grpc_answer: Option<String>,
    /// A text that each answer must contain. An answer is compared as JSON without spaces. Repeat the flag for
    /// several texts.
    #[arg(long, value_name = "TEXT", requires = "grpc", hide_short_help = true)]
    grpc_contains: Vec<String>,
    /// The expected status of the call, 0 to 16.
    #[arg(long, value_name = "STATUS", requires = "grpc", hide_short_help = true, value_parser = clap::value_parser!(u32).range(0..=16))]
    grpc_status: Option<u32>,
}

impl GrpcArgs {
    /// True if the request is a call.
    pub(crate) fn is_given(&self) -> bool {
        self.grpc.is_some()
    }

    /// True if the request is a call that needs HTTP/2.
    pub(crate) fn needs_http2(&self) -> bool {
        self.is_given() && self.grpc_protocol.unwrap_or_default().needs_http2()
    }

    /// True if the descriptors are files of this machine.
    pub(crate) fn has_files(&self) -> bool {
        !self.proto.is_empty() || self.descriptors.is_some()
    }

    /// Returns the call of the flags. `None` if the request is no call.
    ///
    /// # Errors
    /// If a file cannot be read, or the method or the message does not fit the files.
    pub(crate) fn call(&self) -> Result<Option<GrpcCall>, String> {
        let Some(method) = &self.grpc else {
            return Ok(None);
        };
        let descriptors = match (&self.descriptors, self.proto.is_empty()) {
            (None, true) => GrpcDescriptors::Reflection,
            _ => {
                let read = |path: &Path| {
                    fs::read(path)
                        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))
                };
                let schema = lab::GrpcSchema {
                    protos: &self.proto,
                    import_paths: &self.import_path,
                    descriptors: self.descriptors.as_deref(),
                };
                GrpcDescriptors::Set(Arc::from(lab::grpc_descriptors(&schema, &read)?))
            }
        };
        let planned = |json: &str| PlannedMessage {
            content: MessageContent::Text(json.to_owned()),
            after: Duration::ZERO,
            every: self.grpc_every,
            count: self.grpc_count,
        };
        let messages = match self.grpc_messages.is_empty() {
            true => vec![planned("{}")],
            false => self.grpc_messages.iter().map(|it| planned(it)).collect(),
        };
        Ok(Some(GrpcCall {
            method: method.trim_start_matches('/').to_owned(),
            protocol: self.grpc_protocol.unwrap_or_default(),
            descriptors,
            messages,
            has_replies: self.grpc_replies,
            hold: None,
            deadline: self.grpc_deadline,
            is_compressed: self.grpc_gzip,
            status: self.grpc_status.unwrap_or(0),
            answer: self.grpc_answer.clone(),
            contains: self.grpc_contains.clone(),
        }))
    }

    /// Returns the request of the call. `None` if the request is no call.
    ///
    /// # Errors
    /// As [`GrpcArgs::call`].
    pub(crate) fn request(&self) -> Result<Option<Request>, String> {
        let Some(call) = self.call()? else {
            return Ok(None);
        };
        Ok(Some(Request {
            method: "POST".to_owned(),
            path: call.path(),
            headers: Vec::new(),
            body: Vec::new(),
            expect: Expectation {
                grpc: Some(call.rule()),
                stream: answers_several(&call)?.then(|| StreamRule::of(Framing::Grpc)),
                ..Expectation::default()
            },
            weight: 1,
            websocket: None,
            grpc: Some(call),
        }))
    }
}

fn protocol(text: &str) -> Result<RpcProtocol, String> {
    let mut all = RpcProtocol::ALL.into_iter();
    all.find(|protocol| protocol.word() == text)
        .ok_or_else(|| format!("expected grpc, grpc-web or connect, found `{text}`"))
}

/// True if the descriptors give the method a stream of answers.
///
/// # Errors
/// If the descriptors have no such method.
pub(crate) fn answers_several(call: &GrpcCall) -> Result<bool, String> {
    let Some(set) = call.set() else {
        return Ok(false);
    };
    let method = grpc_schema::CallSchema::read(set)?.method(&call.method)?;
    Ok(method.answers_several())
}

/// Returns a call of flags as the value of `grpc` in a lab. `file` has its descriptors.
pub(crate) fn as_yaml(call: &GrpcCall, file: &str) -> String {
    let span = |time: Duration| format!("{}ns", time.as_nanos());
    let mut keys = vec![format!("method: {}", quoted(&call.method))];
    if call.protocol != RpcProtocol::Grpc {
        keys.push(format!("protocol: {}", call.protocol.word()));
    }
    keys.push(match call.descriptors {
        GrpcDescriptors::Set(_) => format!("descriptors: {}", quoted(file)),
        GrpcDescriptors::Reflection => "reflection: on".to_owned(),
    });
    let is_timed = call.messages.iter().any(|message| message.every.is_some());
    let messages: Vec<String> = call
        .messages
        .iter()
        .map(|message| match (message.every, message.count) {
            (Some(every), Some(count)) => format!(
                "{{message: {}, every: {}, count: {count}}}",
                message.text(),
                span(every)
            ),
            _ => message.text().to_owned(),
        })
        .collect();
    keys.push(match (is_timed, messages.as_slice()) {
        (true, _) => format!("sends: [{}]", messages.join(", ")),
        (false, [one]) => format!("message: {one}"),
        (false, _) => format!("messages: [{}]", messages.join(", ")),
    });
    if call.has_replies {
        keys.push("replies: order".to_owned());
    }
    if call.is_compressed {
        keys.push("compression: gzip".to_owned());
    }
    keys.extend(
        call.deadline
            .map(|limit| format!("deadline: {}", span(limit))),
    );
    keys.extend(
        call.answer
            .as_ref()
            .map(|answer| format!("answer: {answer}")),
    );
    if !call.contains.is_empty() {
        let texts: Vec<String> = call.contains.iter().map(|text| quoted(text)).collect();
        keys.push(format!("contains: [{}]", texts.join(", ")));
    }
    if call.status != 0 {
        keys.push(format!("status: {}", call.status));
    }
    format!("{{{}}}", keys.join(", "))
}
