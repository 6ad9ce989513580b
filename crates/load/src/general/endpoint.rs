//! One receiver of load in the general carrier: its protocol and its connections.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot::{self, Receiver, Sender};

use super::link::{Link, Purpose};
use super::message::Messages;
use super::route::Route;
use super::stream::Traffic;
use crate::job::Bounds;
use crate::lane::Workload;
use crate::socket::Peer;

/// The protocol of one receiver of load.
#[derive(Clone)]
pub(crate) struct Outlet {
    pub(crate) route: Route,
    pub(crate) messages: Messages,
    pub(crate) connections: usize,
    pub(crate) bounds: Bounds,
}

/// The state that the places of a lane share.
pub(super) struct Endpoint {
    pub(super) peer: Peer,
    pub(super) route: Route,
    pub(super) messages: Messages,
    pub(super) bounds: Bounds,
    pub(super) timeout: Duration,
    pub(super) keep_alive: bool,
    /// The use of the first connection of each slot.
    pub(super) first: Purpose,
    pub(super) traffic: Rc<Traffic>,
    pub(super) links: Vec<Link>,
    /// Number of places of a link. At least 1.
    streams: usize,
    /// Places in think time, each with the sender that lets it continue.
    waiting: RefCell<BTreeMap<usize, Sender<()>>>,
}

impl Endpoint {
    pub(super) fn new(work: &Workload, outlet: Outlet) -> Endpoint {
        // Without keep-alive, a connection carries one request.
        let streams = match work.keep_alive {
            true => usize::try_from(outlet.route.version.streams())
                .expect("32 bits fit into an address"),
            false => 1,
        };
        let links = (0..outlet.connections).map(|_| Link::new(&outlet.route));
        Endpoint {
            peer: work.peer.clone(),
            links: links.collect(),
            route: outlet.route,
            messages: outlet.messages,
            bounds: outlet.bounds,
            timeout: Duration::from_nanos(work.timeout_ns),
            keep_alive: work.keep_alive,
            // Only the steps of a scenario may be of several kinds.
            first: Purpose::of(&work.rotation.requests[0]),
            traffic: Rc::default(),
            streams,
            waiting: RefCell::default(),
        }
    }

    /// Adds the counts that connections keep to the traffic.
    pub(super) fn settle(&self) {
        for link in &self.links {
            link.settle();
        }
    }

    /// Returns the number of requests that may be under way at once. Both factors have 32 bits.
    pub(super) fn places(&self) -> usize {
        self.links.len() * self.streams
    }

    /// Returns the link of a place.
    pub(super) fn link(&self, place: usize) -> &Link {
        &self.links[self.link_of(place)]
    }

    /// True if the first request of a slot finds its connection open.
    pub(super) fn is_open(&self, place: usize) -> bool {
        self.link(place).is_open(self.first)
    }

    pub(super) fn link_of(&self, place: usize) -> usize {
        place / self.streams
    }

    /// Makes a place wait. Returns a receiver that completes with [`Endpoint::resume`].
    pub(super) fn wait(&self, place: usize) -> Receiver<()> {
        let (resume, resumed) = oneshot::channel();
        let before = self.waiting.borrow_mut().insert(place, resume);
        assert!(before.is_none(), "a place waits for one thing at a time");
        resumed
    }

    /// Removes a place that no longer waits.
    pub(super) fn forget(&self, place: usize) {
        self.waiting.borrow_mut().remove(&place);
    }

    /// Ends the wait of a place.
    pub(super) fn resume(&self, place: usize) {
        let resume = self.waiting.borrow_mut().remove(&place);
        let resume = resume.expect("the queue names places that wait");
        // There is no receiver if the load was stopped, which drops the tasks.
        let _ = resume.send(());
    }
}
