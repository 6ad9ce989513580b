//! What receives the events of a subscription at a subgraph, by a WebSocket or by callbacks.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use gateway_config::{Callback, EventSource, WebSocketMode};
use gateway_extensions::EventRequest;
use gateway_federation::GraphqlError;
use serde_json::Value;

use crate::serving::Serving;

use super::callback;
use super::queue::Event;
use super::sharing::{Receiving, Source};
use super::socket::{Broken, Link, MESSAGE_BYTES_MAX, OPENING_MAX};

/// What a subgraph is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    /// The subgraph's name.
    pub(super) name: Arc<str>,
    pub(super) request: EventRequest,
    /// With which a WebSocket begins.
    pub(super) parameters: Option<Value>,
}

/// Subscribes at the subgraph, and gives its events to the clients until there are no more of either.
pub(super) async fn receive(serving: Rc<Serving>, receiving: Receiving, asked: Asked) {
    let source = receiving.source();
    let config = serving.generation.config.subscriptions();
    match config.and_then(|config| config.of_subgraph(&asked.name)) {
        Some(EventSource::WebSocket(mode)) => by_socket(&serving, mode, source, &asked).await,
        Some(EventSource::Callback(callback)) => {
            by_callback(&serving, callback, source, asked).await;
        }
        None => unreachable!("the request was made for the way that there is"),
    }
    source.end();
}

/// How long a subgraph may take to accept a subscription.
fn opening_limit(serving: &Serving, name: &str) -> Duration {
    let own = serving.generation.config.traffic_shaping.of_subgraph(name);
    own.timeout.map_or(OPENING_MAX, |own| own.min(OPENING_MAX))
}

/// What a future gives; nothing when all clients leave before.
async fn unless_left<T>(source: &Source, future: impl Future<Output = T>) -> Option<T> {
    match select(pin!(source.left()), pin!(future)).await {
        Either::Left(_) => None,
        Either::Right((given, _)) => Some(given),
    }
}

async fn by_socket(serving: &Serving, mode: &WebSocketMode, source: &Source, asked: &Asked) {
    let name = &asked.name;
    let Some(opened) = unless_left(source, opened(serving, mode, asked)).await else {
        return;
    };
    match opened {
        Ok(link) => {
            source.open();
            link.pump(name, source).await;
        }
        Err(broken) => {
            log::warn!("subgraph `{name}`: no subscription: {broken}");
            source.refuse(Event::Failed(broken.of_subgraph(name)));
        }
    }
}

/// A connection over which the subgraph has accepted the subscription.
async fn opened(serving: &Serving, mode: &WebSocketMode, asked: &Asked) -> Result<Link, Broken> {
    let limit = opening_limit(serving, &asked.name);
    let limits = &serving.generation.config.limits.subgraph;
    let most = limits.of_subgraph(&asked.name);
    let most = most.map_or(MESSAGE_BYTES_MAX, |most| most.min(MESSAGE_BYTES_MAX));
    let how = (mode.protocol, mode.heartbeat_interval.0.0);
    let sent = (&asked.request, asked.parameters.as_ref());
    let opening = Link::open(&serving.client, sent, how, most);
    match tokio::time::timeout(limit, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(Broken::silent(limit)),
    }
}

async fn by_callback(serving: &Serving, config: &Callback, source: &Arc<Source>, asked: Asked) {
    let (name, request) = (&asked.name, asked.request);
    let callbacks = &serving.lasting.callbacks;
    let asking = callback::subscribe(callbacks, &serving.client, config, request, source);
    let limit = opening_limit(serving, name);
    let asking = tokio::time::timeout(limit, asking);
    let Some(answered) = unless_left(source, asking).await else {
        return;
    };
    let refused = match answered {
        Ok(Ok(registration)) => {
            source.open();
            let interval = config.heartbeat_interval.0.0;
            return callback::watch(registration, source, interval).await;
        }
        Ok(Err(refused)) => refused,
        Err(_) => callback::Refused::Failed(format!("no answer within {limit:?}")),
    };
    source.refuse(match refused {
        callback::Refused::Answer(body) => Event::Response(body),
        callback::Refused::Failed(reason) => {
            log::warn!("subgraph `{name}`: no subscription: {reason}");
            let told = format!("HTTP fetch failed from '{name}': {reason}");
            let error = GraphqlError::new(told, "SUBREQUEST_HTTP_ERROR");
            Event::Failed(error.with("service", &**name))
        }
    });
}
