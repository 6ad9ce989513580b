//! Listening sockets and their options.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::net::SocketFlags;
use tokio::io::Interest;

/// Maximum of unsent response bytes that the system buffers for a connection.
///
/// By default the system would buffer some megabytes for a client that does not read. Responses would then
/// fill buffers that our limits do not cover. Bytes in flight are not counted: long and fast links stay full.
const UNSENT_MAX: u32 = 128 * 1024;

/// Maximum number of connections in the accept queue, if the system allows it.
const QUEUE: u16 = 4096;

/// Prepares a listener. Its connections send small writes without delay and buffer few unsent bytes.
///
/// # Errors
/// Fails if the system does not support an option.
pub fn prepare(listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    set_queue(listener, QUEUE)?;
    // Connections inherit both options, which saves system calls for each connection.
    rustix::net::sockopt::set_tcp_nodelay(listener, true)?;
    socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT_MAX)
}

/// Sets the length of the accept queue to `connections`, or to the maximum of the system
/// (`net.core.somaxconn`).
///
/// The standard library requests 128. If more clients connect at once, the system drops the first packet of
/// the next client, which tries again only after a full second.
fn set_queue(listener: &TcpListener, connections: u16) -> io::Result<()> {
    // A second call on the same socket changes only its queue.
    Ok(rustix::net::listen(listener, connections.into())?)
}

/// A listener on a worker's thread.
///
/// tokio's listener registers every accepted connection. This listener leaves the registration to a
/// [`ClientConnection`](crate::ClientConnection).
#[derive(Debug)]
pub struct Listener {
    /// The listener as a stream, because tokio lets the owner make system calls only on this kind of socket.
    socket: tokio::net::TcpStream,
}

impl Listener {
    /// Registers a non-blocking listener.
    ///
    /// # Errors
    /// Fails if the system has no more file descriptors.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        let listener = TcpStream::from(OwnedFd::from(listener));
        let socket = tokio::net::TcpStream::from_std(listener)?;
        Ok(Self { socket })
    }

    /// Accepts a non-blocking connection, and returns it with the address of the client.
    ///
    /// # Errors
    /// Fails if the system has no more file descriptors, or if the client has already left.
    pub fn poll_accept(&self, task: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        loop {
            // A loop, because `try_io` clears the readiness if `accept` finds no connection. The task must
            // then be registered again.
            ready!(self.socket.poll_read_ready(task))?;
            // Set in the same call, which saves a system call per connection.
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let accept = || Ok(rustix::net::acceptfrom_with(&self.socket, flags)?);
            match self.socket.try_io(Interest::READABLE, accept) {
                Ok((socket, peer)) => {
                    // A client that has already left may have no address.
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    let gone = io::ErrorKind::ConnectionAborted;
                    return Poll::Ready(peer.map(|peer| (socket.into(), peer)).ok_or(gone.into()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clients_that_come_all_at_once_need_not_try_again() {
        let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let most: usize = limit.trim().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        prepare(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        // The test accepts no connection. A client that finds the queue full connects after a second at the
        // earliest.
        let clients: Vec<TcpStream> = (0..most.min(600))
            .map(|number| {
                let client = TcpStream::connect_timeout(&address, Duration::from_millis(900));
                client.unwrap_or_else(|error| panic!("client {number}: {error}"))
            })
            .collect();
        assert!(!clients.is_empty());
    }
}
