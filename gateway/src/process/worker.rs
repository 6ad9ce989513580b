//! A worker: a thread with a runtime of its own, its connections, and its view of the current generation.
//!
//! Workers share only immutable data, counters and the health state, so no request waits for another thread.
//! The acceptor assigns connections, see `listen`.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chassis::{Exchange, Tracked, TrackedBody, Tracker, count_rests};
use gateway_config::Config;
use gateway_remote::REST_PREFIX;
use gateway_upstream::{Client, ClientSettings};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::http::account::Recorder;
use crate::http::connections;
use crate::http::detached;
use crate::http::entrance::Entrance;
use crate::http::front::{self, Front};
use crate::http::invalidation;
use crate::http::outgoing::{self, Outgoing};
use crate::http::reply::{self, Reply};
use crate::http::tls::Tls;
use crate::process::generation::Generation;
use crate::process::mailbox::{Accepted, Order, Place};
use crate::process::metrics::{Shard, gathered};
use crate::process::process_state::ProcessState;
use crate::process::sites::Site;
use crate::process::worker_state::{SharedState, WorkerState};
use crate::stream::drain::Drain;
use crate::stream::subscription::callback;

/// The state of one worker.
struct Worker {
    serving: RefCell<Rc<WorkerState>>,
    client: Client,
    shard: Arc<Shard>,
    front: Front,
    process: Arc<ProcessState>,
    drain: Rc<Drain>,
}

/// Runs a worker on this thread until it receives a stop order. `open` counts its connections.
pub(crate) fn run(
    generation: Arc<Generation>,
    process: Arc<ProcessState>,
    orders: UnboundedReceiver<Order>,
    open: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    let runtime = count_rests(&mut tokio::runtime::Builder::new_current_thread())
        .enable_io()
        .enable_time()
        // Name resolution is the only blocking work. Its threads mostly wait. With several threads, a name
        // server that does not respond does not block other names.
        .max_blocking_threads(8)
        .build_local(LocalOptions::default())?;
    let shard = process.metrics.shard();
    let client = Client::new(ClientSettings {
        connections: connections::upstream(&generation.config),
        workers: NonZeroUsize::new(process.workers).unwrap_or(NonZeroUsize::MIN),
        traffic: Arc::clone(&process.traffic),
        ..ClientSettings::default()
    });
    let drain = Rc::<Drain>::default();
    let worker = Rc::new(Worker {
        serving: RefCell::new(WorkerState::new(
            generation,
            client.clone(),
            &shard,
            SharedState {
                planning: Arc::clone(&process.planning),
                drain: Rc::clone(&drain),
                subscriptions: Arc::clone(&process.subscriptions),
                callbacks: Arc::clone(&process.callbacks),
                completion_turns: Rc::default(),
            },
        )),
        client,
        front: Front::new(Recorder {
            shard: Arc::clone(&shard),
            health: Arc::clone(&process.health),
        }),
        shard,
        process,
        drain,
    });
    runtime.block_on(worker.run(orders, open));
    // Dropping the runtime drops the running requests.
    detached::stop();
    runtime.shutdown_background();
    Ok(())
}

impl Worker {
    /// The view of the current generation.
    fn serving(&self) -> Rc<WorkerState> {
        Rc::clone(&self.serving.borrow())
    }

    async fn run(self: Rc<Self>, mut orders: UnboundedReceiver<Order>, open: Arc<AtomicUsize>) {
        let sweeper = Rc::clone(&self);
        tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                // Closes idle connections. `sweep` defines their maximum age.
                sweeper.client.sweep();
            }
        });
        let workers = self.process.workers;
        let timeouts = || connections::timeouts(&self.serving().generation.config, workers);
        let tracker = Tracker::new(Arc::clone(&self.process.connections), timeouts());
        tokio::task::spawn_local(tracker.clone().watch());
        while let Some(order) = orders.recv().await {
            match order {
                Order::Connection(accepted) => self.accept(accepted, &tracker, &open),
                Order::Generation(generation) => {
                    let client = self.client.clone();
                    client.set_limits(connections::upstream(&generation.config));
                    let shared = self.serving().shared.clone();
                    let serving = WorkerState::new(generation, client, &self.shard, shared);
                    // Running requests hold an `Rc` of the former view and finish with it.
                    let former = self.serving.replace(Rc::clone(&serving));
                    // After the replacement, so that clients subscribe again on the new generation.
                    former.retire(&serving.generation);
                    tracker.set(timeouts());
                }
                Order::Stop(limit) => {
                    self.drain.begin(crate::process::clock::now(), limit);
                    // Requests that have not finished by then are dropped with their connections.
                    let _ = tokio::time::timeout(limit, tracker.finish()).await;
                    return;
                }
            }
        }
    }

    fn accept(self: &Rc<Self>, accepted: Accepted, tracker: &Tracker, open: &Arc<AtomicUsize>) {
        let open = Open(Arc::clone(open));
        match accepted {
            Accepted::Tcp {
                stream,
                peer,
                place,
            } => match tokio::net::TcpStream::from_std(stream) {
                Ok(stream) => {
                    let tls = self.serving.borrow().generation.tls.clone();
                    match tls.filter(|_| place.site.graphql) {
                        None => self.serve(stream, Some(peer.ip()), place, tracker, open),
                        Some(tls) => self.secure(tls, stream, peer.ip(), place, tracker, open),
                    }
                }
                Err(error) => log::warn!("a connection was lost: {error}"),
            },
            Accepted::Unix { stream, place } => match tokio::net::UnixStream::from_std(stream) {
                Ok(stream) => self.serve(stream, None, place, tracker, open),
                Err(error) => log::warn!("a connection was lost: {error}"),
            },
        }
    }

    /// Sets up TLS before the connection is served. Until then the connection counts in the connection table,
    /// with a time limit of its own.
    fn secure(
        self: &Rc<Self>,
        tls: Tls,
        stream: tokio::net::TcpStream,
        peer: IpAddr,
        mut place: Place,
        tracker: &Tracker,
        open: Open,
    ) {
        // Now, and not after the handshake, because otherwise the acceptor would wait for clients with a slow
        // handshake.
        place.slot.arrived();
        let (worker, tracker) = (Rc::clone(self), tracker.clone());
        tokio::task::spawn_local(async move {
            match tls.accept(stream).await {
                Ok(stream) => worker.serve(stream, Some(peer), place, &tracker, open),
                Err(error) => log::debug!("no TLS with {peer}: {error}"),
            }
        });
    }

    fn serve(
        self: &Rc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        peer: Option<IpAddr>,
        Place { site, slot }: Place,
        tracker: &Tracker,
        open: Open,
    ) {
        let worker = Rc::clone(self);
        let tracked = tracker.begin(slot);
        let connection: Tracked = tracked.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (worker, site) = (Rc::clone(&worker), Arc::clone(&site));
            let exchange = connection.request(request.version());
            let (parts, body) = request.into_parts();
            // Boxed here, because each function below would move it: 256 bytes.
            let parts = Box::new(parts);
            async move {
                let response = worker.answer(&site, peer, exchange, parts, body).await;
                Ok::<_, Infallible>(response)
            }
        });
        let builder = connections::builder(&self.serving.borrow().generation.config, Local);
        let connection = builder
            .serve_connection(tracked.io(TokioIo::new(stream)), service)
            .into_owned();
        tokio::task::spawn_local(async move {
            let _open = open;
            if let Err(error) = tracked.drive(connection).await {
                log::debug!("a connection ended: {error}");
            }
        });
    }

    async fn answer(
        self: &Rc<Self>,
        site: &Site,
        peer: Option<IpAddr>,
        exchange: Exchange,
        parts: Box<Parts>,
        body: Incoming,
    ) -> Response<TrackedBody<Outgoing>> {
        exchange.turn().await;
        let version = parts.version;
        let id = chassis::request_id(&parts.headers).cloned();
        let path = parts.uri.path();
        // Loaded once, so that the whole request uses the generation of its start.
        let serving = self.serving();
        let response = if site.graphql
            && let Some(entrance) = entrance(&serving.generation, path)
        {
            let work = connections::work(&exchange, &serving.generation.config);
            front::respond(&self.front, serving, entrance, peer, work, parts, body).await
        } else {
            outgoing::response(self.besides(site, parts, body).await)
        };
        let mut response = response.map(|body| exchange.answer(body));
        chassis::set_request_id(id, response.headers_mut());
        // The header makes a client open its next connection elsewhere, before this socket is closed. HTTP/2
        // has a frame for this, which is sent when the connection ends.
        if self.process.health.is_stopping() && version < http::Version::HTTP_2 {
            let close = http::HeaderValue::from_static("close");
            response
                .headers_mut()
                .insert(http::header::CONNECTION, close);
        }
        response
    }

    /// Responds to requests outside of GraphQL.
    async fn besides(&self, site: &Site, parts: Box<Parts>, body: Incoming) -> Reply {
        let path = parts.uri.path();
        if site.health.as_deref() == Some(path) {
            let now = crate::process::clock::now();
            read_only(&parts.method, || {
                self.process.health.answer(parts.uri.query(), now)
            })
        } else if site.graphql
            && [HEALTH_OF_HASURA, VERSION_OF_HASURA].contains(&path)
            && is_merged(&self.serving().generation.config)
        {
            let now = crate::process::clock::now();
            read_only(&parts.method, || match path {
                VERSION_OF_HASURA => version(),
                _ => self.process.health.brief(now),
            })
        } else if site.metrics.as_deref() == Some(path) {
            let serving = self.serving();
            read_only(&parts.method, || self.metrics(&serving.generation))
        } else if site.invalidation.as_deref() == Some(path) {
            let serving = self.serving();
            Box::pin(invalidation::answer(&serving.generation, *parts, body)).await
        } else if let Some(below) = &site.callback
            && let Some(id) = callback::id_of(path, below)
        {
            let id = id.to_owned();
            let callbacks = &self.process.callbacks;
            Box::pin(callback::answer(callbacks, &id, *parts, body)).await
        } else {
            reply::empty(StatusCode::NOT_FOUND)
        }
    }

    fn metrics(&self, generation: &Generation) -> Reply {
        let text = gathered::text(&self.process, generation);
        let media = http::HeaderValue::from_static(telemetry::metrics::CONTENT_TYPE);
        reply::with_body(StatusCode::OK, media, text)
    }
}

/// The path of Hasura's health check, which probes of its users ask on the port of queries.
const HEALTH_OF_HASURA: &str = "/healthz";

/// The path of Hasura's version, which its command line and monitors ask.
const VERSION_OF_HASURA: &str = "/v1/version";

/// The name and the version of this server, in the form of Hasura. The name is not Hasura's, because a client
/// must not expect Hasura's other interfaces.
fn version() -> Reply {
    let body = concat!(
        r#"{"server_type":"weighbridge-gateway","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#""}"#
    );
    reply::with_body(StatusCode::OK, reply::JSON, body)
}

/// True if the schema is merged, as in Hasura.
fn is_merged(config: &Config) -> bool {
    !config.remote_schemas.is_empty() || !config.actions.is_empty()
}

/// The GraphQL endpoint for this path, if there is one.
fn entrance(generation: &Generation, path: &str) -> Option<Entrance> {
    if generation.path.fits(path) {
        return Some(Entrance::Graphql);
    }
    (path.starts_with(REST_PREFIX) && generation.rest.is_some()).then_some(Entrance::Rest)
}

/// Responds on a path that allows only GET and HEAD.
fn read_only(method: &Method, show: impl FnOnce() -> Reply) -> Reply {
    if method == Method::GET || method == Method::HEAD {
        return show();
    }
    let mut reply = reply::empty(StatusCode::METHOD_NOT_ALLOWED);
    let allow = http::HeaderValue::from_static("GET, HEAD");
    reply.headers.insert(http::header::ALLOW, allow);
    reply
}

/// A connection that counts as open until this value is dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        // Relaxed, as in `listen`, because the number is only compared and guards no memory.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets hyper's tasks run on this thread.
#[derive(Clone, Copy, Debug)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(async {
            task.await;
        });
    }
}
