//! Clients have their requests begun in turn, so that one with many connections does not hold up all
//! others.
//!
//! A runtime of one thread looks for what has arrived between passes over its tasks. A pass in which
//! fifty connections of one client each begin something heavy takes as long as all of it, and a client
//! that arrives meanwhile waits for the end of the pass and then behind the next fifty. So after some time
//! a pass begins nothing more for a client for which it has begun something; the rest waits for the
//! next pass, and clients that are new in it go before.
//!
//! What waits of one client waits in a line, and only the first asks whether it may begin. If all did, the
//! runtime would decide who comes first, and it wakes those who waited for a look in the reverse of their
//! order: of fifty requests, those in the middle would wait for as long as others come.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::{Mutex, MutexGuard};

use crate::clock;
use crate::connection_table::Network;

/// How long a pass begins requests of one client after another. Ordinary requests are so short that
/// a pass ends by itself before.
const STRETCH: Duration = Duration::from_millis(4);

/// Clients that are told apart in a pass. With more the pass is over, which is on the safe side.
const CLIENTS_MAX: usize = 64;

/// How long a request waits in a line. Then it asks beside the others.
const LINE_MAX: Duration = Duration::from_secs(1);

thread_local! {
    /// Times that the runtime of this thread had nothing to do.
    static RESTS: Cell<u32> = const { Cell::new(0) };
}

/// Makes the runtime count when it has nothing to do, which is the cheapest sign of a new pass. Without
/// it a request that follows a pause is begun one look later.
pub fn count_rests(runtime: &mut Builder) -> &mut Builder {
    runtime.on_thread_park(|| RESTS.set(RESTS.get().wrapping_add(1)))
}

/// The current pass of a worker.
#[derive(Debug)]
pub(super) struct Passes {
    number: Cell<u32>,
    /// The count of rests when it began.
    rests: Cell<u32>,
    began: Cell<Instant>,
    /// Clients for which something was begun in it. `None` is this machine itself.
    clients: RefCell<Vec<Option<Network>>>,
    /// The lines of clients of whom something waits.
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

    /// Whether a request of this client begins now, behind none that waits.
    pub(super) fn begins(&self, client: Option<Network>) -> bool {
        !self.lines.borrow().contains_key(&client) && self.admits(client)
    }

    /// The end of this client's line, for a request that does not begin now.
    pub(super) fn line(&self, client: Option<Network>) -> Line<'_> {
        let lock = Rc::clone(self.lines.borrow_mut().entry(client).or_default());
        Line {
            passes: self,
            client,
            lock,
        }
    }

    /// The current pass, for [`Passes::looked`].
    pub(super) fn current(&self) -> u32 {
        self.number.get()
    }

    /// Whether a request of this client is begun in this pass.
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

    /// The runtime has looked for what has arrived since pass `number`: the first to say so begins a
    /// new one.
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

/// A request in the line of its client, until this is dropped.
pub(super) struct Line<'a> {
    passes: &'a Passes,
    client: Option<Network>,
    /// The first holds it; the others get it in the order in which they came.
    lock: Rc<Mutex<()>>,
}

impl Line<'_> {
    /// Waits until it is the first, which it is until what is returned is dropped. None when that takes
    /// too long: it does not depend for ever on a server that polls the one before it.
    pub(super) async fn first(&self) -> Option<MutexGuard<'_, ()>> {
        let first = tokio::time::timeout(LINE_MAX, self.lock.lock()).await;
        first.ok()
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // The last one: its own and that of the map.
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

    /// A pass that has lasted for its stretch.
    fn long() -> Passes {
        let passes = Passes::new();
        passes.began.set(clock::now() - STRETCH);
        passes
    }

    /// A pass that stays short, however long this thread is kept waiting.
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
