//! Tests subscriptions over other kinds of connections: HTTP/2 with clients, TLS with subgraphs.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::{accept_hdr, handshake::server};

use crate::deferred::Stream;
use crate::gateway::Setup;
use crate::sockets::{Sockets, event};
use crate::subscriptions::{COUNT, MULTIPART, SUPERGRAPH, part, payload};
use test_client::tls::{Authority, provider};

async fn subscribe(
    sender: &SendRequest<Full<bytes::Bytes>>,
    address: &str,
) -> http::Response<Incoming> {
    let body = json!({ "query": COUNT }).to_string();
    let request = http::Request::post(format!("http://{address}/"))
        .header("content-type", "application/json")
        .header("accept", "text/event-stream")
        .body(Full::new(bytes::Bytes::from(body)))
        .unwrap();
    sender.clone().send_request(request).await.unwrap()
}

async fn chunk(response: &mut http::Response<Incoming>) -> String {
    let frame = response.body_mut().frame();
    let frame = tokio::time::timeout(Duration::from_secs(20), frame).await;
    let bytes = frame.unwrap().unwrap().unwrap().into_data().unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn one_connection_of_http2_carries_several_and_each_can_be_left() {
    let sockets = Sockets::start();
    let config = format!(
        "override_subgraph_url: {{prices: '{}'}}\nsubscription: {{enable_deduplication: false, mode: {{passthrough: {{all: {{}}}}}}}}\n",
        sockets.url
    );
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .start();
    let address = gateway.address.clone();
    let driver = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let runtime = driver.handle().clone();
    // This thread drives the connection while the test waits.
    thread::spawn(move || driver.block_on(std::future::pending::<()>()));
    let sender = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let (sender, connection) = hyper::client::conn::http2::handshake(
            hyper_util::rt::TokioExecutor::new(),
            hyper_util::rt::TokioIo::new(stream),
        )
        .await
        .unwrap();
        tokio::spawn(connection);
        sender
    });
    let open = || {
        let (sender, address) = (sender.clone(), address.clone());
        let asked = runtime.spawn(async move { subscribe(&sender, &address).await });
        let (session, _) = sockets.subscribed();
        (runtime.block_on(asked).unwrap(), session)
    };
    let (mut first, mut first_session) = open();
    let (second, mut second_session) = open();
    assert_eq!(runtime.block_on(chunk(&mut first)), ":\n\n");
    // The client resets the stream of the second subscription. The connection stays open.
    drop(second);
    assert_eq!(second_session.read()["type"], "complete");
    assert_eq!(second_session.try_read(), None);
    first_session.event(json!({"count": 1}));
    assert_eq!(
        runtime.block_on(chunk(&mut first)),
        "event: next\ndata: {\"data\":{\"count\":1}}\n\n"
    );
    first_session.complete();
    assert_eq!(
        runtime.block_on(chunk(&mut first)),
        "event: complete\ndata: \n\n"
    );
}

/// A TLS subgraph that selects HTTP/2 if the client offers it, and sends one event.
fn secured(authority: &Authority) -> (String, thread::JoinHandle<String>) {
    let identity = authority.identity("localhost");
    let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let stream = rustls::StreamOwned::new(connection, socket);
        let mut target = String::new();
        #[expect(clippy::result_large_err, reason = "the type is the library's")]
        let agree = |request: &server::Request, mut response: server::Response| {
            target = request.uri().to_string();
            let protocol = request.headers()["sec-websocket-protocol"].clone();
            let headers = response.headers_mut();
            headers.insert("sec-websocket-protocol", protocol);
            Ok(response)
        };
        let mut socket = accept_hdr(stream, agree).unwrap();
        socket.read().unwrap();
        let mut send = |message: Value| {
            let text = message.to_string();
            socket.send(Message::text(text)).unwrap();
        };
        send(json!({"type": "connection_ack"}));
        send(event(json!({"count": 1})));
        send(json!({"type": "complete", "id": "1"}));
        while socket.read().is_ok() {}
        target
    });
    (format!("https://localhost:{port}/graphql"), served)
}

#[test]
fn a_subgraph_with_tls_is_reached_and_trusted_as_for_its_requests() {
    let authority = Authority::new("servers");
    let (url, served) = secured(&authority);
    let config = format!(
        "override_subgraph_url: {{prices: '{url}'}}\ntls: {{subgraph: {{all: {{certificate_authorities: '${{file.ca.pem}}'}}}}}}\nsubscription: {{mode: {{passthrough: {{all: {{path: /ws}}}}}}}}\n"
    );
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .file("ca.pem", &authority.pem())
        .start();
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    assert_eq!(payload(&mut stream), json!({"data": {"count": 1}}));
    assert_eq!(part(&mut stream), (Value::Null, true));
    assert_eq!(served.join().unwrap(), "/ws");
    // The gateway refuses a subgraph with a certificate of an unknown authority.
    let (url, _) = secured(&Authority::new("others"));
    let config = format!(
        "override_subgraph_url: {{prices: '{url}'}}\ninclude_subgraph_errors: {{all: true}}\nsubscription: {{mode: {{passthrough: {{all: {{path: /ws}}}}}}}}\n"
    );
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .start();
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let (told, is_last) = part(&mut stream);
    assert!(is_last);
    let code = &told["payload"]["errors"][0]["extensions"]["code"];
    assert_eq!(code, "SUBREQUEST_WEBSOCKET_ERROR", "{told}");
}
