//! Events that subgraphs send to the gateway as HTTP requests: version 1.0 of Apollo's callback protocol.
//!
//! A random id identifies a subscription. It is part of the callback URL that the subgraph receives. A random
//! verifier proves the sender. If id or verifier is wrong, the response is always the same 404, so that an
//! attacker cannot guess them separately. If the id is unknown, the gateway does not read the body.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{Either, select};
use gateway_config::Callback;
use gateway_extensions::EventRequest;
use gateway_federation::GraphqlError;
use gateway_telemetry::random_bytes;
use gateway_upstream::{Call, Client};
use http::header::HeaderValue;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::reply::{self, Reply};
use crate::process::clock;

use super::queue::{Ending, Event};
use super::sharing::Source;

/// Maximum size of a body in bytes: a message and its envelope.
const BODY_MAX: usize = super::socket::MESSAGE_BYTES_MAX + (64 << 10);
/// Time limit for reading a body.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// Tolerated delay of a heartbeat.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum number of bytes in the response to the request that subscribes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const HEADERS: &[u8] = b"content-type: application/json\r\n\
    accept: application/json;callbackSpec=1.0\r\n";
/// The header that selects the callback protocol at a subgraph.
const PROTOCOL: &str = "subscription-protocol";

/// The subscriptions of all workers that receive events by callbacks.
#[derive(Debug, Default)]
pub(crate) struct Callbacks(Mutex<HashMap<String, Arc<Known>>>);

/// A subscription that receives events by callbacks.
#[derive(Debug)]
struct Known {
    /// Hash of the verifier. Hashes are compared, so that the time of a comparison reveals no part of the
    /// verifier.
    digest: [u8; 32],
    source: Arc<Source>,
    /// Name of the subgraph.
    name: Arc<str>,
    /// Maximum size of an event. A larger event ends the subscription.
    event_bytes_max: usize,
    seen: Mutex<Instant>,
}

/// Keeps a subscription registered until it is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    id: String,
    verifier: String,
    known: Arc<Known>,
    callbacks: Arc<Callbacks>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.callbacks.lock().remove(&self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves only complete entries.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Callbacks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Known>>> {
        lock(&self.0)
    }

    fn find(&self, id: &str) -> Option<Arc<Known>> {
        self.lock().get(id).cloned()
    }

    /// Registers a subscription at the subgraph with this name. Its events have at most `event_bytes_max`
    /// bytes.
    pub(super) fn register(
        self: &Arc<Self>,
        name: &Arc<str>,
        event_bytes_max: usize,
        source: &Arc<Source>,
    ) -> Registration {
        let (id, verifier) = (secret(), secret());
        let known = Arc::new(Known {
            digest: Sha256::digest(&verifier).into(),
            source: Arc::clone(source),
            name: Arc::clone(name),
            event_bytes_max,
            seen: Mutex::new(clock::now()),
        });
        self.lock().insert(id.clone(), Arc::clone(&known));
        Registration {
            id,
            verifier,
            known,
            callbacks: Arc::clone(self),
        }
    }
}

/// 32 random hexadecimal digits.
fn secret() -> String {
    format!("{:032x}", u128::from_ne_bytes(random_bytes()))
}

/// The reason why a subgraph sends no events.
pub(super) enum Refused {
    /// The subgraph returned a response with errors.
    Answer(Bytes),
    /// The request failed.
    Failed(String),
}

/// Sends the request that subscribes to a subgraph. The caller must set a time limit.
pub(super) async fn subscribe(
    registration: Registration,
    client: &Client,
    config: &Callback,
    request: &EventRequest,
) -> Result<Registration, Refused> {
    let interval = config.heartbeat_interval.0.0;
    let body = with_extension(
        &request.body,
        config,
        &registration.id,
        &registration.verifier,
        interval,
    );
    let call = Call {
        method: Method::POST,
        headers: &request.headers,
        rendered_headers: HEADERS,
        body: body.ok_or_else(|| Refused::Failed("the request is no JSON object".to_owned()))?,
        timeout: None,
        reply_bytes_max: Some(ANSWER_BYTES_MAX.min(registration.known.event_bytes_max)),
        is_idempotent: false,
    };
    let reply = client.send(&request.endpoint, call).await;
    let reply = reply.map_err(|error| Refused::Failed(error.to_string()))?;
    let response: Option<Map<String, Value>> = serde_json::from_slice(&reply.body).ok();
    let has_errors = response
        .as_ref()
        .is_some_and(|it| it.get("errors").is_some_and(|errors| !errors.is_null()));
    if has_errors {
        return Err(Refused::Answer(reply.body));
    }
    if !reply.status.is_success() {
        let reason = format!("status {}", reply.status.as_u16());
        return Err(Refused::Failed(reason));
    }
    Ok(registration)
}

/// Adds the callback URL to the request.
fn with_extension(
    body: &[u8],
    config: &Callback,
    id: &str,
    verifier: &str,
    interval: Option<Duration>,
) -> Option<Bytes> {
    let mut request: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let url = config.public_url.to_string();
    let interval = interval.map_or(0, |it| it.as_millis());
    let told = json!({
        "callbackUrl": format!("{}/{id}", url.trim_end_matches('/')),
        "subscriptionId": id,
        "verifier": verifier,
        "heartbeatIntervalMs": u64::try_from(interval).unwrap_or(u64::MAX),
    });
    let extensions = request.entry("extensions").or_insert(Value::Null);
    if !extensions.is_object() {
        *extensions = json!({});
    }
    extensions["subscription"] = told;
    Some(Value::Object(request).to_string().into())
}

/// Keeps the subscription registered while it has clients. Ends it if the subgraph sends no heartbeat in
/// time.
pub(super) async fn watch(registration: Registration, source: &Source, interval: Option<Duration>) {
    let Some(interval) = interval else {
        return source.left().await;
    };
    let patience = interval + GRACE.max(interval);
    loop {
        let seen = *lock(&registration.known.seen);
        let silent = tokio::time::sleep_until((seen + patience).into());
        match select(pin!(source.left()), pin!(silent)).await {
            Either::Left(_) => return,
            Either::Right(_) if *lock(&registration.known.seen) != seen => {}
            Either::Right(_) => {
                let told = "the subgraph gave no sign of life in time";
                let error = GraphqlError::new(told, "SUBSCRIPTION_HEARTBEAT_ERROR");
                source.push(Event::Failed(error)).await;
                return;
            }
        }
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    kind: &'a str,
    action: Action,
    id: &'a str,
    verifier: &'a str,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default)]
    errors: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Check,
    Next,
    Complete,
}

/// The id in a path below the callback path.
pub(crate) fn id_of<'a>(path: &'a str, below: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(below.trim_end_matches('/'))?;
    rest.strip_prefix('/').filter(|id| !id.is_empty())
}

/// Handles a callback request of a subgraph.
pub(crate) async fn answer(callbacks: &Callbacks, id: &str, parts: Parts, body: Incoming) -> Reply {
    let unknown = || reply::empty(StatusCode::NOT_FOUND);
    let Some(known) = callbacks.find(id) else {
        return unknown();
    };
    if parts.method != Method::POST {
        return unknown();
    }
    let read = tokio::time::timeout(BODY_TIME_MAX, Limited::new(body, BODY_MAX).collect());
    let Ok(Ok(body)) = read.await else {
        return unknown();
    };
    let body = body.to_bytes();
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return unknown();
    };
    let digest: [u8; 32] = Sha256::digest(message.verifier).into();
    if message.kind != "subscription" || message.id != id || digest != known.digest {
        return unknown();
    }
    *lock(&known.seen) = clock::now();
    let said = match understood(&message, &body, known.event_bytes_max) {
        Ok(said) => said,
        Err(status) => return answered(status),
    };
    // A task of its own. If one client receives an event, all clients must, even if the subgraph disconnects.
    let done = tokio::task::spawn_local(async move { carry_out(&known, said).await });
    answered(done.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
}

/// A callback message of a subgraph.
enum Said {
    /// The subgraph checks that the subscription still exists.
    Check,
    Event(Bytes),
    /// An event that is larger than allowed.
    TooLong,
    /// The end of the events, after this last event.
    Complete(Option<Bytes>),
}

fn understood(message: &Message<'_>, body: &Bytes, most: usize) -> Result<Said, StatusCode> {
    let is_long = |it: &RawValue| it.get().len() > most;
    Ok(match message.action {
        Action::Check => Said::Check,
        Action::Next => match message.payload {
            None => return Err(StatusCode::BAD_REQUEST),
            Some(payload) if is_long(payload) => Said::TooLong,
            Some(payload) => Said::Event(body.slice_ref(payload.get().as_bytes())),
        },
        Action::Complete if message.errors.is_some_and(is_long) => Said::TooLong,
        Action::Complete => {
            let errors = message.errors.map(RawValue::get);
            let errors = errors.filter(|it| it.starts_with('[') && *it != "[]");
            Said::Complete(errors.map(|it| format!(r#"{{"data":null,"errors":{it}}}"#).into()))
        }
    })
}

async fn carry_out(known: &Known, said: Said) -> StatusCode {
    let source = &known.source;
    match said {
        Said::Check => StatusCode::NO_CONTENT,
        Said::Event(body) => {
            source.push(Event::Response(body)).await;
            StatusCode::OK
        }
        Said::TooLong => {
            let (name, most) = (&known.name, known.event_bytes_max);
            log::warn!("subgraph `{name}`: an event is longer than {most} bytes");
            let told = format!("HTTP fetch failed from '{name}': an event is longer than allowed");
            let error = GraphqlError::new(told, "SUBREQUEST_HTTP_ERROR");
            source
                .push(Event::Failed(error.with("service", &**name)))
                .await;
            source.end(Ending::Complete).await;
            // 404 signals to the subgraph that it can stop.
            StatusCode::NOT_FOUND
        }
        Said::Complete(last) => {
            if let Some(last) = last {
                source.push(Event::Response(last)).await;
            }
            source.end(Ending::Complete).await;
            StatusCode::ACCEPTED
        }
    }
}

fn answered(status: StatusCode) -> Reply {
    let mut reply = reply::empty(status);
    let protocol = HeaderValue::from_static("callback");
    reply.headers.insert(PROTOCOL, protocol);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_segment_below_the_path() {
        assert_eq!(id_of("/callback/a", "/callback"), Some("a"));
        assert_eq!(id_of("/callback/a", "/callback/"), Some("a"));
        assert_eq!(id_of("/callback/", "/callback"), None);
        assert_eq!(id_of("/callback", "/callback"), None);
        assert_eq!(id_of("/callbacks", "/callback"), None);
        assert_eq!(id_of("/a", "/"), Some("a"));
    }
}
