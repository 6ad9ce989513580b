//! Subscriptions at subgraphs, each of which is for all clients who ask for the same.
//!
//! What receives of the subgraph is a task of the worker whose client came first. It belongs to no
//! client: the first may leave, and the last who leaves ends it. Who joins gets the events from then on,
//! each client in a queue of its own, from which it is completed for this client alone.
//!
//! They are shared by all workers, and by one generation: what a reload retires is not joined.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gateway_extensions::RequestKey;
use gateway_federation::GraphqlError;
use tokio::sync::{Notify, watch};

use super::asked::Asked;
use super::opened::Counts;
use super::queue::{Ending, Event, Kept, Queue};

/// Clients who are given an event before other work of the thread has its turn. It is a short matter for
/// each: what an event is for its client is made in turns of their own, and a subgraph must not wait for
/// it.
pub(super) const CLIENTS_AT_ONCE: usize = 512;

/// What makes two subscriptions the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
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
pub(crate) struct SharedSources(Mutex<HashMap<Arc<Key>, Arc<Source>>>);

/// A subscription at a subgraph.
#[derive(Debug)]
pub(super) struct Source {
    clients: Mutex<Clients>,
    /// Whether it could be opened; nothing until that is known.
    opened: watch::Sender<Option<Result<(), Event>>>,
    left: Notify,
    /// The one who came first of those who were there has left, and others have not.
    first_left: Notify,
    /// Held while an event, or the end, is given to one client after the other: all get them in one order.
    giving: tokio::sync::Mutex<()>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Clients {
    /// In the order in which they came.
    members: BTreeMap<u64, Member>,
    next: u64,
    /// Nobody joins any more: there are no more events, or all have left.
    is_closed: bool,
    /// All have been told that there are no more events.
    is_told: bool,
}

#[derive(Debug)]
struct Member {
    queue: Arc<Queue>,
    client: Client,
}

/// A client who asks for a subscription.
#[derive(Debug, Default)]
pub(super) struct Client {
    /// The address by which it counts, where it does.
    pub(crate) address: Option<IpAddr>,
    /// When its token expires.
    pub(crate) expiry: Option<Instant>,
    /// What it would send, where that may be needed once more.
    pub(crate) asked: Option<Arc<Asked>>,
}

impl Client {
    fn is_valid(&self, now: Instant) -> bool {
        self.expiry.is_none_or(|expiry| now < expiry)
    }
}

/// One client's end. Dropping the last one ends the subscription at the subgraph.
#[derive(Debug)]
pub(super) struct Receiver {
    source: Arc<Source>,
    queue: Arc<Queue>,
    number: u64,
}

/// Held by who receives the events: when it is dropped, however that comes, there are no more.
pub(super) struct Receiving {
    source: Arc<Source>,
    /// Where it may be joined.
    shared: Option<(Arc<SharedSources>, Arc<Key>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves whole entries.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Joins an equal subscription, or begins one. The caller has to receive the events of a subscription
/// that begins. Without a key it is for one client alone. `capacity` is the number of events that may
/// wait for a client.
pub(super) fn join(
    shared: &Arc<SharedSources>,
    capacity: usize,
    key: Option<Key>,
    client: Client,
    counts: &Arc<Counts>,
) -> (Receiver, Option<Receiving>) {
    let Some(key) = key else {
        let (source, receiver) = Source::begin(capacity, client, counts);
        let shared = None;
        return (receiver, Some(Receiving { source, shared }));
    };
    let mut sources = lock(&shared.0);
    let joined = match sources.get(&key) {
        Some(known) => known.join(capacity, client),
        None => Err(client),
    };
    let client = match joined {
        Ok(receiver) => {
            counts.joined();
            log::debug!("a subscription joins an equal one");
            return (receiver, None);
        }
        Err(client) => client,
    };
    let (source, receiver) = Source::begin(capacity, client, counts);
    let key = Arc::new(key);
    sources.insert(Arc::clone(&key), Arc::clone(&source));
    let shared = Some((Arc::clone(shared), key));
    (receiver, Some(Receiving { source, shared }))
}

impl Source {
    fn begin(capacity: usize, client: Client, counts: &Arc<Counts>) -> (Arc<Self>, Receiver) {
        counts.begun();
        let source = Arc::new(Self {
            clients: Mutex::default(),
            opened: watch::Sender::new(None),
            left: Notify::new(),
            first_left: Notify::new(),
            giving: tokio::sync::Mutex::default(),
            counts: Arc::clone(counts),
        });
        let receiver = source.join(capacity, client);
        (source, receiver.expect("it is not closed"))
    }

    /// One more client, who is given back where there are no more events.
    fn join(self: &Arc<Self>, capacity: usize, client: Client) -> Result<Receiver, Client> {
        let mut clients = lock(&self.clients);
        if clients.is_closed {
            return Err(client);
        }
        let number = clients.next;
        clients.next += 1;
        let queue = Queue::new(capacity, &self.counts);
        let member = Member {
            queue: Arc::clone(&queue),
            client,
        };
        clients.members.insert(number, member);
        Ok(Receiver {
            source: Arc::clone(self),
            queue,
            number,
        })
    }

    /// The address of the client who has been there for longest: it is for its clients that a connection
    /// lasts.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let clients = lock(&self.clients);
        let first = clients.members.first_key_value();
        first.and_then(|(_, member)| member.client.address)
    }

    /// Waits until the client who has been there for longest is another.
    pub(crate) async fn first_left(&self) {
        self.first_left.notified().await;
    }

    /// What to ask a subgraph for once more: as the first client would whose token is valid still. Nothing
    /// when there is none.
    pub(crate) fn asked(&self, now: Instant) -> Option<Arc<Asked>> {
        let clients = lock(&self.clients);
        let mut members = clients.members.values();
        let valid = members.find(|member| member.client.is_valid(now))?;
        valid.client.asked.clone()
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

    /// Gives an event to all clients who are there, and says how many got it in the last turn.
    pub(crate) async fn push(&self, event: Event) -> usize {
        let _giving = self.giving.lock().await;
        let kept = Kept::new(event, &self.counts);
        self.each(|queue| queue.push(&kept)).await
    }

    /// No more events come. The first reason counts.
    pub(crate) async fn end(&self, why: Ending) {
        let _giving = self.giving.lock().await;
        lock(&self.clients).is_closed = true;
        self.each(|queue| queue.end(why)).await;
        lock(&self.clients).is_told = true;
    }

    /// Does something for each client who is there now, so many in a turn: other work of the thread, and
    /// who joins or leaves, waits for no more. Says how many the last turn had.
    async fn each(&self, act: impl Fn(&Queue)) -> usize {
        let end = lock(&self.clients).next;
        let mut begin = 0;
        loop {
            let count = {
                let clients = lock(&self.clients);
                let members = clients.members.range(begin..end);
                let mut count = 0;
                for (number, member) in members.take(CLIENTS_AT_ONCE) {
                    act(&member.queue);
                    (begin, count) = (number + 1, count + 1);
                }
                count
            };
            if count < CLIENTS_AT_ONCE {
                return count;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The worker that receives the events stops. At once, as there may be no other turn.
    fn cut(&self) {
        let mut clients = lock(&self.clients);
        clients.is_closed = true;
        if !clients.is_told {
            for member in clients.members.values() {
                member.queue.end(Ending::Cut);
            }
        }
    }

    /// Waits until all clients have left.
    pub(crate) async fn left(&self) {
        while !lock(&self.clients).members.is_empty() {
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

    /// Waits for an event, and says how many bytes it has. It may give way before it is taken.
    ///
    /// # Errors
    /// When there are no more.
    pub(crate) async fn ready(&self) -> Result<usize, Ending> {
        self.queue.ready().await
    }

    /// Takes the oldest event, if there is one.
    pub(crate) fn take(&self) -> Option<Event> {
        self.queue.take()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.queue.leave();
        let mut clients = lock(&self.source.clients);
        let first = clients.members.keys().next().copied();
        let member = clients.members.remove(&self.number);
        let is_empty = clients.members.is_empty();
        clients.is_closed |= is_empty;
        drop(clients);
        drop(member);
        if is_empty {
            self.source.left.notify_one();
        } else if first == Some(self.number) {
            self.source.first_left.notify_one();
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
        self.source.cut();
        self.source.counts.received();
        if let Some((shared, key)) = &self.shared {
            let mut sources = lock(&shared.0);
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
mod tests;
