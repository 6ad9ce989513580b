//! A small server for TLS, HTTP/2 and HTTP/3. The test defines its behavior.
//!
//! It does not depend on the load engine, so that end-to-end tests can use it, too.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

// With its path, because end-to-end tests use this file from another folder.
#[path = "modern/http3.rs"]
mod http3;

/// The reaction of the server to a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends a response with this body.
    Answer(Bytes),
    /// Sends a response after a delay.
    After(Duration, Bytes),
    /// Sends a response, and announces that it goes away.
    AnswerAndLeave(Bytes),
    /// Sends the beginning of a response and stops.
    Begin(Bytes),
    /// Sends a response of any form over HTTP/2.
    Parts(Parts),
    /// Resets the stream. Over HTTP/1.1 it is like `Drop`.
    Reset,
    /// Closes the connection.
    Drop,
    /// Sends no response.
    Never,
}

impl Act {
    pub(crate) fn answer(body: &str) -> Act {
        Act::Answer(Bytes::copy_from_slice(body.as_bytes()))
    }
}

/// A response with its parts. Over HTTP/1.1 it is like `Drop`, and over HTTP/3 like `Reset`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, &'static [u8])>,
    pub(crate) body: Bytes,
    /// True if the body is sent again and again.
    pub(crate) is_endless: bool,
    /// The trailers. `None` ends the response without them.
    pub(crate) trailers: Option<Vec<(&'static str, &'static [u8])>>,
    /// True if the stream is reset instead of an end.
    pub(crate) resets: bool,
}

/// The protocols and limits of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Speech {
    pub(crate) is_http2: bool,
    /// HTTP/3 instead of anything over TCP.
    pub(crate) is_http3: bool,
    /// The protocols it offers by ALPN. `None` for no TLS.
    pub(crate) tls: Option<Vec<&'static str>>,
    /// The largest number of streams on a connection.
    pub(crate) streams_max: Option<u32>,
    /// With TLS, the only certificate of a client that it accepts, in PEM form. `None` for all clients.
    pub(crate) client: Option<String>,
}

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    /// Position among all requests of the server, from 0.
    pub(crate) number: u64,
    pub(crate) path: String,
    pub(crate) body: Bytes,
}

/// Counters of the server.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) connections: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) requests: AtomicU64,
    under_way: AtomicU64,
    pub(crate) under_way_max: AtomicU64,
}

/// A server that runs until it is dropped.
pub(crate) struct Modern {
    pub(crate) address: SocketAddr,
    pub(crate) tally: Arc<Tally>,
    /// The certificate of its authority, in PEM form.
    pub(crate) authority: String,
    is_stopping: Arc<AtomicBool>,
}

/// A self-signed certificate and its key, both in PEM form.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Identity {
    /// Creates an identity for `server.test` and 127.0.0.1.
    pub(crate) fn new() -> Identity {
        let names = ["server.test", "127.0.0.1"].map(str::to_owned);
        let certified = rcgen::generate_simple_self_signed(names).unwrap();
        Identity {
            certificate: certified.cert.pem(),
            key: certified.signing_key.serialize_pem(),
        }
    }
}

/// Accepts only a client with this certificate.
fn only(client: &str, provider: Arc<CryptoProvider>) -> Arc<dyn ClientCertVerifier> {
    let mut trusted = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(client.as_bytes()).unwrap();
    trusted.add(certificate).unwrap();
    WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), provider)
        .build()
        .unwrap()
}

fn server_config(identity: &Identity, offered: &[&str], client: Option<&str>) -> ServerConfig {
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match client {
        None => builder.with_no_client_auth(),
        Some(client) => builder.with_client_cert_verifier(only(client, provider)),
    };
    let mut config = builder.with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = offered
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    config
}

impl Modern {
    /// Listens on a free loopback port, with an identity of its own.
    pub(crate) fn start(speech: Speech, act: impl Fn(Got) -> Act + Send + 'static) -> Modern {
        Modern::listen("127.0.0.1:0", Identity::new(), speech, act)
    }

    pub(crate) fn listen(
        address: &str,
        identity: Identity,
        speech: Speech,
        act: impl Fn(Got) -> Act + Send + 'static,
    ) -> Modern {
        let place = address.to_owned();
        let config = speech
            .tls
            .as_ref()
            .map(|offered| server_config(&identity, offered, speech.client.as_deref()));
        let tally = Arc::new(Tally::default());
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (listening, address) = mpsc::channel();
        let (seen, is_over) = (Arc::clone(&tally), Arc::clone(&is_stopping));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let tasks = LocalSet::new();
            tasks.block_on(&runtime, async {
                let host = Rc::new(Host {
                    speech,
                    act: Box::new(act),
                    tally: seen,
                });
                if host.speech.is_http3 {
                    let streams_max = host.speech.streams_max;
                    let endpoint = http3::listen(&place, config.unwrap(), streams_max);
                    listening.send(http3::address(&endpoint)).unwrap();
                    http3::accept(host, endpoint, || is_over.load(Ordering::SeqCst)).await;
                    return;
                }
                let acceptor = config.map(|config| TlsAcceptor::from(Arc::new(config)));
                let listener = tokio::net::TcpListener::bind(place).await.unwrap();
                listening.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    socket.set_nodelay(true).unwrap();
                    let (host, acceptor) = (Rc::clone(&host), acceptor.clone());
                    tokio::task::spawn_local(async move { host.welcome(socket, acceptor).await });
                }
            });
        });
        Modern {
            address: address.recv().unwrap(),
            tally,
            authority: identity.certificate,
            is_stopping,
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.tally.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.tally.connections.load(Ordering::SeqCst)
    }

    /// Waits until no connection is open.
    pub(crate) fn wait_until_all_are_gone(&self) {
        // Yields until the server's thread has seen the end of every connection.
        for _ in 0..10_000_000_u64 {
            if self.tally.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            std::thread::yield_now();
        }
        panic!("connections are still open");
    }
}

impl Drop for Modern {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

struct Host {
    speech: Speech,
    act: Box<dyn Fn(Got) -> Act>,
    tally: Arc<Tally>,
}

impl Host {
    async fn welcome(self: Rc<Host>, socket: tokio::net::TcpStream, tls: Option<TlsAcceptor>) {
        self.tally.connections.fetch_add(1, Ordering::SeqCst);
        self.tally.open.fetch_add(1, Ordering::SeqCst);
        let tally = Arc::clone(&self.tally);
        match tls {
            None => self.serve(socket).await,
            Some(tls) => {
                if let Ok(stream) = tls.accept(socket).await {
                    self.serve(stream).await;
                }
            }
        }
        tally.open.fetch_sub(1, Ordering::SeqCst);
    }

    async fn serve(self: Rc<Host>, stream: impl AsyncRead + AsyncWrite + Unpin) {
        if self.speech.is_http2 {
            self.serve_http2(stream).await;
        } else {
            self.serve_http1(stream).await;
        }
    }

    fn number(&self) -> u64 {
        self.tally.requests.fetch_add(1, Ordering::SeqCst)
    }

    async fn serve_http2(self: Rc<Host>, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut builder = h2::server::Builder::new();
        builder.initial_window_size(1024 * 1024);
        if let Some(streams) = self.speech.streams_max {
            builder.max_concurrent_streams(streams);
        }
        let Ok(mut connection) = builder.handshake(stream).await else {
            return;
        };
        let is_leaving = Rc::new(Cell::new(false));
        let is_dropping = Rc::new(Cell::new(false));
        loop {
            let accepted = poll_fn(|context| connection.poll_accept(context)).await;
            let Some(Ok((request, respond))) = accepted else {
                return;
            };
            let host = Rc::clone(&self);
            let number = self.number();
            let path = request.uri().path().to_owned();
            // The end of a connection is decided before the body is read.
            match (self.act)(Got {
                number,
                path: path.clone(),
                body: Bytes::new(),
            }) {
                Act::Drop => is_dropping.set(true),
                Act::AnswerAndLeave(_) => is_leaving.set(true),
                _ => {}
            }
            if is_dropping.get() {
                return;
            }
            tokio::task::spawn_local(host.answer(number, path, request.into_body(), respond));
            if is_leaving.replace(false) {
                connection.graceful_shutdown();
            }
        }
    }

    async fn answer(
        self: Rc<Host>,
        number: u64,
        path: String,
        mut upload: h2::RecvStream,
        mut respond: SendResponse<Bytes>,
    ) {
        let under_way = self.tally.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.tally
            .under_way_max
            .fetch_max(under_way, Ordering::SeqCst);
        let mut body = Vec::new();
        while let Some(Ok(part)) = upload.data().await {
            let _ = upload.flow_control().release_capacity(part.len());
            body.extend_from_slice(&part);
        }
        let body = body.into();
        let act = (self.act)(Got { number, path, body });
        let head = || {
            let head = http::Response::builder().header("content-type", "application/json");
            head.body(()).unwrap()
        };
        // The client may be gone. The test judges that.
        match act {
            Act::Answer(body) | Act::AnswerAndLeave(body) => {
                if let Ok(mut stream) = respond.send_response(head(), false) {
                    let _ = stream.send_data(body, true);
                }
            }
            Act::After(delay, body) => {
                tokio::time::sleep(delay).await;
                if let Ok(mut stream) = respond.send_response(head(), false) {
                    let _ = stream.send_data(body, true);
                }
            }
            Act::Begin(body) => {
                if let Ok(mut stream) = respond.send_response(head(), false) {
                    let _ = stream.send_data(body, false);
                    let _ = poll_fn(|context| stream.poll_reset(context)).await;
                }
            }
            Act::Never => {
                let _ = poll_fn(|context| respond.poll_reset(context)).await;
            }
            Act::Parts(parts) => {
                // The client may be gone.
                let _ = parts.send(&mut respond).await;
            }
            Act::Reset | Act::Drop => respond.send_reset(h2::Reason::INTERNAL_ERROR),
        }
        self.tally.under_way.fetch_sub(1, Ordering::SeqCst);
    }

    async fn serve_http1(self: Rc<Host>, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut received = Vec::new();
        loop {
            let Some((path, body)) = request(&mut stream, &mut received).await else {
                return;
            };
            let number = self.number();
            let answer = match (self.act)(Got { number, path, body }) {
                Act::Answer(body) => body,
                Act::After(delay, body) => {
                    tokio::time::sleep(delay).await;
                    body
                }
                Act::AnswerAndLeave(body) => {
                    let _ = send(&mut stream, body.len(), &body).await;
                    let _ = stream.shutdown().await;
                    return;
                }
                Act::Begin(body) => {
                    let _ = send(&mut stream, body.len() + 1, &body).await;
                    let _ = stream.read(&mut [0; 64]).await;
                    return;
                }
                Act::Parts(_) | Act::Reset | Act::Drop => return,
                Act::Never => {
                    let _ = stream.read(&mut [0; 64]).await;
                    return;
                }
            };
            if send(&mut stream, answer.len(), &answer).await.is_err() {
                return;
            }
        }
    }
}

fn lines(lines: &[(&'static str, &'static [u8])]) -> http::HeaderMap {
    let mut map = http::HeaderMap::new();
    for (name, value) in lines {
        let value = http::HeaderValue::from_bytes(value).unwrap();
        map.append(*name, value);
    }
    map
}

impl Parts {
    /// Sends the response. `None` if the client left.
    async fn send(self, respond: &mut SendResponse<Bytes>) -> Option<()> {
        let mut head = http::Response::builder()
            .status(self.status)
            .body(())
            .unwrap();
        *head.headers_mut() = lines(&self.headers);
        let is_head_only = self.body.is_empty() && self.trailers.is_none() && !self.resets;
        let mut stream = respond.send_response(head, is_head_only).ok()?;
        loop {
            let mut rest = self.body.clone();
            while !rest.is_empty() {
                stream.reserve_capacity(rest.len());
                let room = poll_fn(|context| stream.poll_capacity(context))
                    .await?
                    .ok()?;
                let part = rest.split_to(room.min(rest.len()));
                stream.send_data(part, false).ok()?;
            }
            if !self.is_endless {
                break;
            }
        }
        match self.trailers {
            _ if self.resets => stream.send_reset(h2::Reason::ENHANCE_YOUR_CALM),
            Some(trailers) => stream.send_trailers(lines(&trailers)).ok()?,
            None if is_head_only => {}
            None => stream.send_data(Bytes::new(), true).ok()?,
        }
        Some(())
    }
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    length: usize,
    body: &[u8],
) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.flush().await
}

/// Reads the next request: its path and body.
async fn request(
    stream: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
) -> Option<(String, Bytes)> {
    loop {
        if let Some(at) = received.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..at]).into_owned();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .map_or(0, |length| length.parse().unwrap());
            let end = at + 4 + length;
            if received.len() >= end {
                let body = Bytes::copy_from_slice(&received[at + 4..end]);
                received.drain(..end);
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                return Some((path, body));
            }
        }
        if stream.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}
