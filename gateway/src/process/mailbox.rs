//! The channel from the acceptor and the main thread to one worker.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use chassis::Slot;
use tokio::sync::mpsc::UnboundedSender;

use crate::process::generation::Generation;
use crate::process::sites::Site;

/// The acceptor's end of the channel to one worker.
#[derive(Clone)]
pub(crate) struct Mailbox {
    pub(crate) orders: UnboundedSender<Order>,
    /// The number of the worker's open connections.
    pub(crate) open: Arc<AtomicUsize>,
}

/// A command to a worker.
pub(crate) enum Order {
    /// Serve this connection.
    Connection(Accepted),
    /// Serve new requests with this generation.
    Generation(Arc<Generation>),
    /// Finish the running requests within this time.
    Stop(Duration),
}

/// A connection that has no worker yet.
pub(crate) enum Accepted {
    Tcp {
        stream: TcpStream,
        peer: SocketAddr,
        place: Place,
    },
    Unix {
        stream: UnixStream,
        place: Place,
    },
}

/// The site of a connection, and its slot in the connection table.
pub(crate) struct Place {
    pub(crate) site: Arc<Site>,
    pub(crate) slot: Slot,
}
