//! The sockets that clients connect to. The worker with the fewest connections gets the next one.
//!
//! A connection stays with its worker, so dealing it out well matters more than doing it fast: two
//! workers that race for connections end up with unequal loads.
//!
//! `chassis` counts and tracks the connections here as in every service. Its acceptor is not used,
//! which assigns connections in turn: the gateway's connections live long and
//! are few, it also listens on Unix sockets and at several addresses with different paths, and its
//! configuration changes while it runs. A move there waits for a run of `cargo xtask bench-gateway`
//! that shows no loss.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chassis::ConnectionTable;
use gateway_config::Listen;

use crate::process::mailbox::{Accepted, Mailbox, Order, Place};
use crate::process::sites::Site;

/// A socket that clients can connect to.
pub(crate) enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens.
    pub(crate) fn open(address: &Listen) -> io::Result<Self> {
        match address {
            Listen::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                // Answers are one write each; waiting to fill a packet only delays them.
                chassis::prepare(&listener)?;
                let address = listener.local_addr()?;
                Ok(Self::Tcp(listener, address))
            }
            Listen::Unix(path) => {
                // A socket that an earlier process left behind is removed. Any other kind of file
                // is the user's: binding then fails and it stays. Links are not followed for the
                // same reason.
                let is_socket = |path: &Path| {
                    std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket())
                };
                if is_socket(path) {
                    std::fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    /// The address as a client writes it.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Tcp(_, address) => format!("http://{address}"),
            Self::Unix(_, path) => format!("unix://{}", path.display()),
        }
    }
}

/// Accepts connections until the runtime ends, and deals them out.
pub(crate) async fn accept(
    listener: Listener,
    site: Site,
    (workers, table): (Vec<Mailbox>, Arc<ConnectionTable>),
) -> io::Result<()> {
    let site = Arc::new(site);
    // A connection that is refused is closed at once, before a worker hears of it.
    let enter = |peer: Option<SocketAddr>| {
        let slot = table.take(peer.map(|peer| peer.ip())).ok()?.given();
        let site = Arc::clone(&site);
        Some(Place { site, slot })
    };
    match listener {
        Listener::Tcp(listener, _) => {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        let Some(place) = enter(Some(peer)) else {
                            continue;
                        };
                        // Off this runtime: the worker registers the socket with its own.
                        if let Ok(stream) = stream.into_std() {
                            let accepted = Accepted::Tcp {
                                stream,
                                peer,
                                place,
                            };
                            deal(&workers, accepted);
                        }
                        chassis::pause_in_crowd(&table).await;
                    }
                    Err(error) => chassis::pause_after(&table, &error).await,
                }
            }
        }
        Listener::Unix(listener, path) => {
            let _removal = RemoveOnDrop(path);
            let listener = tokio::net::UnixListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let Some(place) = enter(None) else {
                            continue;
                        };
                        if let Ok(stream) = stream.into_std() {
                            deal(&workers, Accepted::Unix { stream, place });
                        }
                        chassis::pause_in_crowd(&table).await;
                    }
                    Err(error) => chassis::pause_after(&table, &error).await,
                }
            }
        }
    }
}

fn deal(workers: &[Mailbox], accepted: Accepted) {
    let fewest = workers
        .iter()
        .min_by_key(|worker| worker.open.load(Ordering::Relaxed));
    let worker = fewest.expect("start-up creates at least one worker");
    // Counted here and not by the worker: a burst of connections is accepted before any worker
    // has run, and must still spread.
    worker.open.fetch_add(1, Ordering::Relaxed);
    // Fails only when the worker has stopped, and then the connection is closed.
    let _ = worker.orders.send(Order::Connection(accepted));
}

/// Removes the file of a Unix socket at the end.
struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
