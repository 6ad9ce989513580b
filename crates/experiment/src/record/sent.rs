//! Sent requests in the form of a recording.

use lab::{Certificates, Lab, RequestTemplate, Variant};
use model::{GrpcCall, micros};
use recording::{ProtocolText, RequestText};

use crate::digest::sha256;
use crate::secrets;

/// Maximum length of a body that is kept as text, in bytes.
const BODY_KEPT: usize = 64 * 1024;

pub(super) fn empty_request() -> RequestText {
    RequestText {
        name: String::new(),
        method: String::new(),
        path: String::new(),
        headers: Vec::new(),
        body_sha256: None,
        body_bytes: 0,
        body: None,
        weight: 1,
        operations: 1,
        pause_us: 0,
        descriptors_sha256: None,
    }
}

/// The digest of the descriptors of a call, if the lab has them.
pub(crate) fn descriptors(call: Option<&GrpcCall>) -> Option<String> {
    call.and_then(GrpcCall::set).map(|set| sha256(set))
}

pub(super) fn requests_of(lab: &Lab, requests: &[RequestTemplate]) -> Vec<RequestText> {
    let text = |(index, request): (usize, &RequestTemplate)| {
        let step = lab.steps.get(index);
        RequestText {
            pause_us: step.map_or(0, |step| micros(step.pause)),
            ..text_of(request)
        }
    };
    requests.iter().enumerate().map(text).collect()
}

fn text_of(request: &RequestTemplate) -> RequestText {
    let text = RequestText {
        name: request.name.clone(),
        method: request.method.clone(),
        path: secrets::url(&request.path),
        weight: request.weight,
        operations: request.operations(),
        descriptors_sha256: descriptors(request.grpc.as_ref()),
        ..empty_request()
    };
    let calls = request.grpc.as_ref().map(|call| call.text());
    let messages = calls.or_else(|| request.websocket.as_ref().map(|call| call.text()));
    let messages = messages.as_deref().map(str::as_bytes);
    let headers = headers_of(&request.headers, request.grpc.as_ref());
    with_content(text, &headers, messages.unwrap_or(&request.body))
}

/// The headers of a request, with the header that marks the protocol of a call.
pub(super) fn headers_of(
    headers: &[(String, String)],
    call: Option<&GrpcCall>,
) -> Vec<(String, String)> {
    let mark = call.and_then(|call| call.protocol.mark());
    let mark = mark.map(|(name, value)| (name.to_owned(), value.to_owned()));
    headers.iter().cloned().chain(mark).collect()
}

/// The preparing requests that a variant receives once after each start.
pub(crate) fn prepared(variant: &Variant) -> Vec<RequestText> {
    variant.prepare.iter().map(text_of).collect()
}

/// The protocol of requests to a variant.
pub(super) fn protocol(lab: &Lab, variant: &Variant) -> ProtocolText {
    let target = variant.systems().last();
    let target = target.expect("a variant has a target");
    ProtocolText {
        // The recording contains no certificate, so it is not read here.
        client_certificate: target.is_encrypted && lab.protocol.client.is_some(),
        ..ProtocolText::from(&lab.protocol.to(target, &Certificates::default()))
    }
}

/// The protocol of requests to a variant, if it differs from the recording's protocol.
pub(crate) fn own_protocol(lab: &Lab, variant: &Variant) -> Option<ProtocolText> {
    let own = protocol(lab, variant);
    (own != protocol(lab, &lab.baseline)).then_some(own)
}

/// The requests of a variant, if they differ from the recording's requests. Otherwise empty.
pub(crate) fn own_requests(lab: &Lab, variant: &Variant) -> Vec<RequestText> {
    if variant.requests == lab.requests {
        return Vec::new();
    }
    requests_of(lab, &variant.requests)
}

/// The baseline of a variant, if it differs from the recording's baseline.
pub(crate) fn baseline_of(lab: &Lab, variant: &Variant) -> Option<String> {
    let baseline = variant.against.as_ref().unwrap_or(&variant.name);
    (*baseline != lab.baseline.name).then(|| baseline.clone())
}

pub(super) fn with_content(
    text: RequestText,
    headers: &[(String, String)],
    body: &[u8],
) -> RequestText {
    RequestText {
        headers: headers
            .iter()
            .map(|(name, value)| secrets::header(name, value))
            .collect(),
        body_sha256: (!body.is_empty()).then(|| sha256(body)),
        body_bytes: body.len() as u64,
        body: Some(body)
            .filter(|body| !body.is_empty() && body.len() <= BODY_KEPT)
            // For a body that is not text, the recording contains only the hash.
            .and_then(|body| String::from_utf8(body.to_vec()).ok()),
        ..text
    }
}
