//! Operations with an endless response: one part for each event of a subgraph.
//!
//! Opening a subscription is part of the request, with all its stages and limits. A task of its own receives
//! the events of the subgraph (`reception`), for all clients with identical requests (`sharing`). It puts the
//! events into one queue per client. The body of the response takes them out, executes the rest of the plan
//! for each event, and writes a part (see `parts`). If the client disconnects, the body and the queue are
//! dropped. After the last client, the task unsubscribes at the subgraph.
//!
//! A reload ends all subscriptions of the old generation. Clients then subscribe again. Otherwise the old
//! schema would stay in memory for as long as the slowest client. A stop ends subscriptions at its beginning.

pub(crate) mod callback;
pub(crate) mod completion_turns;
mod feed;
mod format;
pub(crate) mod opened;
mod queue;
mod reception;
mod reconnects;
pub(crate) mod shares;
pub(crate) mod sharing;
mod socket;
mod subscribe_request;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::stream;
use gateway_config::{EventSource, Subscription};
use gateway_extensions::{Exchange, JWT_CLAIMS, PartOf};
use gateway_federation::{
    GraphqlError, Prepared, SUBSCRIPTION_DISABLED, SubgraphAnswer, SubgraphRequest, Variables,
};
use graphql_http::{EventFormat, Media, event_format};
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::graphql::subgraphs;
use crate::http::reply::{self, Reply};
use crate::http::summary::Summary;
use crate::process::clock;
use crate::process::worker_state::WorkerState;
use crate::stream::parts::BodyTail;
use feed::{Answering, Feed};
use opened::Opened;
use reception::receive;
use sharing::{Client, Key, Receiver};
use subscribe_request::{SubscribeRequest, headers_weight};

/// The context entry with the payload of `connection_init`. A stage sets it.
const CONNECTION_PARAMETERS: &str = "apollo.subscription.custom_connection_params";

/// The event format that a client accepts, if any.
pub(crate) fn format(headers: &HeaderMap) -> Option<EventFormat> {
    let accept = headers.get_all(header::ACCEPT).iter();
    event_format(accept.map(HeaderValue::as_bytes))
}

/// Opens a subscription. The reply is the beginning of its response. The rest is stored in the summary.
pub(crate) async fn open(
    serving: &Rc<WorkerState>,
    exchange: &Exchange,
    plan: (Arc<Prepared>, Variables),
    media: Media,
    summary: &mut Summary,
) -> Reply {
    let Some(config) = serving.generation.config.subscriptions() else {
        let error = GraphqlError::new("subscriptions are not enabled", SUBSCRIPTION_DISABLED);
        return refused(StatusCode::BAD_REQUEST, media, error);
    };
    let Some(format) = format(&exchange.client.headers).filter(|_| summary.parts_until.is_some())
    else {
        let error = GraphqlError::new(
            "the answer to a subscription goes on: send it alone, and with the header 'accept: multipart/mixed;subscriptionSpec=1.0' or 'accept: text/event-stream'",
            "SUBSCRIPTION_BAD_HEADER",
        );
        return refused(StatusCode::NOT_ACCEPTABLE, media, error);
    };
    let limit = serving.generation.subscriptions_most.places;
    let opened = serving.shared.subscriptions.open(summary.address, limit);
    let Some(mut opened) = opened else {
        return too_many(media);
    };
    let answering = Answering::new(serving, exchange, plan);
    let source = {
        let (prepared, variables) = answering.plan();
        let address = summary.address;
        match prepared.subscription(variables) {
            Some(request) => {
                source(serving, config, exchange, &request, address, &mut opened).await
            }
            // The client has no access to any selected field.
            None => Err(NoSource::Answer(SubgraphAnswer::default())),
        }
    };
    match source {
        Ok(receiver) => {
            let feed = Feed::new(answering, receiver, opened, format);
            begin(
                format,
                summary,
                BodyTail::endless(feed.parts(), format::opener(format)),
            )
        }
        Err(NoSource::NoRoom) => too_many(media),
        Err(NoSource::Answer(answer)) => {
            let answered = answering.answer(answer).await;
            summary.error_count = answered.error_count;
            let rest = BodyTail::endless(stream::empty(), format::whole(format));
            let mut reply = begin(format, summary, rest);
            reply.body = answered.body;
            reply
        }
    }
}

/// Writes a complete response for a client that accepts only events. An error response stays unchanged.
pub(crate) fn as_events(reply: &mut Reply) {
    if !reply.status.is_success() {
        return;
    }
    let format = EventFormat::ServerSent;
    reply.body = format::whole(format)(&reply.body);
    let media = format::content_type(format);
    reply.headers.insert(header::CONTENT_TYPE, media);
}

/// The reply that begins a response of events.
fn begin(format: EventFormat, summary: &mut Summary, rest: BodyTail) -> Reply {
    let media = format::content_type(format);
    let mut reply = reply::with_body(StatusCode::OK, media, format::OPENING);
    let headers = &mut reply.headers;
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Otherwise, proxies such as nginx buffer the response.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply.part = Some(PartOf {
        is_first: true,
        has_next: true,
    });
    summary.rest = Some(Box::new(rest));
    reply
}

fn refused(status: StatusCode, media: Media, error: GraphqlError) -> Reply {
    reply::errors(status, reply::content_type(media), &[error])
}

fn too_many(media: Media) -> Reply {
    let error = GraphqlError::new(
        "can't open new subscription, limit reached",
        "SUBSCRIPTION_MAX_LIMIT",
    );
    refused(StatusCode::TOO_MANY_REQUESTS, media, error)
}

/// The reason why there are no events.
enum NoSource {
    /// The response to send instead.
    Answer(SubgraphAnswer),
    /// The requests of other subscriptions use all memory for subscription requests.
    NoRoom,
}

/// Subscribes at the subgraph. If that fails, returns the response to send instead of events.
async fn source(
    serving: &Rc<WorkerState>,
    config: &Subscription,
    exchange: &Exchange,
    request: &SubgraphRequest<'_>,
    address: Option<IpAddr>,
    opened: &mut Opened,
) -> Result<Receiver, NoSource> {
    let subscribe_request = subscribe_request(serving, config, exchange, request).await;
    let (subscribe_request, may_be_again) = subscribe_request.map_err(NoSource::Answer)?;
    let key = key(exchange, config, request, &subscribe_request);
    // The key contains a copy of the request, too.
    let copies = if key.is_some() { 2 } else { 1 };
    let head = &exchange.client;
    let came = headers_weight(&head.headers) + exchange.client_body.text().len();
    let limit = serving.generation.subscriptions_most.request_bytes;
    if !opened.keeps(came + copies * subscribe_request.weight(), address, limit) {
        return Err(NoSource::NoRoom);
    }
    let subscribe_request = Arc::new(subscribe_request);
    let client = Client {
        address,
        expiry: feed::expiry(exchange),
        subscribe_request: may_be_again.then(|| Arc::clone(&subscribe_request)),
    };
    let counts = &serving.shared.subscriptions;
    let sources = &serving.generation.subscribed;
    let (receiver, begun) =
        sharing::join(sources, config.queue_capacity.get(), key, client, counts);
    if let Some(receiving) = begun {
        // A task of its own, because other clients may use the subscription after this client has left.
        tokio::task::spawn_local(receive(Rc::clone(serving), receiving, subscribe_request));
    }
    let accepted = receiver.opened().await;
    let accepted = accepted.map(|()| receiver);
    accepted.map_err(|event| NoSource::Answer(feed::answer_of(event)))
}

/// The request for the subgraph, and true if it may be sent again after a lost connection. Fails with the
/// response to send instead of events.
async fn subscribe_request(
    serving: &WorkerState,
    config: &Subscription,
    exchange: &Exchange,
    request: &SubgraphRequest<'_>,
) -> Result<(SubscribeRequest, bool), SubgraphAnswer> {
    let shaping = &serving.generation.subgraphs[request.subgraph];
    if let Some(rate) = &shaping.rate
        && !rate.admits(clock::now())
    {
        return Err(SubgraphAnswer::from_error(subgraphs::rate_limited()));
    }
    let Some(way) = config.of_subgraph(request.name) else {
        let text = format!(
            "subgraph '{}' has no way to send events: `subscription.mode` does not name it",
            request.name
        );
        log::warn!("{text}");
        return Err(SubgraphAnswer::from_error(GraphqlError::new(
            text,
            "INVALID_SUBSCRIPTION_MODE",
        )));
    };
    let (path, may_be_again) = match way {
        EventSource::WebSocket(mode) => {
            let path = mode.path.as_ref().map(|path| path.0.0.as_str());
            (path, mode.max_reconnect_attempts > 0)
        }
        EventSource::Callback(_) => (None, false),
    };
    let extensions = &serving.extensions;
    let body = request.body.clone();
    let sent = extensions.event_request(request.subgraph, exchange, path, body);
    let sent = sent.await.map_err(subgraphs::answer)?;
    let parameters = exchange.context.get(CONNECTION_PARAMETERS);
    let subscribe_request = SubscribeRequest {
        name: request.name.into(),
        request: sent,
        parameters: parameters.filter(Value::is_object),
    };
    Ok((subscribe_request, may_be_again))
}

/// The key that identical subscriptions share. `None` if deduplication is off.
fn key(
    exchange: &Exchange,
    config: &Subscription,
    request: &SubgraphRequest<'_>,
    subscribe_request: &SubscribeRequest,
) -> Option<Key> {
    let rule = config.deduplication.of_subgraph(request.name);
    rule.enabled.then(|| {
        let is_ignored = |name: &HeaderName| rule.ignored_headers.iter().any(|it| it.0 == *name);
        let claims = (!rule.ignore_auth_context).then(|| exchange.context.get(JWT_CLAIMS));
        Key {
            subgraph: request.subgraph,
            request: subscribe_request.request.key(is_ignored),
            parameters: subscribe_request.parameters.as_ref().map(Value::to_string),
            claims: claims.flatten().map(|claims| claims.to_string()),
        }
    })
}
