//! Subscriptions at subgraphs, each of which is for all clients who ask for the same.
//!
//! What receives of the subgraph is a task of the worker whose client came first. It belongs to no
//! client: the first may leave, and the last who leaves ends it. Who joins gets the events from then on,
//! each client in a queue of its own, from which it is completed for this client alone.
//!
//! They are shared by all workers, and by one generation: what a reload retires is not joined.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_extensions::RequestKey;
use gateway_federation::GraphqlError;
use tokio::sync::{Notify, watch};

use crate::generation::Generation;

use super::opened::Counts;
use super::queue::{Ending, Event, Kept, Queue};

/// What makes two subscriptions the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Its index: two at one address may be spoken to in different ways.
    pub(crate) subgraph: usize,
    pub(crate) request: RequestKey,
    /// With which a WebSocket begins, as JSON.
    pub(crate) parameters: Option<String>,
    /// Of the client's token, as JSON, where they count.
    pub(crate) claims: Option<String>,
}

/// The subscriptions that may be joined.
#[derive(Debug, Default)]
pub(crate) struct SharedSources(Mutex<HashMap<Key, Arc<Source>>>);

/// A subscription at a subgraph.
#[derive(Debug)]
pub(crate) struct Source {
    clients: Mutex<Clients>,
    /// Whether it could be opened; nothing until that is known.
    opened: watch::Sender<Option<Result<(), Event>>>,
    left: Notify,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Clients {
    /// In the order in which they came.
    queues: BTreeMap<u64, Arc<Queue>>,
    next: u64,
    /// Nobody joins any more: there are no more events, or all have left.
    is_closed: bool,
}

/// One client's end. Dropping the last one ends the subscription at the subgraph.
#[derive(Debug)]
pub(crate) struct Receiver {
    source: Arc<Source>,
    queue: Arc<Queue>,
    number: u64,
}

/// Held by who receives the events: when it is dropped, however that comes, there are no more.
pub(crate) struct Receiving {
    source: Arc<Source>,
    /// Where it may be joined.
    shared: Option<(Arc<Generation>, Key)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves whole entries.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Joins a subscription that is the same, or begins one: then its events have to be received. Without a
/// key it is for one client alone.
pub(crate) fn join(
    generation: &Arc<Generation>,
    key: Option<Key>,
    counts: &Arc<Counts>,
) -> (Receiver, Option<Receiving>) {
    let config = generation.config.subscriptions();
    let capacity = config.map_or(1, |it| it.queue_capacity.get());
    let Some(key) = key else {
        let (source, receiver) = Source::begin(capacity, counts);
        let shared = None;
        return (receiver, Some(Receiving { source, shared }));
    };
    let mut sources = lock(&generation.subscribed.0);
    let known = sources.get(&key);
    if let Some(receiver) = known.and_then(|it| it.join(capacity)) {
        counts.joined();
        log::debug!("a subscription joins an equal one");
        return (receiver, None);
    }
    let (source, receiver) = Source::begin(capacity, counts);
    sources.insert(key.clone(), Arc::clone(&source));
    let shared = Some((Arc::clone(generation), key));
    (receiver, Some(Receiving { source, shared }))
}

impl Source {
    fn begin(capacity: usize, counts: &Arc<Counts>) -> (Arc<Self>, Receiver) {
        counts.begun();
        let source = Arc::new(Self {
            clients: Mutex::default(),
            opened: watch::Sender::new(None),
            left: Notify::new(),
            counts: Arc::clone(counts),
        });
        let receiver = source.join(capacity).expect("it is not closed");
        (source, receiver)
    }

    fn join(self: &Arc<Self>, capacity: usize) -> Option<Receiver> {
        let mut clients = lock(&self.clients);
        if clients.is_closed {
            return None;
        }
        let number = clients.next;
        clients.next += 1;
        let queue = Queue::new(capacity, &self.counts);
        clients.queues.insert(number, Arc::clone(&queue));
        Some(Receiver {
            source: Arc::clone(self),
            queue,
            number,
        })
    }

    /// The subgraph has accepted it.
    pub(crate) fn open(&self) {
        self.opened.send_replace(Some(Ok(())));
    }

    /// The subgraph has not accepted it: this is the answer in place of all events.
    pub(crate) fn refuse(&self, answer: Event) {
        self.opened.send_if_modified(|opened| {
            let is_first = opened.is_none();
            if is_first {
                *opened = Some(Err(answer));
            }
            is_first
        });
    }

    /// Gives an event to all clients, and says how many there are.
    pub(crate) fn push(&self, event: Event) -> usize {
        let kept = Kept::new(event, &self.counts);
        let clients = lock(&self.clients);
        for queue in clients.queues.values() {
            queue.push(&kept);
        }
        clients.queues.len()
    }

    /// No more events come.
    pub(crate) fn end(&self) {
        self.close(Ending::Complete);
    }

    fn close(&self, why: Ending) {
        let mut clients = lock(&self.clients);
        clients.is_closed = true;
        for queue in clients.queues.values() {
            queue.end(why);
        }
    }

    /// Waits until all clients have left.
    pub(crate) async fn left(&self) {
        while !lock(&self.clients).queues.is_empty() {
            self.left.notified().await;
        }
    }
}

impl Receiver {
    /// Waits until the subgraph has accepted the subscription.
    ///
    /// # Errors
    /// What is answered in place of all events.
    pub(crate) async fn opened(&self) -> Result<(), Event> {
        let mut opened = self.source.opened.subscribe();
        let known = opened.wait_for(Option::is_some).await;
        let known = known.expect("the source has the sender, and this has the source");
        known.clone().expect("it is waited for")
    }

    /// The next event.
    ///
    /// # Errors
    /// When there are no more.
    pub(crate) async fn next(&mut self) -> Result<Event, Ending> {
        self.queue.next().await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.queue.leave();
        let mut clients = lock(&self.source.clients);
        clients.queues.remove(&self.number);
        if clients.queues.is_empty() {
            clients.is_closed = true;
            drop(clients);
            self.source.left.notify_one();
        }
    }
}

impl Receiving {
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Both are without effect where all is said; otherwise the worker stops, before others perhaps.
        self.source.refuse(Event::Failed(GraphqlError::new(
            "the gateway stops; subscribe again",
            "GATEWAY_STOPPING",
        )));
        self.source.close(Ending::Cut);
        self.source.counts.received();
        if let Some((generation, key)) = &self.shared {
            let mut sources = lock(&generation.subscribed.0);
            let is_ours = sources
                .get(key)
                .is_some_and(|it| Arc::ptr_eq(it, &self.source));
            if is_ours {
                // Not ours: an equal one that began after the end of this one has the entry.
                sources.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn begin(counts: &Arc<Counts>) -> (Receiving, Receiver) {
        let (source, receiver) = Source::begin(2, counts);
        let shared = None;
        (Receiving { source, shared }, receiver)
    }

    fn end(receiver: &mut Receiver) -> Ending {
        receiver.next().now_or_never().unwrap().unwrap_err()
    }

    #[test]
    fn an_end_that_nobody_told_is_told_from_the_end_of_events() {
        let counts = Arc::default();
        let (receiving, mut cut) = begin(&counts);
        let source = Arc::clone(receiving.source());
        drop(receiving);
        assert_eq!(end(&mut cut), Ending::Cut);
        assert!(cut.opened().now_or_never().unwrap().is_err());
        assert!(source.join(2).is_none());
        let (receiving, mut complete) = begin(&counts);
        receiving.source().open();
        receiving.source().push(Event::Response("{}".into()));
        receiving.source().end();
        drop(receiving);
        assert!(complete.opened().now_or_never().unwrap().is_ok());
        assert!(complete.next().now_or_never().unwrap().is_ok());
        assert_eq!(end(&mut complete), Ending::Complete);
        assert_eq!(counts.told().upstream, 0);
    }

    #[test]
    fn the_last_who_leaves_closes_it() {
        let counts = Arc::default();
        let (receiving, first) = begin(&counts);
        let source = receiving.source();
        let second = source.join(2).unwrap();
        drop(first);
        assert!(source.left().now_or_never().is_none());
        assert_eq!(source.push(Event::Response("{}".into())), 1);
        drop(second);
        assert!(source.left().now_or_never().is_some());
        assert!(source.join(2).is_none());
        assert_eq!(counts.bytes(), 0);
    }
}
