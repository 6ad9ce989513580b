//! A thread that serves assigned connections, or accepts connections itself.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, JoinHandle};

use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::spawn_local;

use crate::accept::{pause_after, pause_in_crowd};
use crate::client::ClientNetwork;
use crate::connection::ClientConnection;
use crate::connection_table::{ConnectionTable, Slot};
use crate::limits::{HTTP2_PING_INTERVAL, HTTP2_PING_TIMEOUT, ServerLimits};
use crate::listener::Listener;
use crate::request_id::{request_id, set_request_id};
use crate::runtime::runtime;
use crate::tls::ListenerTls;
use crate::tracker::{Tracked, Tracker};

/// Handles the requests of one worker.
pub trait Handler: 'static {
    /// The body type of responses.
    type Body: Body<Data: 'static, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin + 'static;

    /// Handles a client's request. Errors are part of the response.
    fn answer(
        &self,
        client: ClientNetwork,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>>;
}

/// The source of a worker's connections.
#[derive(Debug)]
enum Work {
    Connection(TcpStream, Slot),
    /// A listener, so that the worker accepts all further connections itself.
    Listener(TcpListener),
}

/// A thread that serves its connections over HTTP/1.1 and HTTP/2, with or without TLS.
#[derive(Debug)]
pub struct Worker {
    work: UnboundedSender<Work>,
    thread: JoinHandle<()>,
    is_secured: bool,
}

impl Worker {
    /// Starts a thread. `prepare` creates its handler on that thread, before the first connection is served.
    ///
    /// # Errors
    /// Fails if the system has no more threads or file descriptors.
    pub fn start<D: Handler, P: Future<Output = D>>(
        number: u16,
        table: &Arc<ConnectionTable>,
        limits: ServerLimits,
        tls: Option<&ListenerTls>,
        prepare: impl FnOnce() -> P + Send + 'static,
    ) -> io::Result<Self> {
        let site = Site {
            table: Arc::clone(table),
            limits,
            tls: tls.cloned(),
        };
        let (work, arriving) = mpsc::unbounded_channel();
        let thread = worker_thread(number, async move || {
            let handler = Rc::new(prepare().await);
            serve_all(handler, arriving, site).await;
        })?;
        let is_secured = tls.is_some();
        Ok(Self {
            work,
            thread,
            is_secured,
        })
    }

    /// True if clients need TLS.
    pub(crate) fn is_secured(&self) -> bool {
        self.is_secured
    }

    /// Assigns a connection to the worker. If the worker has panicked, the connection is closed.
    pub(crate) fn give(&self, connection: TcpStream, slot: Slot) {
        let _ = self.work.send(Work::Connection(connection, slot));
    }

    /// Makes the worker accept connections itself. A connection then costs no work of another thread.
    pub(crate) fn listen(&self, listener: TcpListener) {
        let _ = self.work.send(Work::Listener(listener));
    }

    /// Stops all workers. They take no more connections, and finish the open ones or time out.
    pub(crate) fn finish_all(workers: Vec<Self>) {
        // All workers receive the order before `finish_all` waits for one of them. Otherwise each worker would use
        // the whole timeout after the worker before it, and accept requests meanwhile.
        let threads: Vec<_> = workers
            .into_iter()
            .map(|Self { work, thread, .. }| {
                drop(work);
                thread
            })
            .collect();
        for thread in threads {
            // A panicking worker has already printed its message.
            let _ = thread.join();
        }
    }
}

/// The settings that all workers of a service share.
struct Site {
    table: Arc<ConnectionTable>,
    limits: ServerLimits,
    tls: Option<ListenerTls>,
}

/// Starts the thread of a worker, and runs `work` on its own runtime.
///
/// # Errors
/// Fails if the system has no more threads or file descriptors.
pub fn worker_thread<F: Future<Output = ()>>(
    number: u16,
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (begun, begins) = std::sync::mpsc::sync_channel(1);
    let name = format!("worker-{number}");
    let thread = thread::Builder::new().name(name).spawn(move || {
        // A runtime cannot change threads, so it is built here and the caller waits for its result.
        match runtime() {
            Ok(runtime) => {
                let _ = begun.send(Ok(()));
                runtime.block_on(work());
            }
            Err(error) => drop(begun.send(Err(error))),
        }
    })?;
    let begun = begins.recv();
    begun.expect("the thread reports before it works")?;
    Ok(thread)
}

/// Serves until no more connections can arrive, and the open ones are done or timed out.
async fn serve_all<D: Handler>(
    handler: Rc<D>,
    mut arriving: UnboundedReceiver<Work>,
    Site { table, limits, tls }: Site,
) {
    let tracker = Tracker::new(Arc::clone(&table), limits.timeouts);
    spawn_local(tracker.clone().watch());
    // Shared, because building one costs more than a reference count. hyper copies the parts it needs.
    let builder = Rc::new(builder(limits.http2_streams));
    let mut listener = None;
    while let Some(next) = next(&mut arriving, listener.as_ref()).await {
        let (stream, slot) = match next {
            Next::Work(Work::Listener(given)) => {
                match Listener::new(given) {
                    Ok(given) => listener = Some(given),
                    Err(error) => {
                        tracing::error!(%error, "cannot listen");
                        return;
                    }
                }
                continue;
            }
            Next::Work(Work::Connection(stream, slot)) => (stream, slot),
            Next::Accepted(Ok((stream, peer))) => match table.take(Some(peer.ip())) {
                Ok(slot) => (stream, slot),
                // Refused connections are closed at once.
                Err(_) => continue,
            },
            Next::Accepted(Err(error)) => {
                pause_after(&table, &error).await;
                continue;
            }
        };
        let client = ClientNetwork::of(slot.network());
        match ClientConnection::accepted(stream, tls.as_ref()) {
            Ok(connection) => drop(spawn_local(converse(
                connection,
                client,
                // Only now, because a tracked connection needs its driver.
                tracker.begin(slot),
                Rc::clone(&builder),
                Rc::clone(&handler),
            ))),
            Err(error) => tracing::warn!(%error, "a connection was lost"),
        }
        if listener.is_some() {
            pause_in_crowd(&table).await;
        }
    }
    drop(listener);
    // Connections that are not done by now are closed with the runtime.
    let _ = tokio::time::timeout(limits.stop_timeout, tracker.finish()).await;
}

fn builder(http2_streams: u32) -> auto::Builder<SameThread> {
    let mut builder = auto::Builder::new(SameThread);
    // HTTP/1.1 needs no timer, because the tracker detects a slow head.
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(http2_streams)
        // A client that has disappeared answers no ping.
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT);
    builder
}

/// Serves all requests of a connection.
async fn converse<D: Handler>(
    connection: ClientConnection,
    client: ClientNetwork,
    tracked: Tracked,
    builder: Rc<auto::Builder<SameThread>>,
    handler: Rc<D>,
) {
    // Two handles: one reads from requests if the connection ends, the other drives the connection.
    let handle = connection.handle();
    let observed = handle.clone();
    let service = service_fn(|request| {
        observed.learn(&request);
        let exchange = tracked.request(request.version());
        let handler = Rc::clone(&handler);
        async move {
            exchange.turn().await;
            let id = request_id(request.headers()).cloned();
            let mut response = handler.answer(client, request).await;
            set_request_id(id, response.headers_mut());
            Ok::<_, Infallible>(response.map(|body| exchange.answer(body)))
        }
    });
    let connection = builder.serve_connection(tracked.io(connection), service);
    // Errors here concern one client: it has left, or it does not use HTTP.
    let _ = handle.serve(tracked.clone().drive(connection)).await;
}

/// The next event of a worker.
enum Next {
    Work(Work),
    Accepted(io::Result<(TcpStream, SocketAddr)>),
}

/// Waits for more work. Returns `None` if no more work can arrive.
async fn next(arriving: &mut UnboundedReceiver<Work>, listener: Option<&Listener>) -> Option<Next> {
    poll_fn(|task| {
        // The channel first: its end means stop, and a stop must not wait for a client.
        if let Poll::Ready(work) = arriving.poll_recv(task) {
            return Poll::Ready(work.map(Next::Work));
        }
        match listener.map(|listener| listener.poll_accept(task)) {
            Some(Poll::Ready(accepted)) => Poll::Ready(Some(Next::Accepted(accepted))),
            _ => Poll::Pending,
        }
    })
    .await
}

/// Runs the tasks that hyper spawns for HTTP/2 on the worker's own thread.
#[derive(Debug, Clone, Copy)]
struct SameThread;

impl<F> Executor<F> for SameThread
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}
