//! How many exchanges may be under way at a time, and who waits for one to end.
//!
//! The one idea: a place is taken for an exchange, not for a connection. A connection is opened only
//! by who has a place and finds none that is idle, so there are never more of them than places.
//!
//! A connection that lasts, a WebSocket, keeps its place. Who wants one reserves it first, among fewer, so
//! that places for exchanges are always left. Of these, the clients of one address get as many as are left
//! for others.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;

use tokio::sync::oneshot;

/// So many exchanges at a time; more wait in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Cell<usize>,
    max: Cell<usize>,
    /// Those of connections that last, taken or waited for.
    lasting: Cell<usize>,
    /// Those of them that are kept for clients, by the address.
    addresses: RefCell<HashMap<IpAddr, usize>>,
    waiting: RefCell<VecDeque<oneshot::Sender<Place>>>,
    all: Rc<Together>,
}

/// What is counted of several places together.
#[derive(Debug, Default)]
pub(crate) struct Together {
    taken: Cell<usize>,
    lasting: Cell<usize>,
}

/// A place that is taken. Dropping it gives it to who has waited for longest.
#[derive(Debug)]
pub(crate) struct Place(Rc<Places>);

/// The right to a place for as long as a connection lasts, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    places: Rc<Places>,
    /// For whose clients it is kept, where that counts.
    address: Cell<Option<IpAddr>>,
}

impl Places {
    /// Places that count together with others.
    pub(crate) fn among(all: &Rc<Together>) -> Rc<Self> {
        Rc::new(Self {
            all: Rc::clone(all),
            ..Self::default()
        })
    }

    /// A place, if one is free. There are as many as `most` says, from now on.
    pub(crate) fn take(self: &Rc<Self>, most: impl Fn() -> usize) -> Option<Place> {
        self.allow(most);
        (self.taken.get() < self.max.get()).then(|| self.taken())
    }

    /// There are as many as `most` says, from now on, and who waits may get one. It is asked again for
    /// each, because it may look at how many are taken.
    pub(crate) fn allow(self: &Rc<Self>, most: impl Fn() -> usize) {
        loop {
            self.max.set(most());
            if self.taken.get() >= self.max.get() || !self.give_one() {
                return;
            }
        }
    }

    /// Waits for a place. Dropping what is returned ends that.
    pub(crate) fn wait(&self) -> oneshot::Receiver<Place> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push_back(sender);
        receiver
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> usize {
        self.taken.get()
    }

    /// How many are taken of these and of those that count together with them.
    pub(crate) fn count_all(&self) -> usize {
        self.all.taken.get()
    }

    /// The right to a place that is kept, unless as many as `most` have one, or the clients of this address
    /// have as many as are left for others.
    pub(crate) fn reserve(
        self: &Rc<Self>,
        most: usize,
        address: Option<IpAddr>,
    ) -> Option<Reserved> {
        let left = most.saturating_sub(self.lasting.get());
        (self.of_address(address) < left).then(|| {
            self.lasting.set(self.lasting.get() + 1);
            self.all.lasting.set(self.all.lasting.get() + 1);
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

    /// How many are kept.
    pub(crate) fn lasting(&self) -> usize {
        self.lasting.get()
    }

    /// How many are kept of these and of those that count together with them.
    pub(crate) fn lasting_all(&self) -> usize {
        self.all.lasting.get()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        let mut waiting = self.waiting.borrow_mut();
        // Those whose call has ended are taken out when they are in the way.
        waiting.retain(|sender| !sender.is_closed());
        waiting.len()
    }

    fn taken(self: &Rc<Self>) -> Place {
        self.taken.set(self.taken.get() + 1);
        self.all.taken.set(self.all.taken.get() + 1);
        Place(Rc::clone(self))
    }

    /// Gives a place to who has waited for longest; false when nobody waits.
    fn give_one(self: &Rc<Self>) -> bool {
        loop {
            // A statement of its own: the queue must not be borrowed while a place is given.
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                None => return false,
                // Its call has ended.
                Some(sender) if sender.is_closed() => {}
                Some(sender) => {
                    // Between the look and this nothing else runs on this thread.
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
    /// It is kept for clients of this address from now on, however many these have.
    pub(crate) fn count_for(&self, address: Option<IpAddr>) {
        self.places.let_go(self.address.replace(address));
        self.places.keep(address);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let places = &self.places;
        places.let_go(self.address.get());
        places.lasting.set(places.lasting.get() - 1);
        places.all.lasting.set(places.all.lasting.get() - 1);
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
        // It was given and nobody has taken it up yet.
        drop(first);
        drop(second);
        assert!(third.try_recv().is_ok());
        assert_eq!(places.count(), 0);
    }

    #[test]
    fn reservations_count_until_they_are_dropped() {
        let all = Rc::new(Together::default());
        let (one, other) = (Places::among(&all), Places::among(&all));
        let first = one.reserve(1, None).unwrap();
        assert!(one.reserve(1, None).is_none());
        let second = other.reserve(1, None).unwrap();
        assert_eq!((one.lasting(), one.lasting_all()), (1, 2));
        drop((first, second));
        assert_eq!((one.lasting(), other.lasting_all()), (0, 0));
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
        // Where it does not count, all that is left.
        kept.extend(std::iter::from_fn(|| places.reserve(8, None)));
        assert_eq!((kept.len(), places.lasting()), (8, 8));
        assert!(keep(3).is_none());
        // One that goes to another address is this one's.
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
