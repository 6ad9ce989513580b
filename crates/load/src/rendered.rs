//! Requests as bytes, rendered once and sent a million times.

use std::ops::Range;
use std::sync::Arc;

use model::{Framing, WebSocketCall};

use crate::check::Rules;
use crate::error::RequestError;
use crate::grpc::{self, Calling};
use crate::job::{Request, Target, Version};
use crate::raw_place::RawPlace;
use crate::scenario::{Capture, CapturedValue, Wanted};
use crate::template::{Places, Source, Template};
use crate::websocket;

/// The largest length of a rotation. A longer rotation is a mistake in the weights.
const TURNS_MAX: usize = 1 << 16;

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    /// The bytes of every slot, unless they are filled in.
    bytes: Box<[u8]>,
    template: Option<Arc<Template>>,
    /// True if its response has no body, whatever the headers contain.
    pub(crate) bodiless: bool,
    pub(crate) rules: Rules,
    /// The conversation after the upgrade. The texts of its messages are the body.
    pub(crate) conversation: Option<Arc<WebSocketCall>>,
    /// The call of gRPC. The JSON of its messages is the body.
    pub(crate) calling: Option<Arc<Calling>>,
    /// The bytes of a call over HTTP/1.1, if they are the same in every slot.
    encoded: Option<Box<[u8]>>,
}

impl Rendered {
    pub(crate) fn new(
        target: &Target,
        request: &Request,
        keep_alive: bool,
        places: Option<&Places>,
    ) -> Result<Rendered, RequestError> {
        verify(target, request, places.is_some())?;
        let start = format!("{} {}", request.method, request.path);
        let mut head = format!("{start} HTTP/1.1\r\n");
        let has = |name: &str| {
            request
                .headers
                .iter()
                .any(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            line(&mut head, "Host", &target.host);
        }
        for (name, value) in &request.headers {
            line(&mut head, name, value);
        }
        // A method that usually has a body declares a missing body (RFC 9110, section 8.6).
        let expects_body = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
        let mut length = None;
        let calling = grpc::prepared(request, &target.protocol)?;
        let is_sized = calling.is_none() && !has("content-length");
        if (!request.body.is_empty() || expects_body) && is_sized {
            let digits = request.body.len().to_string();
            line(&mut head, "Content-Length", &digits);
            // A template writes the length of each filled-in body here.
            let end = head.len() - "\r\n".len();
            length = Some(end - digits.len()..end);
        }
        for (name, value) in calling.iter().flat_map(|calling| calling.headers()) {
            line(&mut head, name, &value);
        }
        if let Some(call) = &request.websocket {
            websocket::verify(call, request, &target.protocol)?;
            for (name, value) in websocket::headers(call) {
                line(&mut head, name, &value);
            }
        } else if !keep_alive && !has("connection") {
            line(&mut head, "Connection", "close");
        }
        head.push_str("\r\n");
        let calls = calling.as_ref().map(|calling| calling.rendered());
        let messages = calls.or_else(|| request.websocket.as_ref().map(websocket::rendered));
        let body = messages.as_deref().unwrap_or(&request.body);
        let template = template(&start, &head, length, body, places)?;
        if template.as_ref().is_some_and(Template::has_places_in_body) && has("content-length") {
            return Err(RequestError::LengthOfTemplate);
        }
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        let rendered = Rendered {
            bytes: bytes.into_boxed_slice(),
            template: template.map(Arc::new),
            bodiless: request.method == "HEAD",
            rules: match &request.websocket {
                None => Rules::new(&request.expect),
                Some(_) => Rules::new(&websocket::expectation(&request.expect)),
            },
            conversation: request.websocket.clone().map(Arc::new),
            calling,
            encoded: None,
        };
        rendered.encoded(target.protocol.version)
    }

    /// Encodes a call for HTTP/1.1, unless it differs from slot to slot.
    fn encoded(mut self, version: Version) -> Result<Rendered, RequestError> {
        if let (Some(calling), None, Version::Http1) = (&self.calling, &self.template, version) {
            let bytes = calling.over_http1(&self.bytes);
            self.encoded = Some(bytes.map_err(RequestError::Grpc)?.into_boxed_slice());
        }
        Ok(self)
    }

    /// Turns it into a step of a scenario. Its responses give values to later steps.
    pub(crate) fn capturing(
        mut self,
        captures: &[Capture],
        names: &[String],
        raw: &[(usize, RawPlace)],
    ) -> Result<Rendered, RequestError> {
        if self.conversation.is_some() && !captures.is_empty() {
            let reason = "no value can be captured from messages";
            return Err(RequestError::WebSocket(reason.to_owned()));
        }
        let wanted = captures.iter().map(|capture| match &mut self.rules.grpc {
            None => Wanted::new(capture, names, raw),
            Some(rules) => Wanted::new(&grpc::capture(capture, rules)?, names, raw),
        });
        self.rules.captures = wanted.collect::<Result<Arc<[_]>, _>>()?;
        Ok(self)
    }

    /// Encodes the messages of a call for every row of the data, so that a wrong row is found before the load.
    pub(crate) fn verify_rows(&self) -> Result<(), RequestError> {
        let Some(calling) = &self.calling else {
            return Ok(());
        };
        let Some(template) = &self.template else {
            let body = self.bytes.len() - calling.rendered().len();
            let encoded = calling.frames(&self.bytes[body..]);
            return encoded.map(drop).map_err(RequestError::Grpc);
        };
        let mut body = Vec::new();
        for row in 0..template.rows().max(1) {
            // Values of responses do not exist yet.
            if !template.fill_body_of_row(row, &mut body) {
                return Ok(());
            }
            calling.frames(&body).map_err(|reason| {
                let place = match template.rows() {
                    0 => String::new(),
                    _ => format!("row {} of the data: ", row + 1),
                };
                RequestError::Grpc(format!("{place}{reason}"))
            })?;
        }
        Ok(())
    }

    /// Prepares slot `index`. `buffer` contains the bytes of a template until the next slot.
    #[inline]
    pub(crate) fn fill(&self, index: u64, captured: &[CapturedValue], buffer: &mut Vec<u8>) {
        if let Some(template) = &self.template {
            template.fill(index, captured, buffer);
        }
    }

    /// The captured values that stand raw in its path, by their places in the iteration.
    pub(crate) fn raw_captures(&self) -> &[(usize, RawPlace)] {
        let template = self.template.as_deref();
        template.map_or(&[], Template::raw_captures)
    }

    /// True if the bytes differ from slot to slot.
    pub(crate) fn is_template(&self) -> bool {
        self.template.is_some()
    }

    /// Returns the bytes of the slot that `buffer` was prepared for, as HTTP/1.1 carries them. The messages of a
    /// call are encoded.
    ///
    /// # Errors
    /// If a value does not fit its field.
    pub(crate) fn over_http1(&self, buffer: &[u8]) -> Result<Vec<u8>, RequestError> {
        match (&self.encoded, &self.calling) {
            (Some(bytes), _) => Ok(bytes.to_vec()),
            (None, None) => Ok(self.bytes(buffer).to_vec()),
            (None, Some(calling)) => {
                let encoded = calling.over_http1(self.bytes(buffer));
                encoded.map_err(RequestError::Grpc)
            }
        }
    }

    /// Returns the bytes of the slot that `buffer` was prepared for.
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, buffer: &'a [u8]) -> &'a [u8] {
        match &self.template {
            None => &self.bytes,
            Some(_) => buffer,
        }
    }
}

/// Cuts a request into pieces. `length` is the place of the length in the head.
fn template(
    start: &str,
    head: &str,
    length: Option<Range<usize>>,
    body: &[u8],
    places: Option<&Places>,
) -> Result<Option<Template>, RequestError> {
    let Some(places) = places else {
        return Ok(None);
    };
    // Without a length to fill in, an empty range: the head is one piece.
    let value = length.unwrap_or(head.len()..head.len());
    let source = Source {
        start,
        before_length: &head[start.len()..value.start],
        after_length: (!value.is_empty()).then(|| &head[value.end..]),
        body,
    };
    Template::new(&source, places)
}

fn line(head: &mut String, name: &str, value: &str) {
    head.push_str(name);
    head.push_str(": ");
    head.push_str(value);
    head.push_str("\r\n");
}

fn verify(target: &Target, request: &Request, has_places: bool) -> Result<(), RequestError> {
    if !is_token(&request.method) {
        return Err(RequestError::Method(request.method.clone()));
    }
    // A raw value at its begin has the slash, which is checked with the value.
    let is_path = request.path.starts_with('/')
        || (has_places && request.path.starts_with("{{raw:"))
        || request.path == "*";
    if !is_path
        || request
            .path
            .bytes()
            .any(|byte| byte <= b' ' || byte == 0x7f)
    {
        return Err(RequestError::Path(request.path.clone()));
    }
    let host = ("Host".to_owned(), target.host.clone());
    for (name, value) in request.headers.iter().chain([&host]) {
        if !is_token(name) {
            return Err(RequestError::HeaderName(name.clone()));
        }
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(RequestError::HeaderValue {
                name: name.clone(),
                value: value.clone(),
            });
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(RequestError::TransferEncoding);
        }
        if name.eq_ignore_ascii_case("content-length")
            && value.trim() != request.body.len().to_string()
        {
            return Err(RequestError::ContentLength {
                body_bytes: request.body.len(),
                value: value.clone(),
            });
        }
    }
    let framing = request.expect.stream.as_ref().map(|rule| rule.framing);
    if request.websocket.is_none() && framing == Some(Framing::Messages) {
        let reason = "the framing `messages` is for a URL of ws or wss, found a request of HTTP";
        return Err(RequestError::WebSocket(reason.to_owned()));
    }
    if request.weight == 0 {
        return Err(RequestError::Weight);
    }
    Ok(())
}

/// True if a text is a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The requests of a job in their weighted order.
///
/// Slot `i` sends the request of turn `i mod turns`, so the request of a slot does not depend on the number
/// of threads. Heavy requests are spread over the turns, not sent in a row.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    pub(crate) requests: Vec<Rendered>,
    turns: Vec<usize>,
}

impl Rotation {
    pub(crate) fn new(requests: Vec<Rendered>, turns: Vec<usize>) -> Rotation {
        Rotation { requests, turns }
    }

    /// Returns the index of the request of a slot.
    #[inline]
    pub(crate) fn pick(&self, slot: u64) -> usize {
        match self.turns.len() {
            // A division costs more than the rest of this function.
            1 => self.turns[0],
            turns => {
                let turn = slot % turns as u64;
                self.turns[usize::try_from(turn).expect("less than the length of a list")]
            }
        }
    }
}

/// Returns the order of a smooth weighted round robin. At each turn every request gains its weight as credit.
/// The request with the most credit is served, and pays the sum of all weights.
pub(crate) fn turns(weights: &[u32]) -> Option<Vec<usize>> {
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor);
    // The divisor is 0 only if all weights are 0, and then the sum is refused below.
    let weights: Vec<i64> = weights
        .iter()
        .map(|weight| i64::from(weight / divisor.max(1)))
        .collect();
    let sum: i64 = weights.iter().sum();
    let length = usize::try_from(sum)
        .ok()
        .filter(|sum| (1..=TURNS_MAX).contains(sum))?;
    let mut credits = vec![0; weights.len()];
    let mut turns = Vec::with_capacity(length);
    for _ in 0..length {
        let mut served = 0;
        for index in 0..weights.len() {
            credits[index] += weights[index];
            // Not `>=`: the first of equal credits is served, so a rotation is equal on every run.
            if credits[index] > credits[served] {
                served = index;
            }
        }
        credits[served] -= sum;
        turns.push(served);
    }
    Some(turns)
}

fn greatest_common_divisor(left: u32, right: u32) -> u32 {
    if right == 0 {
        left
    } else {
        greatest_common_divisor(right, left % right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Address, Expectation, Protocol};

    fn target() -> Target {
        Target {
            address: Address::Unix("/nowhere".into()),
            host: "example.test".to_owned(),
            protocol: Protocol::default(),
        }
    }

    fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request {
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: body.as_bytes().to_vec(),
            expect: Expectation::default(),
            websocket: None,
            grpc: None,
            weight: 1,
        }
    }

    fn check(request: &Request, keep_alive: bool) -> String {
        match Rendered::new(&target(), request, keep_alive, None) {
            Ok(rendered) => String::from_utf8_lossy(rendered.bytes(&[])).replace('\r', ""),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_request_gets_host_and_length_where_they_are_missing() {
        insta::assert_snapshot!(check(&request("POST", "/graphql", &[("Content-Type", "application/json")], "{}"), true), @"
        POST /graphql HTTP/1.1
        Host: example.test
        Content-Type: application/json
        Content-Length: 2

        {}
        ");
        insta::assert_snapshot!(check(&request("GET", "/a?b", &[("host", "other")], ""), false), @"
        GET /a?b HTTP/1.1
        host: other
        Connection: close
        ");
        insta::assert_snapshot!(check(&request("POST", "/", &[("content-length", "0")], ""), true), @"
        POST / HTTP/1.1
        Host: example.test
        content-length: 0
        ");
    }

    #[test]
    fn what_would_break_the_request_is_refused() {
        insta::assert_snapshot!(check(&request("GE T", "/", &[], ""), true), @"error: expected a method such as `GET`, found `GE T`");
        insta::assert_snapshot!(check(&request("GET", "/a b", &[], ""), true), @"error: expected a path that starts with `/` and has no spaces or control characters, found `/a b`. Encode such characters, for example as %20");
        insta::assert_snapshot!(check(&request("GET", "/", &[("a b", "")], ""), true), @"error: expected a header name such as `Content-Type`, found `a b`");
        insta::assert_snapshot!(check(&request("GET", "/", &[("a", "b\r\nc: d")], ""), true).replace('\r', ""), @"
        error: header `a`: expected a value on one line, found `b
        c: d`
        ");
        insta::assert_snapshot!(check(&request("GET", "/", &[("Content-Length", "7")], "body"), true), @"error: header `Content-Length`: the body has 4 bytes, found `7`. Remove the header");
        insta::assert_snapshot!(check(&request("GET", "/", &[("Transfer-Encoding", "chunked")], ""), true), @"error: header `Transfer-Encoding`: bodies are sent with their length. Remove the header");
    }

    #[test]
    fn heavy_requests_are_spread_over_the_turn() {
        assert_eq!(turns(&[1]), Some(vec![0]));
        assert_eq!(turns(&[10, 10]), Some(vec![0, 1]));
        assert_eq!(turns(&[5, 1, 1]), Some(vec![0, 0, 1, 0, 2, 0, 0]));
        assert_eq!(turns(&[100_000, 1]), None);
    }
}
