//! The glue to ntex: converts its requests to plain types, and plain replies to its responses.

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use chassis::{CorsHeader, REQUEST_ID};
use graphql_http::body::{collect, in_time};
use graphql_http::{GraphqlRequest, Head, Media};
use graphql_server::config::Config;
use graphql_server::connections::{self, Connections};
use graphql_server::content::Counter;
use graphql_server::exchange::NextStep;
use graphql_server::reply::{Body, Reply};
use graphql_server::startup::{Setup, stop_on_signal};
use graphql_server::wire::{self, WireError};
use graphql_server::worker::Worker;
use juniper::Variables;
use ntex::SharedCfg;
use ntex::http::header::{self, HeaderName, HeaderValue};
use ntex::http::{HttpService, HttpServiceConfig, KeepAlive, StatusCode};
use ntex::time::{Millis, Seconds, sleep};
use ntex::util::{Either, select};
use ntex::web::types::{Payload, State};
use ntex::web::{self, App, HttpRequest, HttpResponse};
use ntex_server::WorkerPool;

use crate::acceptor::{Door, Workers};
use crate::connections::{Open, Plain, Secured, SocketEntry, Watched};
use crate::schema::{self, Schema};

/// Head start of the library's own timers before our less specific timers end a connection. The library
/// counts whole seconds and sends the client a reason.
const LIBRARY_FIRST: Duration = Duration::from_secs(2);

/// The state that a worker thread needs to handle requests.
struct Handler {
    worker: Worker,
    schema: Schema,
    open: Rc<Open>,
}

/// Serves until a signal stops it and the requests in flight are done.
pub(crate) fn serve(listener: TcpListener, setup: Setup) -> io::Result<()> {
    let system = ntex::rt::System::build()
        .name("graphql-server")
        .disable_signals()
        .build(ntex::rt::DefaultRuntime);
    match setup.tls.clone() {
        None => system.block_on(listen(listener, setup, Plain)),
        Some(tls) => {
            let limit = setup.config.request_timeout;
            system.block_on(listen(listener, setup, Secured { tls, limit }))
        }
    }
}

async fn listen<E: SocketEntry>(listener: TcpListener, setup: Setup, entry: E) -> io::Result<()> {
    // Copies, because `setup` moves into the closure that creates the workers.
    let (config, table) = (setup.config.clone(), Arc::clone(&setup.table));
    let counter = Arc::new(Counter::default());
    let http: SharedCfg = SharedCfg::new("http").add(http_config(&config)).into();
    let door = Door::new();
    let working = door.working().clone();
    // Runs once in each worker. Each worker has its own schema, counters and connections, and shares only the
    // mutation's sum.
    let make = move || {
        let head_timeout = setup.config.request_timeout + LIBRARY_FIRST;
        let open = Open::new(Connections::new(&setup, head_timeout));
        let handler = Rc::new(Handler {
            worker: Worker::new(&setup),
            schema: schema::schema(&counter),
            open: Rc::clone(&open),
        });
        // The steps of the library's `HttpServer`, with our service in between.
        let app = App::new()
            .state(handler)
            .service(web::resource("/graphql").to(graphql))
            .service(web::resource("/health").to(health))
            .service(web::resource("/metrics").to(metrics))
            .default_service(web::to(not_found));
        let http_service = HttpService::new(app);
        Watched::new(
            http_service,
            entry.clone(),
            http.clone(),
            open,
            working.clone(),
        )
    };
    let server = WorkerPool::new()
        .name("graphql-server")
        .workers(config.workers)
        .disable_signals()
        .shutdown_timeout(config.stop_timeout)
        .run(Workers::new(make, door.clone()));
    // The listener is already bound, so that a port in use fails the start and the address can be printed.
    ntex::rt::spawn(door.accept(listener, table, server.clone())?);
    let handle = server.clone();
    // Our own signal handling, because the libraries differ in their reaction to a second signal.
    stop_on_signal(move || drop(handle.stop(true)))?;
    match select(server, door.finished()).await {
        Either::Left(ended) => ended,
        Either::Right(()) => Ok(()),
    }
}

fn http_config(config: &Config) -> HttpServiceConfig {
    // Whole seconds, and later than our own timeout.
    let idle = config.connections.idle_timeout + LIBRARY_FIRST;
    HttpServiceConfig::new()
        .set_keepalive(KeepAlive::Timeout(seconds(idle)))
        .set_client_timeout(seconds(config.request_timeout))
}

/// Converts a duration to ntex's type for whole seconds.
fn seconds(duration: Duration) -> Seconds {
    let seconds = u16::try_from(duration.as_secs());
    Seconds(seconds.expect("the flags end at an hour"))
}

async fn graphql(
    request: HttpRequest,
    payload: Payload,
    handler: State<Rc<Handler>>,
) -> HttpResponse {
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
    let tracked = handler.open.of(request);
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
    let reply = connections::answered(&tracked, method, answer).await;
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
            execute(handler, media, request, true)
        }
        NextStep::ReadBody(media) => {
            let read = collect(handler.worker.body_limit(), async || payload.recv().await);
            let timeout = handler.worker.request_timeout();
            match in_time(read, || sleep(Millis::from(timeout))).await {
                Ok(body) => execute(handler, media, wire::from_body(body.as_ref()), false),
                Err(error) => handler.worker.unread(media, error),
            }
        }
    }
}

fn execute(
    handler: &Handler,
    media: Media,
    request: Result<GraphqlRequest<'_, Variables>, WireError>,
    is_get: bool,
) -> Reply {
    match request {
        Ok(request) => {
            let outcome = schema::execute(&handler.schema, request, is_get);
            handler.worker.executed(media, outcome)
        }
        Err(error) => wire::not_a_request(media, error),
    }
}

async fn health(request: HttpRequest, handler: State<Rc<Handler>>) -> HttpResponse {
    let method = request.method().as_str();
    answered(&request, &handler, async { handler.worker.health(method) }).await
}

async fn metrics(request: HttpRequest, handler: State<Rc<Handler>>) -> HttpResponse {
    let method = request.method().as_str();
    answered(&request, &handler, async { handler.worker.metrics(method) }).await
}

async fn not_found(request: HttpRequest, handler: State<Rc<Handler>>) -> HttpResponse {
    let (method, path) = (request.method().as_str(), request.path());
    answered(&request, &handler, async {
        handler.worker.not_found(method, path)
    })
    .await
}

fn respond(reply: Reply, id: Option<&HeaderValue>, cors: Vec<CorsHeader>) -> HttpResponse {
    let status = StatusCode::from_u16(reply.status.code()).expect("our statuses are valid");
    let mut response = HttpResponse::build(status);
    response.header(header::CONTENT_TYPE, reply.content_type);
    for (name, value) in cors {
        response.header(name, value.as_bytes());
    }
    if let Some(id) = id {
        response.header(REQUEST_ID, id);
    }
    // The library writes the rest of the response, because its cost is measured.
    if let Some(allow) = reply.allow {
        response.header(header::ALLOW, allow);
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
