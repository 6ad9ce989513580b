//! Calls of a script that are more than a request of HTTP, in the form of a lab.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k6_script::{
    AcceptedStatus, CallBody, CallWire, GRPC_STATUS, SEPARATOR, ScriptCall, ScriptRecording,
    TextPart,
};

use super::super::requests::{Call, Content, Conversation, Given, Message, PROTO, Requests, Wire};
use super::places::Places;
use super::texts;

/// The kinds of requests that cannot be in one load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Http,
    Grpc,
    WebSocket,
}

impl Kind {
    pub(super) fn of(call: &ScriptCall) -> Kind {
        match call.wire {
            CallWire::Http | CallWire::Sse { .. } => Kind::Http,
            CallWire::WebSocket { .. } => Kind::WebSocket,
            CallWire::Grpc { .. } => Kind::Grpc,
        }
    }

    /// The most frequent kind. Of equally frequent kinds, the kind that is not a login.
    pub(super) fn most(calls: impl Iterator<Item = Kind> + Clone) -> Kind {
        let count = |kind: Kind| calls.clone().filter(|it| *it == kind).count();
        let kinds = [Kind::Http, Kind::Grpc, Kind::WebSocket];
        // The last of equal items.
        kinds
            .into_iter()
            .max_by_key(|kind| count(*kind))
            .unwrap_or_default()
    }

    /// The reason for leaving out a call of another kind.
    pub(super) fn excludes(self, other: Kind) -> Option<String> {
        let name = |kind: Kind| match kind {
            Kind::Http => "HTTP",
            Kind::Grpc => "gRPC",
            Kind::WebSocket => "WebSocket",
        };
        (self != other).then(|| {
            format!(
                "it is {}, and the other requests of the lab are {}. Write a second lab for it",
                name(other),
                name(self)
            )
        })
    }
}

/// The reason why a lab has no such message.
pub(super) fn problem(call: &ScriptCall) -> Option<String> {
    if !matches!(call.wire, CallWire::Grpc { .. }) {
        return None;
    }
    let Some(CallBody::Text(parts)) = &call.body else {
        return None;
    };
    let is_plain = |part: &TextPart| matches!(part, TextPart::Plain(_));
    let name = match parts.iter().find(|part| !is_plain(part))? {
        TextPart::Answer { name, .. } | TextPart::Computed(name) => name.clone(),
        TextPart::Environment(name) => format!("__ENV.{name}"),
        _ => "a value that differs".to_owned(),
    };
    Some(format!(
        "its message contains {name}. A message of gRPC is the same for each call of a lab"
    ))
}

/// Adds the kind of a call to its request.
pub(super) fn add(call: &ScriptCall, places: &Places, given: &mut Given) {
    match &call.wire {
        CallWire::Http => {}
        CallWire::Sse { ends } => {
            if ends.is_none() {
                given.notes.push(
                    "if the stream does not end by itself, add `ends` to `stream`".to_owned(),
                );
            }
            given.wire = Wire::Sse { ends: *ends };
        }
        CallWire::WebSocket {
            protocol,
            ends,
            hold,
            messages,
        } => {
            let texts = contents(call, places, given);
            let messages = messages.iter().zip(texts).map(|(message, text)| Message {
                content: match message.is_binary {
                    true => Content::Bytes(STANDARD.decode(&text).unwrap_or_default()),
                    false => Content::Text(text),
                },
                after: message.after,
                every: message.every,
                count: message.count,
            });
            given.wire = Wire::WebSocket(Conversation {
                protocol: protocol.clone(),
                ends: *ends,
                hold: *hold,
                messages: messages.collect(),
            });
        }
        CallWire::Grpc {
            method,
            files,
            descriptors,
            is_stream,
            deadline,
        } => {
            let messages = contents(call, places, given);
            let status = status(call.accepted.as_ref());
            given.status.clear();
            given.notes.retain(|note| !note.contains("many statuses"));
            given.wire = Wire::Grpc(Call {
                method: method.clone(),
                files: files.clone(),
                descriptors: descriptors.clone(),
                messages,
                is_stream: *is_stream,
                deadline: *deadline,
                status,
            });
        }
    }
}

/// The texts of the messages. Their placeholders become placeholders of the request.
fn contents(call: &ScriptCall, places: &Places, given: &mut Given) -> Vec<String> {
    given.body = None;
    let Some(CallBody::Text(parts)) = &call.body else {
        return Vec::new();
    };
    // Unknown parts are left out before.
    let Ok(found) = texts::text("its message", parts, places) else {
        return Vec::new();
    };
    given.places.extend(found.words);
    found.text.split(SEPARATOR).map(str::to_owned).collect()
}

/// The right status of a call: OK, unless the script accepts others only.
fn status(accepted: Option<&AcceptedStatus>) -> u32 {
    match accepted {
        Some(AcceptedStatus::These(list)) if !list.contains(&GRPC_STATUS) => {
            let first = list.first().copied().unwrap_or(GRPC_STATUS);
            u32::from(first.saturating_sub(GRPC_STATUS))
        }
        _ => 0,
    }
}

/// Adds the files of gRPC next to the lab.
pub(super) fn add_files(recording: &ScriptRecording, requests: &mut Requests) {
    let folder = Path::new(PROTO);
    for (name, text) in &recording.protos {
        requests.add_file(folder.join(name), text.clone().into_bytes());
    }
    for (name, bytes) in &recording.descriptors {
        if let Ok(bytes) = STANDARD.decode(bytes) {
            requests.add_file(folder.join(name), bytes);
        }
    }
}
