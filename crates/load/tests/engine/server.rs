//! A small HTTP server. The test defines its behavior.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use load::{Address, Target};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, sockopt};

/// Time limit of every wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The counts of the server.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    open: Mutex<u64>,
    changed: Condvar,
}

impl Seen {
    /// Waits until a condition on the number of open connections holds.
    pub(crate) fn wait_until_open(&self, wanted: impl Fn(u64) -> bool) {
        let open = self.open.lock().unwrap();
        let (open, _) = self
            .changed
            .wait_timeout_while(open, PATIENCE, |open| !wanted(*open))
            .unwrap();
        assert!(
            wanted(*open),
            "{open} connections are open after {PATIENCE:?}"
        );
    }

    fn change(&self, change: impl Fn(&mut u64)) {
        change(&mut self.open.lock().unwrap());
        self.changed.notify_all();
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) target: Target,
    pub(crate) seen: Arc<Seen>,
    is_stopping: Arc<AtomicBool>,
}

impl Server {
    /// Listens on a free loopback port. `serve` is called for every connection, on a separate thread.
    pub(crate) fn tcp(serve: impl Fn(Client) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let accept = move || -> Box<dyn Stream> {
            let (stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            Box::new(stream)
        };
        Server::start(address, accept, serve)
    }

    /// Listens with a queue of one connection, like a small server.
    pub(crate) fn unix(path: &Path, serve: impl Fn(Client) + Send + Sync + 'static) -> Server {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        let listener = UnixListener::from(socket);
        let accept = move || -> Box<dyn Stream> { Box::new(listener.accept().unwrap().0) };
        Server::start(Address::Unix(path.to_owned()), accept, serve)
    }

    fn start(
        address: Address,
        mut accept: impl FnMut() -> Box<dyn Stream> + Send + 'static,
        serve: impl Fn(Client) + Send + Sync + 'static,
    ) -> Server {
        let seen = Arc::new(Seen::default());
        let is_stopping = Arc::new(AtomicBool::new(false));
        let serve = Arc::new(serve);
        let (seen_by_all, is_over) = (Arc::clone(&seen), Arc::clone(&is_stopping));
        std::thread::spawn(move || {
            loop {
                let stream = accept();
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                seen_by_all.connections.fetch_add(1, Ordering::SeqCst);
                seen_by_all.change(|open| *open += 1);
                let client = Client {
                    stream,
                    received: Vec::new(),
                    seen: Arc::clone(&seen_by_all),
                };
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(client));
            }
        });
        Server {
            target: Target {
                address,
                host: "server.test".to_owned(),
                protocol: load::Protocol::default(),
            },
            seen,
            is_stopping,
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    /// Ends the accepting thread. Threads of connections end with their connections.
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        match &self.target.address {
            Address::Tcp(address) => drop(TcpStream::connect(address)),
            Address::Unix(path) => drop(UnixStream::connect(path)),
        }
    }
}

/// A socket of either kind.
pub(crate) trait Stream: Read + Write + Send + AsDescriptor {}
impl<T: Read + Write + Send + AsDescriptor> Stream for T {}

/// `AsFd` and other traits cannot form a trait object without a name.
pub(crate) trait AsDescriptor {
    fn descriptor(&self) -> BorrowedFd<'_>;
}

impl<T: AsFd> AsDescriptor for T {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// The server's side of one connection.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
    seen: Arc<Seen>,
}

impl Client {
    /// Returns the next request with its body, and its index among all requests of the server, from 0. `None`
    /// at the end of the connection.
    pub(crate) fn request(&mut self) -> Option<(u64, String)> {
        let head_bytes = self.read_until(|received| {
            received
                .windows(4)
                .position(|end| end == b"\r\n\r\n")
                .map(|at| at + 4)
        })?;
        let head = String::from_utf8_lossy(&self.received[..head_bytes]).into_owned();
        let body_bytes: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse().unwrap());
        let total = head_bytes + body_bytes;
        self.read_until(|received| (received.len() >= total).then_some(total))?;
        let request = self.received.drain(..total).collect::<Vec<u8>>();
        let number = self.seen.requests.fetch_add(1, Ordering::SeqCst);
        Some((number, String::from_utf8_lossy(&request).into_owned()))
    }

    /// Returns the next `count` bytes. `None` at the end of the connection.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        self.read_until(|received| (received.len() >= count).then_some(count))?;
        Some(self.received.drain(..count).collect())
    }

    /// Writes `piece` repeatedly, as fast as the socket accepts it, until the client is gone.
    pub(crate) fn flood(&mut self, piece: &[u8]) {
        let block = piece.repeat(256 * 1024 / piece.len() + 1);
        while self.stream.write_all(&block).is_ok() {}
    }

    /// Ends this side of the connection.
    pub(crate) fn close_write(&mut self) {
        let _ = rustix::net::shutdown(self.stream.descriptor(), rustix::net::Shutdown::Write);
    }

    /// Reads the head of a request and leaves its body unread.
    pub(crate) fn head_only(&mut self) {
        self.read_until(|received| {
            received
                .windows(4)
                .any(|end| end == b"\r\n\r\n")
                .then_some(0)
        });
    }

    fn read_until(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if let Some(bytes) = found(&self.received) {
                return Some(bytes);
            }
            match self.stream.read(&mut buffer) {
                Ok(bytes @ 1..) => self.received.extend_from_slice(&buffer[..bytes]),
                _ => return None,
            }
        }
    }

    /// Writes a text with its line ends changed to CRLF.
    pub(crate) fn send(&mut self, text: &str) {
        self.send_bytes(text.replace('\n', "\r\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        // The client may be gone. The test judges that.
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a plain response with its length.
    pub(crate) fn answer(&mut self, body: &str) {
        self.send(&format!(
            "HTTP/1.1 200 OK\nContent-Length: {}\n\n",
            body.len()
        ));
        self.send_bytes(body.as_bytes());
    }

    /// Sends a response and closes, so that both arrive together.
    pub(crate) fn answer_and_close(mut self, body: &str) {
        sockopt::set_tcp_cork(self.stream.descriptor(), true).unwrap();
        self.answer(body);
        rustix::net::shutdown(self.stream.descriptor(), rustix::net::Shutdown::Write).unwrap();
        self.wait_for_end();
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        sockopt::set_socket_linger(self.stream.descriptor(), Some(Duration::ZERO)).unwrap();
    }

    /// Reads and discards bytes until the client is gone.
    pub(crate) fn wait_for_end(&mut self) {
        let mut buffer = [0; 4096];
        while matches!(self.stream.read(&mut buffer), Ok(1..)) {}
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.seen.change(|open| *open -= 1);
    }
}

/// Returns an address without a listener.
pub(crate) fn closed_port() -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    Target {
        address: Address::Tcp(address),
        host: "closed.test".to_owned(),
        protocol: load::Protocol::default(),
    }
}

/// Returns a path for a Unix socket in a temporary folder.
pub(crate) fn socket_path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("server.sock")
}
