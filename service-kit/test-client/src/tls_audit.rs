//! The claims about TLS that every service with the flags of `chassis` must keep.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::Process;
use crate::tls::{Authority, Identity, TlsClient};

/// Maximum number of attempts until a new certificate is in use.
const ATTEMPTS: usize = 10_000;

/// A service under test.
pub struct TlsService<'a> {
    /// The program with these flags. It listens on a free port of loopback.
    pub command: &'a dyn Fn(&[&str]) -> Command,
    /// A path that is answered with 200 to a GET.
    pub path: &'a str,
    /// The protocol that ALPN must choose from HTTP/2 and HTTP/1.1.
    pub protocol: &'a str,
}

/// The files of a certificate in a temporary folder.
struct Files(TempDir);

impl Files {
    fn new(identity: &Identity, clients: &Authority) -> Self {
        let files = Self(tempfile::tempdir().expect("a folder"));
        files.write("cert.pem", &identity.certificate);
        files.write("key.pem", &identity.key);
        files.write("clients.pem", &clients.pem());
        files
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("a writable folder");
    }

    fn flag(&self, flag: &str, name: &str) -> String {
        format!("--tls-{flag}={}", Path::join(self.0.path(), name).display())
    }

    fn flags(&self) -> [String; 2] {
        [
            self.flag("certificate", "cert.pem"),
            self.flag("key", "key.pem"),
        ]
    }
}

impl TlsService<'_> {
    /// Checks all claims.
    ///
    /// # Panics
    /// Panics at the first claim that does not hold.
    pub fn check(&self) {
        self.serves_and_reloads();
        self.asks_for_certificates_of_clients();
        self.names_wrong_files();
    }

    fn start(&self, flags: &[String]) -> Process {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Process::start(&mut (self.command)(&flags))
    }

    fn ask(&self, address: &str, client: &TlsClient<'_>) -> Result<Option<Vec<u8>>, String> {
        let path = self.path;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = client.exchange(address, request.as_bytes())?;
        if !answer.text.starts_with("HTTP/1.1 200 ") {
            return Err(answer.text);
        }
        Ok(answer.protocol)
    }

    fn serves_and_reloads(&self) {
        let (first, second) = (Authority::new("first"), Authority::new("second"));
        let files = Files::new(&first.identity("localhost"), &first);
        let process = self.start(&files.flags());
        let address = &process.address;
        let client = TlsClient::of(&first);
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let versions = &[version];
            let client = TlsClient { versions, ..client };
            self.ask(address, &client).expect("an answer");
        }
        let http1: &[&[u8]] = &[b"http/1.1"];
        let both: &[&[u8]] = &[b"h2", b"http/1.1"];
        let chosen = |protocols| {
            self.ask(
                address,
                &TlsClient {
                    protocols,
                    ..client
                },
            )
        };
        let agreed = chosen(http1).expect("HTTP/1.1 is spoken");
        assert_eq!(agreed.as_deref(), Some(&b"http/1.1"[..]));
        // The client sends HTTP/1.1 all the same, so only the choice is of interest.
        let agreed = client_choice(
            address,
            &TlsClient {
                protocols: both,
                ..client
            },
        );
        assert_eq!(agreed.as_deref(), Some(self.protocol.as_bytes()));
        is_let_go(address);
        let wrong = self.ask(address, &TlsClient::of(&second));
        assert!(
            wrong
                .expect_err("another authority")
                .contains("certificate")
        );
        // A half-written pair has no effect, and the whole pair is used.
        let renewed = second.identity("localhost");
        files.write("key.pem", &renewed.key);
        process.signal(Signal::HUP);
        self.ask(address, &client).expect("the former certificate");
        files.write("cert.pem", &renewed.certificate);
        process.signal(Signal::HUP);
        let client = TlsClient::of(&second);
        let mut attempts = (0..ATTEMPTS).map(|_| self.ask(address, &client).is_ok());
        assert!(attempts.any(|it| it), "the new certificate was never used");
    }

    fn asks_for_certificates_of_clients(&self) {
        let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
        let files = Files::new(&servers.identity("localhost"), &clients);
        let mut flags = files.flags().to_vec();
        flags.push(files.flag("client-ca", "clients.pem"));
        let process = self.start(&flags);
        let (own, strange) = (clients.identity("client"), servers.identity("client"));
        let ask = |identity| {
            let client = TlsClient::of(&servers);
            self.ask(&process.address, &TlsClient { identity, ..client })
        };
        assert!(ask(None).is_err());
        assert!(ask(Some(&strange)).is_err());
        ask(Some(&own)).expect("the right certificate");
    }

    fn names_wrong_files(&self) {
        let authority = Authority::new("one");
        let (one, two) = (
            authority.identity("localhost"),
            authority.identity("localhost"),
        );
        let files = Files::new(&one, &authority);
        let key = files.flag("key", "key.pem");
        let certificate = files.flag("certificate", "cert.pem");
        let fails = |flags: &[&str]| {
            let output = (self.command)(flags).output().expect("it starts");
            assert!(!output.status.success());
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!told.contains("PRIVATE KEY-----\n"), "{told}");
            told
        };
        let told = |text: &str| {
            let told = fails(&[&certificate, &key]);
            assert!(told.contains(text), "{told} lacks {text}");
        };
        files.write("key.pem", &two.key);
        told("is the key of another certificate");
        files.write("key.pem", "");
        told("holds no private key in PEM: it is empty");
        files.write("key.pem", &one.key);
        files.write("cert.pem", &one.key);
        told("holds no certificate in PEM: it has no such section");
        files.write("cert.pem", "");
        told("holds no certificate in PEM: it is empty");
        let absent = files.flag("certificate", "absent.pem");
        assert!(fails(&[&absent, &key]).contains("cannot read the file"));
        // A half of the pair would silently serve without TLS.
        assert!(fails(&[&key]).contains("--tls-certificate"));
        assert!(fails(&[&certificate]).contains("--tls-key"));
    }
}

/// The protocol that the server chooses.
fn client_choice(address: &str, client: &TlsClient<'_>) -> Option<Vec<u8>> {
    // The server may refuse the bytes, because they are not of the chosen protocol.
    let answer = client.exchange(
        address,
        b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    );
    answer.ok().and_then(|answer| answer.protocol)
}

/// Sends a request without TLS, which must end the connection without a response and without a reset.
fn is_let_go(address: &str) {
    let mut plain = TcpStream::connect(address).expect("a server that listens");
    let limited = plain.set_read_timeout(Some(Duration::from_secs(30)));
    limited.expect("a timeout");
    let body = "x".repeat(20_000);
    let request = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 20000\r\n\r\n{body}");
    plain.write_all(request.as_bytes()).expect("an open socket");
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).expect("a clean end");
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}
