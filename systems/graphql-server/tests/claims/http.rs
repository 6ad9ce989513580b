//! Just enough of an HTTP/1.1 client to send what a test wants to send, byte for byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A request. `Host` and the length of the body are added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

/// A GET of this target.
pub(crate) const fn get(target: &str) -> Request<'_> {
    Request {
        method: "GET",
        target,
        headers: &[],
        body: "",
    }
}

/// A POST of this JSON text to `/graphql`.
pub(crate) const fn post(body: &str) -> Request<'_> {
    Request {
        method: "POST",
        target: "/graphql",
        headers: &[("Content-Type", "application/json")],
        body,
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    /// The value of a header; names are lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// What must be equal between the servers.
    pub(crate) fn plain(&self) -> (u16, Option<&str>, Option<&str>, &str) {
        let (media, allow) = (self.header("content-type"), self.header("allow"));
        (self.status, media, allow, &self.body)
    }
}

/// One connection; requests on it come one after the other.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // A server that hangs fails the test instead of hanging it.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, request: &Request<'_>) -> Response {
        let mut text = format!(
            "{} {} HTTP/1.1\r\nHost: t\r\n",
            request.method, request.target
        );
        for (name, value) in request.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !request.body.is_empty() || request.method == "POST" {
            text += &format!("Content-Length: {}\r\n", request.body.len());
        }
        self.write(&format!("{text}\r\n{}", request.body));
        self.read(request.method == "HEAD")
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Reads one response; one to HEAD has no body, whatever its length says.
    pub(crate) fn read(&mut self, is_for_head: bool) -> Response {
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut response = Response {
            status: status.unwrap_or_else(|| panic!("not a status line: {line:?}")),
            headers: Vec::new(),
            body: String::new(),
        };
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            let header = (name.to_ascii_lowercase(), value.to_owned());
            response.headers.push(header);
        }
        let length = response.header("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap());
        if !is_for_head {
            let mut body = vec![0; length];
            self.0.read_exact(&mut body).unwrap();
            response.body = String::from_utf8(body).unwrap();
        }
        response
    }

    /// Whether the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.0.fill_buf().unwrap().is_empty()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}
