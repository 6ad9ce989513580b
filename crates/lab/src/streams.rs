//! Rules for streamed answers.

use model::{EventCheck, Framing, StreamEnd, StreamRule};
use yaml_with_places::{At, Finding, Place};

use crate::experiment::RequestTemplate;
use crate::fields::TextOr;
use crate::reading::Reading;
use crate::websockets;
use crate::wire::{
    EachFile, ExpectFile, FramingFile, RequestFile, StreamEndsFile, StreamEntry, StreamFile,
    WebSocketFile,
};

/// Returns the rule of the stream of a request.
pub(crate) fn rule(
    entry: &At<StreamEntry>,
    request: &RequestFile,
    reading: &mut Reading<'_>,
) -> StreamRule {
    let websocket = request.websocket.as_ref();
    let is_call = request.grpc.is_some();
    let (file, word) = match &entry.value {
        TextOr::Text(word) => (None, Some(*word)),
        TextOr::Mapping(file) => (Some(file), file.framing),
    };
    let framing = match word {
        None if is_call => Framing::Grpc,
        Some(_) if is_call => {
            let finding = Finding::new(entry.place, "the events of `grpc` are its messages");
            reading.findings.add(finding.help("remove `framing`"));
            Framing::Grpc
        }
        word => framing(word, websocket.is_some(), entry.place, reading),
    };
    let Some(file) = file else {
        return StreamRule::of(framing);
    };
    check_counts(file, websocket, reading);
    if let (Some(websocket), Some(ends)) = (websocket, &file.ends) {
        websockets::check_end(&websocket.value, ends.place, reading);
    }
    StreamRule {
        framing,
        end: file
            .ends
            .as_ref()
            .and_then(|ends| end(&ends.value, ends.place, reading)),
        events: file.events.as_ref().map(|it| it.value),
        each: match file.each {
            None => EventCheck::Any,
            Some(EachFile::Json) => EventCheck::Json,
            Some(EachFile::Graphql) => EventCheck::Graphql,
        },
        sent_at: file.sent_at.as_ref().map(|it| it.0.0.clone()),
    }
}

/// Returns the framing. Only messages of WebSocket have the framing `messages`, and no other.
fn framing(
    word: Option<FramingFile>,
    is_socket: bool,
    place: Place,
    reading: &mut Reading<'_>,
) -> Framing {
    let (wrong, help) = match word {
        Some(FramingFile::Messages) | None if is_socket => return Framing::Messages,
        Some(_) if is_socket => (
            "the events of `websocket` are its messages",
            "remove `framing`, or write `framing: messages`",
        ),
        Some(FramingFile::Sse) => return Framing::ServerSent,
        Some(FramingFile::Lines) => return Framing::Lines,
        Some(FramingFile::Chunks) => return Framing::Chunks,
        Some(FramingFile::Multipart) => return Framing::Multipart,
        Some(FramingFile::Messages) => (
            "`messages` without `websocket`",
            "give the request a `websocket`, or write `sse`, `lines`, `chunks` or `multipart`",
        ),
        None => (
            "a stream without `framing`",
            "for example: `stream: {framing: sse, events: 50}`",
        ),
    };
    reading.findings.add(Finding::new(place, wrong).help(help));
    Framing::Messages
}

fn end(ends: &StreamEndsFile, place: Place, reading: &mut Reading<'_>) -> Option<StreamEnd> {
    let each = [
        ends.data
            .as_ref()
            .map(|it| StreamEnd::Data(it.value.clone().into_bytes())),
        ends.kind
            .as_ref()
            .map(|it| StreamEnd::Type(it.value.clone())),
        ends.count.as_ref().map(|it| StreamEnd::Count(it.value)),
    ];
    let mut given: Vec<StreamEnd> = each.into_iter().flatten().collect();
    if given.len() != 1 {
        reading.findings.add(
            Finding::new(
                place,
                format!(
                    "expected one of `data`, `type` and `count`, found {}",
                    given.len()
                ),
            )
            .help("for example: `ends: {data: '[DONE]'}`"),
        );
        return None;
    }
    given.pop()
}

/// Refuses counts that no answer could have, and counts of pieces that have no fixed number.
fn check_counts(
    file: &StreamFile,
    websocket: Option<&At<WebSocketFile>>,
    reading: &mut Reading<'_>,
) {
    let is_held = websocket.is_some_and(|it| it.value.hold.is_some());
    let ends = file.ends.as_ref().map(|ends| &ends.value);
    let counts = [
        file.events.as_ref(),
        ends.and_then(|ends| ends.count.as_ref()),
    ];
    for count in counts.into_iter().flatten() {
        // A conversation that is held may be idle.
        if count.value == 0 && !is_held {
            reading.findings.add(
                Finding::new(count.place, "expected at least 1 event, found 0")
                    .help("remove the key if the number of events does not matter"),
            );
        }
        if file.framing == Some(FramingFile::Chunks) {
            reading.findings.add(
                Finding::new(count.place, "`chunks` have no fixed number")
                    .help("a proxy may join or split them. Write `framing: sse` or `lines` to count events"),
            );
        }
    }
    let kind = ends.and_then(|ends| ends.kind.as_ref());
    if let Some(kind) = kind.filter(|_| websocket.is_some()) {
        if kind.value != "complete" {
            reading.findings.add(
                Finding::new(kind.place, "expected the type `complete` of a subscription")
                    .help("end the stream by `data` or `count`, or hold it with `websocket.hold`"),
            );
        }
        return;
    }
    if let Some(kind) = kind.filter(|_| file.framing != Some(FramingFile::Sse)) {
        reading.findings.add(
            Finding::new(kind.place, "only server-sent events have a type")
                .help("write `framing: sse`, or end the stream by `data` or `count`"),
        );
    }
}

/// Refuses rules of the lab for whole bodies, if a request without rules of its own has a stream.
pub(crate) fn check_usual(
    requests: &[RequestTemplate],
    expect: &ExpectFile,
    at: Place,
    reading: &mut Reading<'_>,
) {
    let mut requests = requests.iter();
    if requests.any(|request| {
        (request.stream.is_some() || request.websocket.is_some()) && request.expect.is_none()
    }) {
        check_expect(expect, at, at, reading);
    }
}

/// Refuses rules for the body as a whole. A stream is checked event by event.
pub(crate) fn check_expect(
    expect: &ExpectFile,
    stream: Place,
    at: Place,
    reading: &mut Reading<'_>,
) {
    let wrong = [
        (expect.graphql.is_some(), "graphql"),
        (expect.same_as.is_some(), "same-as"),
        (expect.body.is_some(), "body"),
    ];
    for (_, key) in wrong.into_iter().filter(|(is_given, _)| *is_given) {
        reading.findings.add(
            Finding::new(
                at,
                format!("`{key}` is a rule for a whole body, and the answer is a stream"),
            )
            .related(stream, "`stream` is given here")
            .help(
                "check the events instead: `stream: {framing: sse, events: 50, each: json}`. A request \
                 can have an `expect` of its own",
            ),
        );
    }
}
