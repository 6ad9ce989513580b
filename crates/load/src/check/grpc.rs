//! Reads the answers to a call of gRPC, gRPC-Web or Connect: messages, and the status.
//!
//! Messages are input from outside: they may be compressed, damaged, or longer than any limit. At most one is in
//! memory, and it is decoded only for rules that need its fields.

use std::borrow::Cow;

use grpc_schema::{CallSchema, ExpectedFields, Method, of_http};
use model::{Framing, GrpcRule};
use serde_json::Value;

use super::KEPT_MAX;
use super::stream::Splitter;
use crate::call_form::{COMPRESSED, END_MAX, Form};
use crate::coding::{self, CodingError};
use crate::mismatch::Mismatch;
use crate::parser::Head;

mod status;

use status::Status;

/// Characters of a value of the server that a message quotes.
const QUOTED_MAX: usize = 80;

/// The rules of a call, ready for many answers.
#[derive(Clone, Debug)]
pub(crate) struct GrpcRules {
    form: Form,
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
            form: Form::of(rule.protocol, None),
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
                rules.form = Form::of(rule.protocol, Some(&method));
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

    /// The form of the answers.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    fn is_single(&self) -> bool {
        let method = self.method.as_ref();
        method.is_some_and(|method| !method.answers_several())
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
    /// The body of an answer without prefixes.
    whole: Vec<u8>,
    whole_bytes: usize,
    /// True if that body is an error.
    is_error: bool,
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

/// A message that cannot be read.
struct Unread {
    found: String,
    is_too_large: bool,
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
        self.whole.clear();
        self.whole_bytes = 0;
        self.is_error = false;
        self.is_too_large = false;
        self.unanswered = (0, 0);
        self.is_expired = false;
    }

    /// Takes the head of the response. False if its body has no messages and no error.
    pub(super) fn head(&mut self, rules: &GrpcRules, head: &Head<'_>) -> bool {
        self.is_used = true;
        let form = rules.form;
        if form.has_trailers() {
            self.in_head = Status::of(head);
        }
        self.splitter.start(Framing::Grpc, head);
        let coding = head.header(form.encoding()).map(lossy);
        self.coding = coding.filter(|coding| !coding.eq_ignore_ascii_case("identity"));
        let kind = head.header("content-type").map(lossy).unwrap_or_default();
        // A response without messages may lack the type.
        if head.status == 200 && (form.accepts(&kind) || self.in_head.number.is_some()) {
            return true;
        }
        let reason = match head.status {
            200 if kind.is_empty() => "the answer has no content type".to_owned(),
            200 => format!(
                "the answer has the content type `{}` and not `{}`",
                quoted(&kind),
                form.answer_type()
            ),
            status => format!("the answer has the HTTP status {status}"),
        };
        self.foreign = Some((of_http(head.status), reason));
        let is_json = kind.split(';').next().unwrap_or_default().trim() == "application/json";
        self.is_error = form == Form::ConnectUnary && head.status != 200 && is_json;
        self.is_error
    }

    /// Takes the trailers of HTTP. Only gRPC has its status there.
    pub(super) fn trailers(&mut self, rules: &GrpcRules, trailers: &Head<'_>) {
        if rules.form == Form::Grpc {
            self.in_trailers = Some(Status::of(trailers));
        }
    }

    /// Takes the trailers of gRPC-Web, which were separated from the body before.
    pub(super) fn separated(&mut self, trailers: &Head<'_>) {
        self.in_trailers.get_or_insert(Status::of(trailers));
    }

    /// Takes a part of an answer without prefixes. It is only kept if its content matters.
    pub(super) fn part_of_whole(&mut self, rules: &GrpcRules, part: &[u8]) {
        let is_message = self.foreign.is_none();
        let most = match is_message {
            true => KEPT_MAX,
            false => END_MAX,
        };
        self.whole_bytes = self.whole_bytes.saturating_add(part.len());
        if self.whole_bytes > most {
            self.is_too_large |= is_message;
            // Not `clear`, which would keep the allocation.
            self.whole = Vec::new();
        } else if self.is_error || (is_message && (rules.decodes || self.coding.is_some())) {
            self.whole.extend_from_slice(part);
        }
    }

    /// Reads an answer without prefixes at its end.
    fn read_whole(&mut self, rules: &GrpcRules) {
        let whole = std::mem::take(&mut self.whole);
        if self.is_error {
            // An error that cannot be read leaves the HTTP status.
            let plain = self.plain(rules.form, &whole, self.coding.is_some(), END_MAX);
            let status = plain.map_err(|unread| unread.found);
            self.in_trailers = status.and_then(|plain| Status::of_error(&plain)).ok();
        } else if self.foreign.is_none() {
            self.messages = 1;
            self.in_trailers = Some(Status::ok());
            match self.plain(rules.form, &whole, self.coding.is_some(), KEPT_MAX) {
                Ok(plain) if rules.decodes => {
                    self.decode(rules, &plain);
                }
                Ok(_) => {}
                Err(Unread { found, .. }) => self.fail("a message that can be decompressed", found),
            }
        }
        self.whole = whole;
    }

    /// Returns a message without compression.
    fn plain<'m>(
        &self,
        form: Form,
        message: &'m [u8],
        is_compressed: bool,
        most: usize,
    ) -> Result<Cow<'m, [u8]>, Unread> {
        let unread = |found: String| Unread {
            found,
            is_too_large: false,
        };
        match &self.coding {
            _ if !is_compressed => Ok(Cow::Borrowed(message)),
            None => {
                let header = form.encoding();
                let found = format!("the flag of a compressed message without `{header}`");
                Err(unread(found))
            }
            Some(coding) => match coding::decoded(coding, message, most) {
                Ok(plain) => Ok(Cow::Owned(plain)),
                Err(error) => Err(Unread {
                    is_too_large: matches!(error, CodingError::TooLarge { .. }),
                    found: undecodable(form, coding, message.len(), &error),
                }),
            },
        }
    }

    /// Takes the message at the end of an answer. False for any other message.
    fn take_end(&mut self, rules: &GrpcRules) -> bool {
        let part = self.splitter.part();
        let flag = part.name.first().copied().unwrap_or(0);
        let Some(end) = rules.form.end_flag().filter(|end| flag & end != 0) else {
            return false;
        };
        if self.in_trailers.is_some() {
            self.fail("one last message with the status", "two".to_owned());
            return true;
        }
        let status = match flag & !end {
            _ if part.data.len() > END_MAX => Err(format!(
                "the last message has {} bytes, and at most {END_MAX} are read",
                part.data.len()
            )),
            0 | COMPRESSED => self
                .plain(rules.form, part.data, flag & COMPRESSED != 0, END_MAX)
                .map(|plain| Status::of_end(rules.form, &plain))
                .map_err(|unread| format!("the last message is {}", unread.found)),
            _ => Err(format!("the last message has the flag {flag}")),
        };
        self.in_trailers = Some(status.unwrap_or_else(Status::unreadable));
        true
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
        let has_end = rules.form.end_flag().is_some();
        if self.foreign.is_some() || (self.fault.is_some() && !has_end) {
            *rest = &[];
            return None;
        }
        while !self.is_too_large && self.splitter.next(rest) {
            // After a wrong message, only the status matters.
            if self.take_end(rules) || self.fault.is_some() {
                continue;
            }
            self.messages += 1;
            if self.in_trailers.is_some() {
                self.fail("no message after the status", "one more".to_owned());
            } else if let Some(answered) = self.answered(rules) {
                return Some(answered);
            }
        }
        None
    }

    /// Returns the message that has arrived. `None` if it cannot be read.
    fn answered(&mut self, rules: &GrpcRules) -> Option<Answered> {
        let part = self.splitter.part();
        let flag = part.name.first().copied().unwrap_or(0);
        if flag > COMPRESSED {
            self.fail(
                "the flag 0 or 1 before the message",
                format!("the flag {flag}"),
            );
            return None;
        }
        let plain = self.plain(rules.form, part.data, flag == COMPRESSED, KEPT_MAX);
        let plain = match plain.map(Cow::into_owned) {
            Ok(plain) => plain,
            Err(unread) => {
                self.is_too_large |= unread.is_too_large;
                if !unread.is_too_large {
                    self.fail("a message that can be decompressed", unread.found);
                }
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
        if rules.form == Form::ConnectUnary && !self.is_expired {
            self.read_whole(rules);
        }
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
        let number = status.number;
        wrong(
            number,
            status.words(rules.method.as_ref().map(Method::schema)),
        )
    }
}

fn undecodable(form: Form, coding: &str, bytes: usize, error: &CodingError) -> String {
    match error {
        CodingError::Unknown(_) | CodingError::Many(_) => {
            let (header, coding) = (form.encoding(), quoted(coding));
            format!("`{header}: {coding}`, which is not supported")
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

#[cfg(test)]
mod tests;
