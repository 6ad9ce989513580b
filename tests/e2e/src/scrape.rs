//! A client for `/metrics`, and a collector of OpenTelemetry.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Returns a port of loopback that was free a moment ago.
///
/// # Panics
/// If there is no free port.
#[must_use]
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

/// The complete response to a GET at a port of loopback. `None` if no server responds there.
#[must_use]
pub fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The value of one series of a scrape, given by name and labels.
#[must_use]
pub fn sample(scrape: &str, series: &str) -> Option<f64> {
    let rest = scrape.lines().find_map(|line| line.strip_prefix(series))?;
    rest.strip_prefix(' ')?.trim().parse().ok()
}

/// A collector that keeps the bodies of all requests until the program ends.
#[derive(Debug)]
pub struct Collector {
    port: u16,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    /// Starts a collector on a port of loopback.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let body = taken(stream).expect("a request of HTTP/1.1 with a length");
                kept.lock().expect("no panic before").push(body);
            }
        });
        Collector { port, bodies }
    }

    /// The URL that accepts metrics.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Bodies of the received pushes.
    ///
    /// # Panics
    /// If a push could not be read.
    #[must_use]
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.bodies.lock().expect("no panic before").clone()
    }
}

/// Reads one push, checks its head against the protocol, and responds.
fn taken(stream: TcpStream) -> std::io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head)? > 2 {
        let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(value) = last.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length is a number");
        }
    }
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains("content-type: application/x-protobuf"),
        "{head}"
    );
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    reader.get_mut().write_all(answer)?;
    Ok(body)
}
