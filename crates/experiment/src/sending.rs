//! Converts the requests of a lab to requests of the load engine.

use std::sync::Arc;
use std::time::Duration;

use lab::{Expect, RequestTemplate};
use load::{Request, Target};
use model::{Data, InvalidKind};

use crate::invalid::Invalid;

/// A request with its expectation. `usual` applies if the request has no expectation.
pub fn request(asked: &RequestTemplate, usual: &Expect) -> Request {
    let mut expect = asked.expect.as_ref().unwrap_or(usual).answer.clone();
    expect.stream.clone_from(&asked.stream);
    expect.grpc = asked.grpc.as_ref().map(model::GrpcCall::rule);
    Request {
        method: asked.method.clone(),
        path: asked.path.clone(),
        headers: asked.headers.clone(),
        body: asked.body.clone(),
        expect,
        websocket: asked.websocket.clone(),
        grpc: asked.grpc.clone(),
        weight: asked.weight,
    }
}

/// Like [`request`], with descriptors from the server if the lab asks for that.
///
/// # Errors
/// If the server does not describe the method, or if the call does not fit it.
pub(crate) fn resolved(
    asked: &RequestTemplate,
    usual: &Expect,
    target: &Target,
    limit: Duration,
) -> Result<Request, Invalid> {
    let mut request = request(asked, usual);
    load::resolve(&mut request, target, limit).map_err(|reason| {
        let words = format!("request `{}`: {reason}", asked.name);
        Invalid::new(InvalidKind::NotProven, words)
    })?;
    Ok(request)
}

/// Gives a call the descriptors that the target gave to another generator.
///
/// # Errors
/// If the descriptors of a call are missing, or do not have its method.
pub(crate) fn describe(
    request: &mut Request,
    name: &str,
    given: Option<&[u8]>,
) -> Result<(), Invalid> {
    let call = request.grpc.as_ref();
    if call.is_none_or(|call| call.set().is_some()) {
        return Ok(());
    }
    let described = match given {
        Some(set) => load::describe(request, Arc::from(set)),
        None => Err("the first generator sent no descriptors".to_owned()),
    };
    described.map_err(|reason| {
        let words = format!("request `{name}`: {reason}");
        Invalid::new(InvalidKind::LoadFailed, words)
    })
}

/// The values of placeholders that differ from request to request, drawn with the seed of the run.
pub fn data(data: Option<&Data>, seed: u64) -> Data {
    Data {
        seed,
        // A lab without data still has a seed for random placeholders.
        ..data.cloned().unwrap_or_default()
    }
}
