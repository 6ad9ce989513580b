use proptest::prelude::*;

use super::*;

/// Records every call of the parser.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Sink for Seen {
    fn head(&mut self, head: &Head<'_>) {
        assert_eq!(self.status, 0, "an answer has one head");
        self.status = head.status;
        self.headers = head
            .headers()
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect();
    }

    fn body(&mut self, part: &[u8]) {
        assert_ne!(self.status, 0, "the head comes before the body");
        assert!(!part.is_empty(), "a part has something in it");
        self.body.extend_from_slice(part);
    }
}

/// The result of one connection.
#[derive(Debug, PartialEq)]
enum Understood {
    Complete { used: usize, reusable: bool },
    AtEnd(End),
    Wrong(ParseError),
}

const BOUNDS: Bounds = Bounds {
    head_bytes: 2000,
    body_bytes: 5000,
};

fn understand<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    bodiless: bool,
) -> (Seen, Understood) {
    let mut parser = Parser::new(BOUNDS);
    parser.start(bodiless);
    let mut seen = Seen::default();
    let mut before = 0;
    for piece in pieces {
        match parser.feed(piece, &mut seen) {
            Ok(Parsed::More) => before += piece.len(),
            Ok(Parsed::Complete { used, reusable }) => {
                let used = before + used;
                return (seen, Understood::Complete { used, reusable });
            }
            Err(error) => return (seen, Understood::Wrong(error)),
        }
    }
    (seen, Understood::AtEnd(parser.end()))
}

/// Parses a text in one piece and returns the result in one line.
fn check(text: &str) -> String {
    check_answer_to(text, false)
}

fn check_answer_to(text: &str, bodiless: bool) -> String {
    let text = text.replace('\n', "\r\n");
    let (seen, understood) = understand([text.as_bytes()], bodiless);
    let body = String::from_utf8_lossy(&seen.body).replace('\r', "");
    match understood {
        Understood::Complete { used, reusable } => {
            let rest = &text[used..].replace("\r\n", "|");
            let fate = if reusable { "keep" } else { "close" };
            format!("{} `{body}` {fate} rest `{rest}`", seen.status)
        }
        Understood::AtEnd(end) => format!("{} `{body}` {end:?} at the end", seen.status),
        Understood::Wrong(error) => error.to_string(),
    }
}

#[test]
fn a_body_ends_where_its_length_says() {
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
        "200 `hello` keep rest ``"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
        "200 `` keep rest ``"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 4\n\nhello"),
        "200 `hell` keep rest `o`"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 6\n\nhello"),
        "200 `hello` Truncated at the end"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\ncontent-length: 2, 2\nCONTENT-LENGTH: 2\n\nhi"),
        "200 `hi` keep rest ``"
    );
}

#[test]
fn a_length_that_could_be_read_in_two_ways_is_refused() {
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\nhello"),
        "expected an HTTP/1 answer, found two `Content-Length` that contradict each other"
    );
    assert_eq!(
        check("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n0\n\n"),
        "expected an HTTP/1 answer, found `Transfer-Encoding` in HTTP/1.0"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\nTransfer-Encoding: gzip, chunked\n\n0\n\n"),
        "expected an HTTP/1 answer, found a `Transfer-Encoding` other than `chunked`"
    );
    for length in ["-1", "+1", "1 1", "0x1", "1.0", "a"] {
        assert_eq!(
            check(&format!("HTTP/1.1 200 OK\nContent-Length: {length}\n\nx")),
            "expected an HTTP/1 answer, found a `Content-Length` that is not a number"
        );
    }
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 18446744073709551616\n\nx"),
        "expected an HTTP/1 answer, found a `Content-Length` beyond 64 bits"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length:\n\nx"),
        "expected an HTTP/1 answer, found an empty `Content-Length`"
    );
}

#[test]
fn chunks_are_put_together_and_their_extensions_and_trailers_are_skipped() {
    let head = "HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n";
    assert_eq!(
        check(&format!("{head}5\nhello\n0\n\n")),
        "200 `hello` keep rest ``"
    );
    assert_eq!(
        check(&format!("{head}5;a=b\nhello\n 0\n\n")),
        "expected an HTTP/1 answer, found a chunk without its size"
    );
    assert_eq!(
        check(&format!(
            "{head}005 ;a=\"b\"\nhello\n1\n!\n000\nExpires: never\nA: b\n\nrest"
        )),
        "200 `hello!` keep rest `rest`"
    );
    assert_eq!(
        check(&format!("{head}5\nhello\n0\n")),
        "200 `hello` Truncated at the end"
    );
    assert_eq!(
        check(&format!("{head}5\nhello!\n0\n\n")),
        "expected an HTTP/1 answer, found chunk framing in the wrong place"
    );
    assert_eq!(
        check(&format!("{head}10000000000000000\nhello")),
        "expected an HTTP/1 answer, found a chunk size beyond 64 bits"
    );
    assert_eq!(
        check(&format!("{head}ffffffffffffffff\nhello")),
        "200 `hello` Truncated at the end"
    );
}

#[test]
fn a_chunk_line_that_ends_in_a_lone_line_feed_is_refused() {
    let (_, understood) = understand(
        [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n"
                .as_slice(),
        ],
        false,
    );
    assert_eq!(
        understood,
        Understood::Wrong(ParseError::Malformed("a chunk size line without CR"))
    );
}

#[test]
fn answers_without_a_body_have_none_whatever_their_headers_say() {
    assert_eq!(check("HTTP/1.1 204 No Content\n\n"), "204 `` keep rest ``");
    assert_eq!(
        check("HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n"),
        "304 `` keep rest ``"
    );
    assert_eq!(
        check_answer_to("HTTP/1.1 200 OK\nContent-Length: 5\n\n", true),
        "200 `` keep rest ``"
    );
    assert_eq!(
        check_answer_to("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", true),
        "200 `` keep rest ``"
    );
}

#[test]
fn interim_answers_are_skipped() {
    assert_eq!(
        check(
            "HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nhi"
        ),
        "200 `hi` keep rest ``"
    );
    assert_eq!(
        check("HTTP/1.1 101 Switching Protocols\nUpgrade: x\n\n"),
        "expected an HTTP/1 answer, found a switch to another protocol"
    );
    assert_eq!(
        check("HTTP/1.1 100 Continue\n\n"),
        "0 `` Nothing at the end"
    );
}

#[test]
fn without_a_length_the_end_of_the_connection_is_the_end_of_the_body() {
    assert_eq!(
        check("HTTP/1.1 200 OK\n\nhello"),
        "200 `hello` Complete at the end"
    );
    assert_eq!(check("HTTP/1.1 200 OK\n\n"), "200 `` Complete at the end");
}

#[test]
fn a_connection_is_kept_by_default_in_1_1_and_on_request_in_1_0() {
    let with = |version: &str, connection: &str| {
        check(&format!(
            "HTTP/{version} 200 OK\nContent-Length: 0\n{connection}\n"
        ))
    };
    assert_eq!(with("1.1", "Connection: close\n"), "200 `` close rest ``");
    assert_eq!(
        with("1.1", "Connection: upgrade, Close\n"),
        "200 `` close rest ``"
    );
    assert_eq!(with("1.0", ""), "200 `` close rest ``");
    assert_eq!(
        with("1.0", "Connection: Keep-Alive\n"),
        "200 `` keep rest ``"
    );
}

#[test]
fn what_is_not_http_is_refused_at_once() {
    assert_eq!(
        check("SSH-2.0-OpenSSH_9.2\n"),
        "expected an HTTP/1 answer, found bytes that do not begin with `HTTP/1.1` or `HTTP/1.0`"
    );
    assert_eq!(
        check("HTTP/1.1 abc\n\n"),
        "expected an HTTP/1 answer, found a malformed status line"
    );
    assert_eq!(
        check("HTTP/1.1 099 Low\n\n"),
        "expected an HTTP/1 answer, found a status below 100"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\n{}: 1\n\n"),
        "expected an HTTP/1 answer, found a malformed header name"
    );
    for line in [
        "no colon",
        "Content-Length : 5",
        "A: b\nContent-Length\t: 5",
    ] {
        assert_eq!(
            check(&format!("HTTP/1.1 200 OK\n{line}\n\nhello")),
            "expected an HTTP/1 answer, found a header name with a space before the colon"
        );
    }
    assert_eq!(check(""), "0 `` Nothing at the end");
    assert_eq!(check("HTTP/1.1 200"), "0 `` Truncated at the end");
}

#[test]
fn more_than_the_bounds_allow_is_too_large_however_it_comes() {
    let long = format!("HTTP/1.1 200 OK\nA: {}\n\n", "a".repeat(2000));
    assert_eq!(
        check(&long),
        "the head of the answer is larger than the 2000 bytes allowed"
    );
    let (_, endless) = understand(
        std::iter::repeat_n(b"HTTP/1.1 200 OK\r\nA: a".as_slice(), 1)
            .chain(std::iter::repeat_n(b"a".as_slice(), 3000)),
        false,
    );
    let too_large = |part, limit| {
        Understood::Wrong(ParseError::TooLarge {
            part,
            limit,
            unit: "bytes",
        })
    };
    assert_eq!(endless, too_large("head", 2000));
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 5001\n\n"),
        "the body of the answer is larger than the 5000 bytes allowed"
    );
    let part = [b'x'; 1000];
    let head = b"HTTP/1.1 200 OK\r\n\r\n".as_slice();
    let (_, endless) = understand(
        std::iter::once(head).chain(std::iter::repeat_n(part.as_slice(), 6)),
        false,
    );
    assert_eq!(endless, too_large("body", 5000));
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n".as_slice();
    let trailer = b"A: b\r\n".as_slice();
    let (_, endless) = understand(
        std::iter::once(head).chain(std::iter::repeat_n(trailer, 400)),
        false,
    );
    assert_eq!(endless, too_large("chunk line or trailer", 2000));
}

#[test]
fn a_head_may_have_as_many_lines_as_fit_into_its_bytes() {
    let with = |lines: usize| {
        format!(
            "HTTP/1.1 200 OK\nContent-Length: 0\n{}\n",
            "a:\n".repeat(lines)
        )
    };
    // Lines of 5 bytes each, with the carriage return.
    for lines in [127, 128, 129, 390] {
        assert_eq!(check(&with(lines)), "200 `` keep rest ``", "{lines}");
    }
    assert_eq!(
        check(&with(500)),
        "the head of the answer is larger than the 2000 bytes allowed"
    );
}

#[test]
fn a_value_on_several_lines_is_one_with_spaces_for_their_ends() {
    let text = b"HTTP/1.1 200 OK\r\nA: one\r\n two\r\n\tthree\r\nContent-Length:\r\n  2\r\n\r\nhi";
    for pieces in [
        vec![&text[..]],
        text.chunks(1).collect(),
        text.chunks(7).collect(),
    ] {
        let (seen, understood) = understand(pieces, false);
        let used = text.len();
        assert_eq!(
            understood,
            Understood::Complete {
                used,
                reusable: true
            }
        );
        assert_eq!(seen.headers[0].1, b"one   two  \tthree");
        assert_eq!(seen.body, b"hi");
    }
    // No value continues after the status line, or after the head.
    assert_eq!(
        check("HTTP/1.1 200 OK\n A: b\n\n"),
        "expected an HTTP/1 answer, found a malformed header name"
    );
    assert_eq!(
        check("HTTP/1.1 200 OK\nA: b\n c\nContent-Length: 2\n\n x"),
        "200 ` x` keep rest ``"
    );
}

#[test]
fn a_transfer_coding_beside_a_length_wins_and_ends_the_connection() {
    assert_eq!(
        check("HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked\n\n2\nhi\n0\n\n"),
        "200 `hi` close rest ``"
    );
}

#[test]
fn what_frames_a_body_says_nothing_where_there_is_none() {
    for headers in [
        "Content-Length: 5\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Content-Length: 5\nContent-Length: 6",
    ] {
        for (status, bodiless) in [(200, true), (204, false), (304, false)] {
            let shown = check_answer_to(&format!("HTTP/1.1 {status} OK\n{headers}\n\n"), bodiless);
            assert!(shown.starts_with(&format!("{status} `` ")), "{shown}");
        }
    }
}

#[test]
fn what_a_server_says_of_idle_connections_is_kept() {
    let understood = |keep_alive: &str| {
        let mut parser = Parser::new(BOUNDS);
        parser.start(false);
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{keep_alive}\r\n");
        match parser.feed(text.as_bytes(), &mut Seen::default()) {
            Ok(Parsed::Complete { reusable, .. }) => (reusable, parser.idle_until_ns(7)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(understood(""), (true, u64::MAX));
    assert_eq!(understood("Keep-Alive: max=3\r\n"), (true, u64::MAX));
    assert!(!understood("Keep-Alive: timeout=5, max=0\r\n").0);
    assert!(!understood("Keep-Alive: timeout=0\r\n").0);
    assert_eq!(
        understood("Keep-Alive: Timeout = 5\r\n"),
        (true, 4_000_000_007)
    );
    assert_eq!(
        understood("keep-alive: timeout=1, max=9\r\n"),
        (true, 500_000_007)
    );
    assert_eq!(understood("Keep-Alive: timeout=x\r\n"), (true, u64::MAX));
}

#[test]
fn what_is_wrong_with_a_head_that_never_ends_is_found_however_it_comes() {
    let head = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(1100));
    let wrong = understand([format!("{head}\x7f").as_bytes()], false);
    assert_eq!(
        wrong.1,
        Understood::Wrong(ParseError::Malformed("a malformed header value"))
    );
    let in_pieces = understand([head.as_bytes(), b"\x7f"], false);
    assert_eq!(in_pieces.1, wrong.1);
    let cut_at_return = understand([head.as_bytes(), b"\r", b"b"], false);
    assert!(matches!(cut_at_return.1, Understood::Wrong(_)));
    // Bytes beyond the limit are not read, in one read as in two.
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\x7f", "a".repeat(3000));
    assert_eq!(
        understand([long.as_bytes()], false).1,
        understand([&long.as_bytes()[..500], &long.as_bytes()[500..]], false).1
    );
}

#[test]
fn a_parser_serves_one_answer_after_the_other() {
    let mut parser = Parser::new(BOUNDS);
    for _ in 0..3 {
        for (text, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n", 3000),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n",
                3000,
            ),
        ] {
            let mut seen = Seen::default();
            parser.start(false);
            let (first, second) = text.as_bytes().split_at(20);
            assert_eq!(parser.feed(first, &mut seen), Ok(Parsed::More));
            assert_eq!(parser.feed(second, &mut seen), Ok(Parsed::More));
            let end = [vec![b'x'; body], b"\r\n0\r\n\r\n".to_vec()].concat();
            let parsed = parser.feed(&end, &mut seen);
            assert!(
                matches!(parsed, Ok(Parsed::Complete { reusable: true, .. })),
                "{parsed:?}"
            );
            assert_eq!(seen.body.len(), body);
        }
    }
}

/// A valid response, with its expected result.
#[derive(Clone, Debug)]
struct Valid {
    bytes: Vec<u8>,
    body: Vec<u8>,
    ends_by_close: bool,
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..600)
}

fn with_length() -> impl Strategy<Value = Valid> {
    body().prop_map(|body| Valid {
        bytes: [
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes(),
            body.clone(),
        ]
        .concat(),
        body,
        ends_by_close: false,
    })
}

fn by_close() -> impl Strategy<Value = Valid> {
    body().prop_map(|body| Valid {
        bytes: [
            b"HTTP/1.1 200 OK\r\nServer: s\r\n\r\n".to_vec(),
            body.clone(),
        ]
        .concat(),
        body,
        ends_by_close: true,
    })
}

fn in_chunks() -> impl Strategy<Value = Valid> {
    let chunk = (
        proptest::collection::vec(any::<u8>(), 1..80),
        "(;[a-z=\"]{0,9})?",
    );
    let chunks = proptest::collection::vec(chunk, 0..8);
    (chunks, "([A-Z][a-z]{0,5}: [a-z ]{0,9}\r\n){0,3}").prop_map(|(chunks, trailers)| {
        let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let mut body = Vec::new();
        for (chunk, extension) in chunks {
            bytes.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(&chunk);
            bytes.extend_from_slice(b"\r\n");
            body.extend_from_slice(&chunk);
        }
        bytes.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        Valid {
            bytes,
            body,
            ends_by_close: false,
        }
    })
}

fn valid() -> impl Strategy<Value = Valid> {
    let answer = prop_oneof![with_length(), by_close(), in_chunks()];
    (answer, 0..3_usize).prop_map(|(mut answer, interim)| {
        let interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(interim);
        answer.bytes = [interim, answer.bytes].concat();
        answer
    })
}

/// Cuts at the given places, which may be equal.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places
        .iter()
        .map(|place| place.index(bytes.len() + 1))
        .collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for place in places {
        pieces.push(&bytes[start..place]);
        start = place;
    }
    pieces.push(&bytes[start..]);
    pieces
}

fn places() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    proptest::collection::vec(any::<prop::sample::Index>(), 0..12)
}

/// A text like a header line: long or short, complete or truncated, perhaps with a wrong byte.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let wrong = prop_oneof![
        Just(b'\r'),
        Just(b'\n'),
        Just(0),
        Just(0x7f),
        Just(b':'),
        any::<u8>()
    ];
    let end = prop_oneof![4 => Just("\r\n"), 2 => Just("\n"), 1 => Just("\r"), 1 => Just("")];
    let place = proptest::option::weighted(0.2, (any::<prop::sample::Index>(), wrong));
    (0..40_usize, 0..700_usize, place, end).prop_map(|(name, value, place, end)| {
        let text = format!("{}: {}{end}", "n".repeat(name + 1), "v".repeat(value));
        let mut bytes = text.into_bytes();
        if let Some((place, wrong)) = place {
            let place = place.index(bytes.len());
            bytes[place] = wrong;
        }
        bytes
    })
}

#[test]
fn a_continued_line_without_a_colon_is_wrong_in_any_split() {
    for bytes in [
        "HTTP/1.1 200 OK\r\nnnn\n vvv\r\n",
        "HTTP/1.1 200 OK\r\na: b\n c\nnnn\n v\r\n",
    ] {
        let whole = understand([bytes.as_bytes()], false);
        let expected = Understood::Wrong(ParseError::Malformed("a malformed header name"));
        assert_eq!(whole.1, expected, "{bytes:?}");
        for length in 1..bytes.len() {
            let split = understand(bytes.as_bytes().chunks(length).collect::<Vec<_>>(), false);
            assert_eq!(split.1, expected, "{bytes:?} in pieces of {length}");
        }
    }
}

proptest! {
    #[test]
    fn any_split_of_a_valid_answer_is_understood_alike(answer in valid(), places in places()) {
        let expected = if answer.ends_by_close {
            Understood::AtEnd(End::Complete)
        } else {
            Understood::Complete { used: answer.bytes.len(), reusable: true }
        };
        for pieces in [cut(&answer.bytes, &places), answer.bytes.chunks(1).collect()] {
            let (seen, understood) = understand(pieces, false);
            prop_assert_eq!(&understood, &expected);
            prop_assert_eq!(seen.status, 200);
            prop_assert_eq!(&seen.body, &answer.body);
        }
    }

    #[test]
    fn a_damaged_answer_is_understood_alike_in_any_split(
        answer in valid(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        places in places(),
    ) {
        let mut bytes = answer.bytes;
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let whole = understand([bytes.as_slice()], false);
        let split = understand(cut(&bytes, &places), false);
        prop_assert_eq!(&whole.1, &split.1);
        if !matches!(whole.1, Understood::Wrong(_)) {
            prop_assert_eq!(whole.0, split.0);
        }
    }

    #[test]
    fn a_head_that_never_ends_is_understood_alike_in_any_split(
        lines in proptest::collection::vec(line(), 0..12),
        places in places(),
    ) {
        let bytes = [b"HTTP/1.1 200 OK\r\n".to_vec(), lines.concat()].concat();
        let whole = understand([bytes.as_slice()], false);
        for pieces in [cut(&bytes, &places), bytes.chunks(1).collect(), bytes.chunks(7).collect()] {
            prop_assert_eq!(&whole.1, &understand(pieces, false).1);
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        places in places(),
        bodiless: bool,
    ) {
        understand(cut(&bytes, &places), bodiless);
    }
}
