//! The catalog as a process on a free port, and a client of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::databases::Database;

/// Rows of most tests: enough for pages, few enough to start at once.
pub(crate) const PRODUCTS: usize = 300;

/// A running catalog; dropping it ends the process.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

/// One connection that is kept.
pub(crate) struct Client {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

/// A response, as far as the tests look at it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// The program with a database of few rows.
pub(crate) fn command(database: &Database, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catalog"));
    command
        .args(["--listen", "127.0.0.1:0", "--database-url", &database.url])
        .args(["--seed-products", &PRODUCTS.to_string()])
        // A busy machine takes its time.
        .args(["--seed-line-items", "900", "--statement-timeout", "60s"])
        .args(["--connect-timeout", "120s"])
        .args(flags);
    command
}

impl Server {
    /// Starts it on a free port of loopback.
    pub(crate) fn start(database: &Database, flags: &[&str]) -> Self {
        let mut process = command(database, flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut line, mut output) = (String::new(), process.stdout.take().unwrap());
        let mut log = process.stderr.take().unwrap();
        let said = thread::spawn(move || {
            let mut text = String::new();
            let _ = log.read_to_string(&mut text);
            text
        });
        BufReader::new(&mut output).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let Some(address) = address else {
            panic!("it printed {line:?} and said {}", said.join().unwrap());
        };
        let address = address.to_owned();
        Self { process, address }
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            address: self.address.clone(),
            stream: None,
        }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the process to end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Client {
    /// Sends a GET.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: catalog\r\n\r\n").as_bytes())
    }

    /// Sends a body of JSON.
    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &str) -> Response {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: catalog\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.ask(request.as_bytes())
    }

    /// Executes GraphQL.
    pub(crate) fn graphql(&mut self, query: &str, variables: &Value) -> Value {
        let body = json!({"query": query, "variables": variables}).to_string();
        self.post("/v1/graphql", "", &body).json()
    }

    /// The value of a series in /metrics.
    pub(crate) fn metric(&mut self, series: &str) -> u64 {
        let text = self.get("/metrics").body;
        let value = text.lines().find_map(|line| line.strip_prefix(series));
        let value = value.unwrap_or_else(|| panic!("no {series} in {text}"));
        value.trim().parse().unwrap()
    }

    /// A request as written; on a new connection when the old one has been closed.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Response {
        let stream = self
            .stream
            .get_or_insert_with(|| BufReader::new(connect(&self.address)));
        stream.get_mut().write_all(request).unwrap();
        let response = read(stream);
        if response.head.contains("connection: close") {
            self.stream = None;
        }
        response
    }
}

/// A new connection.
pub(crate) fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_secs(120));
    stream.set_read_timeout(limit).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads one response.
pub(crate) fn read(stream: &mut BufReader<TcpStream>) -> Response {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "closed: {head:?}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length:").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next());
    let length = length.map_or(0, |length| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    Response {
        status,
        head,
        body: String::from_utf8(body).unwrap(),
    }
}
