//! Rules for streamed answers.

use model::{EventCheck, Framing, StreamEnd, StreamRule};
use yaml_with_places::{At, Finding, Place};

use crate::experiment::RequestTemplate;
use crate::fields::TextOr;
use crate::reading::Reading;
use crate::wire::{EachFile, ExpectFile, FramingFile, StreamEndsFile, StreamEntry, StreamFile};

/// Returns the rule of a stream.
pub(crate) fn rule(entry: &At<StreamEntry>, reading: &mut Reading<'_>) -> StreamRule {
    let file = match &entry.value {
        TextOr::Text(word) => {
            return StreamRule {
                framing: framing(*word),
                end: None,
                events: None,
                each: EventCheck::Any,
                sent_at: None,
            };
        }
        TextOr::Mapping(file) => file,
    };
    check_counts(file, reading);
    StreamRule {
        framing: framing(file.framing),
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

fn framing(word: FramingFile) -> Framing {
    match word {
        FramingFile::Sse => Framing::ServerSent,
        FramingFile::Lines => Framing::Lines,
        FramingFile::Chunks => Framing::Chunks,
        FramingFile::Multipart => Framing::Multipart,
    }
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
fn check_counts(file: &StreamFile, reading: &mut Reading<'_>) {
    let ends = file.ends.as_ref().map(|ends| &ends.value);
    let counts = [
        file.events.as_ref(),
        ends.and_then(|ends| ends.count.as_ref()),
    ];
    for count in counts.into_iter().flatten() {
        if count.value == 0 {
            reading.findings.add(
                Finding::new(count.place, "expected at least 1 event, found 0")
                    .help("remove the key if the number of events does not matter"),
            );
        }
        if file.framing == FramingFile::Chunks {
            reading.findings.add(
                Finding::new(count.place, "`chunks` have no fixed number")
                    .help("a proxy may join or split them. Write `framing: sse` or `lines` to count events"),
            );
        }
    }
    let kind = ends.and_then(|ends| ends.kind.as_ref());
    if let Some(kind) = kind.filter(|_| file.framing != FramingFile::Sse) {
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
    if requests.any(|request| request.stream.is_some() && request.expect.is_none()) {
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
