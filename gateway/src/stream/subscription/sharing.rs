//! Subscriptions at subgraphs. All clients with identical requests share one.
//!
//! The task that receives the subgraph's events runs on the worker of the first client. It does not belong to
//! this client. The first client may leave, and the task ends only when the last client leaves. A new client
//! receives the events from then on. Each client has a queue of its own. Its events are completed for this
//! client alone.
//!
//! All workers share the subscriptions, but only within one generation. After a reload, clients do not join
//! subscriptions of the old generation.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gateway_extensions::RequestKey;
use gateway_federation::GraphqlError;
use tokio::sync::{Notify, watch};

use super::opened::SubscriptionCounters;
use super::queue::{Ending, Event, Kept, Queue};
use super::subscribe_request::SubscribeRequest;

/// Clients that receive an event before other tasks of the thread run. Delivery is short, because the
/// completion of an event has turns of its own, and a subgraph must not wait for it.
pub(super) const CLIENTS_AT_ONCE: usize = 512;

/// The properties that two subscriptions must have in common to be shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Index of the subgraph. Two subgraphs with one address may use different protocols.
    pub(crate) subgraph: usize,
    pub(crate) request: RequestKey,
    /// Payload of the WebSocket's `connection_init` message, as JSON.
    pub(crate) parameters: Option<String>,
    /// Claims of the client's token, as JSON. `None` if the configuration ignores them.
    pub(crate) claims: Option<String>,
}

/// The subscriptions that new clients can join.
#[derive(Debug, Default)]
pub(crate) struct SharedSources(Mutex<HashMap<Arc<Key>, Arc<Source>>>);

/// A subscription at a subgraph.
#[derive(Debug)]
pub(super) struct Source {
    clients: Mutex<Clients>,
    /// The result of opening. `None` while the subgraph has not responded.
    opened: watch::Sender<Option<Result<(), Event>>>,
    left: Notify,
    /// Notified when the oldest client leaves while other clients stay.
    first_left: Notify,
    /// Locked while an event, or the end, is delivered to all clients. So all clients receive them in one
    /// order.
    giving: tokio::sync::Mutex<()>,
    counts: Arc<SubscriptionCounters>,
}

#[derive(Debug, Default)]
struct Clients {
    /// All clients, in the order of their arrival.
    members: BTreeMap<u64, Member>,
    next: u64,
    /// True if no client can join, because there are no more events or all clients have left.
    is_closed: bool,
    /// True if all clients have received the end of the events.
    is_told: bool,
}

#[derive(Debug)]
struct Member {
    queue: Arc<Queue>,
    client: Client,
}

/// A client of a subscription.
#[derive(Debug, Default)]
pub(super) struct Client {
    /// The address for limits per address. `None` if the client does not count.
    pub(crate) address: Option<IpAddr>,
    /// Expiry time of its token.
    pub(crate) expiry: Option<Instant>,
    /// The request that it would send. Set only if a lost connection may be opened again.
    pub(crate) subscribe_request: Option<Arc<SubscribeRequest>>,
}

impl Client {
    fn is_valid(&self, now: Instant) -> bool {
        self.expiry.is_none_or(|expiry| now < expiry)
    }
}

/// The receiving end of one client. Dropping the last one ends the subscription at the subgraph.
#[derive(Debug)]
pub(super) struct Receiver {
    source: Arc<Source>,
    queue: Arc<Queue>,
    number: u64,
}

/// Owned by the task that receives the events. Dropping it, for any reason, ends the events.
pub(super) struct Receiving {
    source: Arc<Source>,
    /// The entry through which clients join. `None` if the subscription is not shared.
    shared: Option<(Arc<SharedSources>, Arc<Key>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves only complete entries.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Joins an identical subscription, or begins one. The caller must receive the events of a new subscription.
/// Without a key, the subscription belongs to one client alone. `capacity` is the maximum number of queued
/// events per client.
pub(super) fn join(
    shared: &Arc<SharedSources>,
    capacity: usize,
    key: Option<Key>,
    client: Client,
    counts: &Arc<SubscriptionCounters>,
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
    fn begin(
        capacity: usize,
        client: Client,
        counts: &Arc<SubscriptionCounters>,
    ) -> (Arc<Self>, Receiver) {
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

    /// Adds a client. Returns it if there are no more events.
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

    /// The address of the oldest client. The connection counts for this client's address.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let clients = lock(&self.clients);
        let first = clients.members.first_key_value();
        first.and_then(|(_, member)| member.client.address)
    }

    /// Waits until the oldest client leaves while other clients stay.
    pub(crate) async fn first_left(&self) {
        self.first_left.notified().await;
    }

    /// The request to send again, from the oldest client with a valid token. `None` if no token is valid.
    pub(crate) fn subscribe_request(&self, now: Instant) -> Option<Arc<SubscribeRequest>> {
        let clients = lock(&self.clients);
        let mut members = clients.members.values();
        let valid = members.find(|member| member.client.is_valid(now))?;
        valid.client.subscribe_request.clone()
    }

    /// Reports that the subgraph has accepted the subscription.
    pub(crate) fn open(&self) {
        self.opened.send_replace(Some(Ok(())));
    }

    /// Reports that the subgraph has rejected the subscription. Clients receive this response instead of
    /// events.
    pub(crate) fn refuse(&self, answer: Event) {
        self.opened.send_if_modified(|opened| {
            let is_first = opened.is_none();
            if is_first {
                *opened = Some(Err(answer));
            }
            is_first
        });
    }

    /// Delivers an event to all clients. Returns the number of clients in the last turn.
    pub(crate) async fn push(&self, event: Event) -> usize {
        let _giving = self.giving.lock().await;
        let kept = Kept::new(event, &self.counts);
        self.each(|queue| queue.push(&kept)).await
    }

    /// Ends the events. The first reason counts.
    pub(crate) async fn end(&self, why: Ending) {
        let _giving = self.giving.lock().await;
        lock(&self.clients).is_closed = true;
        self.each(|queue| queue.end(why)).await;
        lock(&self.clients).is_told = true;
    }

    /// Runs `act` for each present client, at most [`CLIENTS_AT_ONCE`] in a turn. Between the turns other
    /// tasks run, and clients can join or leave. Returns the number of clients in the last turn.
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

    /// Ends the events at once, because the worker that receives them stops and may not run this task again.
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
    /// Returns the response to send instead of events.
    pub(crate) async fn opened(&self) -> Result<(), Event> {
        let mut opened = self.source.opened.subscribe();
        let known = opened.wait_for(Option::is_some).await;
        let known = known.expect("the source has the sender, and this has the source");
        known.clone().expect("it is waited for")
    }

    /// Waits for an event and returns its size in bytes. The queue may drop the event before it is taken.
    ///
    /// # Errors
    /// Fails if there are no more events.
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
        // Both calls have no effect after a normal end. Otherwise the worker stops, perhaps before other
        // workers.
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
                // The entry is not ours. It belongs to an identical subscription that began after the end of
                // this one.
                sources.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
