use httparse::Header;

use super::*;

fn splitter(framing: Framing, headers: &[Header<'_>]) -> Splitter {
    let mut splitter = Splitter::default();
    splitter.start(framing, &Head::new(200, headers));
    splitter
}

/// The events of a body that arrives in pieces of this length, as text.
fn events(framing: Framing, content_type: &str, body: &[u8], piece: usize) -> Vec<String> {
    let headers = [Header {
        name: "Content-Type",
        value: content_type.as_bytes(),
    }];
    let mut splitter = splitter(framing, &headers);
    let mut found = Vec::new();
    let text = |part: Part<'_>| {
        let [name, data] = [part.name, part.data].map(String::from_utf8_lossy);
        format!("{name}|{data}")
    };
    for piece in body.chunks(piece) {
        let mut rest = piece;
        while splitter.next(&mut rest) {
            found.push(text(splitter.part()));
        }
    }
    if splitter.last() {
        found.push(text(splitter.part()));
    }
    found
}

#[test]
fn server_sent_events_are_split_wherever_pieces_end() {
    let body =
        b"\xef\xbb\xbf: hello\n\ndata: one\n\nevent: next\r\ndata: {\"a\":\r\ndata:1}\r\n\r\n\
                 id: 7\nretry: 10\ndata\n\ndata:two\r\revent: complete\n\ndata: cut";
    let expected = ["|one", "next|{\"a\":\n1}", "|", "|two", "complete|"];
    for piece in 1..=body.len() {
        let found = events(Framing::ServerSent, "text/event-stream", body, piece);
        assert_eq!(found, expected, "pieces of {piece} bytes");
    }
}

#[test]
fn lines_are_split_and_the_last_needs_no_line_feed() {
    let body = b"{\"a\":1}\n\r\n{\"a\":2}\r\n\n{\"a\":3}";
    for piece in 1..=body.len() {
        let found = events(Framing::Lines, "", body, piece);
        assert_eq!(found, ["|{\"a\":1}", "|{\"a\":2}", "|{\"a\":3}"], "{piece}");
    }
}

#[test]
fn parts_of_a_multipart_body_are_events_when_their_delimiter_arrives() {
    let body =
        b"preamble\r\n---\r\nContent-Type: application/json\r\n\r\n{\"hasNext\":true}\r\n---\r\n\
                 content-type: application/json\n\n{\"hasNext\":false}\r\n-----\r\n";
    let kind = "multipart/mixed; deferSpec=20220824; boundary=\"-\"";
    for piece in 1..=body.len() {
        let found = events(Framing::Multipart, kind, body, piece);
        let expected = ["|{\"hasNext\":true}", "|{\"hasNext\":false}"];
        assert_eq!(found, expected, "{piece}");
    }
}

#[test]
fn messages_of_grpc_have_a_length() {
    let body = b"\0\0\0\0\x02hi\x01\0\0\0\0\0\0\0\0\x03abc\0\0\0";
    for piece in 1..=body.len() {
        let found = events(Framing::Grpc, "", body, piece);
        assert_eq!(found, ["\0|hi", "\x01|", "\0|abc"], "{piece}");
    }
}

#[test]
fn an_endless_event_is_refused_and_not_kept() {
    let mut endless = splitter(Framing::ServerSent, &[]);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        assert!(!endless.next(&mut &piece[..]));
    }
    assert!(endless.is_too_large());
    let mut endless = splitter(Framing::Grpc, &[]);
    let mut huge = vec![0, 0xff, 0xff, 0xff, 0xff];
    huge.resize(17 << 20, 0);
    assert!(!endless.next(&mut &huge[..]));
    assert!(endless.is_too_large());
}

/// The verdict on a body under a rule, with its number of events and the end.
fn verdict(rule: &StreamRule, pieces: &[&str]) -> (Option<String>, u64, bool, bool) {
    let mut findings = StreamFindings::default();
    findings.start();
    findings.head(rule, &Head::new(200, &[]));
    for piece in pieces {
        findings.body(rule, piece.as_bytes(), &mut Arrival::untimed());
    }
    findings.end(rule, &mut Arrival::untimed());
    let wrong = findings.conclude(rule).map(|wrong| wrong.to_string());
    (
        wrong,
        findings.count(),
        findings.is_ended(),
        findings.is_over(),
    )
}

#[test]
fn a_stream_ends_by_marker_count_or_type() {
    let by = |end: StreamEnd| StreamRule {
        end: Some(end),
        ..StreamRule::of(Framing::ServerSent)
    };
    let done = by(StreamEnd::Data(b"[DONE]".to_vec()));
    let pieces = ["data: 1\n\ndata: 2\n\n", "data: [DONE]\n\n"];
    assert_eq!(verdict(&done, &pieces), (None, 2, true, false));
    let more = ["data: [DONE]\n\ndata: late\n\n"];
    assert!(verdict(&done, &more).2);
    assert!(verdict(&done, &more).3, "the response continues");
    let (wrong, ..) = verdict(&done, &["data: 1\n\n"]);
    let wrong = wrong.expect("the marker is missing");
    assert!(
        wrong.contains("an event `[DONE]` at the end of the stream, found 1 event"),
        "{wrong}"
    );
    let two = by(StreamEnd::Count(2));
    assert_eq!(
        verdict(&two, &["data: 1\n\ndata: 2\n\ndata: 3\n\n"]),
        (None, 2, true, true)
    );
    let complete = by(StreamEnd::Type("complete".to_owned()));
    let pieces = ["event: next\ndata: {}\n\n", "event: complete\n\n"];
    assert_eq!(verdict(&complete, &pieces), (None, 1, true, false));
}

#[test]
fn each_event_is_checked_and_the_number_too() {
    let json = StreamRule {
        each: EventCheck::Json,
        events: Some(2),
        ..StreamRule::of(Framing::Lines)
    };
    assert_eq!(verdict(&json, &["{}\n1\n"]).0, None);
    let wrong = verdict(&json, &["{}\n{\n"])
        .0
        .expect("the second is no JSON");
    assert_eq!(
        wrong,
        "expected a JSON value in event 2 of the stream, found `{`"
    );
    let wrong = verdict(&json, &["{}\n"]).0.expect("one is missing");
    assert_eq!(wrong, "expected 2 events, found 1 event");
    let graphql = StreamRule {
        each: EventCheck::Graphql,
        ..StreamRule::of(Framing::Lines)
    };
    let wrong = verdict(&graphql, &["{\"data\":1}\n{\"errors\":[1]}\n"]).0;
    assert!(wrong.expect("an error").contains("in event 2"));
    let none = verdict(&StreamRule::of(Framing::ServerSent), &[": ping\n\n"]).0;
    assert!(none.expect("no event").contains("at least one event"));
}
