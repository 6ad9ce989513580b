//! From what a lab says is sent to what the load engine sends.

use lab::{Expect, RequestTemplate};
use load::Request;
use model::Data;

/// A request with what its answers must look like, `usual` where it says nothing of its own.
pub(crate) fn request(asked: &RequestTemplate, usual: &Expect) -> Request {
    Request {
        method: asked.method.clone(),
        path: asked.path.clone(),
        headers: asked.headers.clone(),
        body: asked.body.clone(),
        expect: asked.expect.as_ref().unwrap_or(usual).answer.clone(),
        weight: asked.weight,
    }
}

/// What places stand for that differ from request to request, drawn with the seed of the run.
pub(crate) fn data(data: Option<&Data>, seed: u64) -> Data {
    Data {
        seed,
        // A lab without data still has a seed, which random places draw from.
        ..data.cloned().unwrap_or_default()
    }
}
