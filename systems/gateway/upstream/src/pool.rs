//! Idle HTTP/1.1 connections and shared HTTP/2 connections, by origin.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use tokio::time::Instant;

use crate::connection::Stream;
use crate::endpoint::Endpoint;
use crate::places::Places;

#[derive(Default)]
pub(crate) struct Pool {
    origins: HashMap<Arc<str>, Origin>,
    /// Places that are taken, of all origins together.
    taken: Rc<Cell<usize>>,
}

#[derive(Default)]
struct Origin {
    /// The one used last is at the end and is taken first, so that those not
    /// needed grow old at the front.
    idle: Vec<Idle>,
    http2: Option<SendRequest<Full<Bytes>>>,
    idle_timeout: Option<Duration>,
    /// For exchanges with it.
    places: Rc<Places>,
}

struct Idle {
    stream: Stream,
    since: Instant,
}

impl Origin {
    fn put(&mut self, stream: Stream, idle_max: usize) {
        if self.idle.len() >= idle_max {
            if idle_max == 0 {
                return;
            }
            // At the front is the one that has been idle longest. The list is short, so shifting it
            // is cheap.
            drop(self.idle.remove(0));
        }
        self.idle.push(Idle {
            stream,
            since: Instant::now(),
        });
    }
}

impl Pool {
    /// The places for exchanges with an origin.
    pub(crate) fn places(&mut self, endpoint: &Endpoint) -> Rc<Places> {
        // One look, where `origin` takes two.
        if let Some(origin) = self.origins.get(endpoint.pool_key()) {
            return Rc::clone(&origin.places);
        }
        Rc::clone(&self.origin(endpoint).places)
    }

    /// An idle connection that is neither too old nor closed.
    pub(crate) fn take(&mut self, endpoint: &Endpoint) -> Option<Stream> {
        let origin = self.origins.get_mut(endpoint.pool_key())?;
        let now = Instant::now();
        while let Some(mut idle) = origin.idle.pop() {
            let is_young = origin
                .idle_timeout
                .is_none_or(|limit| now.duration_since(idle.since) < limit);
            if !is_young {
                // All below it have waited even longer.
                origin.idle.clear();
                return None;
            }
            if idle.stream.is_quiet() {
                return Some(idle.stream);
            }
        }
        None
    }

    /// Puts a connection back; the longest idle one makes room.
    pub(crate) fn put(&mut self, endpoint: &Endpoint, stream: Stream, idle_max: usize) {
        match self.origins.get_mut(endpoint.pool_key()) {
            // One look, where `origin` takes two.
            Some(origin) => {
                origin.idle_timeout = endpoint.policy().pool_idle_timeout;
                origin.put(stream, idle_max);
            }
            None => self.origin(endpoint).put(stream, idle_max),
        }
    }

    pub(crate) fn http2(&self, endpoint: &Endpoint) -> Option<SendRequest<Full<Bytes>>> {
        let sender = self.origins.get(endpoint.pool_key())?.http2.as_ref()?;
        (!sender.is_closed()).then(|| sender.clone())
    }

    pub(crate) fn share_http2(&mut self, endpoint: &Endpoint, sender: SendRequest<Full<Bytes>>) {
        self.origin(endpoint).http2 = Some(sender);
    }

    fn origin(&mut self, endpoint: &Endpoint) -> &mut Origin {
        // `entry` would clone the key even when it is there, which is always.
        if !self.origins.contains_key(endpoint.pool_key()) {
            let origin = Origin {
                places: Places::among(&self.taken),
                ..Origin::default()
            };
            self.origins.insert(Arc::clone(endpoint.pool_key()), origin);
        }
        let origin = self
            .origins
            .get_mut(endpoint.pool_key())
            .expect("it was inserted above when it was missing");
        origin.idle_timeout = endpoint.policy().pool_idle_timeout;
        origin
    }

    /// Closes what is too old or was closed by the other side.
    pub(crate) fn sweep(&mut self) {
        let now = Instant::now();
        self.origins.retain(|_, origin| {
            let limit = origin.idle_timeout;
            origin.idle.retain_mut(|idle| {
                limit.is_none_or(|limit| now.duration_since(idle.since) < limit)
                    && idle.stream.is_quiet()
            });
            if origin.http2.as_ref().is_some_and(SendRequest::is_closed) {
                origin.http2 = None;
            }
            // An origin without connections and exchanges is forgotten: URLs made by scripts would
            // otherwise grow the map for ever.
            let is_in_use = Rc::strong_count(&origin.places) > 1;
            !origin.idle.is_empty() || origin.http2.is_some() || is_in_use
        });
    }

    /// Closes the connection that has been idle for longest, whatever its origin.
    pub(crate) fn close_oldest(&mut self) {
        let oldest = self
            .origins
            .values_mut()
            .filter(|origin| !origin.idle.is_empty())
            .min_by_key(|origin| origin.idle[0].since);
        if let Some(origin) = oldest {
            drop(origin.idle.remove(0));
        }
    }

    /// Connections that have no exchange of their own: those that are idle, and shared ones.
    pub(crate) fn kept(&self) -> usize {
        let kept = |origin: &Origin| origin.idle.len() + usize::from(origin.http2.is_some());
        self.origins.values().map(kept).sum()
    }

    pub(crate) fn idle(&self) -> usize {
        self.origins.values().map(|origin| origin.idle.len()).sum()
    }
}
