//! Starts the requests of different clients in turn, so that a client with many connections does not delay
//! all other clients.
//!
//! A single-threaded runtime polls for new events between passes over its tasks. If fifty connections of one
//! client each start heavy work in one pass, the pass takes as long as all of that work. A client that
//! arrives meanwhile waits for the end of the pass, and then behind the next fifty requests. So after some
//! time, a pass starts no more requests for clients that already started one in this pass. Their other
//! requests wait for the next pass, behind clients that are new in it.
//!
//! The waiting requests of a client form a queue, and only the first request checks if it may start. If all
//! of them checked, the runtime would choose the order, and it wakes waiting tasks in reverse order. Of fifty
//! requests, the middle requests would then wait until no other requests arrive.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::{Mutex, MutexGuard};

use crate::clock;
use crate::connection_table::Network;

/// Maximum time for several requests of one client in a pass. Ordinary requests are short, and a pass
/// normally ends earlier.
const STRETCH: Duration = Duration::from_millis(4);

/// Number of clients that a pass can distinguish. If more clients appear, the pass starts no more requests,
/// which is the safe choice.
const CLIENTS_MAX: usize = 64;

/// Longest time that a request waits in its client's queue. Afterwards it no longer waits to be first.
const LINE_MAX: Duration = Duration::from_secs(1);

thread_local! {
    /// Number of times that the runtime of this thread was idle.
    static RESTS: Cell<u32> = const { Cell::new(0) };
}

/// Makes the runtime count its idle periods, which are the cheapest sign of a new pass. Without this count, a
/// request after a pause starts one poll for events later.
pub fn count_rests(runtime: &mut Builder) -> &mut Builder {
    runtime.on_thread_park(|| RESTS.set(RESTS.get().wrapping_add(1)))
}

/// The current pass of a worker.
#[derive(Debug)]
pub(super) struct Passes {
    number: Cell<u32>,
    /// The value of `RESTS` when the pass began.
    rests: Cell<u32>,
    began: Cell<Instant>,
    /// Clients that started a request in this pass. `None` stands for this machine itself.
    clients: RefCell<Vec<Option<Network>>>,
    /// The queues of clients that have waiting requests.
    lines: RefCell<HashMap<Option<Network>, Rc<Mutex<()>>>>,
}

impl Passes {
    pub(super) fn new() -> Self {
        Self {
            number: Cell::new(0),
            rests: Cell::new(RESTS.get()),
            began: Cell::new(clock::now()),
            clients: RefCell::default(),
            lines: RefCell::default(),
        }
    }

    /// True if a request of this client may start now and no earlier request of the client waits.
    pub(super) fn begins(&self, client: Option<Network>) -> bool {
        !self.lines.borrow().contains_key(&client) && self.admits(client)
    }

    /// Adds a request that cannot start now to the end of its client's queue.
    pub(super) fn line(&self, client: Option<Network>) -> Line<'_> {
        let lock = Rc::clone(self.lines.borrow_mut().entry(client).or_default());
        Line {
            passes: self,
            client,
            lock,
        }
    }

    /// The number of the current pass, for [`Passes::looked`].
    pub(super) fn current(&self) -> u32 {
        self.number.get()
    }

    /// True if this pass may start a request of this client.
    pub(super) fn admits(&self, client: Option<Network>) -> bool {
        if self.rests.get() != RESTS.get() {
            self.begin();
        }
        let mut clients = self.clients.borrow_mut();
        let is_new = clients.last() != Some(&client) && !clients.contains(&client);
        if is_new && clients.len() < CLIENTS_MAX {
            clients.push(client);
            return true;
        }
        !is_new && clock::now().duration_since(self.began.get()) < STRETCH
    }

    /// Reports that the runtime has polled for events since pass `number`. The first report begins a new
    /// pass.
    pub(super) fn looked(&self, number: u32) {
        if self.number.get() == number {
            self.begin();
        }
    }

    fn begin(&self) {
        self.number.set(self.number.get().wrapping_add(1));
        self.rests.set(RESTS.get());
        self.began.set(clock::now());
        self.clients.borrow_mut().clear();
    }
}

/// A request in its client's queue. Dropping it removes the request.
pub(super) struct Line<'a> {
    passes: &'a Passes,
    client: Option<Network>,
    /// The first request holds this lock. The other requests receive it in order of arrival.
    lock: Rc<Mutex<()>>,
}

impl Line<'_> {
    /// Waits until the request is first in the queue. It stays first until the returned guard is dropped.
    /// Returns `None` after `LINE_MAX`, so that the request does not depend forever on a server that polls
    /// the previous request.
    pub(super) async fn first(&self) -> Option<MutexGuard<'_, ()>> {
        let first = tokio::time::timeout(LINE_MAX, self.lock.lock()).await;
        first.ok()
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // No other request waits: the two references are this line and the map entry.
        if Rc::strong_count(&self.lock) == 2 {
            self.passes.lines.borrow_mut().remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(last: u8) -> Option<Network> {
        Network::of(IpAddr::from([10, 0, 0, last]))
    }

    /// A pass that has already lasted for `STRETCH`.
    fn long() -> Passes {
        let passes = Passes::new();
        passes.began.set(clock::now() - STRETCH);
        passes
    }

    /// A pass that stays short, even if this thread is delayed.
    fn short() -> Passes {
        let passes = Passes::new();
        passes.began.set(clock::now() + Duration::from_secs(600));
        passes
    }

    #[test]
    fn a_short_pass_begins_all_and_a_long_one_each_client_once() {
        let passes = short();
        assert!((0..100).all(|_| passes.admits(client(1))));
        let passes = long();
        let begun = [1, 1, 2, 1, 2, 3].map(|it| passes.admits(client(it)));
        assert_eq!(begun, [true, false, true, false, false, true]);
        assert_eq!([passes.admits(None), passes.admits(None)], [true, false]);
    }

    #[test]
    fn only_the_first_who_says_that_the_runtime_looked_begins_a_pass() {
        let passes = long();
        assert!(passes.admits(client(1)) && !passes.admits(client(1)));
        let number = passes.current();
        passes.looked(number);
        passes.began.set(clock::now() - STRETCH);
        assert!(passes.admits(client(1)));
        passes.looked(number);
        assert!(!passes.admits(client(1)));
        passes.looked(passes.current());
        assert!(passes.admits(client(1)));
    }

    #[test]
    fn a_rest_begins_a_pass() {
        let passes = long();
        assert!(passes.admits(client(1)) && !passes.admits(client(1)));
        RESTS.set(RESTS.get() + 1);
        assert!(passes.admits(client(1)));
    }

    #[test]
    fn more_clients_than_are_told_apart_end_a_pass() {
        let passes = short();
        let most = u8::try_from(CLIENTS_MAX).unwrap();
        assert!((0..most).all(|it| passes.admits(client(it))));
        assert!(!passes.admits(client(most)));
        assert!(passes.admits(client(0)), "the pass is short");
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(work)
    }

    #[test]
    fn what_waits_of_one_client_begins_in_its_order_and_before_what_comes_later() {
        let passes = long();
        assert!(passes.begins(client(1)) && !passes.begins(client(1)));
        let (one, two) = (passes.line(client(1)), passes.line(client(1)));
        run(async {
            let first = one.first().await;
            let mut second = std::pin::pin!(two.first());
            let is_waiting = std::future::poll_fn(|task| {
                std::task::Poll::Ready(second.as_mut().poll(task).is_pending())
            });
            assert!(is_waiting.await);
            passes.looked(passes.current());
            assert!(!passes.begins(client(1)), "others wait");
            assert!(passes.begins(client(2)));
            drop(first);
            assert!(second.await.is_some());
        });
        drop((one, two));
        assert!(passes.lines.borrow().is_empty());
        assert!(passes.begins(client(1)));
    }

    #[test]
    fn a_first_that_nobody_polls_does_not_keep_others_for_ever() {
        let passes = long();
        let (stuck, other) = (passes.line(None), passes.line(None));
        run(async {
            let _held = stuck.first().await;
            assert!(other.first().await.is_none());
        });
    }
}
