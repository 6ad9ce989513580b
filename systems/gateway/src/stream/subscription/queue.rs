//! Events that wait for the client of a subscription.
//!
//! The subgraph is never made to wait: one that cannot send keeps its events in its own memory, and
//! misses the sign that the gateway is there. So the queue has a bound, and the oldest event gives way
//! to a new one. Clients who share a subscription have a queue each; what one of them does not take keeps
//! nothing from the others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gateway_federation::GraphqlError;
use tokio::sync::Notify;

use super::opened::Counts;

/// Bytes of the events that wait for one client, unless it is a single one.
const BYTES_MAX: usize = 4 << 20;
/// Bytes of the events that wait for all clients: thousands who read nothing would be gigabytes.
const BYTES_OF_ALL_MAX: usize = 64 << 20;

/// What came from a subgraph.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A response to the operation that subscribes.
    Response(Bytes),
    /// Nothing more, for this reason.
    Failed(GraphqlError),
}

impl Event {
    /// Its bytes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Response(body) => body.len(),
            Self::Failed(error) => error.message.len(),
        }
    }
}

/// An event that clients wait for or shall get. Its bytes count once, for as long as it is in a queue.
#[derive(Debug)]
pub(crate) struct Kept {
    event: Event,
    counts: Arc<Counts>,
}

impl Kept {
    pub(crate) fn new(event: Event, counts: &Arc<Counts>) -> Arc<Self> {
        counts.kept(event.weight());
        Arc::new(Self {
            event,
            counts: Arc::clone(counts),
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.counts.let_go(self.event.weight());
    }
}

/// Why no more events come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There are no more, or the last one says why.
    Complete,
    /// The connection was lost, and the tokens of all clients have expired with which it would be opened
    /// again.
    Expired,
    /// Nobody receives them any more: the worker that did has stopped.
    Cut,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Arc<Kept>>,
    bytes: usize,
    /// No more come.
    ended: Option<Ending>,
    /// Nobody takes them any more.
    is_left: bool,
}

/// Events between who receives them of a subgraph and who sends them to a client.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: usize,
    waiting: Mutex<Waiting>,
    arrived: Notify,
    counts: Arc<Counts>,
}

impl Queue {
    /// A queue for so many events.
    pub(crate) fn new(capacity: usize, counts: &Arc<Counts>) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            waiting: Mutex::default(),
            arrived: Notify::new(),
            counts: Arc::clone(counts),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic elsewhere leaves whole events.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event; the oldest give way to it.
    pub(crate) fn push(&self, event: &Arc<Kept>) {
        let mut waiting = self.lock();
        if waiting.ended.is_some() || waiting.is_left {
            return;
        }
        waiting.bytes += event.event.weight();
        waiting.events.push_back(Arc::clone(event));
        while self.has_too_much(&waiting) {
            let Some(oldest) = waiting.events.pop_front() else {
                break;
            };
            waiting.bytes -= oldest.event.weight();
            self.counts.skipped();
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Whether the oldest event gives way, by bounds of its own or because this client has more than is
    /// left for all: then the only one does so, too.
    ///
    /// As much as is left, and not all of it, so that clients who read nothing cannot keep the events of
    /// the others out: of many of them each has an equal part, and there is one more of these parts.
    fn has_too_much(&self, waiting: &Waiting) -> bool {
        let of_one = waiting.events.len() > 1
            && (waiting.events.len() > self.capacity || waiting.bytes > BYTES_MAX);
        let left = BYTES_OF_ALL_MAX.saturating_sub(self.counts.bytes());
        of_one || waiting.bytes > left
    }

    /// No more events come. The first reason counts.
    pub(crate) fn end(&self, why: Ending) {
        self.lock().ended.get_or_insert(why);
        self.arrived.notify_one();
    }

    /// Takes the oldest event, if there is one.
    pub(crate) fn take(&self) -> Option<Event> {
        let mut waiting = self.lock();
        let kept = waiting.events.pop_front()?;
        waiting.bytes -= kept.event.weight();
        Some(kept.event.clone())
    }

    /// The bytes of the oldest event, or why there are no more; nothing while there is none.
    fn first(&self) -> Option<Result<usize, Ending>> {
        let waiting = self.lock();
        match waiting.events.front() {
            Some(kept) => Some(Ok(kept.event.weight())),
            None => waiting.ended.map(Err),
        }
    }

    /// Waits for an event, and says how many bytes it has. It may give way before it is taken.
    ///
    /// # Errors
    /// When there are no more.
    pub(crate) async fn ready(&self) -> Result<usize, Ending> {
        loop {
            // Whoever adds one behind this look leaves a permit, so that it is not missed.
            if let Some(first) = self.first() {
                return first;
            }
            self.arrived.notified().await;
        }
    }

    /// Nobody takes the events any more.
    pub(crate) fn leave(&self) {
        let mut waiting = self.lock();
        waiting.is_left = true;
        waiting.bytes = 0;
        waiting.events.clear();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn number(event: Result<Event, Ending>) -> usize {
        match event {
            Ok(Event::Response(body)) => body.len(),
            other => panic!("{other:?}"),
        }
    }

    fn next(queue: &Queue) -> Option<Result<Event, Ending>> {
        let ready = queue.ready().now_or_never()?;
        Some(ready.map(|_| queue.take().unwrap()))
    }

    fn event(length: usize, counts: &Arc<Counts>) -> Arc<Kept> {
        Kept::new(Event::Response(vec![0; length].into()), counts)
    }

    #[test]
    fn the_oldest_gives_way() {
        let counts = Arc::default();
        let queue = Queue::new(2, &counts);
        for length in 1..=4 {
            queue.push(&event(length, &counts));
        }
        queue.end(Ending::Complete);
        queue.end(Ending::Cut);
        assert_eq!(number(next(&queue).unwrap()), 3);
        assert_eq!(number(next(&queue).unwrap()), 4);
        assert_eq!(next(&queue).unwrap().unwrap_err(), Ending::Complete);
        assert_eq!((counts.told().skipped, counts.bytes()), (2, 0));
    }

    #[test]
    fn bytes_count_and_a_single_event_always_fits() {
        let counts = Arc::default();
        let queue = Queue::new(100, &counts);
        let most = BYTES_MAX / 2 + 1;
        queue.push(&event(most, &counts));
        queue.push(&event(most, &counts));
        assert_eq!(number(next(&queue).unwrap()), most);
        assert!(next(&queue).is_none());
        queue.push(&event(3 * BYTES_MAX, &counts));
        assert_eq!(number(next(&queue).unwrap()), 3 * BYTES_MAX);
        assert_eq!(counts.told().skipped, 1);
    }

    #[test]
    fn clients_that_read_nothing_cannot_have_all_memory() {
        let counts = Arc::default();
        let each = BYTES_MAX - 1;
        let mut queues: Vec<_> = (0..40).map(|_| Queue::new(2, &counts)).collect();
        for queue in &queues {
            queue.push(&event(each, &counts));
        }
        assert_eq!(counts.bytes(), 15 * each);
        assert_eq!(counts.told().skipped, 25);
        // Others still get their events, which are smaller.
        queues[39].push(&event(1 << 20, &counts));
        assert_eq!(number(next(&queues[39]).unwrap()), 1 << 20);
        assert_eq!(counts.told().skipped, 25);
        // What is taken or left has room for others.
        assert_eq!(number(next(&queues[0]).unwrap()), each);
        queues[30].push(&event(each, &counts));
        assert_eq!(number(next(&queues[30]).unwrap()), each);
        queues.clear();
        assert_eq!(counts.bytes(), 0);
    }

    #[test]
    fn an_event_that_several_wait_for_counts_once() {
        let counts = Arc::default();
        let each = BYTES_MAX - 1;
        let queues: Vec<_> = (0..40).map(|_| Queue::new(2, &counts)).collect();
        let shared = event(each, &counts);
        for queue in &queues {
            queue.push(&shared);
        }
        drop(shared);
        assert_eq!((counts.bytes(), counts.told().skipped), (each, 0));
        for queue in &queues[1..] {
            assert_eq!(number(next(queue).unwrap()), each);
        }
        assert_eq!(counts.bytes(), each);
        queues[0].leave();
        assert_eq!(counts.bytes(), 0);
        // And nothing is kept for who left.
        queues[0].push(&event(1, &counts));
        assert_eq!(counts.bytes(), 0);
    }
}
