//! A thread that serves the connections it is given, or accepts.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::task::Poll;
use std::thread::{self, JoinHandle};

use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::spawn_local;

use crate::connection::Connection;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::serve;

/// Answers the requests of one worker.
pub trait Handler: 'static {
    /// The type of its answers' bodies.
    type Body: Body<Data: 'static, Error: Into<Box<dyn Error + Send + Sync>>> + 'static;

    /// Answers a request. Errors are part of the answer.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>>;
}

/// What a worker serves.
#[derive(Debug)]
enum Work {
    Connection(TcpStream),
    /// All connections that arrive here from now on.
    Listener(TcpListener),
}

/// A thread that serves the connections it is given, over HTTP/1.1 and HTTP/2 without TLS.
#[derive(Debug)]
pub struct Worker {
    work: UnboundedSender<Work>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts a thread; `prepare` makes its handler there, before the first connection is served.
    ///
    /// # Errors
    /// When the system has no more threads or file descriptors.
    pub fn start<D: Handler, P: Future<Output = D>>(
        number: u16,
        limits: Limits,
        prepare: impl FnOnce() -> P + Send + 'static,
    ) -> io::Result<Self> {
        let (work, arriving) = mpsc::unbounded_channel();
        let thread = worker_thread(number, async move || {
            let handler = Rc::new(prepare().await);
            serve_all(handler, arriving, limits).await;
        })?;
        Ok(Self { work, thread })
    }

    /// Hands a connection over. If the worker has panicked, the connection is closed.
    pub(crate) fn give(&self, connection: TcpStream) {
        let _ = self.work.send(Work::Connection(connection));
    }

    /// Makes the worker accept connections itself: a connection then costs no other thread's work.
    pub(crate) fn listen(&self, listener: TcpListener) {
        let _ = self.work.send(Work::Listener(listener));
    }

    /// Takes no more connections, and waits until the open ones are done or out of time.
    pub(crate) fn finish(self) {
        drop(self.work);
        // A worker that panicked has printed its panic already.
        let _ = self.thread.join();
    }
}

/// Starts the thread of a worker, with a runtime of its own that `work` runs on.
///
/// # Errors
/// When the system has no more threads or file descriptors.
pub fn worker_thread<F: Future<Output = ()>>(
    number: u16,
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (begun, begins) = std::sync::mpsc::sync_channel(1);
    let name = format!("worker-{number}");
    let thread = thread::Builder::new().name(name).spawn(move || {
        // A runtime cannot change threads, so it is built here and the caller waits for its result.
        match serve::runtime() {
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

/// Serves until no more connections can arrive and the open ones are done or out of time.
async fn serve_all<D: Handler>(
    handler: Rc<D>,
    mut arriving: UnboundedReceiver<Work>,
    limits: Limits,
) {
    let graceful = GracefulShutdown::new();
    let mut builder = auto::Builder::new(SameThread);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout);
    builder.http2().timer(TokioTimer::new());
    // Shared: hyper copies what a connection needs of it, and building one costs more than a count.
    let builder = Rc::new(builder);
    let mut listener = None;
    while let Some(next) = next(&mut arriving, listener.as_ref()).await {
        let stream = match next {
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
            Next::Work(Work::Connection(stream)) | Next::Accepted(Ok(stream)) => stream,
            Next::Accepted(Err(error)) => {
                serve::pause_after(&error).await;
                continue;
            }
        };
        // Two handles: one learns from requests, the other drives the connection.
        let connection = Connection::new(stream);
        let handle = connection.handle();
        let observed = handle.clone();
        let (builder, handler, watcher) =
            (Rc::clone(&builder), Rc::clone(&handler), graceful.watcher());
        spawn_local(async move {
            let service = service_fn(|request| {
                observed.learn(&request);
                let handler = Rc::clone(&handler);
                async move { Ok::<_, Infallible>(handler.answer(request).await) }
            });
            let connection = builder.serve_connection(connection, service);
            // Errors here concern one client: it left, or it does not speak HTTP.
            let _ = handle.serve(watcher.watch(connection)).await;
        });
    }
    drop(listener);
    // Connections that are not done by now are closed with the runtime.
    let _ = tokio::time::timeout(limits.stop_timeout, graceful.shutdown()).await;
}

/// What a worker does next.
enum Next {
    Work(Work),
    Accepted(io::Result<TcpStream>),
}

/// Waits for more work; `None` when no more can come.
async fn next(arriving: &mut UnboundedReceiver<Work>, listener: Option<&Listener>) -> Option<Next> {
    poll_fn(|task| {
        // The channel first: its end means to stop, which must not wait for a client.
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

/// Runs what hyper spawns for HTTP/2 on the worker's own thread.
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
