//! Counts open connections in total and by address, and counts the reasons for closed and refused
//! connections.
//!
//! All workers of a process share one table. It is written when a connection begins and when it ends, never
//! for a request.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use telemetry::metrics::{Counts, Scrape};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::clock;
use crate::limits::Most;

/// Minimum time between two log lines about refused or closed connections.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// Counts the connections of a process.
#[derive(Debug)]
pub struct ConnectionTable {
    total: AtomicUsize,
    per_address: AtomicUsize,
    open: AtomicUsize,
    /// Open connections that were assigned to a worker and that the worker has not taken yet.
    arriving: AtomicUsize,
    networks: Mutex<HashMap<Network, usize>>,
    accepted: AtomicU64,
    refused: [AtomicU64; ConnectionRefusal::ALL.len()],
    closed: [AtomicU64; Cause::ALL.len()],
    /// Number of times that the process had no free file descriptor. Workers notice changes.
    shortages: AtomicU64,
    /// Wakes workers that sweep rarely.
    alarm: Notify,
    notes: Mutex<Notes>,
}

/// Time of the last log line, and the number of lines that were skipped since then.
#[derive(Debug, Default)]
struct Notes {
    told: Option<Instant>,
    unsaid: u64,
}

/// The reason for a refused connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// Too many connections are open in total.
    Total,
    /// Too many from its address are open.
    Address,
}

impl ConnectionRefusal {
    const ALL: [(Self, &'static str); 2] = [(Self::Total, "total"), (Self::Address, "address")];
}

/// The reason why the service closed a connection before its client did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The head of a request did not arrive in time.
    Head,
    /// No request arrived for too long.
    Idle,
    /// The client does not read its response.
    Write,
    /// Responses that clients do not read use too much memory.
    Memory,
    /// The connection was idle and made room for a new connection.
    Room,
    /// More requests were cancelled than answered.
    Resets,
}

impl Cause {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Head, "head_timeout"),
        (Self::Idle, "idle_timeout"),
        (Self::Write, "write_timeout"),
        (Self::Memory, "unsent_bytes"),
        (Self::Room, "made_room"),
        (Self::Resets, "resets"),
    ];
}

/// The network of one client: an IPv4 address, or an IPv6 network of one customer (a /64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Network {
    V4([u8; 4]),
    V6([u8; 8]),
}

impl Network {
    /// Returns `None` for this machine itself (127.0.0.1 and ::1). A local program has other means of attack,
    /// and load generators and local proxies connect only from there. Other loopback addresses count as
    /// separate clients, for example in tests.
    pub(crate) fn of(address: IpAddr) -> Option<Self> {
        // An IPv4 client on a socket for both IP versions.
        let address = address.to_canonical();
        match address {
            IpAddr::V4(Ipv4Addr::LOCALHOST) | IpAddr::V6(Ipv6Addr::LOCALHOST) => None,
            IpAddr::V4(address) => Some(Self::V4(address.octets())),
            IpAddr::V6(address) => {
                let mut network = [0; 8];
                network.copy_from_slice(&address.octets()[..8]);
                Some(Self::V6(network))
            }
        }
    }
}

/// The place of an open connection. Dropping it frees the place.
#[derive(Debug)]
pub struct Slot {
    table: Arc<ConnectionTable>,
    network: Option<Network>,
    is_arriving: bool,
}

impl Slot {
    /// Network of the client. `None` for this machine itself.
    pub(crate) fn network(&self) -> Option<Network> {
        self.network
    }
}

impl ConnectionTable {
    /// Creates an empty table with these maxima.
    #[must_use]
    pub fn new(most: Most) -> Arc<Self> {
        Arc::new(Self {
            total: AtomicUsize::new(most.total),
            per_address: AtomicUsize::new(most.per_address),
            open: AtomicUsize::new(0),
            arriving: AtomicUsize::new(0),
            networks: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: Default::default(),
            closed: Default::default(),
            shortages: AtomicU64::new(0),
            alarm: Notify::new(),
            notes: Mutex::default(),
        })
    }

    /// Changes the limits. Open connections stay.
    pub fn set(&self, most: Most) {
        self.total.store(most.total, Relaxed);
        self.per_address.store(most.per_address, Relaxed);
    }

    /// Counts a connection from `peer`. A client of a Unix socket has no address, so `peer` is `None`.
    ///
    /// # Errors
    /// Fails if too many connections are open. The refusal is counted and logged here.
    pub fn take(self: &Arc<Self>, peer: Option<IpAddr>) -> Result<Slot, ConnectionRefusal> {
        let slot = self.admit(peer.and_then(Network::of));
        match &slot {
            Ok(_) => {
                self.accepted.fetch_add(1, Relaxed);
            }
            Err(refusal) => {
                let place = ConnectionRefusal::ALL
                    .iter()
                    .position(|(it, _)| it == refusal);
                let place = place.expect("`ALL` lists every refusal");
                self.refused[place].fetch_add(1, Relaxed);
                let name = ConnectionRefusal::ALL[place].1;
                self.log(|more| {
                    tracing::warn!(limit = name, ?peer, more, "a connection was refused");
                });
            }
        }
        slot
    }

    fn admit(self: &Arc<Self>, network: Option<Network>) -> Result<Slot, ConnectionRefusal> {
        // Counted before the check, so that two threads cannot both take the last place. Relaxed, because the
        // count orders no other memory.
        let before = self.open.fetch_add(1, Relaxed);
        let mut slot = Slot {
            table: Arc::clone(self),
            network: None,
            is_arriving: false,
        };
        if before >= self.total.load(Relaxed) {
            return Err(ConnectionRefusal::Total);
        }
        if let Some(network) = network {
            let most = self.per_address.load(Relaxed);
            let mut networks = self.networks();
            let count = networks.entry(network).or_default();
            if *count >= most {
                return Err(ConnectionRefusal::Address);
            }
            *count += 1;
            slot.network = Some(network);
        }
        Ok(slot)
    }

    /// True if idle connections should make room. An eighth of the places, at least one, is kept free for new
    /// connections.
    pub(crate) fn is_crowded(&self) -> bool {
        let total = self.total.load(Relaxed);
        let free = (total / 8).max(1).min(total.saturating_sub(1));
        self.open.load(Relaxed) > total - free
    }

    /// True if a worker has not taken all of its assigned connections yet. It makes room when it takes them.
    pub(crate) fn has_arriving(&self) -> bool {
        self.arriving.load(Relaxed) > 0
    }

    /// Records an error of `accept`. If resources are short, most likely file descriptors, the workers then
    /// close idle connections. Returns true if the caller should wait before the next try.
    pub fn accept_failed(&self, error: &io::Error) -> bool {
        let is_gone = matches!(
            error.kind(),
            io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::Interrupted
        );
        if is_gone {
            // The error concerns one client that left before it was accepted.
            return false;
        }
        let code = error.raw_os_error();
        let is_short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
            .iter()
            .any(|errno| code == Some(errno.raw_os_error()));
        if is_short {
            self.shortages.fetch_add(1, Relaxed);
            self.alarm();
        }
        self.log(|more| tracing::error!(%error, more, "a connection cannot be accepted"));
        true
    }

    /// Makes every worker sweep soon, because a resource is short.
    pub(crate) fn alarm(&self) {
        self.alarm.notify_waiters();
    }

    /// Waits for alarms after this call.
    pub(crate) fn alarmed(&self) -> Notified<'_> {
        self.alarm.notified()
    }

    pub(crate) fn shortages(&self) -> u64 {
        self.shortages.load(Relaxed)
    }

    pub(crate) fn closed(&self, cause: Cause) {
        let place = Cause::ALL.iter().position(|(it, _)| *it == cause);
        let place = place.expect("`ALL` lists every cause");
        self.closed[place].fetch_add(1, Relaxed);
        // Idle timeouts are normal and not logged.
        if cause != Cause::Idle {
            let name = Cause::ALL[place].1;
            self.log(|more| tracing::warn!(cause = name, more, "a connection was closed"));
        }
    }

    /// Number of connections closed for this cause.
    #[cfg(test)]
    pub(crate) fn count(&self, cause: Cause) -> u64 {
        let place = Cause::ALL.iter().position(|(it, _)| *it == cause);
        self.closed[place.unwrap()].load(Relaxed)
    }

    /// Number of open connections.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Logs at most once per `LOG_PAUSE`. `line` receives the number of skipped lines.
    fn log(&self, line: impl FnOnce(u64)) {
        let now = clock::now();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = |told: Instant| now.duration_since(told) < LOG_PAUSE;
        if notes.told.is_some_and(is_early) {
            notes.unsaid += 1;
            return;
        }
        let more = std::mem::take(&mut notes.unsaid);
        notes.told = Some(now);
        // Released before the line is written, which may take long.
        drop(notes);
        line(more);
    }

    fn networks(&self) -> MutexGuard<'_, HashMap<Network, usize>> {
        // No code panics while it holds this lock.
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// True if this table counts the connection. Connections of other tables make no room here.
    pub(crate) fn is_of(&self, table: &Arc<ConnectionTable>) -> bool {
        Arc::ptr_eq(&self.table, table)
    }

    /// Marks the connection as assigned to a worker that has not taken it yet.
    #[must_use]
    pub fn given(mut self) -> Self {
        if !std::mem::replace(&mut self.is_arriving, true) {
            self.table.arriving.fetch_add(1, Relaxed);
        }
        self
    }

    /// Marks the connection as taken by its worker. [`Tracker::begin`](crate::Tracker::begin) calls it too.
    pub fn arrived(&mut self) {
        if std::mem::take(&mut self.is_arriving) {
            self.table.arriving.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.arrived();
        self.table.open.fetch_sub(1, Relaxed);
        if let Some(network) = self.network
            && let Entry::Occupied(mut count) = self.table.networks().entry(network)
        {
            *count.get_mut() -= 1;
            // Removed, or a client with many addresses would fill the memory.
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Counts for ConnectionTable {
    fn tell(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let help = "Connections that are open";
        let open = self.open.load(Relaxed) as u64;
        scrape.gauge("http_server_connections", help, (&[], open))?;
        let help = "Connections that were accepted";
        scrape.counter(
            "http_server_connections_accepted",
            help,
            count(&self.accepted),
        )?;
        let refused = ConnectionRefusal::ALL.iter().zip(&self.refused);
        let refused: Vec<_> = refused
            .map(|((_, name), counter)| ([("limit", *name)], count(counter)))
            .collect();
        scrape.counters(
            "http_server_connections_refused",
            "Connections that were not served because too many were open",
            refused.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        let closed = Cause::ALL.iter().zip(&self.closed);
        let closed: Vec<_> = closed
            .map(|((_, name), counter)| ([("cause", *name)], count(counter)))
            .collect();
        scrape.counters(
            "http_server_connections_closed",
            "Connections that the service closed before their clients did",
            closed.iter().map(|(labels, count)| (&labels[..], *count)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(total: usize, per_address: usize) -> Arc<ConnectionTable> {
        ConnectionTable::new(Most { total, per_address })
    }

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_place_is_free_again_when_its_connection_ends() {
        let table = table(2, 2);
        let first = table.take(None).unwrap();
        let _second = table.take(None).unwrap();
        assert_eq!(table.take(None).unwrap_err(), ConnectionRefusal::Total);
        drop(first);
        assert!(table.take(None).is_ok());
    }

    #[test]
    fn an_address_cannot_take_all_places_and_a_network_of_ipv6_is_one_address() {
        for (one, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"),
        ] {
            let table = table(10, 1);
            let first = table.take(peer(one)).unwrap();
            assert_eq!(
                table.take(peer(same)).unwrap_err(),
                ConnectionRefusal::Address
            );
            assert!(table.take(peer(other)).is_ok(), "{other}");
            drop(first);
            assert!(table.take(peer(same)).is_ok(), "{same}");
            assert!(
                table.networks().is_empty(),
                "no memory of closed connections"
            );
        }
    }

    #[test]
    fn this_machine_is_bound_by_the_total_alone() {
        let table = table(3, 1);
        let open = ["127.0.0.1", "127.0.0.1", "::1"].map(|it| table.take(peer(it)).unwrap());
        assert_eq!(
            table.take(peer("127.0.0.1")).unwrap_err(),
            ConnectionRefusal::Total
        );
        drop(open);
        // Another address of this machine counts as another client.
        let other = table.take(peer("127.0.0.2")).unwrap();
        assert_eq!(
            table.take(peer("127.0.0.2")).unwrap_err(),
            ConnectionRefusal::Address
        );
        drop(other);
    }
}
