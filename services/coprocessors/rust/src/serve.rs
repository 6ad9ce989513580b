//! The HTTP shell: routes, bodies, listening, stopping.

use std::fs;
use std::io;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};

use crate::decide::{Endpoint, decide};
use crate::token::Keys;

/// Largest message in bytes, as in the other languages.
const BODY_LIMIT: usize = 16 << 20;

/// Serves on all interfaces until it is stopped.
pub async fn on_port(port: &str, secret: &str) -> io::Result<()> {
    let listener = TcpListener::bind(format!("0.0.0.0:{port}")).await?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        // A response is one write. Waiting for more data would only delay it.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes(secret))
        .with_graceful_shutdown(told_to_stop())
        .await
}

/// Serves on a Unix socket until it is stopped.
pub async fn on_socket(path: &str, secret: &str) -> io::Result<()> {
    // A killed predecessor may have left its socket file.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    let ended = axum::serve(listener, routes(secret))
        .with_graceful_shutdown(told_to_stop())
        .await;
    let _ = fs::remove_file(path);
    ended
}

fn routes(secret: &str) -> Router {
    let keys: &'static Keys = Box::leak(Box::new(Keys::of(secret)));
    let message = |endpoint: Endpoint| {
        post(
            move |State(keys): State<&'static Keys>, body: Bytes| async move {
                answer(&body, |message| decide(endpoint, message, keys))
            },
        )
    };
    Router::new()
        .route("/static-subgraph", message(Endpoint::StaticSubgraph))
        .route("/guid-response", message(Endpoint::GuidResponse))
        .route("/client-awareness", message(Endpoint::ClientAwareness))
        .route("/create-jwt", post(create_jwt))
        .route("/health", get(async || reply(&json!({"status": "UP"}))))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(keys)
}

async fn create_jwt(State(keys): State<&'static Keys>, body: Bytes) -> Response {
    answer(&body, |wish| {
        let or = |key: &str, default: &str| wish.get(key).cloned().unwrap_or(default.into());
        let name = or("clientName", "coprocessor");
        let version = or("clientVersion", "loadtest");
        let token = keys.sign(&json!({"client_name": name, "client_version": version}));
        Map::from_iter([("token".to_owned(), token.into())])
    })
}

fn answer(
    body: &[u8],
    decision: impl FnOnce(Map<String, Value>) -> Map<String, Value>,
) -> Response {
    match serde_json::from_slice(body) {
        Ok(message) => reply(&Value::Object(decision(message))),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

fn reply(value: &Value) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}

async fn told_to_stop() {
    let listen = |kind| signal(kind).expect("the system lets a process hear its signals");
    let (mut terminate, mut interrupt) = (
        listen(SignalKind::terminate()),
        listen(SignalKind::interrupt()),
    );
    std::future::poll_fn(|context| {
        if terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
