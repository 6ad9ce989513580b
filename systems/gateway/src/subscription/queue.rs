//! Events that wait for the client of a subscription.
//!
//! The subgraph is never made to wait: one that cannot send keeps its events in its own memory, and
//! misses the sign that the gateway is there. So the queue has a bound, and the oldest event gives way
//! to a new one.

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
#[derive(Debug)]
pub(crate) enum Event {
    /// A response to the operation that subscribes.
    Response(Bytes),
    /// Nothing more, for this reason.
    Failed(GraphqlError),
}

impl Event {
    fn weight(&self) -> usize {
        match self {
            Self::Response(body) => body.len(),
            Self::Failed(error) => error.message.len(),
        }
    }
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    bytes: usize,
    /// No more come.
    is_ended: bool,
    /// Nobody takes them any more.
    is_left: bool,
}

/// Events between who receives them of a subgraph and who sends them to a client.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: usize,
    waiting: Mutex<Waiting>,
    arrived: Notify,
    left: Notify,
    counts: Arc<Counts>,
}

/// The end that takes the events. Dropping it ends the subscription at the subgraph.
#[derive(Debug)]
pub(crate) struct Receiver(Arc<Queue>);

impl Queue {
    /// A queue for so many events, and its other end.
    pub(crate) fn new(capacity: usize, counts: &Arc<Counts>) -> (Arc<Self>, Receiver) {
        let queue = Arc::new(Self {
            capacity,
            waiting: Mutex::default(),
            arrived: Notify::new(),
            left: Notify::new(),
            counts: Arc::clone(counts),
        });
        (Arc::clone(&queue), Receiver(queue))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic elsewhere leaves whole events.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event; the oldest give way to it.
    pub(crate) fn push(&self, event: Event) {
        let mut waiting = self.lock();
        if waiting.is_ended || waiting.is_left {
            return;
        }
        waiting.bytes += event.weight();
        self.counts.kept(event.weight());
        waiting.events.push_back(event);
        while self.has_too_much(&waiting) {
            let Some(oldest) = waiting.events.pop_front() else {
                break;
            };
            waiting.bytes -= oldest.weight();
            self.counts.let_go(oldest.weight());
            self.counts.skipped();
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Whether the oldest event gives way. The only one does so too where all clients have too much.
    fn has_too_much(&self, waiting: &Waiting) -> bool {
        let of_one = waiting.events.len() > 1
            && (waiting.events.len() > self.capacity || waiting.bytes > BYTES_MAX);
        of_one || self.counts.bytes() > BYTES_OF_ALL_MAX
    }

    /// No more events come.
    pub(crate) fn end(&self) {
        self.lock().is_ended = true;
        self.arrived.notify_one();
    }

    /// The oldest event, or that there are no more; nothing while there is none.
    fn taken(&self) -> Option<Option<Event>> {
        let mut waiting = self.lock();
        if let Some(event) = waiting.events.pop_front() {
            waiting.bytes -= event.weight();
            self.counts.let_go(event.weight());
            return Some(Some(event));
        }
        waiting.is_ended.then_some(None)
    }

    /// Waits until nobody takes the events any more.
    pub(crate) async fn left(&self) {
        while !self.lock().is_left {
            self.left.notified().await;
        }
    }
}

impl Receiver {
    /// The next event; nothing when there are no more.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            // Whoever adds one behind this look leaves a permit, so that it is not missed.
            if let Some(next) = self.0.taken() {
                return next;
            }
            self.0.arrived.notified().await;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.is_left = true;
        waiting.events.clear();
        self.0.counts.let_go(std::mem::take(&mut waiting.bytes));
        drop(waiting);
        self.0.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn number(event: Option<Event>) -> usize {
        match event {
            Some(Event::Response(body)) => body.len(),
            other => panic!("{other:?}"),
        }
    }

    fn next(receiver: &mut Receiver) -> Option<Option<Event>> {
        receiver.next().now_or_never()
    }

    #[test]
    fn the_oldest_gives_way() {
        let counts = Arc::default();
        let (queue, mut receiver) = Queue::new(2, &counts);
        for length in 1..=4 {
            queue.push(Event::Response(vec![0; length].into()));
        }
        queue.end();
        assert_eq!(number(next(&mut receiver).unwrap()), 3);
        assert_eq!(number(next(&mut receiver).unwrap()), 4);
        assert!(next(&mut receiver).unwrap().is_none());
        assert_eq!(counts.told().skipped, 2);
    }

    #[test]
    fn bytes_count_and_a_single_event_always_fits() {
        let counts = Arc::default();
        let (queue, mut receiver) = Queue::new(100, &counts);
        let most = BYTES_MAX / 2 + 1;
        queue.push(Event::Response(vec![0; most].into()));
        queue.push(Event::Response(vec![0; most].into()));
        assert_eq!(number(next(&mut receiver).unwrap()), most);
        assert!(next(&mut receiver).is_none());
        queue.push(Event::Response(vec![0; 3 * BYTES_MAX].into()));
        assert_eq!(number(next(&mut receiver).unwrap()), 3 * BYTES_MAX);
        assert_eq!(counts.told().skipped, 1);
    }

    #[test]
    fn clients_that_read_nothing_cannot_have_all_memory() {
        let counts = Arc::default();
        let each = BYTES_MAX - 1;
        let mut queues: Vec<(Arc<Queue>, Receiver)> =
            (0..40).map(|_| Queue::new(2, &counts)).collect();
        for (queue, _) in &queues {
            queue.push(Event::Response(vec![0; each].into()));
        }
        assert!(counts.bytes() <= BYTES_OF_ALL_MAX);
        assert_eq!(counts.bytes(), 16 * each);
        assert_eq!(counts.told().skipped, 24);
        // What is taken or left has room for others.
        assert_eq!(number(next(&mut queues[0].1).unwrap()), each);
        queues[30].0.push(Event::Response(vec![0; each].into()));
        assert_eq!(number(next(&mut queues[30].1).unwrap()), each);
        queues.clear();
        assert_eq!(counts.bytes(), 0);
    }

    #[test]
    fn who_sends_learns_that_the_client_left() {
        let counts = Arc::default();
        let (queue, receiver) = Queue::new(2, &counts);
        assert!(queue.left().now_or_never().is_none());
        drop(receiver);
        assert!(queue.left().now_or_never().is_some());
        // And nothing is kept for it.
        queue.push(Event::Response(Bytes::from_static(b"1")));
        assert!(queue.lock().events.is_empty());
    }
}
