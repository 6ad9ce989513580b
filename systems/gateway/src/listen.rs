//! Sockets that clients connect to, and which worker serves a connection: the one that has fewest.
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
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chassis::{ConnectionTable, Slot};
use gateway_config::{Config, Listen};
use tokio::sync::mpsc::UnboundedSender;

use crate::worker::Order;

/// What is found at one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Site {
    /// Whether the GraphQL endpoint is here; the generation knows its path.
    pub(crate) graphql: bool,
    /// The path of the health check.
    pub(crate) health: Option<String>,
    /// The path of the metrics.
    pub(crate) metrics: Option<String>,
    /// The path where others tell that answers are out of date.
    pub(crate) invalidation: Option<String>,
    /// The path below which subgraphs send events.
    pub(crate) callback: Option<String>,
}

/// The sites of a configuration by address, GraphQL first.
pub(crate) fn sites(
    config: &Config,
    listen: Option<&Listen>,
    health_listen: Option<&Listen>,
) -> Vec<(Listen, Site)> {
    let mut sites: Vec<(Listen, Site)> = Vec::new();
    let mut add = |address: &Listen, fill: &dyn Fn(&mut Site)| {
        // Port 0 is a different free port each time, so two of them are never the same address.
        let is_free = matches!(address, Listen::Tcp(text) if text.ends_with(":0"));
        let known = sites
            .iter_mut()
            .find(|(known, _)| known == address && !is_free);
        match known {
            Some((_, site)) => fill(site),
            None => {
                let mut site = Site::default();
                fill(&mut site);
                sites.push((address.clone(), site));
            }
        }
    };
    let graphql = listen.unwrap_or(&config.supergraph.listen.0);
    add(graphql, &|site| site.graphql = true);
    let health = health_listen.unwrap_or(&config.health_check.listen.0);
    let prometheus = &config.telemetry.exporters.metrics.prometheus;
    let shows_metrics = prometheus.enabled;
    let metrics = prometheus.listen.as_ref().map(|it| &it.0);
    let metrics_path = || prometheus.path.0.0.clone();
    let is_together = metrics.is_none_or(|metrics| metrics == health);
    if config.health_check.enabled {
        add(health, &|site| {
            site.health = Some(config.health_check.path.0.0.clone());
            if shows_metrics && is_together {
                site.metrics = Some(metrics_path());
            }
        });
    }
    if shows_metrics && !(config.health_check.enabled && is_together) {
        add(metrics.unwrap_or(health), &|site| {
            site.metrics = Some(metrics_path());
        });
    }
    if let Some(endpoint) = config
        .response_cache
        .invalidation
        .as_ref()
        .filter(|_| config.response_cache.enabled)
    {
        add(&endpoint.listen.0, &|site| {
            site.invalidation = Some(endpoint.path.0.0.clone());
        });
    }
    let callback = config.subscriptions();
    if let Some(callback) = callback.and_then(|it| it.mode.callback.as_ref()) {
        let path = Some(callback.path.0.0.clone());
        match &callback.listen {
            Some(listen) => add(&listen.0, &|site| site.callback.clone_from(&path)),
            // GraphQL is the first.
            None => sites[0].1.callback = path,
        }
    }
    sites
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

/// What a connection comes with besides its socket.
pub(crate) struct Place {
    pub(crate) site: Arc<Site>,
    /// Its place among all connections.
    pub(crate) slot: Slot,
}

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

/// How the acceptor reaches one worker.
#[derive(Clone)]
pub(crate) struct Mailbox {
    pub(crate) orders: UnboundedSender<Order>,
    /// How many connections it has.
    pub(crate) open: Arc<AtomicUsize>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Listen {
        Listen::parse(text).unwrap()
    }

    #[test]
    fn health_and_metrics_share_an_address_and_may_share_graphql_s() {
        let config = Config::default();
        let found = sites(&config, None, None);
        assert_eq!(found.len(), 2);
        assert!(found[0].1.graphql && found[0].1.health.is_none());
        assert_eq!(found[1].0, tcp("127.0.0.1:8088"));
        assert_eq!(found[1].1.metrics.as_deref(), Some("/metrics"));
        let one = tcp("127.0.0.1:4000");
        let found = sites(&config, Some(&one), Some(&one));
        assert_eq!(found.len(), 1);
        assert!(found[0].1.graphql && found[0].1.health.is_some());
    }

    #[test]
    fn free_ports_are_never_shared() {
        let free = tcp("127.0.0.1:0");
        assert_eq!(sites(&Config::default(), Some(&free), Some(&free)).len(), 2);
    }
}
