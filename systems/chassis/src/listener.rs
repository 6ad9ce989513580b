//! Where connections arrive.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::net::SocketFlags;
use tokio::io::Interest;

/// Bytes that the system takes of an answer before it has sent those before.
///
/// It would take some megabytes of a client that does not read, whose requests would then be
/// answered into its buffers, where no limit of ours sees them. What is on its way does not count,
/// so that long and fast lines stay filled.
const UNSENT_MAX: u32 = 128 * 1024;

/// Connections that may wait to be accepted, where the system allows as many.
const QUEUE: u16 = 4096;

/// Prepares a listener whose connections send small writes without delay, and keep little that is
/// not sent yet.
///
/// # Errors
/// When the system does not know an option.
pub fn prepare(listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    set_queue(listener, QUEUE)?;
    // Connections inherit both, which spares system calls for each.
    rustix::net::sockopt::set_tcp_nodelay(listener, true)?;
    socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT_MAX)
}

/// Makes room for so many connections that wait to be accepted, or as many as the system allows
/// (`net.core.somaxconn`).
///
/// The standard library asks for 128. When so many clients come at once, the system drops the first
/// packet of the next one, who tries again after a whole second.
fn set_queue(listener: &TcpListener, connections: u16) -> io::Result<()> {
    // A second call on the same socket changes its queue and nothing else.
    Ok(rustix::net::listen(listener, connections.into())?)
}

/// A listener on a worker's thread.
///
/// tokio's own registers every connection that it accepts; this one leaves that to a
/// [`Connection`](crate::Connection).
#[derive(Debug)]
pub struct Listener {
    /// The listener, as a stream: of tokio's sockets, only this kind lets its owner make the system
    /// calls.
    socket: tokio::net::TcpStream,
}

impl Listener {
    /// Registers a listener that does not block.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        let listener = TcpStream::from(OwnedFd::from(listener));
        let socket = tokio::net::TcpStream::from_std(listener)?;
        Ok(Self { socket })
    }

    /// Accepts a connection, which does not block, and tells who the client is.
    ///
    /// # Errors
    /// When the system has no more file descriptors, or the client is gone again.
    pub fn poll_accept(&self, task: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        loop {
            // A loop, because `try_io` clears the readiness when `accept` finds nothing, and the
            // task must then be registered again.
            ready!(self.socket.poll_read_ready(task))?;
            // Set by the same call, which spares one for each connection.
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let accept = || Ok(rustix::net::acceptfrom_with(&self.socket, flags)?);
            match self.socket.try_io(Interest::READABLE, accept) {
                Ok((socket, peer)) => {
                    // A client that is gone again may have no address.
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
        // Nothing is accepted. A client that finds no room in the queue is connected after a second at
        // the earliest.
        let clients: Vec<TcpStream> = (0..most.min(600))
            .map(|number| {
                let client = TcpStream::connect_timeout(&address, Duration::from_millis(900));
                client.unwrap_or_else(|error| panic!("client {number}: {error}"))
            })
            .collect();
        assert!(!clients.is_empty());
    }
}
