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

use crate::generation::Generation;

use super::opened::Counts;
use super::queue::{Ending, Event, Kept, Queue};
use super::reception::Asked;

/// Clients who are given an event before other work of the thread has its turn.
pub(crate) const CLIENTS_AT_ONCE: usize = 32;

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
pub(crate) struct SharedSources(Mutex<HashMap<Arc<Key>, Arc<Source>>>);

/// A subscription at a subgraph.
#[derive(Debug)]
pub(crate) struct Source {
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
pub(crate) struct Client {
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
pub(crate) struct Receiver {
    source: Arc<Source>,
    queue: Arc<Queue>,
    number: u64,
}

/// Held by who receives the events: when it is dropped, however that comes, there are no more.
pub(crate) struct Receiving {
    source: Arc<Source>,
    /// Where it may be joined.
    shared: Option<(Arc<Generation>, Arc<Key>)>,
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
    client: Client,
    counts: &Arc<Counts>,
) -> (Receiver, Option<Receiving>) {
    let config = generation.config.subscriptions();
    let capacity = config.map_or(1, |it| it.queue_capacity.get());
    let Some(key) = key else {
        let (source, receiver) = Source::begin(capacity, client, counts);
        let shared = None;
        return (receiver, Some(Receiving { source, shared }));
    };
    let mut sources = lock(&generation.subscribed.0);
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
    let shared = Some((Arc::clone(generation), key));
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

    /// Nobody receives the events any more. At once, as there may be no other turn.
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
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use gateway_extensions::EventRequest;
    use gateway_upstream::{Endpoint, Policy};

    use super::*;

    fn asked(name: &str) -> Asked {
        Asked {
            name: name.into(),
            request: EventRequest {
                endpoint: Endpoint::parse("http://localhost", Policy::default()).unwrap(),
                headers: http::HeaderMap::new(),
                body: "{}".into(),
            },
            parameters: None,
        }
    }

    fn begin(counts: &Arc<Counts>) -> (Receiving, Receiver) {
        let (source, receiver) = Source::begin(2, Client::default(), counts);
        let shared = None;
        (Receiving { source, shared }, receiver)
    }

    async fn push(source: &Source) -> usize {
        source.push(Event::Response("{}".into())).await
    }

    fn end_of(receiver: &mut Receiver) -> Ending {
        receiver.next().now_or_never().unwrap().unwrap_err()
    }

    #[test]
    fn an_end_that_nobody_told_is_told_from_the_end_of_events() {
        let counts = Arc::default();
        let (receiving, mut cut) = begin(&counts);
        let source = Arc::clone(receiving.source());
        drop(receiving);
        assert_eq!(end_of(&mut cut), Ending::Cut);
        assert!(cut.opened().now_or_never().unwrap().is_err());
        assert!(source.join(2, Client::default()).is_err());
        let (receiving, mut complete) = begin(&counts);
        receiving.source().open();
        assert_eq!(push(receiving.source()).now_or_never(), Some(1));
        assert!(
            receiving
                .source()
                .end(Ending::Complete)
                .now_or_never()
                .is_some()
        );
        drop(receiving);
        assert!(complete.opened().now_or_never().unwrap().is_ok());
        assert!(complete.next().now_or_never().unwrap().is_ok());
        assert_eq!(end_of(&mut complete), Ending::Complete);
        assert_eq!(counts.told().upstream, 0);
    }

    #[test]
    fn the_last_who_leaves_closes_it() {
        let counts = Arc::default();
        let (receiving, first) = begin(&counts);
        let source = receiving.source();
        let second = source.join(2, Client::default()).unwrap();
        drop(first);
        assert!(source.left().now_or_never().is_none());
        assert_eq!(push(source).now_or_never(), Some(1));
        drop(second);
        assert!(source.left().now_or_never().is_some());
        assert!(source.join(2, Client::default()).is_err());
        assert_eq!(counts.bytes(), 0);
    }

    /// How many of these have an event, which is taken.
    fn served(receivers: &mut [Receiver]) -> usize {
        let next = |it: &mut Receiver| it.next().now_or_never().is_some();
        receivers.iter_mut().map(next).filter(|it| *it).count()
    }

    #[test]
    fn an_event_is_given_to_so_many_clients_in_a_turn_and_in_one_order() {
        let counts = Arc::default();
        let (receiving, first) = begin(&counts);
        let source = receiving.source();
        let join = || source.join(2, Client::default()).unwrap();
        let mut receivers = vec![first];
        receivers.extend((1..100).map(|_| join()));
        let mut context = Context::from_waker(Waker::noop());
        let mut first = pin!(push(source));
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert_eq!(served(&mut receivers), CLIENTS_AT_ONCE);
        // Others come and go meanwhile: who comes gets what comes then.
        receivers.push(join());
        drop(receivers.remove(50));
        let mut second = pin!(push(source));
        let mut end = pin!(source.end(Ending::Expired));
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(end.as_mut().poll(&mut context).is_pending());
        assert_eq!(served(&mut receivers), 0, "the first is not given to all");
        for _ in 0..2 {
            assert!(first.as_mut().poll(&mut context).is_pending());
            assert_eq!(served(&mut receivers), CLIENTS_AT_ONCE);
        }
        assert!(first.as_mut().poll(&mut context).is_ready());
        assert_eq!(served(&mut receivers), 99 - 3 * CLIENTS_AT_ONCE);
        for _ in 0..3 {
            assert!(second.as_mut().poll(&mut context).is_pending());
            assert_eq!(served(&mut receivers), CLIENTS_AT_ONCE);
        }
        assert!(second.as_mut().poll(&mut context).is_ready());
        assert_eq!(served(&mut receivers), 100 - 3 * CLIENTS_AT_ONCE);
        for _ in 0..3 {
            assert!(end.as_mut().poll(&mut context).is_pending());
        }
        assert!(end.as_mut().poll(&mut context).is_ready());
        let is_told = |it: &mut Receiver| end_of(it) == Ending::Expired;
        assert!(receivers.iter_mut().all(is_told));
    }

    #[test]
    fn what_is_asked_again_is_what_a_client_would_whose_token_is_valid() {
        let counts = Arc::default();
        let now = Instant::now();
        let client = |name: &str, last: u8, seconds: Option<u64>| Client {
            address: Some([192, 0, 2, last].into()),
            expiry: seconds.map(|it| now + Duration::from_secs(it)),
            asked: Some(Arc::new(asked(name))),
        };
        let (source, first) = Source::begin(2, client("first", 1, Some(10)), &counts);
        let second = source.join(2, client("second", 2, Some(20))).unwrap();
        let asks = |seconds| {
            let asked = source.asked(now + Duration::from_secs(seconds));
            asked.map(|it| it.name.to_string())
        };
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        assert_eq!(asks(9).as_deref(), Some("first"));
        // It is there, and expired.
        assert_eq!(asks(10).as_deref(), Some("second"));
        assert_eq!(asks(20), None);
        assert_eq!(source.address(), address(1));
        let third = source.join(2, client("third", 3, None)).unwrap();
        assert_eq!(asks(20).as_deref(), Some("third"));
        drop(second);
        assert!(source.first_left().now_or_never().is_none());
        drop(first);
        assert!(source.first_left().now_or_never().is_some());
        assert_eq!(source.address(), address(3));
        assert_eq!(asks(0).as_deref(), Some("third"));
        drop(third);
        assert_eq!((asks(0), source.address()), (None, None));
    }
}
