//! Calls of gRPC as they are rendered and encoded.
//!
//! A call is rendered like a request: its head, and the JSON of its messages instead of a body. Templates
//! therefore serve both, and a kept failure shows the messages as JSON. The bytes of the messages are made
//! from the filled-in JSON. `check/grpc.rs` reads the answers.

use std::sync::Arc;

use bytes::Bytes;
use grpc_schema::{CallSchema, Method, frame};
use model::{Capture, CaptureFrom, GrpcCall, PlannedMessage};

use crate::answer::Answer;
use crate::check::{GrpcRules, KEPT_MAX};
use crate::coding;
use crate::error::RequestError;
use crate::job::{Protocol, Request, Version};

/// The character between two messages of a rendered call (record separator).
const SEPARATOR: u8 = 0x1e;

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
        let other = match protocol.version {
            Version::Http1 => Some("HTTP/1.1"),
            Version::Http2 { .. } => None,
            Version::Http3 { .. } => Some("HTTP/3"),
        };
        if let Some(other) = other {
            return Err(refuse(format!("expected HTTP/2, found {other}")));
        }
        if request.method != "POST" || !request.body.is_empty() {
            return Err(refuse("expected the method POST and no body".to_owned()));
        }
        let mut names = request.headers.iter().map(|(name, _)| name);
        if let Some(name) = names.find(|name| grpc_schema::is_own_header(name)) {
            let words = format!("the generator itself writes `{name}`. Remove the metadata");
            return Err(refuse(words));
        }
        let Some(set) = call.set() else {
            let words = "the descriptors of the method are unknown: the server was not asked";
            return Err(refuse(words.to_owned()));
        };
        let method = CallSchema::read(set).and_then(|schema| schema.method(&call.method));
        let method = method.map_err(refuse)?;
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
        let mut headers = vec![
            ("Content-Type", "application/grpc".to_owned()),
            ("TE", "trailers".to_owned()),
        ];
        if let Some(limit) = self.call.deadline {
            headers.push(("grpc-timeout", grpc_schema::deadline(limit)));
        }
        if self.call.is_compressed {
            headers.push(("grpc-encoding", "gzip".to_owned()));
            headers.push(("grpc-accept-encoding", "gzip".to_owned()));
        }
        headers
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
        let mut framed = Vec::with_capacity(grpc_schema::PREFIX_BYTES + message.len());
        match self.call.is_compressed {
            true => frame(&coding::gzip(message), true, &mut framed),
            false => frame(message, false, &mut framed),
        }
        Bytes::from(framed)
    }
}

/// Removes the compression from the messages of an answer, so that it can be compared with other answers. A
/// message that cannot be decompressed stays as it is, and a check finds it.
pub(crate) fn decompress(answer: &mut Answer) {
    let Some(coding) = answer.header("grpc-encoding").map(str::to_owned) else {
        return;
    };
    let mut plain = Vec::new();
    let mut rest = answer.body.as_slice();
    while let Some((flag, message, after)) = first_message(rest) {
        rest = after;
        let content = match flag {
            1 => coding::decoded(&coding, message, KEPT_MAX),
            _ => Ok(message.to_vec()),
        };
        let Ok(content) = content else {
            return;
        };
        if plain.len() + content.len() > KEPT_MAX {
            return;
        }
        frame(&content, false, &mut plain);
    }
    if rest.is_empty() {
        answer.body = plain;
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
