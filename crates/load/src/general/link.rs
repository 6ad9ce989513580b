//! Where one connection is kept, which its places open when they need it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::http2::Session;
use super::route::Channel;
use crate::backoff::Backoff;

/// Where one connection is kept. It outlives its sockets.
#[derive(Default)]
pub(super) struct Link {
    /// Of HTTP/1.1: while it is not in use.
    channel: RefCell<Option<Channel>>,
    /// One place opens it, and all others wait for it.
    pub(super) opening: Mutex<()>,
    pub(super) backoff: Cell<Backoff>,
}

impl Link {
    /// Is there a connection that can carry a request, as far as is known?
    pub(super) fn is_open(&self) -> bool {
        match &*self.channel.borrow() {
            None => false,
            Some(Channel::Http1 { .. }) => true,
            Some(Channel::Http2(session)) => session.is_open(),
        }
    }

    /// The connection, if there is one: the only one of HTTP/1.1, a share of HTTP/2.
    pub(super) fn take(&self) -> Option<Channel> {
        if !self.is_open() {
            return None;
        }
        let mut place = self.channel.borrow_mut();
        match place.take()? {
            Channel::Http2(session) => {
                *place = Some(Channel::Http2(Rc::clone(&session)));
                Some(Channel::Http2(session))
            }
            own => Some(own),
        }
    }

    /// Puts a connection here for the next request.
    pub(super) fn keep(&self, channel: Channel) {
        *self.channel.borrow_mut() = Some(channel);
    }

    /// No further request goes onto this connection; what is under way on it goes on.
    pub(super) fn retire(&self, session: &Rc<Session>) {
        let mut place = self.channel.borrow_mut();
        if matches!(&*place, Some(Channel::Http2(kept)) if Rc::ptr_eq(kept, session)) {
            *place = None;
        }
    }

    /// How long a closed loop keeps off after another refusal.
    pub(super) fn pause(&self) -> Duration {
        let mut backoff = self.backoff.get();
        let pause_ns = backoff.refused();
        self.backoff.set(backoff);
        Duration::from_nanos(pause_ns)
    }
}
