//! How many subscriptions there are, and what became of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

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
    open: AtomicUsize,
    refused: AtomicU64,
    events: AtomicU64,
    skipped: AtomicU64,
    /// Those at subgraphs that are open.
    upstream: AtomicUsize,
    /// Of clients who joined one at a subgraph.
    joined: AtomicU64,
    reconnects: AtomicU64,
    /// Of events that wait for clients.
    bytes: AtomicUsize,
    ended: [AtomicU64; REASONS.len()],
}

/// What metrics tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) open: u64,
    pub(crate) refused: u64,
    pub(crate) events: u64,
    pub(crate) skipped: u64,
    pub(crate) upstream: u64,
    pub(crate) joined: u64,
    pub(crate) reconnects: u64,
    /// By reason.
    pub(crate) ended: Vec<(&'static str, u64)>,
}

/// A subscription that counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    counts: Arc<Counts>,
    ended: Ended,
}

impl Counts {
    /// One more, unless there are as many as `most` says.
    pub(crate) fn open(self: &Arc<Self>, most: usize) -> Option<Opened> {
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < most).then_some(open + 1)
            });
        if taken.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Opened {
            counts: Arc::clone(self),
            ended: Ended::Client,
        })
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
            open: self.open.load(Ordering::Relaxed) as u64,
            refused: of(&self.refused),
            events: of(&self.events),
            skipped: of(&self.skipped),
            upstream: self.upstream.load(Ordering::Relaxed) as u64,
            joined: of(&self.joined),
            reconnects: of(&self.reconnects),
            ended: ended.map(|((_, name), count)| (*name, of(count))).collect(),
        }
    }
}

impl Opened {
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
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
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
        let first = counts.open(1).unwrap();
        assert!(counts.open(1).is_none());
        assert!(counts.open(2).is_some());
        drop(first);
        let mut again = counts.open(1).unwrap();
        again.ends(Ended::Subgraph);
        drop(again);
        let told = counts.told();
        assert_eq!((told.open, told.refused), (0, 1));
        assert_eq!(told.ended, [("subgraph", 1), ("client", 2), ("gateway", 0)]);
    }
}
