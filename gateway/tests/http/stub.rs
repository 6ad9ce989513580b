//! A subgraph or coprocessor that sends responses from the test and records its requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A request that a stub received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case, in the order of the request.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Reaction of a stub to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Responds with this status, these header lines and this body.
    Full(u16, String, Vec<u8>),
    /// Responds with this status, media type and body.
    With(u16, Option<&'static str>, Vec<u8>),
    /// Writes these bytes and closes the connection.
    Raw(Vec<u8>),
    /// Writes chunks of a body without end, until the client stops reading.
    Endless,
    /// Reads the request and never responds.
    Hang,
}

/// Status 200 with a JSON body.
pub(crate) fn json(body: impl ToString) -> Answer {
    Answer::With(200, Some("application/json"), body.to_string().into_bytes())
}

/// A stub on a free port. It runs until the end of the test.
pub(crate) struct Stub {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    is_over: Arc<AtomicBool>,
    acceptor: thread::JoinHandle<()>,
}

impl Stub {
    pub(crate) fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    /// A stub on an existing listener, for services that come back on their address.
    pub(crate) fn on(
        listener: TcpListener,
        answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (remembered, answer) = (Arc::clone(&seen), Arc::new(answer));
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let over = Arc::clone(&over);
                let (seen, answer) = (Arc::clone(&remembered), Arc::clone(&answer));
                thread::spawn(move || {
                    let mut stream = BufReader::new(stream);
                    while let Some(request) = read(&mut stream) {
                        if over.load(Ordering::SeqCst) {
                            return;
                        }
                        seen.lock().unwrap().push(request.clone());
                        if !write(stream.get_mut(), answer(&request)) {
                            return;
                        }
                    }
                });
            }
        });
        Self {
            url,
            seen,
            is_over,
            acceptor,
        }
    }

    /// Stops the stub and returns its address, which is free again.
    pub(crate) fn stop(self) -> String {
        let address = self.url.trim_start_matches("http://").to_owned();
        self.is_over.store(true, Ordering::SeqCst);
        // This connection wakes the acceptor.
        drop(TcpStream::connect(&address));
        self.acceptor.join().unwrap();
        address
    }

    /// Both subgraphs, with two places. The subgraph `reviews` has their ratings.
    pub(crate) fn planets() -> Self {
        Self::start(planets)
    }

    /// A coprocessor that returns its message, changed by `change`.
    pub(crate) fn coprocessor(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::start(move |seen| {
            let mut message = seen.json();
            change(&mut message);
            json(message)
        })
    }

    /// All requests until now.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The single request until now.
    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.into_iter().next().unwrap()
    }

    /// A configuration that sends the requests for both subgraphs to this stub.
    pub(crate) fn config(&self, more: &str) -> String {
        let url = &self.url;
        format!("override_subgraph_url: {{locations: '{url}/l', reviews: '{url}/r'}}\n{more}\n")
    }
}

fn planets(seen: &Seen) -> Answer {
    let body = match seen.target.as_str() {
        "/l" if seen.body.contains("location(") => {
            r#"{"data":{"location":{"__typename":"Location","id":"1","name":"A"}}}"#
        }
        "/l" => {
            r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"A"},{"__typename":"Location","id":"2","name":"B"}]}}"#
        }
        _ => r#"{"data":{"_entities":[{"overallRating":4},{"overallRating":5}]}}"#,
    };
    json(body)
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = || {
        let mut line = String::new();
        let length = stream.read_line(&mut line).ok()?;
        (length > 0).then(|| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen {
        method: first.split(' ').next()?.to_owned(),
        target: first.split(' ').nth(1)?.to_owned(),
        headers,
        body: String::new(),
    };
    let length = seen
        .header("content-length")
        .map_or(0, |it| it.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    seen.body = String::from_utf8(body).unwrap();
    Some(seen)
}

/// True if the connection stays open.
fn write(stream: &mut TcpStream, answer: Answer) -> bool {
    match answer {
        Answer::With(status, media, body) => {
            let media = media.map_or(String::new(), |it| format!("content-type: {it}\r\n"));
            let length = body.len();
            let head = format!("HTTP/1.1 {status} x\r\n{media}content-length: {length}\r\n\r\n");
            // A single write. A second one would wait for the acknowledgement of the first.
            let answer = [head.as_bytes(), &body].concat();
            stream.write_all(&answer).is_ok()
        }
        Answer::Full(status, headers, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).is_ok() && stream.write_all(&body).is_ok()
        }
        Answer::Raw(bytes) => {
            let _ = stream.write_all(&bytes);
            false
        }
        Answer::Endless => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
            let mut is_read = stream.write_all(head.as_bytes()).is_ok();
            while is_read {
                is_read = stream.write_all(chunk.as_bytes()).is_ok();
            }
            false
        }
        Answer::Hang => {
            // Waits until the client closes the connection.
            let mut byte = [0];
            let _ = stream.read(&mut byte);
            false
        }
    }
}
