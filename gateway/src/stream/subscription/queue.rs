//! Queues of events for the clients of a subscription.
//!
//! The subgraph never has to wait. If it cannot send, it keeps its events in its own memory and misses the
//! heartbeats of the gateway. So a queue is bounded, and the oldest event makes room for a new event. Clients
//! that share a subscription have one queue each. A slow client does not delay other clients.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gateway_federation::GraphqlError;
use tokio::sync::Notify;

use super::opened::SubscriptionCounters;

/// Maximum number of bytes in one client's queue, unless it contains a single event.
const BYTES_MAX: usize = 4 << 20;
/// Maximum number of bytes in the queues of all clients. Otherwise, thousands of slow clients could use
/// gigabytes.
const BYTES_OF_ALL_MAX: usize = 64 << 20;

/// Data that arrived from a subgraph.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A response to the subscription operation.
    Response(Bytes),
    /// The end of the events, with this error.
    Failed(GraphqlError),
}

impl Event {
    /// Size in bytes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Response(body) => body.len(),
            Self::Failed(error) => error.message.len(),
        }
    }
}

/// An event in the queues of one or more clients. Its bytes count once, for as long as a queue contains it.
#[derive(Debug)]
pub(crate) struct Kept {
    event: Event,
    counts: Arc<SubscriptionCounters>,
}

impl Kept {
    pub(crate) fn new(event: Event, counts: &Arc<SubscriptionCounters>) -> Arc<Self> {
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

/// The reason why there are no more events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The subscription is complete, or the last event contains the reason.
    Complete,
    /// The connection was lost. It cannot be opened again, because the tokens of all clients have expired.
    Expired,
    /// The worker that received the events has stopped.
    Cut,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Arc<Kept>>,
    bytes: usize,
    /// The reason why there are no more events, if they have ended.
    ended: Option<Ending>,
    /// True if the client has left.
    is_left: bool,
}

/// The queue between the task that receives events from a subgraph and one client.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: usize,
    waiting: Mutex<Waiting>,
    arrived: Notify,
    counts: Arc<SubscriptionCounters>,
}

impl Queue {
    /// A queue for at most `capacity` events.
    pub(crate) fn new(capacity: usize, counts: &Arc<SubscriptionCounters>) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            waiting: Mutex::default(),
            arrived: Notify::new(),
            counts: Arc::clone(counts),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic elsewhere leaves only complete events.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event, and drops the oldest events if there are too many.
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

    /// True if the oldest event must be dropped. Either the queue exceeds its own limits, or it uses more
    /// bytes than the queues of all clients have left. In the second case, even a single event is dropped.
    ///
    /// A queue may use as many bytes as are left, not all of them. So slow clients cannot block the events of
    /// other clients. If n clients fill their queues, each uses 1/(n + 1) of the total.
    fn has_too_much(&self, waiting: &Waiting) -> bool {
        let of_one = waiting.events.len() > 1
            && (waiting.events.len() > self.capacity || waiting.bytes > BYTES_MAX);
        let left = BYTES_OF_ALL_MAX.saturating_sub(self.counts.bytes());
        of_one || waiting.bytes > left
    }

    /// Ends the events. The first reason counts.
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

    /// The size of the oldest event, or the reason for the end. `None` while the queue is empty.
    fn first(&self) -> Option<Result<usize, Ending>> {
        let waiting = self.lock();
        match waiting.events.front() {
            Some(kept) => Some(Ok(kept.event.weight())),
            None => waiting.ended.map(Err),
        }
    }

    /// Waits for an event and returns its size in bytes. The queue may drop the event before it is taken.
    ///
    /// # Errors
    /// Fails if there are no more events.
    pub(crate) async fn ready(&self) -> Result<usize, Ending> {
        loop {
            // An event that is added after this check leaves a permit, so the queue does not miss it.
            if let Some(first) = self.first() {
                return first;
            }
            self.arrived.notified().await;
        }
    }

    /// Clears the queue, because its client has left.
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

    fn event(length: usize, counts: &Arc<SubscriptionCounters>) -> Arc<Kept> {
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
        assert_eq!((counts.snapshot().skipped, counts.bytes()), (2, 0));
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
        assert_eq!(counts.snapshot().skipped, 1);
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
        assert_eq!(counts.snapshot().skipped, 25);
        // Other clients still receive their events, because these are smaller.
        queues[39].push(&event(1 << 20, &counts));
        assert_eq!(number(next(&queues[39]).unwrap()), 1 << 20);
        assert_eq!(counts.snapshot().skipped, 25);
        // Taken events, and queues of clients that left, make room for other events.
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
        assert_eq!((counts.bytes(), counts.snapshot().skipped), (each, 0));
        for queue in &queues[1..] {
            assert_eq!(number(next(queue).unwrap()), each);
        }
        assert_eq!(counts.bytes(), each);
        queues[0].leave();
        assert_eq!(counts.bytes(), 0);
        // The queue of a client that left stays empty.
        queues[0].push(&event(1, &counts));
        assert_eq!(counts.bytes(), 0);
    }
}
