//! A minimal HTTP/1.1 client that shows the raw responses of a coprocessor.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

/// Timeout of a response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The address of a coprocessor.
#[derive(Debug, Clone)]
pub enum Address {
    /// A port on loopback.
    Port(u16),
    /// Path of a Unix socket.
    Socket(PathBuf),
}

impl Address {
    /// The URL in the form that the gateway's configuration uses.
    pub(crate) fn url(&self, path: &str) -> String {
        match self {
            Address::Port(port) => format!("http://127.0.0.1:{port}{path}"),
            Address::Socket(socket) => format!("unix://{}?path={path}", socket.display()),
        }
    }
}

trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// A connection for any number of requests.
pub(crate) struct Connection(BufReader<Box<dyn Wire>>);

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The first value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a header, by its lower-case name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let found = self.headers.iter().filter(move |(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Connection {
    pub(crate) fn open(address: &Address) -> std::io::Result<Connection> {
        let wire: Box<dyn Wire> = match address {
            Address::Port(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Address::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        };
        Ok(Connection(BufReader::new(wire)))
    }

    /// Sends a request and reads its response.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        // In one write, because a server may reject the method and hang up after the head.
        self.send(&[head(method, path, body.len()).as_slice(), body].concat())?;
        self.answer()
    }

    /// Sends a POST with additional headers.
    pub(crate) fn ask_with(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> anyhow::Result<Answer> {
        let mut head = head("POST", path, body.len());
        head.truncate(head.len() - 2);
        for (name, value) in headers {
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        self.send(&[&head, body].concat())?;
        self.answer()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let wire = self.0.get_mut();
        wire.write_all(bytes)
            .and_then(|()| wire.flush())
            .context("the connection was cut while the request was sent")
    }

    /// Announces a body of this many bytes, and waits until the server accepts it. After that the request is
    /// in flight.
    pub(crate) fn announce(&mut self, path: &str, length: usize) -> anyhow::Result<()> {
        let mut head = head("POST", path, length);
        head.truncate(head.len() - 2);
        head.extend_from_slice(b"expect: 100-continue\r\n\r\n");
        self.send(&head)?;
        let line = self.line()?;
        ensure!(
            line.contains(" 100"),
            "expected leave to send, found `{line}`"
        );
        while !self.line()?.is_empty() {}
        Ok(())
    }

    pub(crate) fn answer(&mut self) -> anyhow::Result<Answer> {
        let first = self.line()?;
        let status = first
            .split(' ')
            .nth(1)
            .and_then(|text| text.parse().ok())
            .with_context(|| format!("expected a status line, found `{first}`"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').context("a header without a colon")?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        answer.body = self.body(&answer)?;
        Ok(answer)
    }

    fn body(&mut self, answer: &Answer) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        if let Some(length) = answer.header("content-length") {
            body.resize(length.parse().context("content-length")?, 0);
            self.0
                .read_exact(&mut body)
                .context("the body is cut off")?;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let line = self.line()?;
                let size = usize::from_str_radix(&line, 16).context("the size of a chunk")?;
                let start = body.len();
                body.resize(start + size, 0);
                self.0
                    .read_exact(&mut body[start..])
                    .context("a chunk is cut off")?;
                ensure!(self.line()?.is_empty(), "a chunk is longer than it says");
                if size == 0 {
                    break;
                }
            }
        } else {
            bail!("the answer says neither its length nor that it is chunked");
        }
        Ok(body)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).context("no answer")?;
        ensure!(read > 0, "the connection was closed in place of an answer");
        Ok(line.trim_end().to_owned())
    }
}

/// The head of a request with a body of this many bytes.
pub(crate) fn head(method: &str, path: &str, length: usize) -> Vec<u8> {
    let body = if length == 0 && method == "GET" {
        String::new()
    } else {
        format!("content-type: application/json\r\ncontent-length: {length}\r\n")
    };
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n{body}\r\n")
        .into_bytes()
}
