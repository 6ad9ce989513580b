//! HTTP/3 of the server, with the server of the h3 library.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use h3::error::Code;
use h3::server::RequestStream;
use h3_quinn::BidiStream;
use quinn::{Connection, Endpoint, EndpointConfig, TokioRuntime, VarInt};
use tokio_rustls::rustls::ServerConfig;

use super::{Act, Got, Host};

/// Listens for connections over QUIC. Must be called within a runtime.
pub(super) fn listen(place: &str, config: ServerConfig, streams_max: Option<u32>) -> Endpoint {
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(config).unwrap();
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    if let Some(streams) = streams_max {
        transport.max_concurrent_bidi_streams(streams.into());
    }
    config.transport_config(Arc::new(transport));
    let socket = std::net::UdpSocket::bind(place).unwrap();
    let own = EndpointConfig::default();
    Endpoint::new(own, Some(config), socket, Arc::new(TokioRuntime)).unwrap()
}

/// Accepts connections until the server stops.
pub(super) async fn accept(host: Rc<Host>, endpoint: Endpoint, is_over: impl Fn() -> bool) {
    while !is_over() {
        // There is no connection that wakes this loop at the end, unlike over TCP.
        let accepted = tokio::time::timeout(Duration::from_millis(20), endpoint.accept()).await;
        if let Ok(Some(incoming)) = accepted {
            let host = Rc::clone(&host);
            tokio::task::spawn_local(async move {
                host.tally.connections.fetch_add(1, Ordering::SeqCst);
                host.tally.open.fetch_add(1, Ordering::SeqCst);
                let tally = Arc::clone(&host.tally);
                if let Ok(connection) = incoming.await {
                    serve(host, connection.clone()).await;
                    connection.closed().await;
                }
                tally.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
}

async fn serve(host: Rc<Host>, quic: Connection) {
    let own = h3_quinn::Connection::new(quic.clone());
    let Ok(mut connection) = h3::server::builder().build::<_, Bytes>(own).await else {
        return;
    };
    let is_leaving = Rc::new(Cell::new(false));
    while let Ok(Some(resolver)) = connection.accept().await {
        let Ok((request, stream)) = resolver.resolve_request().await else {
            continue;
        };
        let number = host.number();
        let path = request.uri().path().to_owned();
        // The end of a connection is decided before the body is read.
        match (host.act)(Got {
            number,
            path: path.clone(),
            body: Bytes::new(),
        }) {
            Act::Drop => {
                quic.close(VarInt::from_u32(0x100), b"dropped");
                return;
            }
            Act::AnswerAndLeave(_) => is_leaving.set(true),
            _ => {}
        }
        let (host, quic) = (Rc::clone(&host), quic.clone());
        tokio::task::spawn_local(
            async move { host.answer_http3(number, path, stream, quic).await },
        );
        if is_leaving.replace(false) {
            // The first stream that is not processed is the next stream.
            let _ = connection.shutdown(1).await;
        }
    }
}

impl Host {
    async fn answer_http3(
        self: Rc<Host>,
        number: u64,
        path: String,
        mut stream: RequestStream<BidiStream<Bytes>, Bytes>,
        quic: Connection,
    ) {
        let under_way = self.tally.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.tally
            .under_way_max
            .fetch_max(under_way, Ordering::SeqCst);
        let mut body = Vec::new();
        while let Ok(Some(mut part)) = stream.recv_data().await {
            body.extend_from_slice(&part.copy_to_bytes(part.remaining()));
        }
        let body = body.into();
        let act = (self.act)(Got { number, path, body });
        let head = http::Response::builder().header("content-type", "application/json");
        let head = head.body(()).unwrap();
        // The client may be gone. The test judges that.
        match act {
            Act::Answer(body) | Act::AnswerAndLeave(body) => {
                let _ = answer(&mut stream, head, body).await;
            }
            Act::After(delay, body) => {
                tokio::time::sleep(delay).await;
                let _ = answer(&mut stream, head, body).await;
            }
            Act::Begin(body) => {
                let _ = stream.send_response(head).await;
                let _ = stream.send_data(body).await;
                quic.closed().await;
            }
            Act::Never => {
                quic.closed().await;
            }
            Act::Reset | Act::Drop | Act::Parts(_) => stream.stop_stream(Code::H3_INTERNAL_ERROR),
        }
        self.tally.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(
    stream: &mut RequestStream<BidiStream<Bytes>, Bytes>,
    head: http::Response<()>,
    body: Bytes,
) -> Result<(), h3::error::StreamError> {
    stream.send_response(head).await?;
    stream.send_data(body).await?;
    stream.finish().await
}

/// Returns the address of a listener.
pub(super) fn address(endpoint: &Endpoint) -> SocketAddr {
    endpoint.local_addr().unwrap()
}
