//! Reads the answers to a call of gRPC: messages, and the status in trailers.
//!
//! Messages are input from outside: they may be compressed, damaged, or longer than any limit. At most one is in
//! memory, and it is decoded only for rules that need its fields.

use grpc_schema::{CallSchema, ExpectedFields, Method, StatusDetails, of_http};
use model::{Framing, GrpcRule};
use serde_json::Value;

use super::KEPT_MAX;
use super::stream::Splitter;
use crate::coding::{self, CodingError};
use crate::mismatch::Mismatch;
use crate::parser::Head;

/// Characters of a value of the server that a message quotes.
const QUOTED_MAX: usize = 80;

/// The rules of a call, ready for many answers.
#[derive(Clone, Debug)]
pub(crate) struct GrpcRules {
    status: u32,
    method: Option<Method>,
    fields: Option<ExpectedFields>,
    /// Texts that the JSON of each answer must contain.
    contains: Vec<String>,
    /// True if a rule needs the fields of answers.
    decodes: bool,
    /// The reason that no answer can be right.
    broken: Option<String>,
}

impl GrpcRules {
    pub(super) fn new(rule: &GrpcRule) -> GrpcRules {
        let mut rules = GrpcRules {
            status: rule.status,
            method: None,
            fields: None,
            contains: Vec::new(),
            decodes: false,
            broken: None,
        };
        let Some(answers) = &rule.answers else {
            return rules;
        };
        let method = CallSchema::read(&answers.descriptors)
            .and_then(|schema| schema.method(&answers.method));
        let read = method.and_then(|method| {
            let fields = answers.fields.as_deref();
            let fields = fields.map(|fields| method.expected(fields)).transpose();
            Ok((fields.map_err(|unfit| unfit.to_string())?, method))
        });
        match read {
            Ok((fields, method)) => {
                rules.decodes = fields.is_some() || !answers.contains.is_empty();
                rules.contains.clone_from(&answers.contains);
                rules.fields = fields;
                rules.method = Some(method);
            }
            Err(reason) => rules.broken = Some(reason),
        }
        rules
    }

    /// Decodes answers, because other rules need their fields.
    pub(crate) fn decode(&mut self) {
        self.decodes = true;
    }

    /// The method of the call. `None` if only the status is checked.
    pub(crate) fn method(&self) -> Option<&Method> {
        self.method.as_ref()
    }

    fn is_single(&self) -> bool {
        let method = self.method.as_ref();
        method.is_some_and(|method| !method.answers_several())
    }
}

/// The status of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Status {
    /// `None` until a status arrived.
    number: Option<u32>,
    message: Option<String>,
    details: Option<Vec<u8>>,
}

impl Status {
    /// Reads the status from trailers, or from the head of a response without messages.
    fn of(lines: &Head<'_>) -> Status {
        let text = |name: &str| {
            let value = lines.header(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let Some(written) = text("grpc-status") else {
            return Status::default();
        };
        let Ok(number) = written.trim().parse() else {
            return Status {
                message: Some(format!("`grpc-status: {}` is no status", quoted(&written))),
                ..Status::default()
            };
        };
        let message = lines.header("grpc-message").map(decoded);
        Status {
            number: Some(number),
            message: message.filter(|message| !message.is_empty()),
            details: lines.header("grpc-status-details-bin").map(<[u8]>::to_vec),
        }
    }
}

/// Findings about the answers that are arriving.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrpcFindings {
    /// True if a call has left something to reset. Responses of HTTP have no findings here.
    is_used: bool,
    /// The status in the head. Only a response without messages has it there.
    in_head: Status,
    in_trailers: Option<Status>,
    /// The reason that the response is no response of gRPC, and the status that stands for it.
    foreign: Option<(u32, String)>,
    splitter: Splitter,
    /// The coding of compressed messages.
    coding: Option<String>,
    messages: u64,
    fault: Option<Box<Mismatch>>,
    /// The latest message as JSON, if a rule needs it.
    json: Vec<u8>,
    is_too_large: bool,
    /// Number of messages that were sent without a reply, and of all messages.
    unanswered: (u64, u64),
    is_expired: bool,
}

/// A message of the server.
pub(super) struct Answered {
    /// The message without compression.
    pub(super) plain: Vec<u8>,
    /// True if it exists as JSON, too.
    pub(super) is_decoded: bool,
}

impl GrpcFindings {
    /// Resets the findings for the next call.
    #[inline]
    pub(super) fn start(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.reset();
        }
    }

    fn reset(&mut self) {
        self.in_head = Status::default();
        self.in_trailers = None;
        self.foreign = None;
        self.splitter.reset();
        self.coding = None;
        self.messages = 0;
        self.fault = None;
        self.is_too_large = false;
        self.unanswered = (0, 0);
        self.is_expired = false;
    }

    /// Takes the head of the response. False if its body has no messages.
    pub(super) fn head(&mut self, head: &Head<'_>) -> bool {
        self.is_used = true;
        self.in_head = Status::of(head);
        self.splitter.start(Framing::Grpc, head);
        let coding = head.header("grpc-encoding").map(lossy);
        self.coding = coding.filter(|coding| !coding.eq_ignore_ascii_case("identity"));
        let kind = head.header("content-type").map(lossy).unwrap_or_default();
        let is_grpc = kind
            .strip_prefix("application/grpc")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('+') || rest.starts_with(';'));
        // A response without messages may lack the type.
        if head.status == 200 && (is_grpc || self.in_head.number.is_some()) {
            return true;
        }
        let reason = match head.status {
            200 if kind.is_empty() => "the answer has no content type".to_owned(),
            200 => format!(
                "the answer has the content type `{}` and not `application/grpc`",
                quoted(&kind)
            ),
            status => format!("the answer has the HTTP status {status}"),
        };
        self.foreign = Some((of_http(head.status), reason));
        false
    }

    /// Takes the trailers.
    pub(super) fn trailers(&mut self, trailers: &Head<'_>) {
        self.in_trailers = Some(Status::of(trailers));
    }

    /// True if a message is longer than the limit.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large || self.splitter.is_too_large()
    }

    /// Number of messages until now.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// The latest message as JSON.
    pub(super) fn json(&self) -> &[u8] {
        &self.json
    }

    /// Takes the end of a call after its deadline.
    pub(crate) fn expire(&mut self) {
        self.is_used = true;
        self.is_expired = true;
    }

    /// Takes the number of messages without a reply, at the end of the call.
    pub(crate) fn lacks_replies(&mut self, unanswered: u64, sent: u64) {
        self.is_used = true;
        self.unanswered = (unanswered, sent);
    }

    /// Reads the next message in `rest`, and shortens `rest` by the bytes that were used. `None` if more bytes
    /// are needed, or if the message cannot be read.
    pub(super) fn next(&mut self, rules: &GrpcRules, rest: &mut &[u8]) -> Option<Answered> {
        if self.foreign.is_some() || self.fault.is_some() {
            *rest = &[];
            return None;
        }
        if !self.splitter.next(rest) {
            return None;
        }
        self.messages += 1;
        let part = self.splitter.part();
        let flag = part.name.first().copied().unwrap_or(0);
        let plain = match (flag, &self.coding) {
            (0, _) => part.data.to_vec(),
            (1, Some(coding)) => match coding::decoded(coding, part.data, KEPT_MAX) {
                Ok(plain) => plain,
                Err(CodingError::TooLarge { .. }) => {
                    self.is_too_large = true;
                    return None;
                }
                Err(error) => {
                    let found = undecodable(coding, part.data.len(), &error);
                    self.fail("a message that can be decompressed", found);
                    return None;
                }
            },
            (1, None) => {
                let found = "the flag of a compressed message without `grpc-encoding`";
                self.fail("a message that can be decompressed", found.to_owned());
                return None;
            }
            (flag, _) => {
                let found = format!("the flag {flag}");
                self.fail("the flag 0 or 1 before the message", found);
                return None;
            }
        };
        let is_decoded = rules.decodes && self.decode(rules, &plain);
        Some(Answered { plain, is_decoded })
    }

    /// Decodes a message and compares its fields. False if it is no such message.
    fn decode(&mut self, rules: &GrpcRules, plain: &[u8]) -> bool {
        let Some(method) = &rules.method else {
            return false;
        };
        let value: Value = match method.answer(plain) {
            Ok(value) => value,
            Err(reason) => {
                self.fail("a message of the method", reason);
                return false;
            }
        };
        if let Some(difference) = rules.fields.as_ref().and_then(|it| it.difference(&value)) {
            let expected = format!("{} at `{}`", difference.expected, difference.pointer);
            self.fail(&expected, difference.found);
        }
        let json = value.to_string();
        let mut wanted = rules.contains.iter();
        if let Some(missing) = wanted.find(|text| !json.contains(text.as_str())) {
            let expected = format!("a message that contains `{}`", quoted(missing));
            self.fail(&expected, format!("`{}`", quoted(&json)));
        }
        self.json.clear();
        self.json.extend_from_slice(json.as_bytes());
        true
    }

    fn fail(&mut self, expected: &str, found: String) {
        let mismatch = Mismatch::Message {
            position: self.messages,
            expected: expected.to_owned(),
            found,
        };
        self.fault.get_or_insert(Box::new(mismatch));
    }

    /// Returns the verdict on a complete call. `is_ended` is true if a rule of its stream has ended it, and
    /// then it needs no status.
    pub(super) fn conclude(&mut self, rules: &GrpcRules, is_ended: bool) -> Option<Mismatch> {
        if let Some(reason) = &rules.broken {
            return Some(Mismatch::Message {
                position: 0,
                expected: "a call with known answers".to_owned(),
                found: reason.clone(),
            });
        }
        if !is_ended && let Some(mismatch) = self.wrong_status(rules) {
            return Some(mismatch);
        }
        if let Some(fault) = self.fault.take() {
            return Some(*fault);
        }
        if self.is_expired || is_ended || rules.status != 0 {
            return None;
        }
        if self.splitter.is_within() {
            self.messages += 1;
            return Some(Mismatch::Message {
                position: self.messages,
                expected: "a whole message".to_owned(),
                found: "the end of the answer within it".to_owned(),
            });
        }
        let counted = |count: u64, of: &str| match count {
            1 => format!("1 {of}"),
            count => format!("{count} {of}s"),
        };
        if rules.is_single() && self.messages != 1 {
            return Some(Mismatch::Events {
                expected: "one message as the answer".to_owned(),
                found: counted(self.messages, "message"),
            });
        }
        let (unanswered, sent) = self.unanswered;
        (unanswered > 0).then(|| Mismatch::Events {
            expected: format!("a reply to each of {}", counted(sent, "message")),
            found: counted(sent - unanswered, "reply").replace("replys", "replies"),
        })
    }

    fn wrong_status(&mut self, rules: &GrpcRules) -> Option<Mismatch> {
        let wrong = |found: Option<u32>, message: Option<String>| {
            (found != Some(rules.status)).then(|| Mismatch::GrpcStatus {
                expected: rules.status,
                found,
                message: message.map(String::into_boxed_str),
            })
        };
        if self.is_expired {
            return wrong(Some(4), Some("the deadline has passed".to_owned()));
        }
        // A status in the head counts only for a response that ends there.
        let status = match self.in_trailers.take() {
            Some(status) => status,
            None if self.messages == 0 && !self.splitter.is_within() => {
                std::mem::take(&mut self.in_head)
            }
            None => Status::default(),
        };
        if status.number.is_none()
            && let Some((stands_for, reason)) = self.foreign.take()
        {
            return wrong(Some(stands_for), Some(reason));
        }
        let message = match &status.details {
            None => status.message,
            Some(details) => Some(with_details(status.message, details, rules)),
        };
        wrong(status.number, message)
    }
}

/// Returns the message of a status with its details.
fn with_details(message: Option<String>, details: &[u8], rules: &GrpcRules) -> String {
    let schema = rules.method.as_ref().map(Method::schema);
    let shown = match StatusDetails::read(details, schema) {
        Ok(found) => {
            let mut parts = found.details;
            if message.is_none() && !found.message.is_empty() {
                parts.insert(0, found.message);
            }
            parts.join("; ")
        }
        Err(reason) => format!("`grpc-status-details-bin`: {reason}"),
    };
    match (message, shown.is_empty()) {
        (Some(message), true) => message,
        (Some(message), false) => format!("{message} [{shown}]"),
        (None, _) => format!("[{shown}]"),
    }
}

fn undecodable(coding: &str, bytes: usize, error: &CodingError) -> String {
    match error {
        CodingError::Unknown(_) | CodingError::Many(_) => {
            format!(
                "`grpc-encoding: {}`, which is not supported",
                quoted(coding)
            )
        }
        CodingError::Damaged { why, .. } => {
            format!("{bytes} bytes that are not `{}` ({why})", quoted(coding))
        }
        CodingError::Truncated { .. } | CodingError::TooLarge { .. } => {
            format!("{bytes} bytes of `{}` that are cut", quoted(coding))
        }
    }
}

fn lossy(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Decodes the percent encoding of a message. Bytes that are not UTF-8 are replaced.
fn decoded(message: &[u8]) -> String {
    percent_encoding::percent_decode(message)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use httparse::Header;

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
        let rules = rules(0);
        let mut findings = GrpcFindings::default();
        findings.start();
        with_lines(head.0, head.1, |head| findings.head(head));
        let mut rest = body;
        while findings.next(&rules, &mut rest).is_some() {}
        if let Some(trailers) = trailers {
            with_lines(200, trailers, |trailers| findings.trailers(trailers));
        }
        let mismatch = findings.conclude(&rules, false);
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

    #[test]
    fn a_bomb_is_too_large() {
        let rules = rules(0);
        let mut findings = GrpcFindings::default();
        let gzip: &[(&str, &[u8])] = &[GRPC, ("grpc-encoding", b"gzip")];
        with_lines(200, gzip, |head| findings.head(head));
        let mut packed = Vec::new();
        grpc_schema::frame(&coding::gzip(&vec![0; KEPT_MAX + 1]), true, &mut packed);
        assert!(packed.len() < 100_000);
        assert!(findings.next(&rules, &mut packed.as_slice()).is_none());
        assert!(findings.is_too_large());
        // The length alone is enough.
        with_lines(200, &[GRPC], |head| findings.head(head));
        findings.start();
        with_lines(200, &[GRPC], |head| findings.head(head));
        assert!(
            findings
                .next(&rules, &mut &b"\0\xff\xff\xff\xff"[..])
                .is_none()
        );
        assert!(findings.is_too_large());
    }
}
