//! Idle HTTP/1.1 connections and shared HTTP/2 connections, by origin.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use tokio::time::Instant;

use crate::connection::Stream;
use crate::endpoint::UpstreamEndpoint;
use crate::places::{PlaceTotals, Places};

#[derive(Default)]
pub(crate) struct Pool {
    origins: HashMap<Arc<str>, Rc<Origin>>,
    /// The places of all origins together.
    together: Rc<PlaceTotals>,
}

/// The state of one origin. A call looks it up once and holds it until its end.
#[derive(Default)]
pub(crate) struct Origin {
    /// The connection used last is at the end and is taken first. So unneeded connections grow old at the
    /// front.
    idle: RefCell<Vec<Idle>>,
    http2: RefCell<Option<SendRequest<Full<Bytes>>>>,
    idle_timeout: Cell<Option<Duration>>,
    /// The places for exchanges with this origin.
    pub(crate) places: Rc<Places>,
}

struct Idle {
    stream: Stream,
    since: Instant,
}

impl Idle {
    fn is_young(&self, now: Instant, limit: Option<Duration>) -> bool {
        limit.is_none_or(|limit| now.duration_since(self.since) < limit)
    }
}

impl Origin {
    /// An idle connection that is neither too old nor closed.
    pub(crate) fn take(&self) -> Option<Stream> {
        let mut idle = self.idle.borrow_mut();
        let now = Instant::now();
        while let Some(mut last) = idle.pop() {
            if !last.is_young(now, self.idle_timeout.get()) {
                // All earlier connections have been idle even longer.
                idle.clear();
                return None;
            }
            if last.stream.is_quiet() {
                return Some(last.stream);
            }
        }
        None
    }

    /// Puts a connection back. If the list is full, the connection that has been idle longest is closed.
    pub(crate) fn put(&self, stream: Stream, idle_max: usize) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= idle_max {
            if idle_max == 0 {
                return;
            }
            // The connection at the front has been idle longest. The list is short, so shifting it is cheap.
            drop(idle.remove(0));
        }
        idle.push(Idle {
            stream,
            since: Instant::now(),
        });
    }

    /// The HTTP/2 connection that calls share.
    pub(crate) fn http2(&self) -> Option<SendRequest<Full<Bytes>>> {
        let sender = self.http2.borrow();
        sender.as_ref().filter(|it| !it.is_closed()).cloned()
    }

    pub(crate) fn share_http2(&self, sender: SendRequest<Full<Bytes>>) {
        self.http2.replace(Some(sender));
    }

    /// Closes connections that are too old or that the other side closed. Returns false if the origin is
    /// unused now.
    fn sweep(self: &Rc<Self>, now: Instant) -> bool {
        let mut idle = self.idle.borrow_mut();
        let limit = self.idle_timeout.get();
        idle.retain_mut(|it| it.is_young(now, limit) && it.stream.is_quiet());
        let mut http2 = self.http2.borrow_mut();
        if http2.as_ref().is_some_and(SendRequest::is_closed) {
            *http2 = None;
        }
        // Running calls hold the origin or one of its places.
        let is_in_use = Rc::strong_count(self) > 1 || Rc::strong_count(&self.places) > 1;
        !idle.is_empty() || http2.is_some() || is_in_use
    }

    /// Start of the idle time of its oldest idle connection.
    fn oldest(&self) -> Option<Instant> {
        self.idle.borrow().first().map(|idle| idle.since)
    }
}

impl Pool {
    /// The state of the endpoint's origin.
    pub(crate) fn origin(&mut self, endpoint: &UpstreamEndpoint) -> Rc<Origin> {
        let key = endpoint.pool_key();
        // `entry` would clone the key even if the origin exists, which is nearly always the case.
        let origin = match self.origins.get(key) {
            Some(origin) => Rc::clone(origin),
            None => {
                let origin = Rc::new(Origin {
                    places: Places::among(&self.together),
                    ..Origin::default()
                });
                self.origins.insert(Arc::clone(key), Rc::clone(&origin));
                origin
            }
        };
        origin.idle_timeout.set(endpoint.policy().pool_idle_timeout);
        origin
    }

    /// Closes connections that are too old or that the other side closed.
    pub(crate) fn sweep(&mut self) {
        let now = Instant::now();
        // Removes origins without connections and exchanges. Otherwise URLs from scripts would grow the map
        // forever.
        self.origins.retain(|_, origin| origin.sweep(now));
    }

    /// Closes the connection that has been idle longest, of any origin.
    pub(crate) fn close_oldest(&self) {
        let with_age = |origin| Some((Origin::oldest(origin)?, origin));
        let origins = self.origins.values().map(Rc::as_ref);
        let oldest = origins.filter_map(with_age).min_by_key(|(since, _)| *since);
        if let Some((_, origin)) = oldest {
            drop(origin.idle.borrow_mut().remove(0));
        }
    }

    /// Number of connections that do not hold a place: idle and shared connections.
    pub(crate) fn kept(&self) -> usize {
        let shared = |origin: &Rc<Origin>| usize::from(origin.http2.borrow().is_some());
        self.idle() + self.origins.values().map(shared).sum::<usize>()
    }

    pub(crate) fn idle(&self) -> usize {
        let idle = |origin: &Rc<Origin>| origin.idle.borrow().len();
        self.origins.values().map(idle).sum()
    }
}
