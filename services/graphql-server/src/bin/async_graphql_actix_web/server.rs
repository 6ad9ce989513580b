//! The glue to actix-web: converts its requests to plain types, and plain replies to its responses.

use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_http::{HttpServiceBuilder, KeepAlive};
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, map_config};
use actix_web::body::BoxBody;
use actix_web::dev::{AppConfig, Server};
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::rt::time::sleep;
use actix_web::web::{self, Data, Payload};
use actix_web::{App, HttpRequest, HttpResponse};
use async_graphql::Variables;
use chassis::{CorsHeader, REQUEST_ID, Tracked};
use futures_core::Stream as _;
use graphql_http::body::{collect, in_time};
use graphql_http::{GraphqlRequest, Head, Media};
use graphql_server::connections::{self, Connections};
use graphql_server::content::Counter;
use graphql_server::exchange::NextStep;
use graphql_server::reply::{Body, Reply};
use graphql_server::startup::{Setup, stop_on_signal};
use graphql_server::wire::{self, WireError};
use graphql_server::worker::Worker;

use crate::connections::{CountedFactory, Socket, introduce};
use crate::schema::{self, Schema};

/// Time that the library gives a client to close its connection after a request to close.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The state that a worker thread needs to handle requests.
struct Handler {
    worker: Worker,
    schema: Schema,
}

/// Serves until a signal stops it and the requests in flight are done.
pub(crate) fn serve(listener: TcpListener, setup: Setup) -> io::Result<()> {
    actix_web::rt::System::new().block_on(listen(listener, setup))
}

async fn listen(listener: TcpListener, setup: Setup) -> io::Result<()> {
    // A copy, because `setup` moves into the closure that creates the workers.
    let config = setup.config.clone();
    let counter = Arc::new(Counter::default());
    let builder = Server::build()
        .workers(config.workers)
        .max_concurrent_connections(config.accepted_by_worker())
        .disable_signals()
        // Exact, because the flag only accepts whole seconds.
        .shutdown_timeout(config.stop_timeout.as_secs());
    let stopping = builder.graceful_shutdown_signal();
    // Later than our own timeout, which is also counted in the metrics.
    let keep_alive = KeepAlive::Timeout(config.connections.idle_timeout + Duration::from_secs(1));
    // The listener is already bound, so that a port in use fails the start and the address can be printed.
    let server = builder.listen("http", listener, move || {
        // Runs once in each worker. Each worker has its own schema, counters and connections, and shares only
        // the mutation's sum.
        let connections = Connections::new(&setup, setup.config.request_timeout);
        actix_web::rt::spawn(connections.clone().watch());
        let (stopping, finished) = (stopping.clone(), connections.clone());
        actix_web::rt::spawn(async move {
            stopping.notified().await;
            finished.finish().await;
        });
        let handler = Handler {
            worker: Worker::new(&setup),
            schema: schema::schema(&counter),
        };
        // The steps of the library's `HttpServer`, with our service in between.
        let app = App::new()
            .app_data(Data::new(handler))
            .service(web::resource("/graphql").to(graphql))
            .service(web::resource("/health").to(health))
            .service(web::resource("/metrics").to(metrics))
            .default_service(web::to(not_found))
            .into_factory()
            .map_err(|error: actix_web::Error| error.error_response());
        let http = HttpServiceBuilder::<Socket, _>::default()
            .keep_alive(keep_alive)
            .client_request_timeout(setup.config.request_timeout)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            .on_connect_ext(introduce)
            .finish::<_, BoxBody>(map_config(app, |()| AppConfig::default()));
        CountedFactory::new(http, connections, setup.tls.clone())
    })?;
    let server = server.run();
    let handle = server.handle();
    // Our own signal handling, because the libraries differ in their reaction to a second signal.
    stop_on_signal(move || drop(handle.stop(true)))?;
    server.await
}

async fn graphql(request: HttpRequest, payload: Payload, handler: Data<Handler>) -> HttpResponse {
    answered(&request, &handler, async {
        let start = handler.worker.start();
        let reply = answer(&request, payload, &handler).await;
        let method = request.method().as_str();
        handler.worker.answered(start, method, reply)
    })
    .await
}

async fn answered(
    request: &HttpRequest,
    handler: &Handler,
    answer: impl Future<Output = Reply>,
) -> HttpResponse {
    let tracked = request.conn_data::<Tracked>();
    let tracked = tracked.expect("every connection introduces itself");
    let headers = request.headers();
    let header = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    let method = request.method().as_str();
    let allowed = handler.worker.preflight_headers(method, header);
    let is_preflight = allowed.is_some();
    let answer = async {
        if is_preflight {
            return handler.worker.preflight(request.path());
        }
        answer.await
    };
    let reply = connections::answered(tracked, method, answer).await;
    let id = headers.get(REQUEST_ID);
    let id = id.filter(|id| chassis::is_request_id(id.as_bytes()));
    let cors = allowed.unwrap_or_else(|| handler.worker.cors(header("origin")));
    respond(reply, id, cors)
}

async fn answer(request: &HttpRequest, mut payload: Payload, handler: &Handler) -> Reply {
    let headers = request.headers();
    let bytes = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let length = bytes(header::CONTENT_LENGTH).and_then(|length| str::from_utf8(length).ok());
    let head = Head {
        method: request.method().as_str(),
        // All lines, because HTTP allows a list to span several lines.
        accept: headers.get_all(header::ACCEPT).map(HeaderValue::as_bytes),
        content_type: bytes(header::CONTENT_TYPE),
        content_encoding: bytes(header::CONTENT_ENCODING),
        // A chunked body has no length. `collect` counts its bytes.
        content_length: length.and_then(|length| length.parse().ok()),
    };
    match handler.worker.admit(head) {
        NextStep::Reply(reply) => reply,
        NextStep::ReadParameters(media) => {
            let request = wire::from_parameters(request.query_string());
            execute(handler, media, request, true).await
        }
        NextStep::ReadBody(media) => {
            let mut next = async || poll_fn(|task| Pin::new(&mut payload).poll_next(task)).await;
            let read = collect(handler.worker.body_limit(), &mut next);
            let timeout = handler.worker.request_timeout();
            match in_time(read, || sleep(timeout)).await {
                Ok(body) => execute(handler, media, wire::from_body(body.as_ref()), false).await,
                Err(error) => handler.worker.unread(media, error),
            }
        }
    }
}

async fn execute(
    handler: &Handler,
    media: Media,
    request: Result<GraphqlRequest<'_, Variables>, WireError>,
    is_get: bool,
) -> Reply {
    match request {
        Ok(request) => {
            let outcome = schema::execute(&handler.schema, request, is_get).await;
            handler.worker.executed(media, outcome)
        }
        Err(error) => wire::not_a_request(media, error),
    }
}

async fn health(request: HttpRequest, handler: Data<Handler>) -> HttpResponse {
    let method = request.method().as_str();
    answered(&request, &handler, async { handler.worker.health(method) }).await
}

async fn metrics(request: HttpRequest, handler: Data<Handler>) -> HttpResponse {
    let method = request.method().as_str();
    answered(&request, &handler, async { handler.worker.metrics(method) }).await
}

async fn not_found(request: HttpRequest, handler: Data<Handler>) -> HttpResponse {
    let (method, path) = (request.method().as_str(), request.path());
    answered(&request, &handler, async {
        handler.worker.not_found(method, path)
    })
    .await
}

fn respond(reply: Reply, id: Option<&HeaderValue>, cors: Vec<CorsHeader>) -> HttpResponse {
    let status = StatusCode::from_u16(reply.status.code()).expect("our statuses are valid");
    let mut response = HttpResponse::build(status);
    response.insert_header((header::CONTENT_TYPE, reply.content_type));
    for (name, value) in cors {
        response.append_header((name, value.as_bytes()));
    }
    if let Some(id) = id {
        response.insert_header((REQUEST_ID, id));
    }
    // The library writes the rest of the response, because its cost is measured.
    if let Some(allow) = reply.allow {
        response.insert_header((header::ALLOW, allow));
    }
    if reply.close {
        // The rest of the request is not read, so the connection cannot be used again.
        response.force_close();
    }
    match reply.body {
        Body::Made(bytes) => response.body(bytes),
        Body::Fixed(text) => response.body(text),
    }
}
