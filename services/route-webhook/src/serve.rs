//! Runs the server from the command line to its stop.
//!
//! Each worker accepts connections from the shared listening socket and serves them on its own runtime, so no
//! connection changes threads. Workers share only counters.
//!
//! It uses the sockets of `chassis`, but not its workers. Those also support HTTP/2, write head and body from
//! two places, and have one thread that assigns connections. Each of these is too expensive for a service
//! that has a quarter of a processor and gets a connection for every request.

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use chassis::{
    ClientConnection, ConnectionTable, Listener, ListenerTls, ServerLimits, TlsError, Tracked,
    Tracker,
};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::config::Config;
use crate::credentials::{Callers, SecretError};
use crate::deploy::{Access, Cluster};
use crate::exchange::Handler;
use crate::metrics::Metrics;

/// Time that a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why the service could not start or had to stop.
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
    Secret(#[from] SecretError),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Runs the whole program and returns its exit code.
#[must_use]
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    chassis::run(Config::read(words), Config::log_level, listen_and_serve)
}

fn listen_and_serve(config: &Config) -> Result<(), ServeError> {
    let listen = SocketAddr::new(config.host, config.port);
    let token_file = config.route_token_file.as_deref();
    let access = Access::new(config.host, token_file, &config.route_namespaces)?;
    let callers = Callers::new(
        config.bearer_token_file.as_deref(),
        config.basic_credentials_file.as_deref(),
    )?;
    let tls = config.tls.open(chassis::HTTP1)?;
    let listener =
        TcpListener::bind(listen).map_err(|source| ServeError::Listen { listen, source })?;
    chassis::prepare(&listener)?;
    let address = listener.local_addr()?;
    let metrics = Arc::new(Metrics::default());
    let table = ConnectionTable::new(config.connections.most());
    let (stop, stopped) = watch::channel(());
    let workers = (0..config.workers())
        .map(|number| {
            // All workers accept from one socket, so that a connection costs no work of another thread.
            let listener = listener.try_clone()?;
            let site = Site {
                listener,
                config: config.clone(),
                access: access.clone(),
                callers: callers.clone(),
                metrics: Arc::clone(&metrics),
                table: Arc::clone(&table),
                tls: tls.clone(),
                stopped: stopped.clone(),
            };
            site.start(number)
        })
        .collect::<io::Result<Vec<_>>>()?;
    // The workers have their own copies. With this copy, the socket would stay open after they have closed
    // theirs.
    drop(listener);
    let runtime = chassis::runtime()?;
    runtime.block_on(async {
        // Before the address is printed: a process that waits for the line may stop the service immediately.
        let asked = chassis::stop_signal()?;
        let scheme = chassis::scheme(tls.is_some());
        telemetry::announce(&format!("listening on {scheme}://{address}"));
        tracing::info!(%address, workers = workers.len(), "started");
        asked.await;
        Ok::<_, io::Error>(())
    })?;
    tracing::info!("stopping");
    // Closes the channel, which notifies every worker.
    drop(stop);
    for worker in workers {
        // A panicking worker has already printed its message.
        let _ = worker.join();
    }
    tracing::info!("stopped");
    Ok(())
}

/// The state that a worker starts with.
struct Site {
    listener: TcpListener,
    config: Config,
    access: Access,
    callers: Callers,
    metrics: Arc<Metrics>,
    table: Arc<ConnectionTable>,
    tls: Option<ListenerTls>,
    /// Closed when the service must stop.
    stopped: watch::Receiver<()>,
}

impl Site {
    fn start(self, number: u16) -> io::Result<JoinHandle<()>> {
        chassis::worker_thread(number, async move || {
            if let Err(error) = self.serve().await {
                tracing::error!(%error, "cannot serve");
            }
        })
    }

    /// Serves until the service stops, and the open connections are done or timed out.
    async fn serve(self) -> io::Result<()> {
        let handler = Rc::new(Handler {
            rules: self.config.rules(),
            origins: self.config.origins(),
            body_limit: self.config.body_limit(),
            access: self.access,
            callers: self.callers,
            has_etags: self.config.etags,
            cluster: Cluster::new(self.config.kubeconfig.clone()),
            metrics: self.metrics,
            connections: Arc::clone(&self.table),
        });
        let listener = Listener::new(self.listener)?;
        let limit = self.config.stop_timeout();
        let ServerLimits { timeouts, .. } = self.config.connections.limits(HEAD_TIMEOUT, limit);
        let tracker = Tracker::new(Arc::clone(&self.table), timeouts);
        spawn_local(tracker.clone().watch());
        let mut builder = http1::Builder::new();
        // Copying a response behind its head costs less than sending from two buffers.
        builder.writev(false);
        let mut stopped = self.stopped;
        let mut closed = pin!(stopped.changed());
        loop {
            let accepted = std::future::poll_fn(|task| {
                // First, so that a flood of connections cannot delay the stop.
                if closed.as_mut().poll(task).is_ready() {
                    return Poll::Ready(None);
                }
                listener.poll_accept(task).map(Some)
            });
            match accepted.await {
                None => break,
                Some(Ok((stream, peer))) => {
                    // Refused connections are closed at once.
                    let Ok(slot) = self.table.take(Some(peer.ip())) else {
                        continue;
                    };
                    match ClientConnection::accepted(stream, self.tls.as_ref()) {
                        Ok(connection) => {
                            // Only now, because a tracked connection needs its driver.
                            let tracked = tracker.begin(slot);
                            let handler = Rc::clone(&handler);
                            spawn_local(converse(connection, tracked, &builder, handler));
                        }
                        Err(error) => tracing::warn!(%error, "a connection was lost"),
                    }
                    chassis::pause_in_crowd(&self.table).await;
                }
                Some(Err(error)) => chassis::pause_after(&self.table, &error).await,
            }
        }
        drop(listener);
        // Connections that are not done by now are closed with the runtime.
        let _ = tokio::time::timeout(limit, tracker.finish()).await;
        Ok(())
    }
}

/// Serves all requests of a connection.
fn converse(
    connection: ClientConnection,
    tracked: Tracked,
    builder: &http1::Builder,
    handler: Rc<Handler>,
) -> impl Future<Output = ()> + 'static {
    let handle = connection.handle();
    let observer = handle.clone();
    let requests = tracked.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        observer.learn(&request);
        let exchange = requests.request(request.version());
        let handler = Rc::clone(&handler);
        async move {
            exchange.turn().await;
            let response = handler.answer(request).await;
            Ok::<_, Infallible>(response.map(|body| exchange.answer(body)))
        }
    });
    let connection = builder.serve_connection(tracked.io(connection), service);
    async move {
        // Errors here concern one client: it has left, or it does not use HTTP.
        let _ = handle.serve(tracked.drive(connection)).await;
    }
}
