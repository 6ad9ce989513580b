//! The HTTP steps before and after GraphQL: CORS, methods, the page, CSRF, limits, the body, the time limit,
//! compression, and the accounting.

use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use chassis::{ClientNetwork, Work};
use gateway_extensions::StageRequest;
use gateway_telemetry::Active;
use graphql_http::Negotiated;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode, request::Parts};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use crate::graphql::pipeline;
use crate::http::account::{Account, Recorder};
use crate::http::detached::DetachOnDrop;
use crate::http::entrance::Entrance;
use crate::http::observed::Observed;
use crate::http::outgoing::{self, Outgoing};
use crate::http::reply::{self, Reply};
use crate::http::spans::Traced;
use crate::http::summary::Summary;
use crate::http::{compression, csrf, page, received_body};
use crate::merged::rest;
use crate::process::clock;
use crate::process::generation::Generation;
use crate::process::worker_state::WorkerState;

/// Time limit of a request if its configured limit is larger than the clock allows.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// The state of one worker that its HTTP requests share.
pub(crate) struct Front {
    recorder: Rc<Recorder>,
    /// Permits for the compression of large responses.
    compressing: Semaphore,
}

impl Front {
    /// Creates the state of a new worker.
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self {
            recorder: Rc::new(recorder),
            compressing: Semaphore::new(compression::PLACES),
        }
    }
}

/// Responds to a request at the GraphQL endpoint or at a REST endpoint. `serving` is the view at the time of
/// the request's arrival.
pub(crate) async fn respond(
    front: &Front,
    serving: Rc<WorkerState>,
    entrance: Entrance,
    peer: Option<IpAddr>,
    permit: Option<Work>,
    mut parts: Box<Parts>,
    body: Incoming,
) -> Response<Outgoing> {
    gateway_hop::end_connection_headers(&mut parts.headers);
    let cors = &serving.generation.cors;
    if parts.method == Method::OPTIONS {
        // A preflight is not a GraphQL request, so it is neither counted nor logged.
        return outgoing::response(cors.preflight(&parts.headers));
    }
    // Both values are needed after `parts` has moved into the work.
    let origin = parts.headers.get(header::ORIGIN).cloned();
    let accept_encoding = parts.headers.get(header::ACCEPT_ENCODING).cloned();
    let logs_disconnect = serving
        .generation
        .config
        .supergraph
        .experimental_log_on_broken_pipe;
    let mut account = Account::open(Rc::clone(&front.recorder), peer, &parts, logs_disconnect);
    account.ids = serving.generation.extensions.log_ids();
    account.traced = Traced::begin(&serving.generation, entrance, &parts, peer);
    let observed = Observed::begin(&serving, entrance, &parts, peer, account.traced.as_mut());
    let trace = account.traced.as_ref().map(|it| it.active.clone());
    let csrf = &serving.generation.config.csrf;
    let early = match entrance {
        Entrance::Graphql => early(&serving.generation, &parts.method, &parts.headers),
        Entrance::Rest => rest::early(csrf, &parts.method, &parts.headers),
    };
    let mut reply = match (early, permit) {
        // Boxed, because work without a client must move to a task of its own.
        (None, Some(permit)) => {
            let is_cancelled = serving.generation.config.supergraph.early_cancel;
            let serving = Rc::clone(&serving);
            // Allocated first: a future that is created before is created on the stack and moved. It has 8
            // KB, and a request uses a tenth of it.
            let place = Box::new_uninit();
            let work = Box::write(place, async move {
                // Pinned in place: awaiting the future by value would copy 5 KB.
                let limited = pin!(within_time(
                    serving, entrance, parts, trace, body, peer, observed
                ));
                let (reply, mut summary) = limited.await;
                // Held until the end of the work, even if the client has disconnected.
                match &mut summary.rest {
                    Some(rest) => rest.hold_work(permit),
                    None => drop(permit),
                }
                (reply, summary)
            });
            let work = Box::into_pin(work);
            let (reply, summary) = DetachOnDrop::new(work, is_cancelled).await;
            account.summary = summary;
            reply
        }
        (early, _) => {
            account.summary.observed = observed;
            early.unwrap_or_else(reply::connection_is_busy)
        }
    };
    // The order matters. A stage may have set any header, so the gateway's own headers come after it.
    // Compression comes last, when the body is final.
    reply::strip_connection_headers(&mut reply.headers);
    cors.mark(origin.as_ref(), &mut reply.headers);
    if let Some((name, value)) = trace_header(&serving, account.traced.as_ref()) {
        reply.headers.insert(name, value);
    }
    if let Some(observed) = account.summary.observed.take() {
        observed.answered(&serving, account.traced.as_mut(), &reply);
    }
    if let Some(rest) = account.summary.rest.take() {
        // Parts are not compressed. Compression would delay them or gain little.
        let first = std::mem::take(&mut reply.body);
        let status = reply.status;
        let body = Outgoing::parts(first, *rest, account, status);
        return outgoing::response(reply).map(|_| body);
    }
    let give_way = async || tokio::task::yield_now().await;
    let places = &front.compressing;
    compression::compress(accept_encoding.as_ref(), &mut reply, places, give_way).await;
    account.close(reply.status);
    outgoing::response(reply)
}

/// The response header with the id of the trace, if one is configured.
fn trace_header(
    serving: &WorkerState,
    traced: Option<&Traced>,
) -> Option<(HeaderName, HeaderValue)> {
    let tracer = serving.generation.exports.tracer.as_ref()?;
    tracer.told(traced?.active.id())
}

/// Responses that need neither the body nor a permit.
fn early(generation: &Generation, method: &Method, headers: &HeaderMap) -> Option<Reply> {
    if method != Method::POST && method != Method::GET {
        let mut reply = reply::error(
            StatusCode::METHOD_NOT_ALLOWED,
            "GraphQL only supports GET and POST requests.",
            "METHOD_NOT_ALLOWED",
        );
        let allow = HeaderValue::from_static("GET, POST, OPTIONS");
        reply.headers.insert(header::ALLOW, allow);
        return Some(reply);
    }
    if method == Method::GET && generation.page_is_offered {
        let accept = headers.get_all(header::ACCEPT).iter();
        let negotiated = graphql_http::negotiate(accept.map(HeaderValue::as_bytes), true);
        if negotiated == Some(Negotiated::Page) {
            return Some(page::page());
        }
    }
    csrf::refusal(&generation.config.csrf, headers)
}

/// The whole work for a request, within its time limit.
async fn within_time(
    serving: Rc<WorkerState>,
    entrance: Entrance,
    parts: Box<Parts>,
    trace: Option<Active>,
    body: Incoming,
    peer: Option<IpAddr>,
    observed: Option<Box<Observed>>,
) -> (Reply, Summary) {
    let limit = serving.generation.config.traffic_shaping.router.timeout.0;
    let now = clock::now();
    // A limit beyond the range of the clock is no limit.
    let deadline = now.checked_add(limit).unwrap_or(now + FOR_EVER);
    let mut summary = Summary {
        parts_until: (entrance == Entrance::Graphql).then_some(deadline),
        address: peer.and_then(|peer| ClientNetwork::at(peer).counted_address()),
        observed,
        ..Summary::default()
    };
    // The summary lives outside of the limited work, so that the log of a timed-out request contains all
    // facts known until then. The limit includes the body, so a slow sender cannot stay.
    let worked = {
        // Pinned in place: passing the future to the timeout by value would copy 7 KB.
        let work = pin!(work(&serving, entrance, parts, trace, body, &mut summary));
        tokio::time::timeout_at(deadline.into(), work).await
    };
    let reply = match worked {
        Ok(reply) => reply,
        Err(_) => {
            // A stage may have delayed the first part.
            summary.rest = None;
            reply::timed_out()
        }
    };
    (reply, summary)
}

async fn work(
    serving: &Rc<WorkerState>,
    entrance: Entrance,
    parts: Box<Parts>,
    trace: Option<Active>,
    body: Incoming,
    summary: &mut Summary,
) -> Reply {
    log::debug!("a request begins");
    let admission = &serving.generation.admission;
    if let Err(refusal) = admission.look(clock::now) {
        return *refusal;
    }
    let limit = serving.generation.config.limits.http_max_request_bytes;
    let body = match received_body::read(&parts.headers, body, limit).await {
        Ok(body) => body,
        Err(refusal) => return *refusal,
    };
    // Held until the end of the work, even if the client has disconnected.
    let permit = match admission.enter(clock::now) {
        Ok(permit) => permit,
        Err(refusal) => return *refusal,
    };
    let mut parts = *parts;
    let body = match received_body::expand(&mut parts.headers, body, limit).await {
        Ok(body) => body,
        Err(refusal) => return *refusal,
    };
    let mut request = StageRequest {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        body,
    };
    let reply = match entrance {
        Entrance::Graphql => pipeline::serve(serving, &mut request, trace, summary).await,
        // Boxed, so that requests to the GraphQL endpoint do not reserve memory for it.
        Entrance::Rest => Box::pin(rest::serve(serving, &mut request, trace, summary)).await,
    };
    if let Some(rest) = &mut summary.rest {
        rest.hold_permit(permit);
    }
    reply
}
