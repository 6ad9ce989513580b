//! Receives the events of a subscription at a subgraph, over a WebSocket or by callbacks.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use gateway_config::{Callback, EventSource, WebSocketMode};
use gateway_federation::GraphqlError;

use crate::process::clock;
use crate::process::worker_state::WorkerState;

use super::callback;
use super::queue::{Ending, Event};
use super::reconnects::{self, AttemptPermit};
use super::sharing::{Receiving, Source};
use super::socket::{Broken, Link, MESSAGE_BYTES_MAX, OPENING_MAX, StreamEnd};
use super::subscribe_request::SubscribeRequest;

/// Subscribes at the subgraph, and passes its events to the clients until there are no more events or no more
/// clients.
pub(super) async fn receive(
    serving: Rc<WorkerState>,
    receiving: Receiving,
    subscribe_request: Arc<SubscribeRequest>,
) {
    let source = receiving.source();
    let config = serving.generation.config.subscriptions();
    match config.and_then(|config| config.of_subgraph(&subscribe_request.name)) {
        Some(EventSource::WebSocket(mode)) => {
            by_socket(&serving, mode, source, subscribe_request).await
        }
        Some(EventSource::Callback(callback)) => {
            by_callback(&serving, callback, source, subscribe_request).await;
        }
        None => unreachable!("the request was made for the way that there is"),
    }
    source.end(Ending::Complete).await;
}

/// Time limit for a subgraph to accept a subscription.
fn opening_limit(serving: &WorkerState, name: &str) -> Duration {
    let own = serving.generation.config.traffic_shaping.of_subgraph(name);
    own.timeout.map_or(OPENING_MAX, |own| own.min(OPENING_MAX))
}

/// The result of a future, or `None` if all clients leave before.
async fn unless_left<T>(source: &Source, future: impl Future<Output = T>) -> Option<T> {
    match select(pin!(source.left()), pin!(future)).await {
        Either::Left(_) => None,
        Either::Right((given, _)) => Some(given),
    }
}

async fn by_socket(
    serving: &WorkerState,
    mode: &WebSocketMode,
    source: &Source,
    subscribe_request: Arc<SubscribeRequest>,
) {
    let name = Arc::clone(&subscribe_request.name);
    let Some(opened) = unless_left(source, opened(serving, mode, source, &subscribe_request)).await
    else {
        return;
    };
    // The clients keep copies of their own, if these may be needed again.
    drop(subscribe_request);
    let mut link = match opened {
        Ok(link) => link,
        Err(broken) => {
            log::warn!("subgraph `{name}`: no subscription: {broken}");
            return source.refuse(Event::Failed(broken.of_subgraph(&name)));
        }
    };
    source.open();
    let mut attempts = 0;
    loop {
        let broken = match link.pump(source).await {
            StreamEnd::Broken { why, has_given } => {
                if has_given {
                    attempts = 0;
                }
                why
            }
            StreamEnd::Complete | StreamEnd::Left => {
                source.end(Ending::Complete).await;
                return link.leave().await;
            }
        };
        if !(broken.is_passing() && attempts < mode.max_reconnect_attempts) {
            fail(source, &name, &broken).await;
            return link.leave().await;
        }
        // Closed before the next connection opens, because the next one may need its place in the limits.
        drop(link);
        let again = again(serving, mode, source, &name, &mut attempts, broken);
        link = match unless_left(source, while_serving(serving, again)).await {
            None => return,
            Some(Ok(link)) => link,
            Some(Err(broken)) => return fail(source, &name, &broken).await,
        };
    }
}

/// Reports to all clients why there are no more events.
async fn fail(source: &Source, name: &str, broken: &Broken) {
    log::warn!("subgraph `{name}`: {broken}");
    if broken.is_expiry() {
        return source.end(Ending::Expired).await;
    }
    source.push(Event::Failed(broken.of_subgraph(name))).await;
    source.end(Ending::Complete).await;
}

/// Subscribes again, with a pause before each attempt, up to the maximum number of attempts.
async fn again(
    serving: &WorkerState,
    mode: &WebSocketMode,
    source: &Source,
    name: &str,
    attempts: &mut u32,
    mut broken: Broken,
) -> Result<Link, Broken> {
    while broken.is_passing() && *attempts < mode.max_reconnect_attempts {
        *attempts += 1;
        let pause = reconnects::pause(mode.reconnect_delay.0);
        log::warn!(
            "subgraph `{name}`: {broken}; attempt {attempts} to subscribe again in {pause:?}"
        );
        tokio::time::sleep(pause).await;
        let (subscribe_request, _permit) = acquire(serving, source).await?;
        serving.shared.subscriptions.reconnects();
        match opened(serving, mode, source, &subscribe_request).await {
            Ok(link) => return Ok(link),
            Err(next) => broken = next,
        }
    }
    Err(broken)
}

/// Waits until an attempt may run. Returns the request to send again.
async fn acquire(
    serving: &WorkerState,
    source: &Source,
) -> Result<(Arc<SubscribeRequest>, AttemptPermit), Broken> {
    let subscribe_request = || {
        source
            .subscribe_request(clock::now())
            .ok_or_else(Broken::expired)
    };
    let first = subscribe_request()?;
    let attempts = &serving.shared.subscriptions.attempts;
    let permit = attempts.acquire(&first.request.endpoint).await;
    // The clients may have changed while this waited.
    Ok((subscribe_request()?, permit))
}

/// The result of a future. If the gateway stops or a new generation takes over, it never returns. Then the
/// attempt is pointless, because each client receives the reason from its own body, and leaves.
async fn while_serving<T>(serving: &WorkerState, future: impl Future<Output = T>) -> T {
    let drained = pin!(serving.shared.drain.begun());
    let retired = pin!(serving.retired());
    match select(select(drained, retired), pin!(future)).await {
        Either::Left(_) => std::future::pending().await,
        Either::Right((given, _)) => given,
    }
}

/// A connection after the subgraph has accepted the subscription.
async fn opened(
    serving: &WorkerState,
    mode: &WebSocketMode,
    source: &Source,
    subscribe_request: &SubscribeRequest,
) -> Result<Link, Broken> {
    let limit = opening_limit(serving, &subscribe_request.name);
    let most = event_bytes_max(serving, &subscribe_request.name);
    let opening = Link::open(
        &serving.client,
        &subscribe_request.request,
        subscribe_request.parameters.as_ref(),
        mode.protocol,
        mode.heartbeat_interval.0.0,
        most,
        source.address(),
    );
    match tokio::time::timeout(limit, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(Broken::silent(limit)),
    }
}

/// Maximum size of an event of this subgraph.
fn event_bytes_max(serving: &WorkerState, name: &str) -> usize {
    let limits = &serving.generation.config.limits.subgraph;
    let own = limits.of_subgraph(name);
    own.map_or(MESSAGE_BYTES_MAX, |own| own.min(MESSAGE_BYTES_MAX))
}

async fn by_callback(
    serving: &WorkerState,
    config: &Callback,
    source: &Arc<Source>,
    subscribe_request: Arc<SubscribeRequest>,
) {
    let name = Arc::clone(&subscribe_request.name);
    let callbacks = &serving.shared.callbacks;
    let most = event_bytes_max(serving, &name);
    let registration = callbacks.register(&name, most, source);
    let asking = callback::subscribe(
        registration,
        &serving.client,
        config,
        &subscribe_request.request,
    );
    let limit = opening_limit(serving, &name);
    let asking = tokio::time::timeout(limit, asking);
    let Some(answered) = unless_left(source, asking).await else {
        return;
    };
    drop(subscribe_request);
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
            let text = format!("HTTP fetch failed from '{name}': {reason}");
            let error = GraphqlError::new(text, "SUBREQUEST_HTTP_ERROR");
            Event::Failed(error.with("service", &*name))
        }
    });
}
