//! A client that keeps its connection open, like most programs.

use serde_json::{Value, json};

use crate::connection::{Connection, Request, Response, get};

/// The `Content-Type` header of a JSON body.
pub const JSON: (&str, &str) = ("content-type", "application/json");

/// A client with at most one connection, which it opens at the first use.
#[derive(Debug)]
pub struct TestClient {
    address: String,
    connection: Option<Connection>,
}

impl TestClient {
    /// Creates a client of this address, not connected yet.
    #[must_use]
    pub fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            connection: None,
        }
    }

    /// Address of the server.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a GET and reads the response.
    pub fn get(&mut self, target: &str) -> Response {
        self.send(&get(target))
    }

    /// Sends a POST of JSON.
    pub fn post(&mut self, target: &str, body: impl AsRef<[u8]>) -> Response {
        self.request("POST", target, &[JSON], body)
    }

    /// Sends a request with these headers.
    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Response {
        self.send(&Request {
            method,
            target,
            headers,
            body: body.as_ref(),
        })
    }

    /// Sends a GraphQL request with variables to `/graphql`.
    pub fn graphql(&mut self, query: &str, variables: &Value) -> Response {
        let body = json!({"query": query, "variables": variables});
        self.post("/graphql", body.to_string())
    }

    /// Sends a GraphQL query to `/graphql`.
    pub fn query(&mut self, query: &str) -> Response {
        self.post("/graphql", json!({ "query": query }).to_string())
    }

    /// The value of a series in `/metrics`. `series` is the whole text before the value.
    ///
    /// # Panics
    /// Panics if the series is missing or its value is not a whole number.
    pub fn metric(&mut self, series: &str) -> u64 {
        let text = self.get("/metrics").body;
        let value = text.lines().find_map(|line| line.strip_prefix(series));
        let value = value.and_then(|value| value.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no number after {series} in {text}"))
    }

    /// Sends a request and reads the response.
    pub fn send(&mut self, request: &Request<'_>) -> Response {
        self.exchange(&request.to_bytes(), request.method == "HEAD")
    }

    /// Sends the exact bytes of a request.
    pub fn ask(&mut self, request: &[u8]) -> Response {
        self.exchange(request, request.starts_with(b"HEAD "))
    }

    /// Opens a new connection if the server has closed the old one, by a response or after an idle timeout.
    fn exchange(&mut self, request: &[u8], is_for_head: bool) -> Response {
        let kept = self.connection.take();
        let is_kept = kept.is_some();
        let mut connection = kept.unwrap_or_else(|| Connection::open(&self.address));
        connection.write(request);
        let response = match connection.try_read(is_for_head) {
            // On a newly opened connection, the same error is the server's fault and fails the test.
            Err(_) if is_kept => {
                connection = Connection::open(&self.address);
                connection.write(request);
                connection.read(is_for_head)
            }
            response => response.unwrap_or_else(|error| panic!("no response: {error}")),
        };
        if !response.closes() {
            self.connection = Some(connection);
        }
        response
    }
}
