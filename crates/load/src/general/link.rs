//! A holder for one connection, which its places open when they need it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::sync::Mutex;

use super::route::{Channel, Session};
use crate::backoff::Backoff;

/// A holder for one connection. It outlives its sockets.
#[derive(Default)]
pub(super) struct Link {
    /// The connection. An HTTP/1.1 connection is only here while it is not in use.
    channel: RefCell<Option<Channel>>,
    /// Held by the place that opens the connection. Other places wait for it.
    pub(super) opening: Mutex<()>,
    pub(super) backoff: Cell<Backoff>,
}

impl Link {
    /// True if there is a connection that may carry a request. The target may already have closed it.
    pub(super) fn is_open(&self) -> bool {
        match &*self.channel.borrow() {
            None => false,
            Some(Channel::Http1 { .. } | Channel::WebSocket(_)) => true,
            Some(Channel::Shared(session)) => session.is_open(),
        }
    }

    /// Returns the connection, if there is one. HTTP/1.1 has only one. HTTP/2 and HTTP/3 return a share
    /// of it.
    pub(super) fn take(&self) -> Option<Channel> {
        if !self.is_open() {
            return None;
        }
        let mut place = self.channel.borrow_mut();
        match place.take()? {
            Channel::Shared(session) => {
                *place = Some(Channel::Shared(session.clone()));
                Some(Channel::Shared(session))
            }
            own => Some(own),
        }
    }

    /// Stores a connection for the next request.
    pub(super) fn keep(&self, channel: Channel) {
        *self.channel.borrow_mut() = Some(channel);
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

    /// Closes the connection, if there is one.
    pub(super) fn close(&self) {
        *self.channel.borrow_mut() = None;
    }

    /// Returns the pause of a closed loop after another refusal.
    pub(super) fn pause(&self) -> Duration {
        let mut backoff = self.backoff.get();
        let pause_ns = backoff.refused();
        self.backoff.set(backoff);
        Duration::from_nanos(pause_ns)
    }
}
