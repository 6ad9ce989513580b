//! The rate limiter as a process on a free port, and a client of it.

use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
pub(crate) use test_client::Response;
use test_client::{Connection, Process, post_json};

/// A running rate limiter; dropping it ends the process.
pub(crate) struct Server(Process);

/// One connection that is kept.
pub(crate) struct Client(test_client::Client);

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl Deref for Client {
    type Target = test_client::Client;

    fn deref(&self) -> &test_client::Client {
        &self.0
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut test_client::Client {
        &mut self.0
    }
}

impl Server {
    /// Starts it on a free port of loopback, in a folder without `.env`.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ratelimiter"));
        command
            .args(["--host", "127.0.0.1", "--port", "0"])
            .args(flags)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        Self(Process::start(&mut command))
    }

    pub(crate) fn client(&self) -> Client {
        Client(self.0.client())
    }
}

impl Client {
    /// Of a server that was started otherwise.
    pub(crate) fn to(address: &str) -> Self {
        Self(test_client::Client::new(address))
    }

    /// Sends a query to a server that may not be there yet; `None` where no JSON comes back.
    pub(crate) fn try_query(&self, query: &str) -> Option<Value> {
        let body = json!({ "query": query }).to_string();
        let mut connection = Connection::try_open(self.0.address()).ok()?;
        connection.begin(&post_json("/", &body));
        let answer = connection.try_read(false).ok()?;
        serde_json::from_slice(&answer.bytes).ok()
    }

    /// Sends a body of JSON.
    pub(crate) fn post(&mut self, body: &[u8]) -> Response {
        let length = body.len();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: ratelimiter\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        self.ask(&[head.as_bytes(), body].concat())
    }

    /// Sends a GET; `headers` are lines with their ends.
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
}

/// The clock of these tests.
#[expect(
    clippy::disallowed_methods,
    reason = "claims about deadlines need the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
