//! Checks a response while it arrives.
//!
//! A body that equals a judged body needs no second judgment. The code therefore compares bytes with a
//! reference straight from the read buffer, at the speed of a memory comparison. The reference is the
//! expected body, or the first body without GraphQL errors. If the bytes differ, the scanner for `errors`
//! runs over the equal part and continues from there.
//!
//! The same code judges a single response ([`check`]) and each of a million responses in the hot path.

use std::sync::Arc;

use httparse::Header;
use model::GrpcRule;

use crate::answer::Answer;
use crate::call_form::Form;
use crate::job::{BodyRule, EventCheck, Expectation, StatusRule, StreamEnd, StreamRule};
use crate::mismatch::Mismatch;
use crate::parser::{Head, ParseError, Sink};
use crate::recorder::encodings::Encoding;
use crate::scenario::{CapturedValue, Wanted};

mod alike;
mod coded;
mod encoding;
pub(crate) mod graphql;
mod grpc;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use alike::Pattern;
pub(crate) use coded::JudgedBy;
use coded::{CodedReference, Coding};
use encoding::encoding_of;
use graphql::ErrorsScan;
pub use graphql::GraphqlFault;
pub(crate) use grpc::{GrpcFindings, GrpcRules};
use stream::{Arrival, Part, StreamFindings};

use crate::websocket::Received;

/// Size limit of a first correct body that becomes the reference. If it is larger, every response is scanned.
const LEARNED_MAX: usize = 1024 * 1024;

/// Limit of the bytes of one body that are kept to capture from it, or to compare it in parts. Many
/// connections may each keep a body.
pub(crate) const KEPT_MAX: usize = 16 * 1024 * 1024;

/// Judges one response by the rules of the hot path.
///
/// # Errors
/// The first rule that the response breaks.
pub fn check(expect: &Expectation, answer: &Answer) -> Result<(), Mismatch> {
    examine(&mut Rules::new(expect), answer).map(|_| ())
}

/// Like [`check`], with rules that may capture. Returns the captured values by their places in the iteration.
pub(crate) fn examine(
    rules: &mut Rules,
    answer: &Answer,
) -> Result<Vec<(usize, CapturedValue)>, Mismatch> {
    let mut findings = Findings::default();
    let headers = headers_of(answer);
    let mut judge = Judge {
        rules,
        findings: &mut findings,
        at: Arrival::untimed(),
    };
    judge.head(&Head::new(answer.status, &headers));
    match &answer.messages {
        Some(messages) => messages
            .iter()
            .for_each(|message| judge.message(&message.received())),
        None => judge.body(&answer.body),
    }
    if !answer.trailers.is_empty() {
        let trailers = lines_of(&answer.trailers);
        let trailers = Head::new(answer.status, &trailers);
        match &judge.rules.grpc {
            Some(call) if call.form() == Form::Web => judge.findings.grpc.separated(&trailers),
            _ => judge.trailers(&trailers),
        }
    }
    judge.end();
    if let Some(refusal) = findings.refusal() {
        return Err(Mismatch::Refused(refusal));
    }
    if let Some(mismatch) = findings.conclude(rules) {
        return Err(mismatch);
    }
    // A single response takes no sample: it is always decoded.
    if let Some(body) = findings.encoded() {
        rules.judge_sampled(body)?;
    }
    Ok(findings.captured)
}

/// Returns the headers of a response in the form of the parser.
fn headers_of(answer: &Answer) -> Vec<Header<'_>> {
    lines_of(&answer.headers)
}

fn lines_of(lines: &[(String, String)]) -> Vec<Header<'_>> {
    lines
        .iter()
        .map(|(name, value)| Header {
            name,
            value: value.as_bytes(),
        })
        .collect()
}

/// The expectation of one request, ready for many responses.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    status: StatusRule,
    graphql: bool,
    headers: Vec<(String, String)>,
    /// The expected or learned body.
    reference: Option<Arc<[u8]>>,
    /// True if any other body is wrong. False if another body is still to be judged.
    must_equal: bool,
    /// The pattern for bodies with ignored parts, which are collected and compared as values.
    pattern: Option<Arc<Pattern>>,
    /// The reference for encoded bodies.
    coded: Option<CodedReference>,
    /// Bodies are only judged for this status.
    body_of: Option<u16>,
    /// The GraphQL fault of the reference, if it has one.
    reference_fault: Option<GraphqlFault>,
    /// Values to capture from a correct response.
    pub(crate) captures: Arc<[Wanted]>,
    /// The rule of a response that is a stream.
    pub(crate) stream: Option<Arc<StreamRule>>,
    /// The rules of a gRPC call.
    pub(crate) grpc: Option<Box<GrpcRules>>,
}

impl Rules {
    pub(crate) fn new(expect: &Expectation) -> Rules {
        let (reference, must_equal) = match &expect.body {
            BodyRule::Any => (None, false),
            BodyRule::Equals(body) | BodyRule::Alike { body, .. } => (Some(Arc::clone(body)), true),
        };
        let pattern = match &expect.body {
            BodyRule::Alike { body, ignore } => Some(Arc::new(Pattern::new(body, ignore))),
            BodyRule::Any | BodyRule::Equals(_) => None,
        };
        let reference_fault = match &reference {
            Some(body) if expect.graphql => graphql::scan(body).err(),
            _ => None,
        };
        Rules {
            status: expect.status,
            graphql: expect.graphql,
            headers: expect.headers.clone(),
            reference,
            must_equal,
            pattern,
            coded: CodedReference::of(expect),
            body_of: expect.body_of,
            reference_fault,
            captures: Arc::from([]),
            stream: expect.stream.clone().map(Arc::new),
            grpc: expect
                .grpc
                .as_ref()
                .map(|rule| Box::new(rules_of_call(rule, expect))),
        }
    }

    /// Returns the reference, in the modes that compare.
    #[inline]
    fn reference(&self) -> &[u8] {
        let reference = self.reference.as_deref();
        reference.expect("a body is only compared where there is a reference")
    }

    /// True if the body of a response with this status is judged. Bodies are compared within one status only.
    #[inline]
    fn judges_body_of(&self, status: u16) -> bool {
        match (self.body_of, self.status) {
            (Some(of), _) => of == status,
            (None, StatusRule::Among(set)) => set.first_has(status),
            (None, _) => true,
        }
    }

    fn wrong_header(&self, head: &Head<'_>) -> Option<Mismatch> {
        self.headers.iter().find_map(|(name, expected)| {
            // Each cookie has its own line (RFC 9110, section 5.3).
            if name.eq_ignore_ascii_case("set-cookie") && head.has(name, expected.as_bytes()) {
                return None;
            }
            let found = head.combined(name);
            (found.as_deref() != Some(expected.as_bytes())).then(|| Mismatch::Header {
                name: name.clone(),
                expected: expected.clone(),
                found: found.map(|value| String::from_utf8_lossy(&value).into_owned()),
            })
        })
    }
}

/// Returns the rules of a call. Answers are decoded if a rule of the stream needs their content.
fn rules_of_call(rule: &GrpcRule, expect: &Expectation) -> GrpcRules {
    let mut rules = GrpcRules::new(rule);
    let needs_content = |stream: &StreamRule| {
        stream.each != EventCheck::Any
            || stream.sent_at.is_some()
            || matches!(stream.end, Some(StreamEnd::Data(_)))
    };
    if expect.stream.as_ref().is_some_and(needs_content) {
        rules.decode();
    }
    rules
}

/// Findings about the response that is arriving.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) status: u16,
    wrong_status: bool,
    /// Destination of a redirect that is wrong.
    location: Option<Box<str>>,
    wrong_header: Option<Box<Mismatch>>,
    mode: Mode,
    /// Number of body bytes that equal the reference, from its start.
    equal_bytes: usize,
    pub(crate) body_bytes: u64,
    scan: ErrorsScan,
    /// The body up to here, while there is no reference to compare with, or if parts are ignored.
    learned: Vec<u8>,
    /// The content coding, for the counts of all responses.
    pub(crate) encoding: Encoding,
    /// The content coding, for the verdict on the body.
    coding: Coding,
    /// The method that found an encoded body correct.
    pub(crate) judged_by: Option<JudgedBy>,
    /// Values of the headers with captures, in the order of the captures.
    capture_headers: Vec<Option<String>>,
    /// The whole body, if a value is captured from it.
    whole: Vec<u8>,
    /// True if more than [`KEPT_MAX`] bytes of the body are needed.
    is_too_large: bool,
    /// Values captured from a correct response, each with its place in the iteration.
    pub(crate) captured: Vec<(usize, CapturedValue)>,
    /// The events of a response that is a stream.
    pub(crate) stream: StreamFindings,
    /// The answers to a gRPC call.
    pub(crate) grpc: GrpcFindings,
}

/// Treatment of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// The body is only counted.
    #[default]
    Skip,
    /// The body is compared with the reference, and still equal.
    Compare,
    /// The body is scanned for errors.
    Scan,
    /// The body is scanned for errors and collected to become the reference.
    Learn,
    /// The body is collected to be compared as a value.
    Collect,
    /// The body is compared with the encoded reference, and still equal.
    CompareCoded,
    /// The body is collected to be decoded.
    CollectCoded,
    /// The body is encoded, and too long to be collected.
    TooLongCoded,
    /// The body is only counted, because bodies of its status are not judged.
    Exempt,
    /// The body is split into events.
    Stream,
}

impl Findings {
    /// Resets the findings for the next response.
    pub(crate) fn start(&mut self) {
        self.status = 0;
        self.wrong_status = false;
        self.wrong_header = None;
        self.mode = Mode::Skip;
        self.equal_bytes = 0;
        self.body_bytes = 0;
        self.is_too_large = false;
        self.coding = Coding::Plain;
        self.judged_by = None;
        self.stream.start();
        self.grpc.start();
        // The mode that uses the scan or the collected body resets it.
    }

    /// The reason to read no more of the response.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<ParseError> {
        (self.is_too_large || self.stream.is_too_large() || self.grpc.is_too_large())
            .then_some(ParseError::TooLargeToCapture { limit: KEPT_MAX })
    }

    /// Returns the verdict on a complete response. A learned reference goes into the rules. Captured values
    /// stay here.
    pub(crate) fn conclude(&mut self, rules: &mut Rules) -> Option<Mismatch> {
        let mismatch = self.judge(rules);
        if mismatch.is_none() && !rules.captures.is_empty() {
            return self.capture(rules).err();
        }
        mismatch
    }

    fn capture(&mut self, rules: &Rules) -> Result<(), Mismatch> {
        self.captured.clear();
        for (wanted, header) in rules.captures.iter().zip(&self.capture_headers) {
            let body = match rules.grpc {
                None => self.whole.as_slice(),
                Some(_) => self.grpc.json(),
            };
            let value = wanted.find(header.as_deref(), body)?;
            self.captured.push((wanted.slot(), value));
        }
        Ok(())
    }

    fn judge(&mut self, rules: &mut Rules) -> Option<Mismatch> {
        // The status is checked first. The body of an error page would be wrong, too, and would hide the
        // cause.
        if self.wrong_status {
            return Some(Mismatch::Status {
                expected: rules.status,
                found: self.status,
                location: self.location.take(),
            });
        }
        let is_coded = matches!(
            self.mode,
            Mode::CompareCoded | Mode::CollectCoded | Mode::TooLongCoded
        );
        let wrong = is_coded.then(|| self.judge_coded(rules)).flatten();
        if let Some(grpc) = &rules.grpc
            && let Some(mismatch) = self.grpc.conclude(grpc, self.stream.is_ended())
        {
            return Some(mismatch);
        }
        if self.mode == Mode::Stream {
            let rule = rules.stream.as_deref();
            let wrong = rule.and_then(|rule| self.stream.conclude(rule));
            return wrong.or_else(|| self.wrong_header.take().map(|mismatch| *mismatch));
        }
        if is_coded || self.mode == Mode::Exempt {
            return wrong.or_else(|| self.wrong_header.take().map(|mismatch| *mismatch));
        }
        if self.mode == Mode::Compare {
            let reference = rules.reference();
            if self.equal_bytes == reference.len() {
                return match rules.reference_fault {
                    Some(fault) => Some(Mismatch::Graphql(fault)),
                    None => self.wrong_header.take().map(|mismatch| *mismatch),
                };
            }
            // The body ended before the end of the reference.
            self.diverge(rules, &[]);
        }
        if self.mode == Mode::Collect {
            return self.conclude_collected(rules);
        }
        if matches!(self.mode, Mode::Scan | Mode::Learn)
            && let Err(fault) = self.scan.finish()
        {
            return Some(Mismatch::Graphql(fault));
        }
        if rules.must_equal {
            return Some(Mismatch::Body {
                at: self.equal_bytes,
                expected_bytes: rules.reference().len(),
                found_bytes: self.body_bytes,
            });
        }
        // Over HTTP/2, another response to the same request may have become the reference.
        if self.mode == Mode::Learn && rules.reference.is_none() {
            rules.reference = Some(Arc::from(std::mem::take(&mut self.learned)));
        }
        self.wrong_header.take().map(|mismatch| *mismatch)
    }

    /// Returns the verdict on a body that differs from the reference. It may differ only in ignored parts.
    fn conclude_collected(&mut self, rules: &Rules) -> Option<Mismatch> {
        if rules.graphql
            && let Err(fault) = graphql::scan(&self.learned)
        {
            return Some(Mismatch::Graphql(fault));
        }
        let difference = rules.pattern.as_ref()?.differs_from(&self.learned);
        difference
            .map(|it| Mismatch::Member {
                pointer: it.pointer,
                expected: it.expected,
                found: it.found,
            })
            .or_else(|| self.wrong_header.take().map(|mismatch| *mismatch))
    }

    /// Handles the first difference from the reference. `part` is the next stretch of the body.
    fn diverge(&mut self, rules: &Rules, part: &[u8]) {
        let reference = rules.reference();
        let equal = &reference[..self.equal_bytes];
        if rules.pattern.is_some() {
            self.mode = Mode::Collect;
            self.learned.clear();
            self.is_too_large |= !keep(&mut self.learned, equal) || !keep(&mut self.learned, part);
        } else if rules.graphql {
            self.mode = Mode::Scan;
            self.scan = ErrorsScan::new();
            self.scan.feed(equal);
            self.scan.feed(part);
        } else {
            self.mode = Mode::Skip;
        }
        let more = &reference[self.equal_bytes..];
        self.equal_bytes += more
            .iter()
            .zip(part)
            .take_while(|(expected, found)| expected == found)
            .count();
    }
}

/// Returns the destination of a redirect.
fn location(head: &Head<'_>) -> Option<Box<str>> {
    let value = (300..400)
        .contains(&head.status)
        .then(|| head.header("location"))??;
    Some(value.escape_ascii().to_string().into_boxed_str())
}

/// Adds the events of the parser to the findings of a response.
pub(crate) struct Judge<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) findings: &'a mut Findings,
    pub(crate) at: Arrival<'a>,
}

impl Judge<'_> {
    /// Takes a message of WebSocket.
    pub(crate) fn message(&mut self, message: &Received<'_>) {
        let (Mode::Stream, Some(rule)) = (self.findings.mode, &self.rules.stream) else {
            return;
        };
        let stream = &mut self.findings.stream;
        match *message {
            Received::Event { name, data } => {
                self.findings.body_bytes += data.len() as u64;
                stream.event(rule, &Part { name, data }, &mut self.at);
            }
            Received::Error { data } => {
                self.findings.body_bytes += data.len() as u64;
                stream.refused("a GraphQL result", data);
            }
            Received::Complete => stream.complete(rule, self.at.now_ns),
        }
    }

    /// Takes the end of the body.
    #[inline]
    pub(crate) fn end(&mut self) {
        if let (Mode::Stream, Some(rule)) = (self.findings.mode, &self.rules.stream) {
            self.findings.stream.end(rule, &mut self.at);
        }
    }
}

impl Sink for Judge<'_> {
    fn head(&mut self, head: &Head<'_>) {
        let findings = &mut *self.findings;
        findings.status = head.status;
        findings.encoding = encoding_of(head);
        // A call has its own status, which stands for the status of HTTP.
        let is_call = self.rules.grpc.is_some() && self.rules.status == StatusRule::Success;
        findings.wrong_status = !is_call && !self.rules.status.accepts(head.status);
        // The mode stays `Skip`: this body is not judged.
        if findings.wrong_status {
            findings.location = location(head);
            return;
        }
        if !self.rules.headers.is_empty() {
            findings.wrong_header = self.rules.wrong_header(head).map(Box::new);
        }
        if !self.rules.captures.is_empty() {
            findings.whole.clear();
            let values = self.rules.captures.iter().map(|wanted| {
                let value = head.header(wanted.header()?)?;
                Some(String::from_utf8_lossy(value).into_owned())
            });
            findings.capture_headers = values.collect();
        }
        if let Some(rules) = &self.rules.grpc
            && !findings.grpc.head(rules, head)
        {
            return;
        }
        if !self.rules.judges_body_of(head.status) {
            findings.mode = Mode::Exempt;
            return;
        }
        if let Some(rule) = &self.rules.stream {
            findings.mode = Mode::Stream;
            findings.stream.head(rule, head);
            return;
        }
        let needs_content =
            self.rules.reference.is_some() || self.rules.graphql || !self.rules.captures.is_empty();
        if needs_content {
            findings.coding = self.rules.coding(&findings.encoding);
        }
        findings.mode = match &self.rules.reference {
            _ if findings.coding == Coding::Known => Mode::CompareCoded,
            _ if findings.coding != Coding::Plain => {
                findings.learned.clear();
                Mode::CollectCoded
            }
            Some(_) => Mode::Compare,
            None if self.rules.graphql => {
                findings.scan = ErrorsScan::new();
                findings.learned.clear();
                Mode::Learn
            }
            None => Mode::Skip,
        };
    }

    #[inline]
    fn refusal(&self) -> Option<ParseError> {
        self.findings.refusal()
    }

    fn trailers(&mut self, trailers: &Head<'_>) {
        if let Some(rules) = &self.rules.grpc {
            self.findings.grpc.trailers(rules, trailers);
        }
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.findings.stream.is_over()
    }

    fn body(&mut self, part: &[u8]) {
        self.findings.body_bytes += part.len() as u64;
        let rules = self.rules;
        match &rules.grpc {
            None => self.content(part),
            Some(rules) if rules.form() == Form::ConnectUnary => {
                self.findings.grpc.part_of_whole(rules, part);
                self.content(part);
            }
            Some(rules) => self.messages_of_call(rules, part),
        }
    }
}

impl Judge<'_> {
    /// Takes the next messages of a gRPC call.
    fn messages_of_call(&mut self, rules: &GrpcRules, part: &[u8]) {
        let mut rest = part;
        while let Some(answered) = self.findings.grpc.next(rules, &mut rest) {
            if self.findings.mode == Mode::Stream {
                let Some(rule) = &self.rules.stream else {
                    return;
                };
                let Findings { grpc, stream, .. } = &mut *self.findings;
                let data = match answered.is_decoded {
                    true => grpc.json(),
                    false => &answered.plain,
                };
                stream.event_of_call(rule, data, &mut self.at);
                continue;
            }
            // A body is compared without compression, so it is equal to the same body with it.
            let mut framed = Vec::with_capacity(answered.plain.len() + grpc_schema::PREFIX_BYTES);
            grpc_schema::frame(&answered.plain, false, &mut framed);
            self.content(&framed);
        }
    }

    /// Takes the next part of a body without framing.
    fn content(&mut self, part: &[u8]) {
        let findings = &mut *self.findings;
        if !self.rules.captures.is_empty() && self.rules.grpc.is_none() {
            findings.is_too_large |= !keep(&mut findings.whole, part);
        }
        match findings.mode {
            Mode::Skip | Mode::TooLongCoded | Mode::Exempt => {}
            Mode::Stream => {
                if let Some(rule) = &self.rules.stream {
                    findings.stream.body(rule, part, &mut self.at);
                }
            }
            Mode::Compare => {
                let reference = self.rules.reference();
                let end = findings.equal_bytes + part.len();
                if reference.get(findings.equal_bytes..end) == Some(part) {
                    findings.equal_bytes = end;
                } else {
                    findings.diverge(self.rules, part);
                }
            }
            Mode::Scan => findings.scan.feed(part),
            Mode::Collect => findings.is_too_large |= !keep(&mut findings.learned, part),
            Mode::CompareCoded | Mode::CollectCoded => findings.coded_body(self.rules, part),
            Mode::Learn => {
                findings.scan.feed(part);
                if findings.learned.len() + part.len() > LEARNED_MAX {
                    // Not `clear`, which would keep the allocation.
                    findings.learned = Vec::new();
                    findings.mode = Mode::Scan;
                } else {
                    findings.learned.extend_from_slice(part);
                }
            }
        }
    }
}

/// Adds a part of a body to `kept`. Returns `false` if the body is too large to keep.
fn keep(kept: &mut Vec<u8>, part: &[u8]) -> bool {
    let fits = kept.len() + part.len() <= KEPT_MAX;
    if fits {
        kept.extend_from_slice(part);
    } else {
        // Not `clear`, which would keep the allocation.
        *kept = Vec::new();
    }
    fits
}
