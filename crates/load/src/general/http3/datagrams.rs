//! Datagrams of one connection. The kernel reports a closed port only to a connected socket.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use rustix::net::sockopt;
use tokio::io::Interest;
use tokio::sync::Notify;

/// Bytes that the kernel keeps while this thread is busy. The system may allow fewer.
const BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// The reason that the socket can no longer be used.
#[derive(Clone, Debug, Default)]
pub(super) struct SocketFault(Arc<Raised>);

#[derive(Debug, Default)]
struct Raised {
    error: OnceLock<io::Error>,
    notify: Notify,
}

impl SocketFault {
    pub(super) fn get(&self) -> Option<&io::Error> {
        self.0.error.get()
    }

    fn raise(&self, error: io::Error) {
        // The first error is the cause of the later ones.
        let _ = self.0.error.set(error);
        // It is kept until the waiting task looks for it.
        self.0.notify.notify_one();
    }

    /// Waits until there is a reason.
    pub(super) async fn raised(&self) {
        self.0.notify.notified().await;
    }
}

/// A socket with one peer.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: tokio::net::UdpSocket,
    state: UdpSocketState,
    fault: SocketFault,
    has_received: AtomicBool,
}

impl Datagrams {
    /// Creates a socket for this peer. Must be called within a runtime.
    pub(super) fn new(peer: SocketAddr, fault: &SocketFault) -> io::Result<Datagrams> {
        let own: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(own).map_err(|error| match error.kind() {
            // Any free port would do, so all are in use. Over TCP this has another name.
            io::ErrorKind::AddrInUse => rustix::io::Errno::ADDRNOTAVAIL.into(),
            _ => error,
        })?;
        socket.connect(peer)?;
        if socket.local_addr()? == peer {
            // A free port of this machine may become the port of the socket, which then is its own peer.
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        socket.set_nonblocking(true)?;
        // Without the room, more datagrams are lost and sent again.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES);
        Ok(Datagrams {
            state: UdpSocketState::new((&socket).into())?,
            socket: tokio::net::UdpSocket::from_std(socket)?,
            fault: fault.clone(),
            has_received: AtomicBool::new(false),
        })
    }

    /// Looks for a refusal by the peer. The kernel reports it with the next send, which may be a second later. A peer
    /// on this machine has refused before this send returns.
    fn look_for_refusal(&self) {
        if !self.has_received.load(Ordering::Relaxed)
            && let Ok(Some(error)) = self.socket.take_error()
        {
            self.fault.raise(error);
        }
    }
}

impl AsyncUdpSocket for Datagrams {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_io(Interest::WRITABLE, || {
            let sent = self.state.try_send((&self.socket).into(), transmit);
            match sent {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    // The receiving side does not see it again.
                    self.fault.raise(error);
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
                Ok(()) => {
                    self.look_for_refusal();
                    Ok(())
                }
                // Like a lost datagram. A probe for larger datagrams fails in this way.
                Err(_) => Ok(()),
            }
        })
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_recv_ready(context))?;
            let received = self.socket.try_io(Interest::READABLE, || {
                self.state.recv((&self.socket).into(), buffers, meta)
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    let refused = io::Error::from(error.kind());
                    self.fault.raise(error);
                    // The library ends the connection with the socket.
                    return Poll::Ready(Err(refused));
                }
                Ok(datagrams) => {
                    self.has_received.store(true, Ordering::Relaxed);
                    return Poll::Ready(Ok(datagrams));
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }
}

/// Waits until the socket takes datagrams.
#[derive(Debug)]
struct Writable(Arc<Datagrams>);

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Only one task sends: a connection has a socket of its own.
        self.0.socket.poll_send_ready(context)
    }
}
