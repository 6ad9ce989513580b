//! Just enough of an HTTP/1.1 client to send what a test wants to send, byte for byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A request. `Host` and the length of the body are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

/// A GET of this target.
pub(crate) const fn get(target: &str) -> Request<'_> {
    Request {
        method: "GET",
        target,
        headers: &[],
        body: b"",
    }
}

/// A POST of this JSON text to `/`.
pub(crate) const fn post(body: &str) -> Request<'_> {
    Request {
        method: "POST",
        target: "/",
        headers: &[("content-type", "application/json")],
        body: body.as_bytes(),
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case, in the order they came.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The first value of a header; names are lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// `extensions.code` of the first error.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        let code = &json["errors"][0]["extensions"]["code"];
        code.as_str().unwrap_or("(no code)").to_owned()
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
        self.begin(request);
        self.read()
    }

    /// Sends a request and does not wait for its answer.
    pub(crate) fn begin(&mut self, request: &Request<'_>) {
        let mut text = format!(
            "{} {} HTTP/1.1\r\nhost: t\r\n",
            request.method, request.target
        );
        for (name, value) in request.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !request.body.is_empty() || request.method == "POST" {
            text += &format!("content-length: {}\r\n", request.body.len());
        }
        self.write(format!("{text}\r\n").as_bytes());
        self.write(request.body);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // The server may have answered and closed already.
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// Reads one response.
    pub(crate) fn read(&mut self) -> Response {
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut response = Response {
            status: status.unwrap_or_else(|| panic!("not a status line: {line:?}")),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let header = (name.to_ascii_lowercase(), value.trim().to_owned());
            response.headers.push(header);
        }
        let length = response.header("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap());
        response.body.resize(length, 0);
        self.0.read_exact(&mut response.body).unwrap();
        response
    }

    /// Whether the server has closed the connection, with or without an answer before.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_ok()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}
