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

/// What answers the requests of one worker.
pub trait Handler: 'static {
    /// Of its answers.
    type Body: Body<Data: 'static, Error: Into<Box<dyn Error + Send + Sync>>> + 'static;

    /// Answers a request; what is wrong with it is said in the answer.
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

    /// Hands a connection over; it is closed when the worker has panicked.
    pub(crate) fn give(&self, connection: TcpStream) {
        let _ = self.work.send(Work::Connection(connection));
    }

    /// Has it accept by itself: a connection then costs no other thread's work.
    pub(crate) fn listen(&self, listener: TcpListener) {
        let _ = self.work.send(Work::Listener(listener));
    }

    /// Takes no more connections, and waits until those that are open are done or had their time.
    pub(crate) fn finish(self) {
        drop(self.work);
        // A worker that panicked has said so already.
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
        // A runtime cannot change threads, so that whoever starts this one waits to hear of it.
        match serve::runtime() {
            Ok(runtime) => {
                let _ = begun.send(Ok(()));
                runtime.block_on(work());
            }
            Err(error) => drop(begun.send(Err(error))),
        }
    })?;
    begins.recv().unwrap_or(Ok(()))?;
    Ok(thread)
}

/// Serves until no connection can arrive any more and those that are open have had their time.
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
            // What goes wrong here is the client's: it left, or it does not speak HTTP.
            let _ = handle.serve(watcher.watch(connection)).await;
        });
    }
    drop(listener);
    // Those that are not done by now are closed with the runtime.
    let _ = tokio::time::timeout(limits.stop_timeout, graceful.shutdown()).await;
}

/// What a worker does next.
enum Next {
    Work(Work),
    Accepted(io::Result<TcpStream>),
}

/// Waits for it; `None` when nothing is to come any more.
async fn next(arriving: &mut UnboundedReceiver<Work>, listener: Option<&Listener>) -> Option<Next> {
    poll_fn(|task| {
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
