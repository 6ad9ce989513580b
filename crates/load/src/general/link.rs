//! A place for one connection, which its lanes open when they need it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::Desk;
use super::http2::Session;
use super::route::Channel;
use crate::measurement::FailureKind;

/// After a refused connect in a closed loop, doubled with each further one.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);
const REFUSED_PAUSE_DOUBLINGS_MAX: u32 = 7;

/// A place for one connection. It outlives its sockets.
#[derive(Default)]
pub(super) struct Link {
    /// Of HTTP/1.1: while it is not in use.
    channel: RefCell<Option<Channel>>,
    /// One opens, and all lanes wait for it.
    opening: Mutex<()>,
    refusals: Cell<u32>,
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

    /// How long a closed loop keeps off after a refusal: the next slot would run into the same one at
    /// once, and a million requests would be over in seconds.
    pub(super) fn pause(&self) -> Duration {
        let doublings = self.refusals.get().min(REFUSED_PAUSE_DOUBLINGS_MAX);
        self.refusals.set(self.refusals.get().saturating_add(1));
        REFUSED_PAUSE * (1 << doublings)
    }
}

impl Desk {
    /// Opens a connection, unless another lane has just done so.
    ///
    /// # Errors
    ///
    /// As the failure that it is for a slot.
    pub(super) async fn open(&self, link: usize) -> Result<(), (FailureKind, String)> {
        let link = &self.links[link];
        let opening = async {
            let _turn = link.opening.lock().await;
            if link.is_open() {
                return Ok(());
            }
            let begin_ns = self.clock.now_ns();
            let channel = self.route.connect(&self.peer, &self.traffic).await?;
            let took_ns = self.clock.now_ns() - begin_ns;
            self.book.borrow_mut().recorder.connect.record_ns(took_ns);
            link.refusals.set(0);
            link.keep(channel);
            Ok(())
        };
        let opened = tokio::time::timeout(self.timeout, opening).await;
        opened
            .unwrap_or_else(|_| Err(format!("no connection within {:?}", self.timeout)))
            .map_err(|reason| (FailureKind::Connect, reason))
    }
}
