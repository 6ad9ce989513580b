//! The layer between actix's acceptor and its HTTP service. It counts and tracks connections, and gives
//! requests access to their connection.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::Protocol;
use actix_web::dev::{Extensions, Service, ServiceFactory};
use actix_web::rt::net::TcpStream;
use chassis::{ListenerTls, ServerSocket, TrackedIo};
use graphql_server::connections::Connections;

/// A client's socket with tracked reads and writes.
pub(crate) type Socket = TrackedIo<ServerSocket>;

/// The input of the library's HTTP service.
type Accepted = (Socket, Protocol, Option<SocketAddr>);

type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// Gives the requests of a connection access to its tracking.
pub(crate) fn introduce(socket: &Socket, data: &mut Extensions) {
    data.insert(socket.tracked());
}

/// Creates services with a limited number of connections.
pub(crate) struct CountedFactory<F> {
    http: F,
    connections: Connections,
    tls: Option<ListenerTls>,
}

impl<F> CountedFactory<F> {
    pub(crate) fn new(http: F, connections: Connections, tls: Option<ListenerTls>) -> Self {
        Self {
            http,
            connections,
            tls,
        }
    }
}

impl<F> ServiceFactory<TcpStream> for CountedFactory<F>
where
    F: ServiceFactory<Accepted, Config = (), Response = ()> + 'static,
{
    type Response = ();
    type Error = F::Error;
    type Config = ();
    type Service = Counted<F::Service>;
    type InitError = F::InitError;
    type Future = LocalFuture<Result<Self::Service, F::InitError>>;

    fn new_service(&self, _: ()) -> Self::Future {
        let http = self.http.new_service(());
        let (connections, tls) = (self.connections.clone(), self.tls.clone());
        Box::pin(async move {
            Ok(Counted {
                http: Rc::new(http.await?),
                connections,
                tls,
            })
        })
    }
}

/// A service with a limited number of connections.
pub(crate) struct Counted<S> {
    http: Rc<S>,
    connections: Connections,
    tls: Option<ListenerTls>,
}

impl<S> Service<TcpStream> for Counted<S>
where
    S: Service<Accepted, Response = ()> + 'static,
{
    type Response = ();
    type Error = S::Error;
    type Future = LocalFuture<Result<(), S::Error>>;

    fn poll_ready(&self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.http.poll_ready(task)
    }

    fn call(&self, stream: TcpStream) -> Self::Future {
        let http = Rc::clone(&self.http);
        let (connections, tls) = (self.connections.clone(), self.tls.clone());
        Box::pin(async move {
            let peer = stream.peer_addr().ok();
            let Some(tracked) = connections.begin(peer.map(|peer| peer.ip())).await else {
                // The connection closes when `stream` is dropped.
                return Ok(());
            };
            let socket = match &tls {
                Some(tls) => tls.socket(stream),
                None => ServerSocket::plain(stream),
            };
            let socket = tracked.io(socket);
            let serving = http.call((socket, Protocol::Http1, peer));
            // A connection that had to end is closed by dropping it.
            tracked.attend(serving).await.unwrap_or(Ok(()))
        })
    }
}
