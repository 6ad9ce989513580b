//! Shares out places to clients in turns, so that a client with many requests gets no advantage.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Queue length at which a client's abandoned requests are removed.
const CROWD: usize = 64;

/// Shares out places. Clones share the same places.
#[derive(Clone)]
pub(super) struct Turns<K: Copy + Eq + Hash>(Arc<Inner<K>>);

struct Inner<K: Copy + Eq + Hash> {
    /// Maximum of concurrent places for one client.
    most: Box<dyn Fn(&K) -> usize + Send + Sync>,
    state: Mutex<State<K>>,
}

struct State<K: Copy + Eq + Hash> {
    free: usize,
    clients: HashMap<K, Entry<K>>,
    /// Clients with waiting requests, each once. The next client in turn is first.
    order: VecDeque<K>,
}

/// A client that holds places or has waiting requests.
struct Entry<K: Copy + Eq + Hash> {
    held: usize,
    waiting: VecDeque<oneshot::Sender<Place<K>>>,
    /// Queue length at which abandoned requests are removed next.
    look_at: usize,
}

impl<K: Copy + Eq + Hash> Default for Entry<K> {
    fn default() -> Self {
        Self {
            held: 0,
            waiting: VecDeque::new(),
            look_at: CROWD,
        }
    }
}

/// A place. Dropping it gives it to the next client in turn.
pub(super) struct Place<K: Copy + Eq + Hash> {
    turns: Turns<K>,
    client: K,
}

impl<K: Copy + Eq + Hash> Turns<K> {
    /// Creates `places` places. A client may hold at most `most(client)` of them at a time.
    pub(super) fn new(places: usize, most: impl Fn(&K) -> usize + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            most: Box::new(most),
            state: Mutex::new(State {
                free: places,
                clients: HashMap::new(),
                order: VecDeque::new(),
            }),
        }))
    }

    /// Takes a place at once, if one is free and no request of the client waits.
    pub(super) fn try_take(&self, client: K) -> Option<Place<K>> {
        let most = (self.0.most)(&client);
        let mut state = self.state();
        if state.free == 0 {
            return None;
        }
        let entry = state.clients.entry(client).or_default();
        // If a place is free while clients wait, these clients already hold their share.
        if entry.held >= most || !entry.waiting.is_empty() {
            return None;
        }
        entry.held += 1;
        state.free -= 1;
        drop(state);
        Some(self.place(client))
    }

    /// Waits until it is the client's turn and takes a place.
    pub(super) async fn take(&self, client: K) -> Place<K> {
        if let Some(place) = self.try_take(client) {
            return place;
        }
        let (give, given) = oneshot::channel();
        {
            let mut state = self.state();
            let entry = state.clients.entry(client).or_default();
            if entry.waiting.is_empty() {
                state.order.push_back(client);
            }
            let entry = state.clients.entry(client).or_default();
            if entry.waiting.len() >= entry.look_at {
                entry.waiting.retain(|waiting| !waiting.is_closed());
                entry.look_at = (2 * entry.waiting.len()).max(CROWD);
            }
            entry.waiting.push_back(give);
        }
        given
            .await
            .expect("a queue is not dropped while one waits in it")
    }

    fn place(&self, client: K) -> Place<K> {
        Place {
            turns: self.clone(),
            client,
        }
    }

    fn give_back(&self, client: K) {
        let mut state = self.state();
        state.free += 1;
        if let Some(entry) = state.clients.get_mut(&client) {
            entry.held -= 1;
        }
        state.forget(client);
        let next = state.next(&self.0.most);
        drop(state);
        if let Some((next, give)) = next {
            // A request that was abandoned at this moment drops the place, which returns here.
            let _ = give.send(self.place(next));
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        // No code panics while it holds this lock.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> State<K> {
    /// Takes a place for the next request in turn.
    fn next(&mut self, most: impl Fn(&K) -> usize) -> Option<(K, oneshot::Sender<Place<K>>)> {
        for _ in 0..self.order.len() {
            let client = self.order.pop_front()?;
            let Some(entry) = self.clients.get_mut(&client) else {
                continue;
            };
            if entry.held >= most(&client) {
                self.order.push_back(client);
                continue;
            }
            let mut next = entry.waiting.pop_front();
            while next.as_ref().is_some_and(oneshot::Sender::is_closed) {
                next = entry.waiting.pop_front();
            }
            if !entry.waiting.is_empty() {
                self.order.push_back(client);
            }
            if let Some(next) = next {
                entry.held += 1;
                self.free -= 1;
                return Some((client, next));
            }
            self.forget(client);
        }
        None
    }

    /// Removes a client that holds no place and has no waiting request.
    fn forget(&mut self, client: K) {
        let is_idle = |entry: &Entry<K>| entry.held == 0 && entry.waiting.is_empty();
        if self.clients.get(&client).is_some_and(is_idle) {
            self.clients.remove(&client);
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        self.turns.give_back(self.client);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Place<char>>>>;

    fn waiting(turns: &Turns<char>, client: char) -> Waiting {
        let turns = turns.clone();
        let mut waiting: Waiting = Box::pin(async move { turns.take(client).await });
        assert!(poll(&mut waiting).is_none(), "{client} must wait");
        waiting
    }

    fn poll(waiting: &mut Waiting) -> Option<Place<char>> {
        let polled = waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn clients_get_places_in_turn_whatever_they_ask_for() {
        let turns = Turns::new(1, |_| 1);
        let mut place = turns.try_take('a');
        let asked = ['a', 'a', 'a', 'b', 'b', 'c'];
        let mut queue: Vec<_> = asked.map(|client| (client, waiting(&turns, client))).into();
        let mut served = String::new();
        while !queue.is_empty() {
            drop(place.take());
            let mut ready = queue.iter_mut().enumerate();
            let found = ready.find_map(|(at, (_, waiting))| Some((at, poll(waiting)?)));
            let (at, next) = found.expect("one has the place");
            served.push(queue.remove(at).0);
            place = Some(next);
        }
        assert_eq!(served, "abcaba");
    }

    #[test]
    fn a_client_has_no_more_than_its_share_and_others_get_the_rest() {
        let turns = Turns::new(4, |_| 2);
        let first = turns.try_take('a').unwrap();
        let _second = turns.try_take('a').unwrap();
        assert!(turns.try_take('a').is_none());
        let mut third = waiting(&turns, 'a');
        let other = turns.try_take('b');
        assert!(other.is_some(), "two places are free");
        drop(other);
        assert!(poll(&mut third).is_none(), "a free place is not theirs");
        drop(first);
        assert!(poll(&mut third).is_some());
    }

    #[test]
    fn one_that_has_left_is_passed_over_and_forgotten() {
        let turns = Turns::new(1, |_| 1);
        let place = turns.try_take('a').unwrap();
        let left = waiting(&turns, 'b');
        let told = waiting(&turns, 'c');
        let mut last = waiting(&turns, 'd');
        drop(left);
        drop(place);
        // It received the place but was not polled.
        drop(told);
        drop(poll(&mut last).expect("it is the only one that waits"));
        let state = turns.state();
        assert_eq!(
            (state.free, state.clients.len(), state.order.len()),
            (1, 0, 0)
        );
    }

    #[test]
    fn a_queue_holds_few_that_have_left() {
        let turns = Turns::new(1, |_| 1);
        let _place = turns.try_take('a').unwrap();
        for _ in 0..10 * CROWD {
            drop(waiting(&turns, 'b'));
        }
        assert!(turns.state().clients[&'b'].waiting.len() <= CROWD);
    }
}
