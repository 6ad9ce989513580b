//! From what a lab says is sent to what the load engine sends.

use lab::{CapturePlace, Expect, LabRequest, LabStep};
use load::{
    BodyRule, Capture, CaptureFrom, Data, Expectation, Protocol, Range, Request, RowOrder,
    StatusRule, Step, Trust, Version,
};

/// How a lab speaks with a target that is spoken to over TLS or in the clear.
pub(crate) fn protocol(asked: &lab::Protocol, is_encrypted: bool) -> Protocol {
    let trust = match &asked.trust {
        lab::Trust::System => Trust::System,
        lab::Trust::Authorities(text) => Trust::Authorities(text.clone()),
        lab::Trust::Anybody => Trust::Anybody,
    };
    Protocol {
        version: asked
            .http2_streams
            .map_or(Version::Http1, |streams| Version::Http2 { streams }),
        tls: is_encrypted.then_some(trust),
    }
}

/// A request with what its answers must look like, `usual` where it says nothing of its own.
pub(crate) fn request(asked: &LabRequest, usual: &Expect) -> Request {
    Request {
        method: asked.method.clone(),
        path: asked.path.clone(),
        headers: asked.headers.clone(),
        body: asked.body.clone(),
        expect: expectation(asked.expect.as_ref().unwrap_or(usual)),
        weight: asked.weight,
    }
}

/// What an answer must look like, as far as it is known without one.
pub(crate) fn expectation(expect: &Expect) -> Expectation {
    Expectation {
        status: expect
            .status
            .map_or(StatusRule::Success, StatusRule::Exactly),
        graphql: expect.graphql_no_errors,
        body: expect
            .body
            .as_ref()
            .map_or(BodyRule::Any, |body| BodyRule::known(body, &expect.ignore)),
        headers: expect.headers.clone(),
    }
}

/// The steps of a scenario, with the names of their requests.
pub(crate) fn steps(requests: &[LabRequest], steps: &[LabStep]) -> Vec<Step> {
    requests
        .iter()
        .zip(steps)
        .map(|(request, step)| Step {
            name: request.name.clone(),
            pause: step.pause,
            captures: step.captures.iter().map(capture).collect(),
        })
        .collect()
}

fn capture(capture: &lab::LabCapture) -> Capture {
    Capture {
        name: capture.name.clone(),
        from: match &capture.from {
            CapturePlace::Json(pointer) => CaptureFrom::Json(pointer.clone()),
            CapturePlace::Header(name) => CaptureFrom::Header(name.clone()),
            CapturePlace::Body => CaptureFrom::Body,
        },
        pattern: capture.pattern.clone(),
    }
}

/// What places stand for that differ from request to request.
pub(crate) fn data(data: Option<&lab::Data>, seed: u64) -> Data {
    let nothing = lab::Data::default();
    let data = data.unwrap_or(&nothing);
    Data {
        columns: data.table.columns.clone(),
        rows: data.table.rows.clone(),
        ranges: data
            .ranges
            .iter()
            .map(|range| Range {
                name: range.name.clone(),
                from: range.from,
                to: range.to,
            })
            .collect(),
        order: if data.is_random {
            RowOrder::Random
        } else {
            RowOrder::Rotation
        },
        seed,
    }
}
