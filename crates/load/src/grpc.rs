//! Calls of gRPC, gRPC-Web and Connect as they are rendered and encoded.
//!
//! A call is rendered like a request: its head, and the JSON of its messages instead of a body. Templates
//! therefore serve both, and a kept failure shows the messages as JSON. The bytes of the messages are made
//! from the filled-in JSON. `check/grpc.rs` reads the answers.

use std::sync::Arc;

use bytes::Bytes;
use grpc_schema::{CallSchema, Method, frame};
use model::{Capture, CaptureFrom, GrpcCall, PlannedMessage, RpcProtocol};

use crate::answer::Answer;
use crate::call_form::{COMPRESSED, END_MAX, Form, end_message, trailer_lines};
use crate::check::{GrpcRules, KEPT_MAX};
use crate::coding;
use crate::error::RequestError;
use crate::job::{Protocol, Request, Version};

/// The character between two messages of a rendered call (record separator).
const SEPARATOR: u8 = 0x1e;

/// The largest time limit in a call of Connect: ten digits.
const CONNECT_TIMEOUT_MAX_MS: u128 = 9_999_999_999;

/// Refuses a call that its protocol cannot carry over this version of HTTP.
fn refuse_form(call: &GrpcCall, method: &Method, version: Version) -> Result<(), String> {
    let (word, name) = (call.protocol.word(), &call.method);
    if call.protocol == RpcProtocol::GrpcWeb && method.takes_several() {
        return Err(format!(
            "`{name}` takes a stream of messages, and `{word}` sends one message. Use `grpc`, or `connect`"
        ));
    }
    if version == Version::Http1 && method.takes_several() && method.answers_several() {
        return Err(format!(
            "`{name}` has a stream of messages and a stream of answers, which `{word}` cannot send over HTTP/1.1. \
             Use HTTP/2"
        ));
    }
    if call.is_spaced() && !matches!(version, Version::Http2 { .. }) {
        let version = version.name();
        return Err(format!(
            "messages with times or replies need HTTP/2, found `{word}` over {version}"
        ));
    }
    Ok(())
}

/// The headers of HTTP that a call of Connect writes, because its one message is the body.
fn is_of_body(call: &GrpcCall, form: Form, name: &str) -> bool {
    let is_own = |own: &str| name.eq_ignore_ascii_case(own);
    form == Form::ConnectUnary
        && (is_own(form.encoding()) || (call.is_compressed && is_own(form.accepted_encoding())))
}

/// A call, ready to be sent with any values.
#[derive(Clone, Debug)]
pub(crate) struct Calling {
    pub(crate) call: GrpcCall,
    pub(crate) method: Method,
}

impl Calling {
    /// Prepares a call.
    ///
    /// # Errors
    /// If the call cannot be sent.
    pub(crate) fn new(
        call: &GrpcCall,
        request: &Request,
        protocol: &Protocol,
    ) -> Result<Calling, RequestError> {
        let refuse = |reason: String| RequestError::Grpc(reason);
        let is_http2 = matches!(protocol.version, Version::Http2 { .. });
        if call.protocol.needs_http2() && !is_http2 {
            let found = protocol.version.name();
            return Err(refuse(format!("expected HTTP/2, found {found}")));
        }
        if request.method != "POST" || !request.body.is_empty() {
            return Err(refuse("expected the method POST and no body".to_owned()));
        }
        let Some(set) = call.set() else {
            let words = "the descriptors of the method are unknown: the server was not asked";
            return Err(refuse(words.to_owned()));
        };
        let method = CallSchema::read(set).and_then(|schema| schema.method(&call.method));
        let method = method.map_err(refuse)?;
        refuse_form(call, &method, protocol.version).map_err(refuse)?;
        let form = Form::of(call.protocol, Some(&method));
        let is_own = |name: &str| grpc_schema::is_own_header(name) || is_of_body(call, form, name);
        let mut names = request.headers.iter().map(|(name, _)| name);
        if let Some(name) = names.find(|name| is_own(name)) {
            let words = format!("the generator itself writes `{name}`. Remove the metadata");
            return Err(refuse(words));
        }
        let endless = |message: &PlannedMessage| message.every.is_some() && message.count.is_none();
        if call.hold.is_none() && call.messages.iter().any(endless) {
            let words = "a repeated message needs a count, or a hold as its end";
            return Err(refuse(words.to_owned()));
        }
        let is_one = call.messages.len() == 1 && call.messages[0].every.is_none();
        if !method.takes_several() && !is_one {
            return Err(refuse(format!(
                "`{}` takes one message, found {}",
                call.method,
                call.messages.len()
            )));
        }
        let call = call.clone();
        Ok(Calling { call, method })
    }

    /// Returns the headers of the call.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let form = self.form();
        let mut headers = vec![("Content-Type", form.content_type().to_owned())];
        if form == Form::Grpc {
            headers.push(("TE", "trailers".to_owned()));
        }
        if let Some((name, value)) = self.call.protocol.mark() {
            headers.push((name, value.to_owned()));
        }
        match (self.call.deadline, self.call.protocol) {
            (None, _) => {}
            (Some(limit), RpcProtocol::Connect) => {
                let ms = limit.as_millis().clamp(1, CONNECT_TIMEOUT_MAX_MS);
                headers.push(("Connect-Timeout-Ms", ms.to_string()));
            }
            (Some(limit), RpcProtocol::Grpc | RpcProtocol::GrpcWeb) => {
                headers.push(("grpc-timeout", grpc_schema::deadline(limit)));
            }
        }
        if self.call.is_compressed {
            headers.push((form.encoding(), "gzip".to_owned()));
            headers.push((form.accepted_encoding(), "gzip".to_owned()));
        }
        headers
    }

    /// The form of the call and its answers.
    fn form(&self) -> Form {
        Form::of(self.call.protocol, Some(&self.method))
    }

    /// Returns the JSON of the messages, as the body of a template.
    pub(crate) fn rendered(&self) -> Vec<u8> {
        let messages = self.call.messages.iter();
        let parts: Vec<&[u8]> = messages.map(|message| message.text().as_bytes()).collect();
        parts.join(&SEPARATOR)
    }

    /// Returns the messages with their prefixes, from their filled-in JSON.
    ///
    /// # Errors
    /// The first field that does not fit its message.
    pub(crate) fn frames(&self, filled: &[u8]) -> Result<Vec<Bytes>, String> {
        if self.call.messages.is_empty() {
            return Ok(Vec::new());
        }
        let parts: Vec<&[u8]> = filled.split(|byte| *byte == SEPARATOR).collect();
        if parts.len() != self.call.messages.len() {
            return Err("a value in a message contains the character U+001E".to_owned());
        }
        let is_alone = parts.len() == 1;
        let framed = parts.iter().enumerate().map(|(index, part)| {
            let text = std::str::from_utf8(part)
                .map_err(|_| "a message contains bytes that are not UTF-8".to_owned())?;
            let message = self.method.encode(text).map_err(|unfit| match is_alone {
                true => format!("the message does not fit: {unfit}"),
                false => format!("message {} does not fit: {unfit}", index + 1),
            })?;
            Ok(self.framed(&message))
        });
        framed.collect()
    }

    fn framed(&self, message: &[u8]) -> Bytes {
        let packed = self.call.is_compressed.then(|| coding::gzip(message));
        let content = packed.as_deref().unwrap_or(message);
        if self.form() == Form::ConnectUnary {
            return Bytes::copy_from_slice(content);
        }
        let mut framed = Vec::with_capacity(grpc_schema::PREFIX_BYTES + content.len());
        frame(content, packed.is_some(), &mut framed);
        Bytes::from(framed)
    }

    /// Returns a rendered call as the bytes of HTTP/1.1: its head with the length of its body, and the body.
    ///
    /// # Errors
    /// As [`Calling::frames`].
    pub(crate) fn over_http1(&self, rendered: &[u8]) -> Result<Vec<u8>, String> {
        const END: &[u8] = b"\r\n\r\n";
        let lines = rendered.windows(END.len()).position(|part| part == END);
        let lines = lines.ok_or("expected a whole head")?;
        let body = self.frames(&rendered[lines + END.len()..])?.concat();
        let length = format!("\r\nContent-Length: {}\r\n\r\n", body.len());
        Ok([&rendered[..lines], length.as_bytes(), &body].concat())
    }

    /// Turns an answer into its form without compression and, for gRPC-Web, without the trailers in its body.
    pub(crate) fn plain(&self, answer: &mut Answer) {
        match self.form() {
            // The body has a content coding of HTTP.
            Form::ConnectUnary => {}
            form => {
                decompress(answer, form);
                separate_trailers(answer, form);
            }
        }
    }

    /// Gives an answer that the deadline has cut the status 4 (DEADLINE_EXCEEDED), as a client does.
    pub(crate) fn expire(&self, answer: &mut Answer) {
        let error = r#"{"code":"deadline_exceeded"}"#;
        let form = self.form();
        answer.status = 200;
        match form {
            Form::Grpc => {
                answer.trailers = vec![("grpc-status".to_owned(), "4".to_owned())];
                return;
            }
            Form::ConnectUnary => {
                answer.status = 504;
                answer.body = error.as_bytes().to_vec();
            }
            Form::Web => answer.body = end_message(form, "grpc-status: 4\r\n"),
            Form::ConnectStream => {
                answer.body = end_message(form, &format!(r#"{{"error":{error}}}"#));
            }
        }
        let kind = match form {
            Form::ConnectUnary => "application/json",
            _ => form.content_type(),
        };
        answer.headers = vec![("content-type".to_owned(), kind.to_owned())];
    }
}

/// Removes the compression from the messages of an answer, so that it can be compared with other answers. A
/// message that cannot be decompressed stays as it is, and a check finds it.
fn decompress(answer: &mut Answer, form: Form) {
    let Some(coding) = answer.header(form.encoding()).map(str::to_owned) else {
        return;
    };
    let mut plain = Vec::new();
    let mut rest = answer.body.as_slice();
    while let Some((flag, message, after)) = first_message(rest) {
        rest = after;
        let content = match flag & COMPRESSED {
            0 => Ok(message.to_vec()),
            _ => coding::decoded(&coding, message, KEPT_MAX),
        };
        let Ok(content) = content else {
            return;
        };
        if plain.len() + content.len() > KEPT_MAX {
            return;
        }
        let at = plain.len();
        frame(&content, false, &mut plain);
        plain[at] = flag & !COMPRESSED;
    }
    if rest.is_empty() {
        answer.body = plain;
    }
}

/// Moves the trailers of gRPC-Web out of the body, so that it can be compared with other answers. Trailers in
/// another place stay there, and a check finds them.
fn separate_trailers(answer: &mut Answer, form: Form) {
    if form != Form::Web {
        return;
    }
    // Trailers of HTTP are no trailers of gRPC-Web.
    answer.trailers.clear();
    let mut rest = answer.body.as_slice();
    while let Some((flag, message, after)) = first_message(rest) {
        if Some(flag) != form.end_flag() {
            rest = after;
            continue;
        }
        let is_alone = after.is_empty() && message.len() <= END_MAX;
        if is_alone && let Ok(lines) = trailer_lines(message) {
            let bytes = answer.body.len() - rest.len();
            answer.trailers = lines;
            answer.body.truncate(bytes);
        }
        return;
    }
}

/// Returns the first message of a body with its flag, and the bytes after it.
pub(crate) fn first_message(body: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (prefix, rest) = body.split_at_checked(grpc_schema::PREFIX_BYTES)?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    let (message, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((prefix[0], message, after))
}

/// Returns a capture with the names of JSON. Answers are then decoded.
///
/// # Errors
/// If no answer has such a field.
pub(crate) fn capture(capture: &Capture, rules: &mut GrpcRules) -> Result<Capture, RequestError> {
    let from = match (&capture.from, rules.method()) {
        (CaptureFrom::Json(pointer), Some(method)) => {
            let name = &capture.name;
            let wrong = |reason: String| RequestError::Grpc(format!("capture `{name}`: {reason}"));
            CaptureFrom::Json(method.pointer(pointer).map_err(wrong)?)
        }
        (other, _) => other.clone(),
    };
    if !matches!(from, CaptureFrom::Header(_)) {
        rules.decode();
    }
    Ok(Capture {
        from,
        ..capture.clone()
    })
}

/// Returns the call of a request. `None` for another request.
///
/// # Errors
/// If the call cannot be sent.
pub(crate) fn prepared(
    request: &Request,
    protocol: &Protocol,
) -> Result<Option<Arc<Calling>>, RequestError> {
    let Some(call) = &request.grpc else {
        return Ok(None);
    };
    Calling::new(call, request, protocol).map(|calling| Some(Arc::new(calling)))
}
