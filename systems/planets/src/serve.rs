//! Sockets, threads and the end: from the command line to a stopped server.
//!
//! One thread accepts and deals connections out in turn, so that few connections spread evenly;
//! each worker serves its own on a runtime of its own and shares nothing on the way.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser as _;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{LocalSet, spawn_local};

use crate::answer::Desk;
use crate::config::Config;
use crate::journal;
use crate::seen::Seen;
use crate::subgraph::Subgraphs;

/// Time that a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Why nothing was served, or no longer.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("cannot listen on `{listen}`: {source}; choose another address with --listen")]
    Listen { listen: String, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}

/// A thread that serves the connections it is given.
struct Worker {
    connections: UnboundedSender<TcpStream>,
    thread: JoinHandle<()>,
}

/// The whole program.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let config = match Config::try_parse_from(words) {
        Ok(config) => config,
        Err(answer) => {
            // Nobody is left to be told when the stream is closed.
            let _ = answer.print();
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
    };
    match listen_and_serve(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            journal::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn listen_and_serve(config: &Config) -> Result<(), ServeError> {
    let listener = TcpListener::bind(&config.listen).map_err(|source| ServeError::Listen {
        listen: config.listen.clone(),
        source,
    })?;
    let address = listener.local_addr()?;
    let seen = Arc::new(Seen::new(config.count_headers.clone()));
    let workers = (0..config.workers())
        .map(|number| Worker::start(number, config, &seen))
        .collect::<io::Result<Vec<_>>>()?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stopped = stop_signal()?;
        journal::announce(&format!("listening on http://{address}"));
        let workers_count = workers.len();
        let fields = [
            ("address", address.to_string().into()),
            ("workers", workers_count.into()),
        ];
        journal::write("started", &fields);
        deal_out(listener, &workers, stopped).await
    })?;
    journal::write("stopping", &[]);
    for worker in workers {
        drop(worker.connections);
        // A worker that panicked has said so already.
        let _ = worker.thread.join();
    }
    journal::write("stopped", &[]);
    Ok(())
}

/// Completes at the first SIGTERM or SIGINT; a second one ends the process at once.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        std::future::poll_fn(|task| {
            let terminated = terminate.poll_recv(task).is_ready();
            if terminated || interrupt.poll_recv(task).is_ready() {
                return std::task::Poll::Ready(());
            }
            std::task::Poll::Pending
        })
        .await;
    })
}

/// Accepts until `stopped` and gives each worker a connection in turn.
async fn deal_out(
    listener: TcpListener,
    workers: &[Worker],
    stopped: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut stopped = std::pin::pin!(stopped);
    let mut turns = workers.iter().cycle();
    loop {
        let accepted = std::future::poll_fn(|task| {
            if stopped.as_mut().poll(task).is_ready() {
                return std::task::Poll::Ready(None);
            }
            listener.poll_accept(task).map(Some)
        })
        .await;
        match accepted {
            None => return Ok(()),
            Some(Ok((stream, _))) => {
                let worker = turns.next().expect("there is at least one worker");
                let stream = stream.into_std()?;
                // Fails only when the worker has panicked; the connection is then closed.
                let _ = worker.connections.send(stream);
            }
            Some(Err(error)) => {
                // Out of file descriptors, most likely: connections that end make room.
                journal::write("accept failed", &[("error", error.to_string().into())]);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

impl Worker {
    fn start(number: u16, config: &Config, seen: &Arc<Seen>) -> io::Result<Self> {
        let (connections, arriving) = mpsc::unbounded_channel();
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (config, seen) = (config.clone(), Arc::clone(seen));
        let thread = thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                let desk = Rc::new(Desk {
                    subgraphs: Subgraphs::new().into(),
                    shard: seen.shard(),
                    seen,
                    delay: config.delay,
                    body_limit: config.body_limit,
                });
                let work = serve_all(desk, arriving, config.stop_timeout);
                LocalSet::new().block_on(&runtime, work);
            })?;
        Ok(Self {
            connections,
            thread,
        })
    }
}

/// Serves until no connection can arrive any more and those that are open have had their time.
async fn serve_all(desk: Rc<Desk>, mut arriving: UnboundedReceiver<TcpStream>, patience: Duration) {
    let graceful = GracefulShutdown::new();
    let mut builder = auto::Builder::new(SameThread);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new());
    let builder = Rc::new(builder);
    while let Some(stream) = arriving.recv().await {
        let Ok(stream) = ready(stream) else {
            continue; // The client is gone.
        };
        let (builder, desk, watcher) = (Rc::clone(&builder), Rc::clone(&desk), graceful.watcher());
        spawn_local(async move {
            let service = service_fn(|request| {
                let desk = Rc::clone(&desk);
                async move { Ok::<_, std::convert::Infallible>(desk.answer(request).await) }
            });
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // What goes wrong here is the client's: it left, or it does not speak HTTP.
            let _ = watcher.watch(connection).await;
        });
    }
    // Those that are not done by now are closed with the runtime.
    let _ = tokio::time::timeout(patience, graceful.shutdown()).await;
}

/// A connection that sends answers at once.
fn ready(stream: TcpStream) -> io::Result<tokio::net::TcpStream> {
    stream.set_nodelay(true)?;
    tokio::net::TcpStream::from_std(stream)
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
