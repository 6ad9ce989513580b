//! Clients have their requests begun in turn, so that one with many connections does not hold up all
//! others.
//!
//! A runtime of one thread looks for what has arrived between passes over its tasks. A pass in which
//! fifty connections of one client each begin something heavy takes as long as all of it, and a client
//! that arrives meanwhile waits for the end of the pass and then behind the next fifty. So after some time
//! a pass begins nothing more for a client for which it has begun something; the rest waits for the
//! next pass, and clients that are new in it go before.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use crate::clock;
use crate::connection_table::Network;

/// How long a pass begins requests of one client after another. Ordinary requests are so short that
/// a pass ends by itself before.
const STRETCH: Duration = Duration::from_millis(4);

/// Clients that are told apart in a pass. With more the pass is over, which is on the safe side.
const CLIENTS_MAX: usize = 64;

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
}

impl Passes {
    pub(super) fn new() -> Self {
        Self {
            number: Cell::new(0),
            rests: Cell::new(RESTS.get()),
            began: Cell::new(clock::now()),
            clients: RefCell::default(),
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

    #[test]
    fn a_short_pass_begins_all_and_a_long_one_each_client_once() {
        let passes = Passes::new();
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
        let passes = Passes::new();
        let most = u8::try_from(CLIENTS_MAX).unwrap();
        assert!((0..most).all(|it| passes.admits(client(it))));
        assert!(!passes.admits(client(most)));
        assert!(passes.admits(client(0)), "the pass is short");
    }
}
