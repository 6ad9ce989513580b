use httparse::Header;
use model::RpcProtocol;

use super::*;

fn with_lines<T>(status: u16, lines: &[(&str, &[u8])], take: impl FnOnce(&Head<'_>) -> T) -> T {
    let lines: Vec<Header<'_>> = lines
        .iter()
        .map(|(name, value)| Header { name, value })
        .collect();
    take(&Head::new(status, &lines))
}

fn rules(status: u32) -> GrpcRules {
    GrpcRules::new(&GrpcRule::of_status(status))
}

const GRPC: (&str, &[u8]) = ("content-type", b"application/grpc+proto");

/// The verdict on a response with these parts.
fn verdict(
    head: (u16, &[(&str, &[u8])]),
    body: &[u8],
    trailers: Option<&[(&str, &[u8])]>,
) -> String {
    verdict_of(&rules(0), head, body, trailers)
}

fn verdict_of(
    rules: &GrpcRules,
    head: (u16, &[(&str, &[u8])]),
    body: &[u8],
    trailers: Option<&[(&str, &[u8])]>,
) -> String {
    let mut findings = GrpcFindings::default();
    findings.start();
    with_lines(head.0, head.1, |head| findings.head(rules, head));
    let mut rest = body;
    match rules.form {
        Form::ConnectUnary => findings.part_of_whole(rules, body),
        _ => while findings.next(rules, &mut rest).is_some() {},
    }
    if let Some(trailers) = trailers {
        with_lines(200, trailers, |trailers| findings.trailers(rules, trailers));
    }
    let mismatch = findings.conclude(rules, false);
    mismatch.map_or_else(|| "right".to_owned(), |mismatch| mismatch.to_string())
}

const MESSAGE: &[u8] = b"\0\0\0\0\x02hi";

#[test]
fn the_status_is_in_trailers_or_in_the_head_of_an_empty_response() {
    let ok: &[(&str, &[u8])] = &[("grpc-status", b"0")];
    assert_eq!(verdict((200, &[GRPC]), MESSAGE, Some(ok)), "right");
    let in_head: &[(&str, &[u8])] = &[GRPC, ("grpc-status", b"0")];
    assert_eq!(verdict((200, in_head), b"", None), "right");
    // A status before messages is no status.
    let found = verdict((200, in_head), MESSAGE, None);
    assert_eq!(found, "expected grpc-status 0 (OK), found none");
    let found = verdict((200, in_head), MESSAGE, Some(&[("grpc-status", b"13")]));
    assert_eq!(found, "expected grpc-status 0 (OK), found 13 (INTERNAL)");
    let found = verdict((200, &[GRPC]), MESSAGE, Some(&[("grpc-status", b"x")]));
    assert_eq!(
        found,
        "expected grpc-status 0 (OK), found none: `grpc-status: x` is no status"
    );
}

#[test]
fn a_message_of_a_status_is_decoded_and_may_be_damaged() {
    let of = |message: &'static [u8]| {
        let trailers: &[(&str, &[u8])] = &[("grpc-status", b"5"), ("grpc-message", message)];
        let found = verdict((200, &[GRPC]), b"", Some(trailers));
        found.replace("expected grpc-status 0 (OK), found 5 (NOT_FOUND)", "")
    };
    assert_eq!(of(b"caf%C3%A9 %25"), ": café %");
    assert_eq!(of(b"a\xff%FFb%"), ": a\u{fffd}\u{fffd}b%");
    assert_eq!(of(b""), "");
}

#[test]
fn a_response_that_is_not_grpc_has_the_status_of_its_http_status() {
    let html: &[(&str, &[u8])] = &[("content-type", b"text/html")];
    assert_eq!(
        verdict((503, html), b"<html>", None),
        "expected grpc-status 0 (OK), found 14 (UNAVAILABLE): the answer has the HTTP status 503"
    );
    assert_eq!(
        verdict((200, html), b"<html>", None),
        "expected grpc-status 0 (OK), found 2 (UNKNOWN): the answer has the content type \
         `text/html` and not `application/grpc`"
    );
    let close: &[(&str, &[u8])] = &[("content-type", b"application/grpcx")];
    assert!(verdict((200, close), b"", None).contains("grpcx"));
    // A status of gRPC counts, whatever the status of HTTP is.
    let both: &[(&str, &[u8])] = &[GRPC, ("grpc-status", b"7")];
    assert_eq!(
        verdict((403, both), b"", None),
        "expected grpc-status 0 (OK), found 7 (PERMISSION_DENIED)"
    );
}

#[test]
fn messages_that_cannot_be_read_are_wrong() {
    let ok: &[(&str, &[u8])] = &[("grpc-status", b"0")];
    let gzip: &[(&str, &[u8])] = &[GRPC, ("grpc-encoding", b"gzip")];
    let of = |head: &[(&str, &[u8])], body: &[u8]| verdict((200, head), body, Some(ok));
    let mut packed = Vec::new();
    grpc_schema::frame(&coding::gzip(b"hi"), true, &mut packed);
    assert_eq!(of(gzip, &packed), "right");
    assert_eq!(
        of(&[GRPC], &packed),
        "expected a message that can be decompressed in message 1, found the flag of a compressed \
         message without `grpc-encoding`"
    );
    let found = of(gzip, b"\x01\0\0\0\x02hi");
    assert!(found.contains("2 bytes"), "{found}");
    assert!(of(&[GRPC], b"\x07\0\0\0\x02hi").contains("found the flag 7"));
    let other: &[(&str, &[u8])] = &[GRPC, ("grpc-encoding", b"snappy")];
    assert!(of(other, &packed).contains("`grpc-encoding: snappy`, which is not supported"));
    let cut = of(&[GRPC], b"\0\0\0\0\x05hi");
    assert_eq!(
        cut,
        "expected a whole message in message 1, found the end of the answer within it"
    );
}

/// The rules of a method of the null server: `Say` has one answer, and `Watch` has a stream.
fn of_method(protocol: RpcProtocol, method: &str) -> GrpcRules {
    let answers = model::GrpcAnswers {
        method: format!("null.Echo/{method}"),
        descriptors: grpc_schema::reflection::echo::descriptors().into(),
        fields: None,
        contains: Vec::new(),
    };
    GrpcRules::new(&GrpcRule {
        protocol,
        status: 0,
        answers: Some(answers),
    })
}

/// A message with this flag.
fn flagged(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    grpc_schema::frame(message, false, &mut framed);
    framed[0] = flag;
    framed
}

/// The text of `null.Message` is `hi`.
const HI: &[u8] = b"\x0a\x02hi";

const NONE: &str = "expected grpc-status 0 (OK), found none";

/// The verdict on an answer of gRPC-Web or a stream of Connect with these messages.
fn of_messages(rules: &GrpcRules, more: &[(&str, &[u8])], parts: &[Vec<u8>]) -> String {
    let kind: (&str, &[u8]) = ("content-type", rules.form.content_type().as_bytes());
    let head: Vec<(&str, &[u8])> = [kind].iter().chain(more).copied().collect();
    verdict_of(rules, (200, &head), &parts.concat(), None)
}

#[test]
fn the_last_message_of_grpc_web_has_the_status() {
    let rules = of_method(RpcProtocol::GrpcWeb, "Watch");
    let of = |parts: &[Vec<u8>]| of_messages(&rules, &[], parts);
    let (message, end) = (flagged(0, HI), flagged(0x80, b"grpc-status: 0\r\n"));
    assert_eq!(of(&[message.clone(), end.clone()]), "right");
    assert_eq!(of(std::slice::from_ref(&end)), "right");
    let refused = flagged(0x80, b"Grpc-Status:7\r\ngrpc-message: not%20you\r\n");
    let words = "expected grpc-status 0 (OK), found 7 (PERMISSION_DENIED): not you";
    assert_eq!(of(&[message.clone(), refused.clone()]), words);
    let packed = flagged(0x81, &coding::gzip(b"grpc-status: 7\r\n"));
    let of_packed = of_messages(&rules, &[("grpc-encoding", b"gzip")], &[packed]);
    assert_eq!(of_packed, words.replace(": not you", ""));
    // The status of a call without messages may be in its head.
    let in_head = of_messages(&rules, &[("grpc-status", b"0")], &[]);
    assert_eq!(in_head, "right");
    for (parts, words) in [
        (
            vec![end.clone(), message.clone()],
            "no message after the status in message 1, found one more",
        ),
        (
            vec![message.clone(), end.clone(), end.clone()],
            "one last message with the status in message 1, found two",
        ),
        (
            vec![end.clone(), b"\0\0".to_vec()],
            "expected a whole message in message 1, found the end of the answer within it",
        ),
    ] {
        assert!(of(&parts).contains(words), "{}", of(&parts));
    }
    // A wrong message does not hide the status after it.
    let wrong = of(&[flagged(7, HI), message, end.clone()]);
    assert!(wrong.contains("found the flag 7"), "{wrong}");
    assert_eq!(of(&[flagged(7, HI), refused]), words);
    let one = of_method(RpcProtocol::GrpcWeb, "Say");
    let found = of_messages(&one, &[], &[end]);
    assert!(found.contains("one message as the answer"), "{found}");
}

#[test]
fn a_call_of_grpc_web_without_a_readable_status_did_not_pass() {
    let rules = of_method(RpcProtocol::GrpcWeb, "Watch");
    let of = |end: Vec<u8>| of_messages(&rules, &[], &[flagged(0, HI), end]);
    assert_eq!(of(Vec::new()), NONE);
    assert_eq!(of(flagged(0x80, b"")), NONE);
    assert_eq!(of(flagged(0x80, b"grpc-status: 0")[..9].to_vec()), NONE);
    for (end, words) in [
        (flagged(0x80, b"\xff"), "a line that has no name"),
        (
            flagged(0x80, b"grpc-status: x"),
            "`grpc-status: x` is no status",
        ),
        (flagged(0x81, b"grpc-status: 0"), "without `grpc-encoding`"),
        (flagged(0x82, b"grpc-status: 0"), "has the flag 130"),
        (flagged(0x80, &vec![b'a'; END_MAX + 1]), "1048577 bytes"),
    ] {
        let found = of(end);
        assert!(found.starts_with(NONE) && found.contains(words), "{found}");
    }
    // A browser cannot read trailers of HTTP.
    let kind: (&str, &[u8]) = ("content-type", b"application/grpc-web+proto");
    let ok: &[(&str, &[u8])] = &[("grpc-status", b"0")];
    assert_eq!(
        verdict_of(&rules, (200, &[kind]), &flagged(0, HI), Some(ok)),
        NONE
    );
    let other: (&str, &[u8]) = ("content-type", b"application/grpc");
    let found = verdict_of(&rules, (200, &[other]), &flagged(0, HI), None);
    assert!(found.contains("and not `application/grpc-web`"), "{found}");
}

fn of_unary(rules: &GrpcRules, status: u16, kind: &str, body: &[u8]) -> String {
    let kind: (&str, &[u8]) = ("content-type", kind.as_bytes());
    verdict_of(rules, (status, &[kind]), body, None)
}

#[test]
fn an_answer_of_connect_is_a_message_or_an_error() {
    let mut rules = of_method(RpcProtocol::Connect, "Say");
    assert_eq!(of_unary(&rules, 200, "application/proto", HI), "right");
    let error =
        br#"{"code":"not_found","message":"no","details":[{"type":"a.B","value":"CgJoaQ"}]}"#;
    let words = "expected grpc-status 0 (OK), found 5 (NOT_FOUND): no [a.B (4 bytes): `hi`]";
    assert_eq!(of_unary(&rules, 404, "application/json", error), words);
    let damaged = br#"{"code":"canceled","details":[{"type":"a.B","value":"!"}, 7, {}]}"#;
    let found = of_unary(&rules, 499, "application/json; charset=utf-8", damaged);
    assert!(
        found.contains("1 (CANCELLED): [`details`: expected base64"),
        "{found}"
    );
    let http = "found 14 (UNAVAILABLE): the answer has the HTTP status 503";
    let long = vec![b' '; END_MAX + 1];
    for body in [
        &b"{"[..],
        b"[]",
        b"",
        b"\xff",
        br#"{"code":"odd"}"#,
        br#"{"code":7}"#,
        &long,
    ] {
        let found = of_unary(&rules, 503, "application/json", body);
        assert!(found.ends_with(http), "{found}");
    }
    let deep = [b"{\"code\":".to_vec(), vec![b'['; 100_000]].concat();
    assert!(of_unary(&rules, 503, "application/json", &deep).ends_with(http));
    assert!(of_unary(&rules, 503, "text/html", b"<p>").ends_with(http));
    for kind in ["text/html", "application/json", "application/connect+proto"] {
        let found = of_unary(&rules, 200, kind, error);
        assert!(found.contains("and not `application/proto`"), "{found}");
    }
    rules.decode();
    let found = of_unary(&rules, 200, "application/proto", b"\x0a\x09hi");
    assert!(
        found.contains("expected a message of the method"),
        "{found}"
    );
}

#[test]
fn an_answer_of_connect_may_be_compressed_and_has_a_limit() {
    let rules = of_method(RpcProtocol::Connect, "Say");
    let of = |status: u16, kind: &str, body: &[u8]| {
        let lines: &[(&str, &[u8])] = &[
            ("content-type", kind.as_bytes()),
            ("content-encoding", b"gzip"),
        ];
        verdict_of(&rules, (status, lines), body, None)
    };
    assert_eq!(of(200, "application/proto", &coding::gzip(HI)), "right");
    let found = of(200, "application/proto", HI);
    assert!(
        found.contains("expected a message that can be decompressed"),
        "{found}"
    );
    let bomb = coding::gzip(&vec![0; KEPT_MAX + 1]);
    let found = of(200, "application/proto", &bomb);
    assert!(
        found.contains("expected a message that can be decompressed"),
        "{found}"
    );
    let error = coding::gzip(br#"{"code":"aborted"}"#);
    let found = of(409, "application/json", &error);
    assert_eq!(found, "expected grpc-status 0 (OK), found 10 (ABORTED)");
    let bomb = coding::gzip(&vec![b' '; END_MAX + 1]);
    let found = of(409, "application/json", &bomb);
    assert!(
        found.contains("the answer has the HTTP status 409"),
        "{found}"
    );
    let mut findings = GrpcFindings::default();
    let kind: (&str, &[u8]) = ("content-type", b"application/proto");
    with_lines(200, &[kind], |head| findings.head(&rules, head));
    for _ in 0..KEPT_MAX / 1024 {
        findings.part_of_whole(&rules, &[0; 1024]);
    }
    assert!(!findings.is_too_large());
    assert_eq!(findings.whole.capacity(), 0, "no rule needs the content");
    findings.part_of_whole(&rules, &[0]);
    assert!(findings.is_too_large());
}

#[test]
fn the_last_message_of_a_stream_of_connect_has_the_status() {
    let rules = of_method(RpcProtocol::Connect, "Watch");
    let gzip: &[(&str, &[u8])] = &[("connect-content-encoding", b"gzip")];
    let of = |end: Vec<u8>| of_messages(&rules, gzip, &[flagged(0, HI), end]);
    assert_eq!(of(flagged(2, b"{}")), "right");
    assert_eq!(of(flagged(3, &coding::gzip(b"{\"metadata\":{}}"))), "right");
    let packed = flagged(1, &coding::gzip(HI));
    assert_eq!(
        of_messages(&rules, gzip, &[packed, flagged(2, b"{}")]),
        "right"
    );
    let error = br#"{"error":{"code":"internal","message":"no"},"metadata":{}}"#;
    let words = "expected grpc-status 0 (OK), found 13 (INTERNAL): no";
    assert_eq!(of(flagged(2, error)), words);
    let end = |json: &str| flagged(2, json.as_bytes());
    for (wrong, words) in [
        (Vec::new(), ""),
        (end("{}")[..6].to_vec(), ""),
        (end("[]"), ": the last message is JSON without fields"),
        (end("{\"error\":"), ": the last message is no JSON"),
        (end("\u{0}"), ": the last message is no JSON"),
        (end(&"[".repeat(100_000)), ": the last message is no JSON"),
        (end("{\"error\":{}}"), ": the error has no code"),
        (
            end("{\"error\":{\"code\":\"ok\"}}"),
            ": the code `ok` is unknown",
        ),
        (
            end(&" ".repeat(END_MAX + 1)),
            ": the last message has 1048577 bytes, and at most 1048576 are read",
        ),
        (flagged(0x82, b"{}"), ": the last message has the flag 130"),
        (flagged(3, b"{}"), ": the last message is 2 bytes"),
    ] {
        let found = of(wrong);
        assert!(found.starts_with(&format!("{NONE}{words}")), "{found}");
    }
    let found = of_messages(&rules, &[], &[flagged(2, b"{}"), flagged(0, HI)]);
    assert!(found.contains("no message after the status"), "{found}");
    // Its HTTP status is always 200.
    let kind: (&str, &[u8]) = ("content-type", b"application/json");
    let found = verdict_of(&rules, (404, &[kind]), br#"{"code":"not_found"}"#, None);
    assert!(
        found.contains("12 (UNIMPLEMENTED): the answer has the HTTP status 404"),
        "{found}"
    );
}

#[test]
fn a_bomb_is_too_large() {
    let rules = rules(0);
    let mut findings = GrpcFindings::default();
    let gzip: &[(&str, &[u8])] = &[GRPC, ("grpc-encoding", b"gzip")];
    with_lines(200, gzip, |head| findings.head(&rules, head));
    let mut packed = Vec::new();
    grpc_schema::frame(&coding::gzip(&vec![0; KEPT_MAX + 1]), true, &mut packed);
    assert!(packed.len() < 100_000);
    assert!(findings.next(&rules, &mut packed.as_slice()).is_none());
    assert!(findings.is_too_large());
    // The length alone is enough.
    with_lines(200, &[GRPC], |head| findings.head(&rules, head));
    findings.start();
    with_lines(200, &[GRPC], |head| findings.head(&rules, head));
    assert!(
        findings
            .next(&rules, &mut &b"\0\xff\xff\xff\xff"[..])
            .is_none()
    );
    assert!(findings.is_too_large());
}
