//! The rate limiter as a process on a free port, and a client of it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A running rate limiter; dropping it ends the process.
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
#[derive(Debug)]
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

impl Server {
    /// Starts it on a free port of loopback, in a folder without `.env`.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_ratelimiter"))
            .args(["--host", "127.0.0.1", "--port", "0"])
            .args(flags)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address
            .unwrap_or_else(|| panic!("it printed {line:?}"))
            .to_owned();
        Self { process, address }
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            address: self.address.clone(),
            stream: None,
        }
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
    /// Of a server that was started otherwise.
    pub(crate) fn to(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            stream: None,
        }
    }

    /// Sends a query to a server that may not be there yet; none where no JSON comes back.
    pub(crate) fn try_query(&self, query: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let body = json!({ "query": query }).to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: ratelimiter\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Sends a body of JSON.
    pub(crate) fn post(&mut self, body: &[u8]) -> Response {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: ratelimiter\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.ask(&[head.as_bytes(), body].concat())
    }

    /// Sends a GET.
    pub(crate) fn get(&mut self, path: &str, headers: &str) -> Response {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: ratelimiter\r\n{headers}\r\n").as_bytes())
    }

    /// Sends a query.
    pub(crate) fn query(&mut self, query: &str) -> Response {
        self.post(json!({ "query": query }).to_string().as_bytes())
    }

    /// Reports an event and tells whether the answer is "limited".
    pub(crate) fn is_limited(&mut self, event: &str, ip: &str, email: &str) -> bool {
        let query = "query($ip: String!, $email: String!, $event: EventName!) \
            { ratelimit(ratelimitInput: {eventName: $event, ip: $ip, email: $email}) \
            { ipFrom isRateLimited } }";
        let variables = json!({"ip": ip, "email": email, "event": event});
        let body = json!({"query": query, "variables": variables}).to_string();
        let answer = self.post(body.as_bytes()).json();
        let response = &answer["data"]["ratelimit"];
        assert_eq!(response["ipFrom"], ip, "{answer}");
        response["isRateLimited"].as_bool().unwrap()
    }

    /// A request as written; on a new connection when the old one has been closed, by an answer that
    /// said so or because it rested for too long.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Response {
        let is_kept = self.stream.is_some();
        let head = match self.try_head(request) {
            Err(_) if is_kept => {
                self.stream = None;
                self.try_head(request)
            }
            head => head,
        };
        let head = head.unwrap_or_else(|error| panic!("no answer: {error}"));
        let stream = self.stream.as_mut().unwrap();
        let lower = head.to_ascii_lowercase();
        let field = |name: &str| {
            let value = lower.split(name).nth(1)?.split("\r\n").next()?;
            Some(value.trim().to_owned())
        };
        let length = field("content-length:").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        if field("connection:").is_some_and(|value| value == "close") {
            self.stream = None;
        }
        Response {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            body: String::from_utf8(body).unwrap(),
            head: lower,
        }
    }
}

impl Client {
    /// Sends a request and reads the head of the answer.
    fn try_head(&mut self, request: &[u8]) -> io::Result<String> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_read_timeout(Some(Duration::from_secs(60)))?;
                stream.set_nodelay(true)?;
                none.insert(BufReader::new(stream))
            }
        };
        stream.get_mut().write_all(request)?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(head)
    }
}

/// The clock of these tests.
#[expect(
    clippy::disallowed_methods,
    reason = "claims about deadlines need the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
