//! Requests over HTTP/1.1 from addresses of loopback, and their responses.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

use crate::clock::now;

/// Address of the attacker. It differs from the neighbor's address, so that a limit by address can
/// distinguish them.
pub(super) const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Address of the well-behaved client.
pub(crate) const NEIGHBOR: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Host name in requests. Services for the local machine accept no other name.
pub(super) const HOST: &str = "localhost";

/// Starts a connection to the service without waiting, because the service may not accept it.
pub(super) fn begin(
    from: Ipv4Addr,
    to: SocketAddr,
    buffer: Option<usize>,
) -> io::Result<TcpStream> {
    let descriptor = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    if let Some(bytes) = buffer {
        sockopt::set_socket_recv_buffer_size(&descriptor, bytes)?;
    }
    bind(&descriptor, &SocketAddrV4::new(from, 0))?;
    let stream = TcpStream::from(descriptor);
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    match connect(&stream, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(stream),
        Err(error) => Err(error.into()),
    }
}

/// A POST request with this JSON body.
pub(super) fn post(path: &str, host: &str, body: &str) -> Vec<u8> {
    post_as("application/json", path, host, body)
}

/// A POST request with this body and this content type.
pub(crate) fn post_as(content_type: &str, path: &str, host: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {content_type}\r\n\
         Accept: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The parts of a response that the attacks use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// True if the body begins like a GraphQL response with errors and without data.
    pub(super) has_errors: bool,
    /// True if the connection can carry another request.
    pub(crate) is_kept: bool,
}

/// A connection with its unread bytes and its last response.
pub(crate) struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    body: Vec<u8>,
}

/// Number of bytes of a response that are kept, because a response may have a gigabyte.
const BODY_KEPT: usize = 64 * 1024;

/// After this time, an operation fails, regardless of the other side.
type Deadline = Instant;

impl Connection {
    pub(crate) fn open(from: Ipv4Addr, to: SocketAddr, until: Deadline) -> io::Result<Connection> {
        let stream = begin(from, to, None)?;
        let connection = Connection {
            stream,
            unread: Vec::new(),
            body: Vec::new(),
        };
        connection.wait(rustix::event::PollFlags::OUT, until)?;
        match connection.stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(connection),
        }
    }

    /// Sends a request and reads the complete response. A server may respond before it has read the whole
    /// request.
    pub(crate) fn exchange(&mut self, request: &[u8], until: Deadline) -> io::Result<Answer> {
        let sent = self.send(request, until);
        let answer = self.answer(until);
        match (sent, answer) {
            (Ok(()), answer) => answer,
            // After a partly sent request the connection cannot be used again.
            (Err(_), Ok(answer)) => Ok(Answer {
                is_kept: false,
                ..answer
            }),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// The body of the last response, at most 64 KiB.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    fn send(&mut self, mut bytes: &[u8], until: Deadline) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(rustix::event::PollFlags::OUT, until)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn answer(&mut self, until: Deadline) -> io::Result<Answer> {
        let head_end = loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                break end + 4;
            }
            if self.fill(until)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        };
        let head = String::from_utf8_lossy(&self.unread[..head_end]).to_ascii_lowercase();
        self.unread.drain(..head_end);
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("it does not speak HTTP"))?;
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            let mut found = lines.filter(|(found, _)| *found == name);
            found.next().map(|(_, value)| value.trim().to_owned())
        };
        self.body.clear();
        match (header("content-length"), header("transfer-encoding")) {
            (Some(length), _) => self.take(length.parse().unwrap_or(0), until)?,
            (None, Some(_)) => self.take_chunks(until)?,
            (None, None) => {}
        }
        Ok(Answer {
            status,
            has_errors: self.body.starts_with(br#"{"errors""#),
            is_kept: header("connection").is_none_or(|value| value != "close"),
        })
    }

    /// Reads `length` bytes of a body.
    fn take(&mut self, mut length: usize, until: Deadline) -> io::Result<()> {
        while length > 0 {
            if self.unread.is_empty() && self.fill(until)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let taken = length.min(self.unread.len());
            let kept = taken.min(BODY_KEPT - self.body.len());
            self.body.extend_from_slice(&self.unread[..kept]);
            self.unread.drain(..taken);
            length -= taken;
        }
        Ok(())
    }

    fn take_chunks(&mut self, until: Deadline) -> io::Result<()> {
        loop {
            let end = loop {
                if let Some(end) = find(&self.unread, b"\r\n") {
                    break end;
                }
                if self.fill(until)? == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            };
            let line = String::from_utf8_lossy(&self.unread[..end]).into_owned();
            self.unread.drain(..end + 2);
            let digits = line.split(';').next().unwrap_or_default();
            let length = usize::from_str_radix(digits.trim(), 16).map_err(io::Error::other)?;
            self.take(length, until)?;
            // The line end after a chunk is not part of the body.
            let body = self.body.len();
            self.take(2, until)?;
            self.body.truncate(body);
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn fill(&mut self, until: Deadline) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(count) => {
                    self.unread.extend_from_slice(&buffer[..count]);
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(rustix::event::PollFlags::IN, until)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts the responses until the connection is quiet for this long, or closed. Also returns the first
    /// status. It makes no assumption about the end of a response.
    pub(super) fn count_answers(&mut self, quiet: Duration) -> (usize, Option<u16>) {
        while let Ok(1..) = self.fill(now() + quiet) {}
        let text = String::from_utf8_lossy(&self.unread);
        let status = text.strip_prefix("HTTP/1.1 ");
        let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
        (text.matches("HTTP/1.1 ").count(), status)
    }

    /// Sends bytes unchanged.
    pub(super) fn send_raw(&mut self, bytes: &[u8], until: Deadline) -> io::Result<()> {
        self.send(bytes, until)
    }

    /// Reads and discards the available bytes without waiting. Returns an error if the other side closed.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn wait(&self, flags: rustix::event::PollFlags, until: Deadline) -> io::Result<()> {
        let left = until.saturating_duration_since(now());
        let left = rustix::time::Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled = [rustix::event::PollFd::new(&self.stream, flags)];
        match rustix::event::poll(&mut polled, Some(&left)) {
            Ok(0) => Err(ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|found| found == part)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// The response and the body that a client parses from these bytes.
    fn answer_of(bytes: &'static [u8]) -> io::Result<(Answer, String)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), ATTACKER);
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(bytes).unwrap();
        });
        let until = now() + Duration::from_secs(20);
        let mut connection = Connection::open(ATTACKER, address, until).unwrap();
        let answer = connection.exchange(&post("/", "a", "{}"), until);
        server.join().unwrap();
        let body = String::from_utf8_lossy(connection.body()).into_owned();
        answer.map(|answer| (answer, body))
    }

    #[test]
    fn answers_end_where_they_say() {
        let (kept, body) =
            answer_of(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"data\":1").unwrap();
        assert_eq!(
            (kept.status, kept.has_errors, kept.is_kept),
            (200, false, true)
        );
        assert_eq!(body, "{\"data\":1");
        let chunked = b"HTTP/1.1 400 no\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
              a\r\n{\"errors\":\r\n2\r\n[]\r\n0\r\n\r\n";
        let (chunked, body) = answer_of(chunked).unwrap();
        assert_eq!(
            (chunked.status, chunked.has_errors, chunked.is_kept),
            (400, true, false)
        );
        assert_eq!(body, "{\"errors\":[]");
        assert!(answer_of(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{").is_err());
        assert!(answer_of(b"").is_err());
    }
}
