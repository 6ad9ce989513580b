//! The layer between our acceptor and ntex's HTTP service. It tracks connections, and lets requests find
//! their connection.

use std::cell::RefCell;
use std::net::TcpStream;
use std::pin::pin;
use std::rc::Rc;
use std::task::Context;

use chassis::{Slot, Tracked};
use graphql_server::connections::Connections;
use ntex::SharedCfg;
use ntex::io::{Io, IoRef};
use ntex::service::{Service, ServiceCtx, ServiceFactory};
use ntex::util::{HashMap, join};
use ntex::web::HttpRequest;

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

/// A service with tracked connections, or the factory of such services.
pub(crate) struct Watched<S> {
    http: S,
    config: SharedCfg,
    open: Rc<Open>,
    working: Working,
}

impl<S> Watched<S> {
    pub(crate) fn new(http: S, config: SharedCfg, open: Rc<Open>, working: Working) -> Self {
        Self {
            http,
            config,
            open,
            working,
        }
    }
}

impl<S> ServiceFactory<Accepted> for Watched<S>
where
    S: ServiceFactory<Io, SharedCfg, Response = ()>,
{
    type Response = ();
    type Error = S::Error;
    type Service = Watched<S::Service>;
    type InitError = S::InitError;

    async fn create(&self, _: ()) -> Result<Self::Service, S::InitError> {
        let config = self.config.clone();
        let http = self.http.create(config.clone()).await?;
        // Started here, because a worker is certain to run only here.
        ntex::rt::spawn(self.open.connections.clone().watch());
        self.working.begins();
        let (open, working) = (Rc::clone(&self.open), self.working.clone());
        Ok(Watched::new(http, config, open, working))
    }
}

impl<S: Service<Io, Response = ()>> Service<Accepted> for Watched<S> {
    type Response = ();
    type Error = S::Error;

    async fn call(&self, accepted: Accepted, ctx: ServiceCtx<'_, Self>) -> Result<(), S::Error> {
        let tracked = self.open.connections.watched(accepted.slot);
        let io = match ntex::rt::from_tcp_stream(accepted.stream, self.config.clone()) {
            Ok(io) => io,
            Err(error) => {
                tracing::warn!(%error, "a connection was lost");
                return Ok(());
            }
        };
        let (socket, written) = (io.get_ref(), io.get_ref());
        tracked.gauge(move || written.with_write_dst_buf(|pages| pages.len()));
        let _listed = self.open.list(socket.clone(), tracked.clone());
        // The worker was ready when the connection arrived. Another check would make it wait for connections
        // that are not admitted yet.
        let mut serving = pin!(ctx.call_nowait(&self.http, io));
        match tracked.attend(serving.as_mut()).await {
            Some(done) => done,
            None => {
                socket.terminate();
                // It ends at once. It must, because the library lists the connection until then.
                serving.await
            }
        }
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
