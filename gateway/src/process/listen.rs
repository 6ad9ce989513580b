//! The sockets for clients. The worker with the fewest connections gets the next one.
//!
//! A connection stays with its worker, so an even distribution matters more than speed. Workers that race for
//! connections end up with unequal loads.
//!
//! `chassis` counts and tracks the connections here, as in every service. Its acceptor is not used, because
//! it assigns connections in turn. The gateway's connections are few and live long. The gateway also listens
//! on Unix sockets and at several addresses with different paths, and its configuration changes while it
//! runs. A change to that acceptor waits for a run of `cargo xtask bench-gateway` that shows no loss.

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

/// A listening socket.
pub(crate) enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Opens a listening socket.
    pub(crate) fn open(address: &Listen) -> io::Result<Self> {
        match address {
            Listen::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                // A response is a single write. Waiting to fill a packet would only delay it.
                chassis::prepare(&listener)?;
                let address = listener.local_addr()?;
                Ok(Self::Tcp(listener, address))
            }
            Listen::Unix(path) => {
                // Removes a socket of an earlier process. Any other kind of file belongs to the user, so it
                // stays, and binding fails. For this reason, links are not followed either.
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

/// Accepts connections until the runtime ends, and assigns them to workers.
pub(crate) async fn accept(
    listener: Listener,
    site: Site,
    workers: Vec<Mailbox>,
    table: Arc<ConnectionTable>,
) -> io::Result<()> {
    let site = Arc::new(site);
    // A refused connection is closed at once. No worker receives it.
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
                        // Removed from this runtime, because the worker registers the socket with its own.
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
    // Counted here and not by the worker. A burst of connections is accepted before any worker runs, and must
    // be distributed evenly.
    worker.open.fetch_add(1, Ordering::Relaxed);
    // Fails only if the worker has stopped. Then the connection is closed.
    let _ = worker.orders.send(Order::Connection(accepted));
}

/// Removes the file of a Unix socket at the end.
struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
