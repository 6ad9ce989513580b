//! Non-blocking sockets, with one interface for TCP and Unix targets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use crate::job::Address;
use crate::measurement::FailureKind;

/// An address in the form that the kernel takes.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    Unix(SocketAddrUnix),
}

/// The result of a connect.
pub(crate) enum Connect {
    /// The connection is open.
    Done(OwnedFd),
    /// The connect is pending. The socket becomes writable when it is decided.
    Pending(OwnedFd),
    /// The queue of a Unix listener is full. A later try may find room.
    Full,
}

impl Peer {
    pub(crate) fn new(address: &Address) -> io::Result<Peer> {
        Ok(match address {
            Address::Tcp(address) => Peer::Tcp(*address),
            Address::Unix(path) => Peer::Unix(SocketAddrUnix::new(path)?),
        })
    }

    /// Begins to connect a new socket.
    pub(crate) fn connect(&self) -> io::Result<Connect> {
        let family = match self {
            Peer::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Peer::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Peer::Unix(_) => AddressFamily::UNIX,
        };
        let socket = rustix::net::socket_with(
            family,
            SocketType::STREAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            None,
        )?;
        let connected = match self {
            Peer::Tcp(address) => {
                // A request that needs two writes must not wait for the acknowledgment of the
                // first.
                sockopt::set_tcp_nodelay(&socket, true)?;
                rustix::net::connect(&socket, address)
            }
            Peer::Unix(address) => rustix::net::connect(&socket, address),
        };
        match connected {
            Ok(()) => {
                self.refuse_self(&socket)?;
                Ok(Connect::Done(socket))
            }
            Err(Errno::INPROGRESS) => Ok(Connect::Pending(socket)),
            // A Unix socket does not wait for room in the queue of its listener. Over TCP this error is a
            // failure (connect(2)).
            Err(Errno::AGAIN) if matches!(self, Peer::Unix(_)) => Ok(Connect::Full),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the result of a pending connect.
    pub(crate) fn connected(&self, socket: impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd();
        // The first `?` is for the call, the second for the result of the connect.
        sockopt::socket_error(socket)??;
        self.refuse_self(socket)
    }

    /// Refuses a connection to itself. A socket that connects to a free port of its own machine may receive
    /// that port and connect to itself (TCP simultaneous open). There is no listener.
    fn refuse_self(&self, socket: impl AsFd) -> io::Result<()> {
        let Peer::Tcp(peer) = self else {
            return Ok(());
        };
        if !peer.ip().is_loopback() {
            return Ok(());
        }
        let own = SocketAddr::try_from(rustix::net::getsockname(socket)?)?;
        if own == *peer {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(())
    }
}

/// Returns the outcome and the message for a failed connect.
pub(crate) fn refusal(error: &io::Error) -> (FailureKind, String) {
    if error.raw_os_error() != Some(Errno::ADDRNOTAVAIL.raw_os_error()) {
        return (FailureKind::Connect, error.to_string());
    }
    let reason = "the generator has no free local port for another connection (EADDRNOTAVAIL). Keep \
                  connections alive, use fewer connections or a Unix socket, or spread the load \
                  over more addresses";
    (FailureKind::LocalPort, reason.to_owned())
}

/// The result of a read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Number of moved bytes. A read of 0 bytes is the end of the connection.
    Bytes(usize),
    /// No bytes can be moved at this time.
    Later,
}

/// Reads the available bytes.
#[inline]
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Moved, Errno> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((bytes, _)) => return Ok(Moved::Bytes(bytes)),
            Err(Errno::AGAIN) => return Ok(Moved::Later),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes the bytes that fit into the socket buffer.
#[inline]
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<Moved, Errno> {
    loop {
        // A closed connection is an outcome, not a signal that ends the program.
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(bytes) => return Ok(Moved::Bytes(bytes)),
            Err(Errno::AGAIN) => return Ok(Moved::Later),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_free_ports_is_the_generators_fault_and_the_words_say_how_to_go_on() {
        let (kind, reason) = refusal(&Errno::ADDRNOTAVAIL.into());
        assert_eq!(kind, FailureKind::LocalPort);
        for word in [
            "generator",
            "Keep connections alive",
            "Unix socket",
            "more addresses",
        ] {
            assert!(reason.contains(word), "{reason}");
        }
        let (kind, _) = refusal(&Errno::CONNREFUSED.into());
        assert_eq!(kind, FailureKind::Connect);
    }
}
