//! The layer between our acceptor and ntex's HTTP service. It tracks connections, and lets requests find
//! their connection.

use std::cell::RefCell;
use std::io;
use std::net::TcpStream;
use std::pin::pin;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use chassis::{ListenerTls, Slot, Tracked};
use graphql_server::connections::Connections;
use ntex::SharedCfg;
use ntex::io::{Base, Filter, Io, IoRef, Layer};
use ntex::service::{Service, ServiceCtx, ServiceFactory};
use ntex::time::Millis;
use ntex::util::{HashMap, join};
use ntex::web::HttpRequest;
use ntex_tls::rustls::TlsServerFilter;

use crate::acceptor::Working;

/// The connections of one worker, by their sockets.
pub(crate) struct Open {
    connections: Connections,
    tracked: RefCell<HashMap<IoRef, Tracked>>,
}

impl Open {
    pub(crate) fn new(connections: Connections) -> Rc<Self> {
        Rc::new(Self {
            connections,
            tracked: RefCell::default(),
        })
    }

    /// The connection of a request.
    pub(crate) fn of(&self, request: &HttpRequest) -> Tracked {
        let tracked = self.tracked.borrow();
        let found = request.io().and_then(|socket| tracked.get(socket));
        found
            .expect("a connection is here as long as it is served")
            .clone()
    }
}

/// An accepted and counted connection.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) slot: Slot,
}

/// The step from an accepted socket to the socket of the HTTP service.
pub(crate) trait SocketEntry: Clone + Send + 'static {
    /// The layers of the socket.
    type Filter: Filter;

    /// Prepares a socket for the HTTP service. `None` if the client does not use TLS as it must.
    fn enter(
        &self,
        stream: TcpStream,
        config: SharedCfg,
    ) -> impl Future<Output = io::Result<Option<Io<Self::Filter>>>>;
}

/// Sockets without TLS.
#[derive(Clone)]
pub(crate) struct Plain;

/// Sockets that begin with a handshake of TLS.
#[derive(Clone)]
pub(crate) struct Secured {
    pub(crate) tls: ListenerTls,
    /// Maximum time of a handshake.
    pub(crate) limit: Duration,
}

impl SocketEntry for Plain {
    type Filter = Base;

    async fn enter(&self, stream: TcpStream, config: SharedCfg) -> io::Result<Option<Io>> {
        ntex::rt::from_tcp_stream(stream, config).map(Some)
    }
}

impl SocketEntry for Secured {
    type Filter = Layer<TlsServerFilter>;

    async fn enter(
        &self,
        stream: TcpStream,
        config: SharedCfg,
    ) -> io::Result<Option<Io<Self::Filter>>> {
        // Before the library takes the socket, because it resets connections of other clients.
        let Ok(Some(stream)) = chassis::beginning_tls(stream).await else {
            return Ok(None);
        };
        let io = ntex::rt::from_tcp_stream(stream, config)?;
        let limit = Millis::from(self.limit);
        let secured = TlsServerFilter::create(io, self.tls.config(), limit).await;
        // Any client can cause the error, so it is not a warning.
        Ok(secured
            .inspect_err(|error| tracing::debug!(%error, "no TLS with a client"))
            .ok())
    }
}

/// A service with tracked connections, or the factory of such services.
pub(crate) struct Watched<S, E> {
    http: S,
    entry: E,
    config: SharedCfg,
    open: Rc<Open>,
    working: Working,
}

impl<S, E> Watched<S, E> {
    pub(crate) fn new(
        http: S,
        entry: E,
        config: SharedCfg,
        open: Rc<Open>,
        working: Working,
    ) -> Self {
        Self {
            http,
            entry,
            config,
            open,
            working,
        }
    }
}

impl<S, E> ServiceFactory<Accepted> for Watched<S, E>
where
    S: ServiceFactory<Io<E::Filter>, SharedCfg, Response = ()>,
    E: SocketEntry,
{
    type Response = ();
    type Error = S::Error;
    type Service = Watched<S::Service, E>;
    type InitError = S::InitError;

    async fn create(&self, _: ()) -> Result<Self::Service, S::InitError> {
        let config = self.config.clone();
        let http = self.http.create(config.clone()).await?;
        // Started here, because a worker is certain to run only here.
        ntex::rt::spawn(self.open.connections.clone().watch());
        self.working.begins();
        let (open, working) = (Rc::clone(&self.open), self.working.clone());
        let entry = self.entry.clone();
        Ok(Watched::new(http, entry, config, open, working))
    }
}

impl<S, E> Service<Accepted> for Watched<S, E>
where
    S: Service<Io<E::Filter>, Response = ()>,
    E: SocketEntry,
{
    type Response = ();
    type Error = S::Error;

    async fn call(&self, accepted: Accepted, ctx: ServiceCtx<'_, Self>) -> Result<(), S::Error> {
        let tracked = self.open.connections.watched(accepted.slot);
        // Filled as soon as the HTTP service has the socket.
        let serving_socket = RefCell::new(None);
        let serving = async {
            let io = match self.entry.enter(accepted.stream, self.config.clone()).await {
                Ok(Some(io)) => io,
                Ok(None) => return Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "a connection was lost");
                    return Ok(());
                }
            };
            let (socket, written) = (io.get_ref(), io.get_ref());
            tracked.gauge(move || written.with_write_dst_buf(|pages| pages.len()));
            serving_socket.replace(Some(socket.clone()));
            let _listed = self.open.list(socket, tracked.clone());
            // The worker was ready when the connection arrived. Another check would make it wait for
            // connections that are not admitted yet.
            ctx.call_nowait(&self.http, io).await
        };
        let mut serving = pin!(serving);
        if let Some(done) = tracked.clone().attend(serving.as_mut()).await {
            return done;
        }
        let Some(socket) = serving_socket.take() else {
            // The handshake ends with its future.
            return Ok(());
        };
        socket.terminate();
        // It ends at once. It must, because the library lists the connection until then.
        serving.await
    }

    async fn ready(&self, ctx: ServiceCtx<'_, Self>) -> Result<(), S::Error> {
        ctx.ready(&self.http).await
    }

    fn poll(&self, task: &mut Context<'_>) -> Result<(), S::Error> {
        self.http.poll(task)
    }

    async fn shutdown(&self) {
        // The library alone does not wait for requests in progress, if there was a moment without any
        // connection.
        join(self.http.shutdown(), self.open.connections.finish()).await;
        self.working.ends();
    }
}

impl Open {
    fn list(&self, socket: IoRef, tracked: Tracked) -> Listed<'_> {
        self.tracked.borrow_mut().insert(socket.clone(), tracked);
        Listed { open: self, socket }
    }
}

/// A connection that the requests' code can look up. Dropping this value removes it.
struct Listed<'a> {
    open: &'a Open,
    socket: IoRef,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.open.tracked.borrow_mut().remove(&self.socket);
    }
}
