//! Counts of subscriptions and of the reasons why they ended.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::reconnects::Attempts;
use super::shares::{Limit, Share, Shares};

/// The reason why a subscription ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// There are no more events, or the subgraph failed.
    Subgraph,
    /// The client disconnected.
    Client,
    /// The gateway ended it: a reload, a stop, an expired token or a failed stage.
    Gateway,
}

const REASONS: [(EndReason, &str); 3] = [
    (EndReason::Subgraph, "subgraph"),
    (EndReason::Client, "client"),
    (EndReason::Gateway, "gateway"),
];

/// The subscription counters of all workers.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionCounters {
    /// Open subscriptions of clients.
    places: Arc<Shares>,
    /// Bytes of the clients' requests.
    requests: Arc<Shares>,
    refused: AtomicU64,
    events: AtomicU64,
    skipped: AtomicU64,
    /// Open subscriptions at subgraphs.
    upstream: AtomicUsize,
    /// Number of clients that joined an open subscription at a subgraph.
    joined: AtomicU64,
    reconnects: AtomicU64,
    /// Attempts to open a subscription at a subgraph again.
    pub(crate) attempts: Attempts,
    /// Bytes of queued events.
    bytes: AtomicUsize,
    ended: [AtomicU64; REASONS.len()],
}

/// The values for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionCounts {
    pub(crate) open: u64,
    pub(crate) request_bytes: u64,
    pub(crate) refused: u64,
    pub(crate) events: u64,
    pub(crate) skipped: u64,
    pub(crate) upstream: u64,
    pub(crate) joined: u64,
    pub(crate) reconnects: u64,
    pub(crate) reconnects_waiting: u64,
    /// Ended subscriptions by reason.
    pub(crate) ended: Vec<(&'static str, u64)>,
}

/// A subscription that counts as open until this value is dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    counts: Arc<SubscriptionCounters>,
    ended: EndReason,
    _place: Share,
    request: Option<Share>,
}

impl SubscriptionCounters {
    /// Opens a subscription for a client with this address. `None` if the limit is reached.
    pub(crate) fn open(self: &Arc<Self>, address: Option<IpAddr>, limit: Limit) -> Option<Opened> {
        let place = self.unless_refused(self.places.take(1, address, limit))?;
        Some(Opened {
            counts: Arc::clone(self),
            ended: EndReason::Client,
            _place: place,
            request: None,
        })
    }

    /// Counts a refusal if `share` is `None`.
    fn unless_refused(&self, share: Option<Share>) -> Option<Share> {
        if share.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        share
    }

    /// Counts an event that was dropped to make room for a newer one.
    pub(crate) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a new subscription at a subgraph.
    pub(crate) fn begun(&self) {
        self.upstream.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a subscription at a subgraph.
    pub(crate) fn received(&self) {
        self.upstream.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a client that joins an open subscription at a subgraph.
    pub(crate) fn joined(&self) {
        self.joined.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt to continue a subscription at a subgraph over a new connection.
    pub(crate) fn reconnects(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the bytes of a queued event.
    pub(crate) fn kept(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts the bytes of an event that no queue contains any more.
    pub(crate) fn let_go(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "what is let go was kept");
    }

    /// Bytes of queued events, of all workers.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The current values for metrics.
    pub(crate) fn snapshot(&self) -> SubscriptionCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let ended = REASONS.iter().zip(&self.ended);
        SubscriptionCounts {
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
    /// Reserves memory for the client's request. Returns false if it exceeds the limit of this client's
    /// address or the total.
    pub(crate) fn keeps(&mut self, bytes: usize, address: Option<IpAddr>, limit: Limit) -> bool {
        let counts = &self.counts;
        self.request = counts.unless_refused(counts.requests.take(bytes, address, limit));
        self.request.is_some()
    }

    /// Counts an event after its response.
    pub(crate) fn answered(&self) {
        self.counts.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the reason of the end. Without a call, the client has left.
    pub(crate) fn ends(&mut self, why: EndReason) {
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
        let counts = Arc::<SubscriptionCounters>::default();
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
        assert_eq!(counts.snapshot().request_bytes, 10);
        again.ends(EndReason::Subgraph);
        drop(again);
        assert_eq!(counts.snapshot().request_bytes, 0);
        let counts = counts.snapshot();
        assert_eq!((counts.open, counts.refused), (0, 1));
        assert_eq!(
            counts.ended,
            [("subgraph", 1), ("client", 2), ("gateway", 0)]
        );
    }
}
