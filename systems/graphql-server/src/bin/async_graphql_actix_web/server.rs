//! The glue to actix-web: its requests to plain types, plain replies to its responses.

use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{self, HeaderName};
use actix_web::http::{KeepAlive, StatusCode};
use actix_web::rt::time::sleep;
use actix_web::web::{self, Data, Payload};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use async_graphql::Variables;
use futures_core::Stream as _;
use graphql_server::body::{collect, in_time};
use graphql_server::content::Counter;
use graphql_server::exchange::{Head, Step};
use graphql_server::reply::{Body, Media, Reply};
use graphql_server::startup::{Setup, stop_on_signal};
use graphql_server::wire::{self, GraphqlRequest, WireError};
use graphql_server::worker::Worker;

use crate::schema::{self, Schema};

/// What a worker thread needs to answer.
struct Desk {
    worker: Worker,
    schema: Schema,
}

/// Serves until a signal stops it and the requests in flight are done.
pub(crate) fn serve(listener: TcpListener, setup: Setup) -> io::Result<()> {
    actix_web::rt::System::new().block_on(listen(listener, setup))
}

async fn listen(listener: TcpListener, setup: Setup) -> io::Result<()> {
    let config = setup.config.clone();
    let journal = setup.journal;
    let counter = Arc::new(Counter::default());
    let server = HttpServer::new(move || {
        let desk = Desk {
            worker: Worker::new(&setup),
            schema: schema::schema(&counter),
        };
        App::new()
            .app_data(Data::new(desk))
            .service(web::resource("/graphql").to(graphql))
            .service(web::resource("/health").to(health))
            .service(web::resource("/metrics").to(metrics))
            .default_service(web::to(not_found))
    })
    .workers(config.workers)
    .disable_signals()
    .shutdown_timeout(config.stop_timeout.as_secs())
    .keep_alive(keep_alive(config.keep_alive))
    .client_request_timeout(config.request_timeout)
    .listen(listener)?
    .run();
    let handle = server.handle();
    stop_on_signal(journal, move || drop(handle.stop(true)))?;
    server.await
}

fn keep_alive(idle: Duration) -> KeepAlive {
    if idle.is_zero() {
        KeepAlive::Disabled
    } else {
        KeepAlive::Timeout(idle)
    }
}

async fn graphql(request: HttpRequest, payload: Payload, desk: Data<Desk>) -> HttpResponse {
    let start = desk.worker.start();
    let reply = answer(&request, payload, &desk).await;
    let reply = desk
        .worker
        .answered(start, request.method().as_str(), reply);
    respond(reply)
}

async fn answer(request: &HttpRequest, mut payload: Payload, desk: &Desk) -> Reply {
    let text = |name: HeaderName| request.headers().get(name)?.to_str().ok();
    let head = Head {
        method: request.method().as_str(),
        accept: text(header::ACCEPT),
        content_type: text(header::CONTENT_TYPE),
        content_length: text(header::CONTENT_LENGTH).and_then(|length| length.parse().ok()),
    };
    match desk.worker.admit(&head) {
        Step::Reply(reply) => reply,
        Step::ReadParameters(media) => {
            let request = wire::from_parameters(request.query_string());
            execute(desk, media, request, true).await
        }
        Step::ReadBody(media) => {
            let mut next = async || poll_fn(|task| Pin::new(&mut payload).poll_next(task)).await;
            let read = collect(desk.worker.body_limit(), &mut next);
            let timeout = desk.worker.request_timeout();
            match in_time(read, || sleep(timeout)).await {
                Ok(body) => execute(desk, media, wire::from_body(body.as_ref()), false).await,
                Err(error) => desk.worker.unread(media, error),
            }
        }
    }
}

async fn execute(
    desk: &Desk,
    media: Media,
    request: Result<GraphqlRequest<'_, Variables>, WireError>,
    is_get: bool,
) -> Reply {
    match request {
        Ok(request) => {
            let outcome = schema::execute(&desk.schema, request, is_get).await;
            desk.worker.executed(media, outcome)
        }
        Err(error) => media.not_a_request(error),
    }
}

async fn health(request: HttpRequest, desk: Data<Desk>) -> HttpResponse {
    respond(desk.worker.health(request.method().as_str()))
}

async fn metrics(request: HttpRequest, desk: Data<Desk>) -> HttpResponse {
    respond(desk.worker.metrics(request.method().as_str()))
}

async fn not_found(request: HttpRequest, desk: Data<Desk>) -> HttpResponse {
    respond(
        desk.worker
            .not_found(request.method().as_str(), request.path()),
    )
}

fn respond(reply: Reply) -> HttpResponse {
    let status = StatusCode::from_u16(reply.status.code()).expect("our statuses are valid");
    let mut response = HttpResponse::build(status);
    response.insert_header((header::CONTENT_TYPE, reply.content_type));
    if let Some(allow) = reply.allow {
        response.insert_header((header::ALLOW, allow));
    }
    if reply.close {
        response.force_close();
    }
    match reply.body {
        Body::Made(bytes) => response.body(bytes),
        Body::Fixed(text) => response.body(text),
    }
}
