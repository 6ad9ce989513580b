//! A holder for one connection, which its places open when they need it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::sync::Mutex;

use super::route::{Channel, Route, Session};
use crate::backoff::Backoff;
use crate::rendered::Rendered;

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Requests of HTTP, and calls of gRPC.
    Requests,
    /// Conversations over WebSocket.
    Conversations,
}

impl Purpose {
    /// The use of the connection of a request.
    pub(super) fn of(request: &Rendered) -> Purpose {
        match request.conversation {
            None => Purpose::Requests,
            Some(_) => Purpose::Conversations,
        }
    }
}

/// A holder for one connection. It outlives its sockets. The steps of a scenario may need a second connection,
/// because a connection that was upgraded carries no request of HTTP.
pub(super) struct Link {
    /// The route of this client. Its tickets come from its earlier connections.
    pub(super) route: Route,
    /// The connection for requests. An HTTP/1.1 connection is only here while it is not in use.
    channel: RefCell<Option<Channel>>,
    /// The connection for conversations, while it is not in use.
    conversing: RefCell<Option<Channel>>,
    /// Held by the place that opens the connection. Other places wait for it.
    pub(super) opening: Mutex<()>,
    pub(super) backoff: Cell<Backoff>,
}

impl Link {
    pub(super) fn new(route: &Route) -> Link {
        Link {
            route: route.of_client(),
            channel: RefCell::default(),
            conversing: RefCell::default(),
            opening: Mutex::default(),
            backoff: Cell::default(),
        }
    }

    /// True if there is a connection that may carry a request. The target may already have closed it.
    pub(super) fn is_open(&self, purpose: Purpose) -> bool {
        match &*self.holder(purpose).borrow() {
            None => false,
            Some(Channel::Http1 { .. } | Channel::WebSocket(_)) => true,
            Some(Channel::Shared(session)) => session.is_open(),
        }
    }

    /// Returns the connection, if there is one. HTTP/1.1 has only one. HTTP/2 and HTTP/3 return a share
    /// of it.
    pub(super) fn take(&self, purpose: Purpose) -> Option<Channel> {
        if !self.is_open(purpose) {
            return None;
        }
        let mut place = self.holder(purpose).borrow_mut();
        match place.take()? {
            Channel::Shared(session) => {
                *place = Some(Channel::Shared(session.clone()));
                Some(Channel::Shared(session))
            }
            own => Some(own),
        }
    }

    /// Stores a connection for the next request.
    pub(super) fn keep(&self, channel: Channel, purpose: Purpose) {
        *self.holder(purpose).borrow_mut() = Some(channel);
    }

    fn holder(&self, purpose: Purpose) -> &RefCell<Option<Channel>> {
        match purpose {
            Purpose::Requests => &self.channel,
            Purpose::Conversations => &self.conversing,
        }
    }

    /// Removes this connection from further use. Requests under way on it continue.
    pub(super) fn retire(&self, session: &Session) {
        let mut place = self.channel.borrow_mut();
        if matches!(&*place, Some(Channel::Shared(kept)) if kept.is_same(session)) {
            *place = None;
        }
    }

    /// Adds the counts that the connection itself keeps to the traffic.
    pub(super) fn settle(&self) {
        if let Some(Channel::Shared(Session::Http3(session))) = &*self.channel.borrow() {
            session.settle();
        }
    }

    /// Closes the connections.
    pub(super) fn close(&self) {
        *self.channel.borrow_mut() = None;
        *self.conversing.borrow_mut() = None;
    }

    /// Returns the pause of a closed loop after another refusal.
    pub(super) fn pause(&self) -> Duration {
        let mut backoff = self.backoff.get();
        let pause_ns = backoff.refused();
        self.backoff.set(backoff);
        Duration::from_nanos(pause_ns)
    }
}
