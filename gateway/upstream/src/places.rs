//! Limits the number of concurrent exchanges, with a queue of waiting calls.
//!
//! A place is the right to one exchange, not a connection. A call opens a connection only if it has a place
//! and finds no idle connection. So there are never more connections than places.
//!
//! A WebSocket is a long-lived connection and keeps its place. It needs a reservation first, and the number of
//! reservations is lower, so that exchanges always have places left. The clients of one address get at most
//! as many reservations as they leave for others.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;

use tokio::sync::oneshot;

/// A limited number of exchanges. Further calls wait in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Cell<usize>,
    max: Cell<usize>,
    /// Number of reservations for long-lived connections, with or without a place yet.
    reservations: Cell<usize>,
    /// Number of these reservations per client address.
    addresses: RefCell<HashMap<IpAddr, usize>>,
    waiting: RefCell<VecDeque<oneshot::Sender<Place>>>,
    all: Rc<PlaceTotals>,
}

/// Sums over the `Places` of all origins.
#[derive(Debug, Default)]
pub(crate) struct PlaceTotals {
    taken: Cell<usize>,
    reservations: Cell<usize>,
}

/// A taken place. Dropping it gives the place to the call that has waited longest.
#[derive(Debug)]
pub(crate) struct Place(Rc<Places>);

/// The right to a place during a long-lived connection. Dropping it ends the reservation.
#[derive(Debug)]
pub(crate) struct Reserved {
    places: Rc<Places>,
    /// The client address that the reservation counts for. `None` if it counts for no address.
    address: Cell<Option<IpAddr>>,
}

impl Places {
    /// Creates places that count in a common sum.
    pub(crate) fn among(all: &Rc<PlaceTotals>) -> Rc<Self> {
        Rc::new(Self {
            all: Rc::clone(all),
            ..Self::default()
        })
    }

    /// Takes a place, if one is free. `most` sets the maximum from now on.
    pub(crate) fn take(self: &Rc<Self>, most: impl Fn() -> usize) -> Option<Place> {
        self.allow(most);
        (self.taken.get() < self.max.get()).then(|| self.taken())
    }

    /// Sets the maximum to `most`, and gives free places to waiting calls. `most` runs again for each place,
    /// because it may depend on the number of taken places.
    pub(crate) fn allow(self: &Rc<Self>, most: impl Fn() -> usize) {
        loop {
            self.max.set(most());
            if self.taken.get() >= self.max.get() || !self.give_one() {
                return;
            }
        }
    }

    /// Waits for a place. Dropping the receiver ends the wait.
    pub(crate) fn wait(&self) -> oneshot::Receiver<Place> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push_back(sender);
        receiver
    }

    /// Number of taken places.
    pub(crate) fn count(&self) -> usize {
        self.taken.get()
    }

    /// Number of taken places, over all `Places` in the common sum.
    pub(crate) fn count_all(&self) -> usize {
        self.all.taken.get()
    }

    /// Reserves a place for a long-lived connection. `None` if there are `most` reservations, or if the clients
    /// of this address have as many as they leave for others.
    pub(crate) fn reserve(
        self: &Rc<Self>,
        most: usize,
        address: Option<IpAddr>,
    ) -> Option<Reserved> {
        let left = most.saturating_sub(self.reservations.get());
        (self.of_address(address) < left).then(|| {
            self.reservations.set(self.reservations.get() + 1);
            self.all.reservations.set(self.all.reservations.get() + 1);
            self.keep(address);
            Reserved {
                places: Rc::clone(self),
                address: Cell::new(address),
            }
        })
    }

    fn of_address(&self, address: Option<IpAddr>) -> usize {
        let addresses = self.addresses.borrow();
        let count = address.and_then(|address| addresses.get(&address));
        count.copied().unwrap_or(0)
    }

    fn keep(&self, address: Option<IpAddr>) {
        if let Some(address) = address {
            *self.addresses.borrow_mut().entry(address).or_default() += 1;
        }
    }

    fn let_go(&self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        let mut addresses = self.addresses.borrow_mut();
        if let Some(count) = addresses.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&address);
            }
        }
    }

    /// Number of reservations.
    pub(crate) fn reservations(&self) -> usize {
        self.reservations.get()
    }

    /// Number of reservations, over all `Places` in the common sum.
    pub(crate) fn reservations_all(&self) -> usize {
        self.all.reservations.get()
    }

    /// Number of waiting calls.
    pub(crate) fn waiting(&self) -> usize {
        let mut waiting = self.waiting.borrow_mut();
        // Calls that have ended are removed only here and in `give_one`.
        waiting.retain(|sender| !sender.is_closed());
        waiting.len()
    }

    fn taken(self: &Rc<Self>) -> Place {
        self.taken.set(self.taken.get() + 1);
        self.all.taken.set(self.all.taken.get() + 1);
        Place(Rc::clone(self))
    }

    /// Gives a place to the call that has waited longest. Returns false if no call waits.
    fn give_one(self: &Rc<Self>) -> bool {
        loop {
            // A separate statement, because the queue must not be borrowed while a place is given.
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                None => return false,
                // The waiting call has ended.
                Some(sender) if sender.is_closed() => {}
                Some(sender) => {
                    // The send cannot fail, because no other code runs on this thread after the check.
                    let _ = sender.send(self.taken());
                    return true;
                }
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let places = &self.0;
        places.taken.set(places.taken.get() - 1);
        places.all.taken.set(places.all.taken.get() - 1);
        if places.taken.get() < places.max.get() {
            places.give_one();
        }
    }
}

impl Reserved {
    /// Moves the reservation to the clients of this address, without a limit.
    pub(crate) fn count_for(&self, address: Option<IpAddr>) {
        self.places.let_go(self.address.replace(address));
        self.places.keep(address);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let places = &self.places;
        places.let_go(self.address.get());
        places.reservations.set(places.reservations.get() - 1);
        places
            .all
            .reservations
            .set(places.all.reservations.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_to_those_who_wait_in_their_order() {
        let places = Rc::new(Places::default());
        let first = places.take(|| 1).unwrap();
        assert!(places.take(|| 1).is_none());
        let (mut second, gone, mut third) = (places.wait(), places.wait(), places.wait());
        drop(gone);
        drop(first);
        let held = second.try_recv().unwrap();
        assert!(third.try_recv().is_err());
        assert!(places.take(|| 1).is_none());
        drop(held);
        assert!(third.try_recv().is_ok());
        assert_eq!(places.count(), 0);
    }

    #[test]
    fn a_place_that_came_too_late_goes_to_the_next() {
        let places = Rc::new(Places::default());
        let first = places.take(|| 1).unwrap();
        let (second, mut third) = (places.wait(), places.wait());
        // The place was given, and no call has received it yet.
        drop(first);
        drop(second);
        assert!(third.try_recv().is_ok());
        assert_eq!(places.count(), 0);
    }

    #[test]
    fn reservations_count_until_they_are_dropped() {
        let all = Rc::new(PlaceTotals::default());
        let (one, other) = (Places::among(&all), Places::among(&all));
        let first = one.reserve(1, None).unwrap();
        assert!(one.reserve(1, None).is_none());
        let second = other.reserve(1, None).unwrap();
        assert_eq!((one.reservations(), one.reservations_all()), (1, 2));
        drop((first, second));
        assert_eq!((one.reservations(), other.reservations_all()), (0, 0));
        assert!(one.reserve(1, None).is_some());
    }

    #[test]
    fn one_address_keeps_as_many_as_are_left_for_others() {
        let places = Rc::new(Places::default());
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let keep = |last| places.reserve(8, address(last));
        let mut kept = Vec::new();
        kept.extend(std::iter::from_fn(|| keep(1)));
        assert_eq!(kept.len(), 4);
        kept.extend(std::iter::from_fn(|| keep(2)));
        assert_eq!(kept.len(), 6);
        // Without an address, all remaining reservations are available.
        kept.extend(std::iter::from_fn(|| places.reserve(8, None)));
        assert_eq!((kept.len(), places.reservations()), (8, 8));
        assert!(keep(3).is_none());
        // A reservation that moves to another address counts for that address.
        kept.truncate(4);
        kept[0].count_for(address(3));
        assert!(keep(1).is_some());
        kept[1].count_for(None);
        kept.clear();
        assert!(places.addresses.borrow().is_empty());
    }

    #[test]
    fn another_number_of_places_holds_from_the_next_on() {
        let places = Rc::new(Places::default());
        let held = [places.take(|| 2).unwrap(), places.take(|| 2).unwrap()];
        let mut waiting = places.wait();
        assert!(places.take(|| 1).is_none());
        let [first, second] = held;
        drop(first);
        assert!(waiting.try_recv().is_err(), "one is taken, and one is all");
        let third = places.take(|| 3).unwrap();
        assert!(waiting.try_recv().is_ok(), "it came before");
        drop((second, third));
        assert_eq!(places.count(), 0);
    }
}
