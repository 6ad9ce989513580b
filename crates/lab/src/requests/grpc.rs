//! Requests that are gRPC calls.

use std::path::PathBuf;
use std::sync::Arc;

use grpc_schema::{CallSchema, Method};
use model::{GrpcCall, GrpcDescriptors, PlannedMessage, RpcProtocol};
use yaml_with_places::{At, Finding, Json, Place};

use super::files::bytes;
use crate::formats::Written;
use crate::grpc;
use crate::places::{Places, Within};
use crate::quantities::LongerThanZero;
use crate::reading::Reading;
use crate::wire::{CompressionFile, GrpcFile, GrpcSendFile, RequestFile, RpcProtocolFile, Switch};

/// A call, its metadata, and its method if the lab has its descriptors.
pub(super) struct Call {
    pub(super) call: GrpcCall,
    pub(super) metadata: Vec<(String, String)>,
    method: Option<Method>,
    pub(super) place: Place,
}

impl Call {
    /// True if the method has a stream of answers. `None` if only the server has that answer.
    pub(super) fn answers_several(&self) -> Option<bool> {
        self.method.as_ref().map(Method::answers_several)
    }
}

/// A call that is being read.
struct Writing<'a, 'p> {
    file: &'a GrpcFile,
    at: Place,
    places: Places<'p>,
    method: Option<Method>,
}

/// Returns the call of a request. `None` if it has a mistake, which is reported.
pub(super) fn call(
    file: &At<GrpcFile>,
    places: Places<'_>,
    reading: &mut Reading<'_>,
) -> Option<Call> {
    let At { value: file, place } = file;
    let descriptors = descriptors(file, *place, reading)?;
    let method = match &descriptors {
        GrpcDescriptors::Reflection => None,
        GrpcDescriptors::Set(set) => {
            let found = CallSchema::read(set).and_then(|schema| schema.method(&file.method.value));
            match found {
                Ok(method) => Some(method),
                Err(wrong) => {
                    reading.findings.add(Finding::new(file.method.place, wrong));
                    return None;
                }
            }
        }
    };
    let writing = Writing {
        file,
        at: *place,
        places,
        method: method.clone(),
    };
    let call = writing.call(descriptors, reading)?;
    let mut metadata = Vec::new();
    super::add_headers(&file.metadata, places, &mut metadata, reading);
    for (name, _) in file.metadata.0.iter() {
        if grpc_schema::is_own_header(&name.value.0) {
            let finding = Finding::new(
                name.place,
                format!("the generator itself writes `{}`", name.value.0),
            );
            reading
                .findings
                .add(finding.help("remove it. `deadline` and `compression` are keys of `grpc`"));
        }
    }
    Some(Call {
        call,
        metadata,
        method,
        place: *place,
    })
}

/// Refuses keys that a call sets itself. Returns false with such a key.
pub(super) fn check_keys(request: &RequestFile, reading: &mut Reading<'_>) -> bool {
    let Some(grpc) = &request.grpc else {
        return true;
    };
    let path = request.path.as_ref().map(|it| ("path", it.place));
    let method = request.method.as_ref().map(|_| ("method", grpc.place));
    let mut is_right = true;
    for (key, place) in path.into_iter().chain(request.bodies()).chain(method) {
        is_right = false;
        reading.findings.add(
            Finding::new(place, format!("`grpc` and `{key}` exclude each other"))
                .related(grpc.place, "`grpc` is given here")
                .help("a call has its method, path and body from `grpc`. Remove the other key"),
        );
    }
    is_right
}

fn descriptors(
    file: &GrpcFile,
    place: Place,
    reading: &mut Reading<'_>,
) -> Option<GrpcDescriptors> {
    let asks = file.reflection.as_ref();
    let asks = asks.filter(|it| it.value == Switch::On).map(|it| it.place);
    let found = match (&file.descriptors, file.proto.0.as_slice(), asks) {
        (None, [], Some(_)) => return Some(GrpcDescriptors::Reflection),
        (Some(set), [], None) => {
            let path = reading.resolve(&set.value, set.place);
            return Some(GrpcDescriptors::Set(
                bytes(&path, set.place, reading)?.into(),
            ));
        }
        (None, [first, ..], None) => {
            let resolve = |it: &At<String>| reading.resolve(&it.value, it.place);
            let roots: Vec<PathBuf> = file.proto.0.iter().map(resolve).collect();
            let import_paths: Vec<PathBuf> = file.import_paths.0.iter().map(resolve).collect();
            let place = first.place;
            return grpc::compiled(&roots, &import_paths, |path| reading.text(path))
                .map_err(|wrong| {
                    let help = "imports are found next to the file and below `import-paths`";
                    reading.findings.add(Finding::new(place, wrong).help(help));
                })
                .ok()
                .map(|set| GrpcDescriptors::Set(Arc::from(set)));
        }
        (None, [], None) => "none",
        _ => "several",
    };
    let wrong = format!("expected one of `proto`, `descriptors` and `reflection`, found {found}");
    let help =
        "for example: `grpc: {method: helloworld.Greeter/SayHello, proto: helloworld.proto}`";
    reading.findings.add(Finding::new(place, wrong).help(help));
    None
}

impl Writing<'_, '_> {
    fn call(&self, descriptors: GrpcDescriptors, reading: &mut Reading<'_>) -> Option<GrpcCall> {
        let file = self.file;
        let messages = self.messages(reading)?;
        self.check_number(&messages, reading)?;
        let span = |written: &Written<LongerThanZero>| written.0.0;
        Some(GrpcCall {
            method: file.method.value.trim_start_matches('/').to_owned(),
            protocol: self.protocol(reading)?,
            descriptors,
            messages,
            has_replies: self.replies(reading)?,
            hold: file.hold.as_ref().map(|hold| span(&hold.value)),
            deadline: file.deadline.as_ref().map(span),
            is_compressed: file
                .compression
                .as_ref()
                .is_some_and(|it| it.value == CompressionFile::Gzip),
            status: file.status.unwrap_or(0),
            answer: match &file.answer {
                None => None,
                Some(answer) => Some(self.answer(answer, reading)?),
            },
            contains: self.contains(reading),
        })
    }

    /// Returns the protocol. Refuses a stream of messages in gRPC-Web.
    fn protocol(&self, reading: &mut Reading<'_>) -> Option<RpcProtocol> {
        let Some(At { value, place }) = &self.file.protocol else {
            return Some(RpcProtocol::Grpc);
        };
        let several = self.method.as_ref().is_some_and(Method::takes_several);
        match value {
            RpcProtocolFile::Grpc => Some(RpcProtocol::Grpc),
            RpcProtocolFile::Connect => Some(RpcProtocol::Connect),
            RpcProtocolFile::GrpcWeb if several => {
                let wrong = format!(
                    "`{}` takes a stream of messages, and `grpc-web` sends one message",
                    self.file.method.value
                );
                let help = "write `protocol: grpc` or `protocol: connect`";
                reading.findings.add(Finding::new(*place, wrong).help(help));
                None
            }
            RpcProtocolFile::GrpcWeb => Some(RpcProtocol::GrpcWeb),
        }
    }

    /// Returns the messages with their times.
    fn messages(&self, reading: &mut Reading<'_>) -> Option<Vec<PlannedMessage>> {
        let file = self.file;
        let given = [
            file.message.as_ref().map(|it| ("message", it.place)),
            file.messages.as_ref().map(|it| ("messages", it.place)),
            file.sends.as_ref().map(|it| ("sends", it.place)),
        ];
        let mut given = given.into_iter().flatten();
        if let (Some((first, at)), Some((second, place))) = (given.next(), given.next()) {
            reading.findings.add(
                Finding::new(
                    place,
                    format!("`{first}` and `{second}` exclude each other"),
                )
                .related(at, format!("`{first}` is given here"))
                .help("remove one of the two"),
            );
            return None;
        }
        if let Some(sends) = &file.sends {
            let sends = sends.value.iter();
            return sends.map(|send| self.send(send, reading)).collect();
        }
        let together: Vec<&At<Json>> = match (&file.message, &file.messages) {
            (_, Some(several)) => several.value.iter().collect(),
            (Some(one), None) => vec![one],
            (None, None) => return Some(vec![PlannedMessage::of_text("{}")]),
        };
        let mut messages = Vec::new();
        for message in together {
            messages.push(PlannedMessage::of_text(self.json(message, reading)?));
        }
        Some(messages)
    }

    fn send(&self, send: &At<GrpcSendFile>, reading: &mut Reading<'_>) -> Option<PlannedMessage> {
        let At { value: file, place } = send;
        let (has_every, hold) = (file.every.is_some(), self.file.hold.is_some());
        let wrong = match &file.count {
            Some(count) if count.value == 0 => Some((
                "expected at least 1 send, found 0",
                "remove the message if it is not sent",
            )),
            Some(_) if !has_every => Some((
                "`count` without `every`",
                "write the time between two sends, such as `every: 100ms`",
            )),
            None if has_every && !hold => Some((
                "a repeated message without an end",
                "write its `count`, or `hold` for the whole call",
            )),
            _ => None,
        };
        if let Some((wrong, help)) = wrong {
            reading.findings.add(Finding::new(*place, wrong).help(help));
            return None;
        }
        let span = |written: &Written<LongerThanZero>| written.0.0;
        Some(PlannedMessage {
            after: file.after.as_ref().map(span).unwrap_or_default(),
            every: file.every.as_ref().map(span),
            count: file.count.as_ref().map(|it| it.value),
            ..PlannedMessage::of_text(self.json(&file.message, reading)?)
        })
    }

    /// Refuses several messages of a method that takes one.
    fn check_number(&self, messages: &[PlannedMessage], reading: &mut Reading<'_>) -> Option<()> {
        let file = self.file;
        let takes_one = self.method.as_ref().is_some_and(|it| !it.takes_several());
        let wrong = if !takes_one {
            return Some(());
        } else if messages.len() != 1 || file.sends.is_some() {
            let key = match file.sends {
                Some(_) => "`sends`".to_owned(),
                None => messages.len().to_string(),
            };
            format!("`{}` takes one message, found {key}", file.method.value)
        } else if let Some(hold) = &file.hold {
            let wrong = format!(
                "`{}` takes one message, and `hold` is for several",
                file.method.value
            );
            let help = "end a stream of answers with `stream: {ends: {count: 50}}`";
            reading
                .findings
                .add(Finding::new(hold.place, wrong).help(help));
            return None;
        } else {
            return Some(());
        };
        reading.findings.add(
            Finding::new(self.at, wrong)
                .help("write `message`, or choose a method that takes a stream of messages"),
        );
        None
    }

    fn replies(&self, reading: &mut Reading<'_>) -> Option<bool> {
        let Some(At { value, place }) = &self.file.replies else {
            return Some(false);
        };
        let several = |it: &Method| it.takes_several() && it.answers_several();
        let (wrong, help) = match value.as_str() {
            "order" if self.method.as_ref().is_none_or(several) => return Some(true),
            "order" => (
                format!("`{}` has no reply to each message", self.file.method.value),
                "`replies` is for a method with streams of messages and of answers",
            ),
            text => (
                format!("expected `order`, found `{text}`"),
                "answers of gRPC arrive in order",
            ),
        };
        reading.findings.add(Finding::new(*place, wrong).help(help));
        None
    }

    /// Returns a message as JSON. Values of the lab are filled in.
    fn json(&self, message: &At<Json>, reading: &mut Reading<'_>) -> Option<String> {
        let places = self.places;
        let json = places.fill(&message.value.0, Within::Message, message.place, reading);
        let checked = match &self.method {
            None => Ok(()),
            Some(method) => method.check(&closed(&json)),
        };
        match checked {
            Ok(()) => Some(json),
            Err(unfit) => {
                let finding = Finding::new(message.place, unfit.to_string());
                reading.findings.add(finding);
                None
            }
        }
    }

    /// The names for checks of answers. Their values exist before the load.
    fn known(&self) -> Places<'_> {
        Places {
            data: None,
            captured: &[],
            ..self.places
        }
    }

    fn contains(&self, reading: &mut Reading<'_>) -> Vec<String> {
        let mut texts = Vec::new();
        for At { value, place } in &self.file.contains.0 {
            if value.is_empty() {
                let finding = Finding::new(*place, "every answer contains an empty text");
                let help = "write a part of the answers, or remove `contains`";
                reading.findings.add(finding.help(help));
            }
            texts.push(self.known().fill(value, Within::Text, *place, reading));
        }
        texts
    }

    fn answer(&self, answer: &At<Json>, reading: &mut Reading<'_>) -> Option<String> {
        let known = self.known();
        let json = known.fill(&answer.value.0, Within::Message, answer.place, reading);
        let unfit = match &self.method {
            Some(method) => method.expected(&json).err().map(|unfit| unfit.to_string()),
            None => (!json.starts_with('{')).then(|| "expected a mapping of fields".to_owned()),
        };
        let Some(wrong) = unfit else {
            return Some(json);
        };
        reading.findings.add(Finding::new(answer.place, wrong));
        None
    }
}

/// Puts quotes around places without quotes, so that a template can be read as JSON.
fn closed(json: &str) -> String {
    let mut closed = String::with_capacity(json.len());
    let (mut is_text, mut rest) = (false, json);
    while let Some(next) = rest.chars().next() {
        if !is_text && rest.starts_with("{{") && rest[2..].starts_with("json:") {
            let end = rest.find("}}").map_or(rest.len(), |end| end + 2);
            closed.push('"');
            closed.push_str(&rest[..end]);
            closed.push('"');
            rest = &rest[end..];
            continue;
        }
        let escaped = is_text && next == '\\';
        is_text ^= next == '"';
        let taken = match escaped {
            true => rest.chars().take(2).map(char::len_utf8).sum(),
            false => next.len_utf8(),
        };
        closed.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_without_quotes_get_quotes() {
        let json = r#"{"a":{{json:id}},"b":"x \" {{json:id}}","c":{"d":{}}}"#;
        let found = closed(json);
        assert_eq!(
            found,
            r#"{"a":"{{json:id}}","b":"x \" {{json:id}}","c":{"d":{}}}"#
        );
    }
}
