//! Tests TLS with clients and with subgraphs, over real sockets and with generated certificates.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, ServerConnection};
use test_client::tls::{Authority, Identity, TlsClient, provider};

use crate::client::{code, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::Stub;

const NAMES: &str = r#"{"query":"{ locations { name } }"}"#;
const ANSWER: &str = r#"{"data":{"locations":[{"name":"A"},{"name":"B"}]}}"#;

/// Sends one request over TLS as a client that trusts this authority. Returns the response or the error.
fn ask(address: &str, authority: &Authority) -> Result<String, String> {
    let length = NAMES.len();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{NAMES}"
    );
    let answer = TlsClient::of(authority).exchange(address, request.as_bytes())?;
    let (_, body) = answer.text.split_once("\r\n\r\n").unwrap();
    Ok(body.to_owned())
}

const LISTENER: &str = "tls: {supergraph: {certificate: '${file.cert.pem}', certificate_chain: '${file.cert.pem}', key: '${file.key.pem}'}}\n";

fn secured(planets: &Stub, identity: &Identity, more: &str) -> Setup {
    Setup::new(&planets.config(&format!("{LISTENER}{more}")))
        .file("cert.pem", &identity.certificate)
        .file("key.pem", &identity.key)
}

#[test]
fn clients_are_served_with_tls_and_a_new_certificate_after_a_reload() {
    let planets = Stub::planets();
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let setup = secured(&planets, &first.identity("localhost"), "");
    let mut gateway = setup.flag("--hot-reload").start();
    assert_eq!(ask(&gateway.address, &first).unwrap(), ANSWER);
    let wrong = ask(&gateway.address, &second).unwrap_err();
    assert!(wrong.contains("certificate"), "{wrong}");
    // Health has no TLS, as in Apollo Router.
    assert_eq!(gateway.ask_health("/health").status, 200);
    let renewed = second.identity("localhost");
    let folder = gateway.folder.path().to_owned();
    std::fs::write(folder.join("key.pem"), &renewed.key).unwrap();
    std::fs::write(folder.join("cert.pem"), &renewed.certificate).unwrap();
    gateway.wait_for("reloaded: files changed");
    assert_eq!(ask(&gateway.address, &second).unwrap(), ANSWER);
    assert!(ask(&gateway.address, &first).is_err());
    // The gateway does not use a broken certificate.
    std::fs::write(folder.join("cert.pem"), "none").unwrap();
    gateway.wait_for("not reloaded");
    assert_eq!(ask(&gateway.address, &second).unwrap(), ANSWER);
}

#[test]
fn who_speaks_no_tls_or_never_ends_to_begin_is_let_go() {
    let planets = Stub::planets();
    let authority = Authority::new("a");
    let more = "server: {http: {tls_handshake_timeout: 500ms}}\n";
    let gateway = secured(&planets, &authority.identity("localhost"), more).start();
    let mut plain = TcpStream::connect(&gateway.address).unwrap();
    plain
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    // Idle clients, and one that sends the first byte of a handshake.
    let silent: Vec<_> = (0..50)
        .map(|_| TcpStream::connect(&gateway.address).unwrap())
        .collect();
    let mut slow = TcpStream::connect(&gateway.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    slow.write_all(&[22]).unwrap();
    assert_eq!(ask(&gateway.address, &authority).unwrap(), ANSWER);
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
    drop(silent);
}

#[test]
fn texts_that_are_no_certificates_are_told_at_the_start_without_the_key() {
    let planets = Stub::planets();
    let authority = Authority::new("a");
    let (one, two) = (
        authority.identity("localhost"),
        authority.identity("localhost"),
    );
    let fails = |certificate: &str, key: &str| {
        let identity = Identity {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        let (status, said) = secured(&planets, &identity, "").fail();
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(!said.contains("PRIVATE KEY-----\\n"), "{said}");
        said
    };
    assert!(fails("none", &one.key).contains("holds no certificate in PEM"));
    assert!(fails(&one.certificate, "none").contains("holds no private key in PEM"));
    assert!(fails(&one.certificate, &two.key).contains("cannot be used"));
}

/// A TLS subgraph that requires client certificates of one authority, and counts its requests.
struct Secured {
    url: String,
    asked: Arc<Mutex<usize>>,
}

impl Secured {
    fn start(identity: &Identity, clients: &Authority) -> Self {
        let roots = Arc::new(clients.roots());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .unwrap();
        let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!(
            "https://localhost:{}",
            listener.local_addr().unwrap().port()
        );
        let asked = Arc::new(Mutex::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = rustls::StreamOwned::new(connection, socket);
                let mut bytes = [0; 4096];
                // A client without a valid certificate does not reach this point.
                let Ok(1..) = stream.read(&mut bytes) else {
                    continue;
                };
                *count.lock().unwrap() += 1;
                let body = r#"{"data":{"locations":[{"name":"A"},{"name":"B"}]}}"#;
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Self { url, asked }
    }

    fn gateway(&self, tls: &str, files: &[(&'static str, &str)]) -> Gateway {
        let config = format!(
            "include_subgraph_errors: {{all: true}}\ntraffic_shaping: {{all: {{experimental_http2: disable, timeout: 5s}}}}\noverride_subgraph_url: {{locations: '{}/'}}\n{tls}",
            self.url
        );
        let setup = Setup::new(&config);
        let setup = files
            .iter()
            .fold(setup, |setup, (name, text)| setup.file(name, text));
        setup.start()
    }
}

#[test]
fn a_subgraph_is_trusted_by_its_own_authority_and_shown_the_gateways_certificate() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let subgraph = Secured::start(&servers.identity("localhost"), &clients);
    let own = clients.identity("gateway");
    let strange = Authority::new("others").identity("gateway");
    let both = "certificate_authorities: '${file.ca.pem}', client_authentication: {certificate_chain: '${file.own.pem}', key: '${file.own.key}'}";
    let trusted = [
        ("ca.pem", &*servers.pem()),
        ("own.pem", &own.certificate),
        ("own.key", &own.key),
    ]
    .map(|(name, text)| (name, text.to_owned()));
    let trusted = trusted.each_ref().map(|(name, text)| (*name, &**text));
    for tls in [
        format!("tls: {{subgraph: {{all: {{{both}}}}}}}\n"),
        format!("tls: {{subgraph: {{subgraphs: {{locations: {{{both}}}}}}}}}\n"),
    ] {
        let gateway = subgraph.gateway(&tls, &trusted);
        assert_eq!(gateway.send(&post(NAMES)).text(), ANSWER, "{tls}");
    }
    assert_eq!(*subgraph.asked.lock().unwrap(), 2);
    let clients_pem = clients.pem();
    let wrong = [
        // The authority is unknown to the system.
        ("", trusted),
        // The gateway trusts another authority.
        (both, [("ca.pem", &*clients_pem), trusted[1], trusted[2]]),
        // The gateway sends no certificate.
        ("certificate_authorities: '${file.ca.pem}'", trusted),
        // The gateway sends a certificate of an authority that the subgraph does not trust.
        (
            both,
            [
                trusted[0],
                ("own.pem", &strange.certificate),
                ("own.key", &strange.key),
            ],
        ),
    ];
    for (keys, files) in wrong {
        let tls = format!("tls: {{subgraph: {{all: {{{keys}}}}}}}\n");
        let gateway = subgraph.gateway(&tls, &files);
        let answer = gateway.send(&post(NAMES));
        assert_eq!(code(&answer), "SUBREQUEST_HTTP_ERROR", "{keys}");
    }
    assert_eq!(*subgraph.asked.lock().unwrap(), 2);
}
