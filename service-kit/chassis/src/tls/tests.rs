use std::net::TcpListener;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use test_client::tls::{Authority, Identity, TlsClient};

use super::*;
use crate::{ClientNetwork, ConnectionTable, Handler, Most, ServerLimits, Timeouts, Worker};

struct Hello;

impl Handler for Hello {
    type Body = Full<Bytes>;

    async fn answer(&self, _: ClientNetwork, _: Request<Incoming>) -> Response<Self::Body> {
        Response::new(Full::from("hello"))
    }
}

fn named<'a>(name: &'a str, text: &'a str) -> NamedPem<'a> {
    NamedPem { name, text }
}

fn config(certificate: &str, chain: &str, key: &str) -> Result<ServerConfig, String> {
    let identity = ServerIdentity {
        certificate: named("C", certificate),
        chain: named("CHAIN", chain),
        key: named("K", key),
        client_authorities: None,
    };
    server_config(&identity, HTTP1).map_err(|error| error.to_string())
}

#[test]
fn a_wrong_text_is_named_with_the_reason_and_without_the_key() {
    let authority = Authority::new("a");
    let one = authority.identity("localhost");
    let two = authority.identity("localhost");
    let fails = |certificate: &str, chain: &str, key: &str| {
        config(certificate, chain, key).expect_err("it is wrong")
    };
    let empty =
        "C holds no certificate in PEM: it is empty; expected `-----BEGIN CERTIFICATE-----`";
    assert_eq!(fails("", "", &one.key), empty);
    let other = "C holds no certificate in PEM: it has no such section; \
                 expected `-----BEGIN CERTIFICATE-----`";
    assert_eq!(fails(&one.key, "", &one.key), other);
    assert!(fails(&one.certificate, "none", &one.key).starts_with("CHAIN holds no certificate"));
    let another = "C cannot be used: K is the key of another certificate";
    assert_eq!(fails(&one.certificate, "", &two.key), another);
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----";
    assert!(fails(&one.certificate, "", encrypted).contains("it is encrypted"));
    let damaged = one.key.replace("-----END", "----END");
    let told = fails(&one.certificate, "", &damaged);
    assert!(
        told.contains("a section is damaged") && !told.contains(&one.key[30..60]),
        "{told}"
    );
}

#[test]
fn a_chain_may_repeat_the_certificate() {
    let one = Authority::new("a").identity("localhost");
    config(&one.certificate, &one.certificate, &one.key).expect("a usable pair");
}

/// The address of a service whose certificate is in `folder`.
fn serve(folder: &std::path::Path, identity: &Identity) -> (String, Worker) {
    std::fs::write(folder.join("cert"), &identity.certificate).unwrap();
    std::fs::write(folder.join("key"), &identity.key).unwrap();
    let flags = TlsFlags {
        tls_certificate: Some(folder.join("cert")),
        tls_key: Some(folder.join("key")),
        tls_client_ca: None,
    };
    let tls = flags.open(HTTP1_AND_2).unwrap().unwrap();
    let table = ConnectionTable::new(Most::new(Some(100), None, 0.5));
    let limits = ServerLimits {
        timeouts: Timeouts {
            head: std::time::Duration::from_millis(300),
            ..Timeouts::default()
        },
        http2_streams: 10,
        stop_timeout: std::time::Duration::from_secs(1),
    };
    let worker = Worker::start(0, &table, limits, Some(&tls), async || Hello).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    crate::prepare(&listener).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    worker.listen(listener);
    (address, worker)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[test]
fn a_silent_client_is_closed_by_the_limit_of_the_head_and_others_are_served() {
    use std::io::{Read as _, Write as _};
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("a");
    let (address, worker) = serve(folder.path(), &authority.identity("localhost"));
    let mut slow = std::net::TcpStream::connect(&address).unwrap();
    // The first byte of a handshake.
    slow.write_all(&[22]).unwrap();
    let answer = TlsClient::of(&authority).exchange(&address, GET).unwrap();
    assert!(answer.text.ends_with("hello"), "{answer:?}");
    let mut rest = Vec::new();
    // A reset is an end, too.
    let _ = slow.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
    Worker::finish_all(vec![worker]);
}
