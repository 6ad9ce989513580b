//! One connection, its requests and its responses.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

/// Read timeout. If a server hangs, the test fails after this time.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A request. `Host` and the length of the body are added when it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method in its original case.
    pub method: &'a str,
    /// The path with its parameters.
    pub target: &'a str,
    /// Further headers, as name and value.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, which may be empty.
    pub body: &'a [u8],
}

/// A GET for this target.
#[must_use]
pub const fn get(target: &str) -> Request<'_> {
    Request {
        method: "GET",
        target,
        headers: &[],
        body: b"",
    }
}

/// A POST with this JSON text.
#[must_use]
pub const fn post_json<'a>(target: &'a str, body: &'a str) -> Request<'a> {
    Request {
        method: "POST",
        target,
        headers: &[("content-type", "application/json")],
        body: body.as_bytes(),
    }
}

impl Request<'_> {
    /// The bytes of the request.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: test\r\n", self.method, self.target);
        for (name, value) in self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() || matches!(self.method, "POST" | "PUT") {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", self.body].concat()
    }
}

/// A response that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Headers with names in lower case, in their original order.
    pub headers: Vec<(String, String)>,
    /// Status line and headers, in lower case.
    pub head: String,
    /// The body as bytes.
    pub bytes: Vec<u8>,
    /// The body as text. Invalid UTF-8 is replaced.
    pub body: String,
}

impl Response {
    /// Creates a response without a connection.
    #[must_use]
    pub fn new(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            status,
            headers: headers.iter().map(owned).collect(),
            head: String::new(),
            bytes: body.into(),
            body: body.to_owned(),
        }
    }

    /// The first value of a header. The name must be in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body, which must be text.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("the body is text")
    }

    /// The body, which must be JSON.
    ///
    /// # Panics
    /// Panics if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    /// True if the server closes the connection after this response.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// One connection. It sends requests one after the other.
#[derive(Debug)]
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Connects to a server.
    ///
    /// # Panics
    /// Panics if the server does not accept.
    #[must_use]
    pub fn open(address: &str) -> Self {
        Self::try_open(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    /// Connects to a server that may not run.
    ///
    /// # Errors
    /// Fails if the server does not accept.
    pub fn try_open(address: &str) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// Connects from one of loopback's addresses, such as 127.0.0.2, like another client.
    ///
    /// # Panics
    /// Panics if the server does not accept, or if its address is not numeric.
    #[must_use]
    pub fn open_from(client: Ipv4Addr, address: &str) -> Self {
        let connected = || {
            let address: SocketAddr = address.parse().map_err(io::Error::other)?;
            let descriptor = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            bind(&descriptor, &SocketAddrV4::new(client, 0))?;
            connect(&descriptor, &address)?;
            Self::over(descriptor.into())
        };
        connected().unwrap_or_else(|error: io::Error| panic!("{address}: {error}"))
    }

    fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        // Tests send requests in pieces, and each piece must leave at once.
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request and reads its response.
    pub fn send(&mut self, request: &Request<'_>) -> Response {
        self.begin(request);
        self.read(request.method == "HEAD")
    }

    /// Sends a request without waiting for its response.
    pub fn begin(&mut self, request: &Request<'_>) {
        self.write(&request.to_bytes());
    }

    /// Sends bytes. The server may already have responded and closed the connection.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// Sends text, byte for byte.
    pub fn write_text(&mut self, text: &str) {
        self.write(text.as_bytes());
    }

    /// Reads one response. A response to HEAD has no body, regardless of its length header.
    ///
    /// # Panics
    /// Panics if no response arrives.
    pub fn read(&mut self, is_for_head: bool) -> Response {
        self.try_read(is_for_head)
            .unwrap_or_else(|error| panic!("no response: {error}"))
    }

    /// Reads one response, if there is one.
    ///
    /// # Errors
    /// Fails if the connection ends before, or the received bytes are not HTTP/1.1.
    pub fn try_read(&mut self, is_for_head: bool) -> io::Result<Response> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut response = Response {
            status: status.ok_or_else(|| io::Error::other(format!("status line {line:?}")))?,
            headers: Vec::new(),
            head: line.to_ascii_lowercase() + "\r\n",
            bytes: Vec::new(),
            body: String::new(),
        };
        loop {
            let line = self.line()?;
            response.head += &(line.to_ascii_lowercase() + "\r\n");
            // The line without a colon is the empty line that ends the head.
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let header = (name.to_ascii_lowercase(), value.trim().to_owned());
            response.headers.push(header);
        }
        // Without a length there is no body: the services under test send no chunked bodies.
        let length = response.header("content-length");
        let length = length.map_or(Ok(0), str::parse).map_err(io::Error::other)?;
        if !is_for_head {
            response.bytes.resize(length, 0);
            self.0.read_exact(&mut response.bytes)?;
            response.body = String::from_utf8_lossy(&response.bytes).into_owned();
        }
        Ok(response)
    }

    /// Reads everything until the server closes the connection.
    ///
    /// # Panics
    /// Panics if the bytes are not text, or if the connection breaks.
    pub fn read_to_end(&mut self) -> String {
        let mut rest = String::new();
        let read = self.0.read_to_string(&mut rest);
        read.unwrap_or_else(|error| panic!("{error} after {rest:?}"));
        rest
    }

    /// Waits until the server has closed the connection in any way, and ignores received bytes. False if it
    /// does not close in the time that a test waits.
    pub fn is_hung_up(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Waits until the server has closed the connection. False if it broke in another way.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_ok()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
