//! How many subscriptions there are, and what became of them.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::reconnects::Attempts;
use super::shares::{Limit, Share, Shares};

/// Why a subscription ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There are no more events, or the subgraph failed.
    Subgraph,
    /// The client left.
    Client,
    /// The gateway ended it: a reload, a stop, a token that expired, a stage that failed.
    Gateway,
}

const REASONS: [(Ended, &str); 3] = [
    (Ended::Subgraph, "subgraph"),
    (Ended::Client, "client"),
    (Ended::Gateway, "gateway"),
];

/// The subscriptions of all workers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The places of those that are open.
    places: Arc<Shares>,
    /// Bytes of their requests.
    requests: Arc<Shares>,
    refused: AtomicU64,
    events: AtomicU64,
    skipped: AtomicU64,
    /// Those at subgraphs that are open.
    upstream: AtomicUsize,
    /// Of clients who joined one at a subgraph.
    joined: AtomicU64,
    reconnects: AtomicU64,
    /// To open one at a subgraph again.
    pub(crate) attempts: Attempts,
    /// Of events that wait for clients.
    bytes: AtomicUsize,
    ended: [AtomicU64; REASONS.len()],
}

/// What metrics tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) open: u64,
    pub(crate) request_bytes: u64,
    pub(crate) refused: u64,
    pub(crate) events: u64,
    pub(crate) skipped: u64,
    pub(crate) upstream: u64,
    pub(crate) joined: u64,
    pub(crate) reconnects: u64,
    pub(crate) reconnects_waiting: u64,
    /// By reason.
    pub(crate) ended: Vec<(&'static str, u64)>,
}

/// A subscription that counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    counts: Arc<Counts>,
    ended: Ended,
    _place: Share,
    request: Option<Share>,
}

impl Counts {
    /// One more for a client of this address, unless there are as many as this says.
    pub(crate) fn open(self: &Arc<Self>, address: Option<IpAddr>, limit: Limit) -> Option<Opened> {
        let place = self.unless_refused(self.places.take(1, address, limit))?;
        Some(Opened {
            counts: Arc::clone(self),
            ended: Ended::Client,
            _place: place,
            request: None,
        })
    }

    /// Counts what there is no share for.
    fn unless_refused(&self, share: Option<Share>) -> Option<Share> {
        if share.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        share
    }

    /// Counts an event that gave way to a newer one.
    pub(crate) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// One at a subgraph begins.
    pub(crate) fn begun(&self) {
        self.upstream.fetch_add(1, Ordering::Relaxed);
    }

    /// One at a subgraph has ended.
    pub(crate) fn received(&self) {
        self.upstream.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a client who joins one at a subgraph.
    pub(crate) fn joined(&self) {
        self.joined.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt to go on with one at a subgraph over another connection.
    pub(crate) fn reconnects(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    /// So many bytes of an event wait for clients.
    pub(crate) fn kept(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// They wait no longer.
    pub(crate) fn let_go(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "what is let go was kept");
    }

    /// Bytes of events that wait for clients, of all workers.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What is counted so far.
    pub(crate) fn told(&self) -> Told {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let ended = REASONS.iter().zip(&self.ended);
        Told {
            open: self.places.taken() as u64,
            request_bytes: self.requests.taken() as u64,
            refused: of(&self.refused),
            events: of(&self.events),
            skipped: of(&self.skipped),
            upstream: self.upstream.load(Ordering::Relaxed) as u64,
            joined: of(&self.joined),
            reconnects: of(&self.reconnects),
            reconnects_waiting: self.attempts.waiting() as u64,
            ended: ended.map(|((_, name), count)| (*name, of(count))).collect(),
        }
    }
}

impl Opened {
    /// Its request is kept, so many bytes; false where a client of this address may not have as many.
    pub(crate) fn keeps(&mut self, bytes: usize, address: Option<IpAddr>, limit: Limit) -> bool {
        let counts = &self.counts;
        self.request = counts.unless_refused(counts.requests.take(bytes, address, limit));
        self.request.is_some()
    }

    /// Counts an event that was answered.
    pub(crate) fn answered(&self) {
        self.counts.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes why it ends; a client that leaves is what is counted otherwise.
    pub(crate) fn ends(&mut self, why: Ended) {
        self.ended = why;
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let place = REASONS.iter().position(|(why, _)| *why == self.ended);
        let place = place.expect("`REASONS` lists every reason");
        self.counts.ended[place].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_allowed_are_open() {
        let counts = Arc::<Counts>::default();
        let of = |total| Limit {
            total,
            per_address: None,
        };
        let first = counts.open(None, of(1)).unwrap();
        assert!(counts.open(None, of(1)).is_none());
        assert!(counts.open(None, of(2)).is_some());
        drop(first);
        let mut again = counts.open(None, of(1)).unwrap();
        assert!(again.keeps(10, None, of(10)));
        assert_eq!(counts.told().request_bytes, 10);
        again.ends(Ended::Subgraph);
        drop(again);
        assert_eq!(counts.told().request_bytes, 0);
        let told = counts.told();
        assert_eq!((told.open, told.refused), (0, 1));
        assert_eq!(told.ended, [("subgraph", 1), ("client", 2), ("gateway", 0)]);
    }
}
