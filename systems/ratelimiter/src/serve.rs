//! Sockets, threads and the end: from the command line to a stopped server.
//!
//! One thread accepts and deals connections out in turn, so that few connections spread evenly;
//! each worker serves its own on a runtime of its own, with one connection to Redis. The memory
//! store and the counters are all that workers share.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{LocalSet, spawn_local};

use crate::config::Config;
use crate::email::FingerprintKey;
use crate::exchange::Desk;
use crate::gate::{Gate, Store};
use crate::memory::MemoryStore;
use crate::metrics::Metrics;
use crate::redis_store::{RedisStore, RedisStoreError};
use crate::{clock, graphql, journal};

/// Time that a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the first connection to Redis may delay the start.
const FIRST_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Why nothing was served, or no longer.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("cannot listen on `{listen}`: {source}; choose another with --host and --port")]
    Listen {
        listen: SocketAddr,
        source: io::Error,
    },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
    #[error(transparent)]
    Redis(#[from] RedisStoreError),
    #[error("the system gave no random bytes for the key of fingerprints; set RATELIMIT_EMAIL_KEY")]
    NoRandomness,
}

/// A thread that serves the connections it is given.
struct Worker {
    connections: UnboundedSender<TcpStream>,
    thread: JoinHandle<()>,
}

/// The whole program.
#[must_use]
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let config = match Config::read(words) {
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
    let listen = SocketAddr::new(config.host, config.port);
    let listener =
        TcpListener::bind(listen).map_err(|source| ServeError::Listen { listen, source })?;
    let address = listener.local_addr()?;
    let setup = Setup::new(config)?;
    let workers = (0..config.workers())
        .map(|number| Worker::start(number, setup.gate()?, config))
        .collect::<Result<Vec<_>, ServeError>>()?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stopped = stop_signal()?;
        if let Some(store) = &setup.memory {
            tokio::spawn(sweep(Arc::clone(store)));
        }
        journal::announce(&format!("listening on http://{address}"));
        let fields = [
            ("address", address.to_string().into()),
            ("workers", workers.len().into()),
            ("store", setup.store_name().into()),
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

/// What the gates of all workers are made of.
struct Setup<'a> {
    config: &'a Config,
    redis: Option<String>,
    memory: Option<Arc<MemoryStore>>,
    key: FingerprintKey,
    metrics: Arc<Metrics>,
}

impl<'a> Setup<'a> {
    fn new(config: &'a Config) -> Result<Self, ServeError> {
        let redis = config.redis();
        let entries_max = usize::try_from(config.max_entries).unwrap_or(usize::MAX);
        let memory = || Arc::new(MemoryStore::new(config.rule(), entries_max));
        let key = match (&config.email_key, &redis) {
            (Some(text), _) => FingerprintKey::from_text(text),
            (None, None) => FingerprintKey::random().ok_or(ServeError::NoRandomness)?,
            (None, Some(_)) => {
                let advice = "set RATELIMIT_EMAIL_KEY, the same for all instances; without it, \
                              who reads Redis can guess e-mails";
                journal::write(
                    "fingerprints without a secret",
                    &[("advice", advice.into())],
                );
                FingerprintKey::from_text("")
            }
        };
        Ok(Self {
            config,
            memory: redis.is_none().then(memory),
            redis,
            key,
            metrics: Arc::default(),
        })
    }

    fn store_name(&self) -> &'static str {
        if self.memory.is_some() {
            "memory"
        } else {
            "redis"
        }
    }

    /// The gate of one worker.
    fn gate(&self) -> Result<Gate, ServeError> {
        let store = match (&self.memory, &self.redis) {
            (Some(store), _) => Store::Memory(Arc::clone(store)),
            (None, url) => {
                let url = url.as_deref().expect("there is Redis where memory is not");
                let (rule, deadline) = (self.config.rule(), self.config.store_deadline());
                Store::Redis(RedisStore::new(url, rule, deadline)?)
            }
        };
        Ok(Gate {
            store,
            policy: self.config.store_failure,
            key: self.key.clone(),
            ipv6_prefix: self.config.ipv6_prefix,
            metrics: Arc::clone(&self.metrics),
        })
    }
}

async fn sweep(store: Arc<MemoryStore>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        store.sweep(clock::now_ms());
    }
}

/// Completes at the first SIGTERM or SIGINT.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(std::future::poll_fn(move |task| {
        let terminated = terminate.poll_recv(task).is_ready();
        if terminated || interrupt.poll_recv(task).is_ready() {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    }))
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
    fn start(number: u16, gate: Gate, config: &Config) -> Result<Self, ServeError> {
        let (connections, arriving) = mpsc::unbounded_channel();
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (has_introspection, shape) = (config.has_introspection(), config.errors);
        let patience = config.stop_timeout();
        let thread = thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                LocalSet::new().block_on(&runtime, async move {
                    if let Store::Redis(store) = &gate.store {
                        tokio::spawn(store.clone().keep_connected());
                        // Without Redis the policy answers.
                        store.ready(FIRST_CONNECT_TIMEOUT).await;
                    }
                    let desk = Rc::new(Desk {
                        metrics: Arc::clone(&gate.metrics),
                        executor: graphql::Executor::new(gate, shape, has_introspection),
                    });
                    serve_all(desk, arriving, patience).await;
                });
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
