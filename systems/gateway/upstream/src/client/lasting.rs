//! Connections that last, and belong to one caller: WebSockets.
//!
//! They count among those of calls. As none is given back soon, they may have half of the places only,
//! of an origin and of all together: calls always find the rest. Of what they may have, the clients of one
//! address get as many as are left for others.

use std::net::IpAddr;
use std::rc::{Rc, Weak};

use super::{Client, Tally};
use crate::connection::Stream;
use crate::endpoint::{Endpoint, Policy};
use crate::error::SendError;
use crate::negotiation::Http2;
use crate::places::{Place, Places, Reserved};

/// A connection that keeps its places until it is dropped.
pub(crate) struct Lasting {
    pub(crate) stream: Stream,
    pub(crate) held: Rc<Held>,
}

/// The places of a connection that lasts: the origin's, and that among all.
#[derive(Debug)]
pub(crate) struct Held {
    _places: [Place; 2],
    reserved: [Reserved; 2],
}

/// Tells for whose clients a connection lasts, while it does.
#[derive(Debug)]
pub struct LastingPlace(pub(crate) Weak<Held>);

impl LastingPlace {
    /// It counts for clients of this address from now on; for none without one.
    pub fn count_for(&self, address: Option<IpAddr>) {
        if let Some(held) = self.0.upgrade() {
            held.reserved.iter().for_each(|it| it.count_for(address));
        }
    }
}

impl Client {
    /// A connection of its own, which only HTTP/1.1 is spoken over, for protocols that begin with it. It
    /// counts for clients of this address.
    pub(crate) async fn own_connection(
        &self,
        endpoint: &Endpoint,
        address: Option<IpAddr>,
    ) -> Result<Lasting, SendError> {
        // In a statement of its own: the pool must not be borrowed while this waits.
        let origin = self.0.pool.borrow_mut().origin(endpoint);
        let held = self.hold(endpoint, &origin.places, address).await?;
        Tally::add(&self.0.tally.connects);
        self.make_room();
        let policy = Policy {
            http2: Http2::Disable,
            ..endpoint.policy().clone()
        };
        let tls = || self.tls(&policy);
        let stream = Stream::connect(endpoint, tls, &self.0.settings.traffic).await?;
        Ok(Lasting {
            stream,
            held: Rc::new(held),
        })
    }

    /// Places that are kept. Waits as a call does where calls have all of them, and for no other
    /// connection that lasts.
    async fn hold(
        &self,
        endpoint: &Endpoint,
        places: &Rc<Places>,
        address: Option<IpAddr>,
    ) -> Result<Held, SendError> {
        let total = half(self.part(self.0.limits.get().total));
        let own = places.reserve(self.most_lasting(endpoint, places, total), address);
        let any = self.0.places.reserve(total, address);
        let (Some(own), Some(any)) = (own, any) else {
            self.0.settings.traffic.refuse();
            return Err(SendError::Occupied {
                origin: endpoint.as_str().to_owned(),
            });
        };
        Ok(Held {
            _places: self.place(endpoint, places).await?,
            reserved: [own, any],
        })
    }

    /// How many to this origin there may be now, of so many to all.
    fn most_lasting(&self, endpoint: &Endpoint, origin: &Places, total: usize) -> usize {
        match self.own_limit(endpoint) {
            Some(most) => half(self.part(most)),
            // As many as are left for others, as for calls.
            None => total.saturating_sub(origin.lasting_all()).max(1),
        }
    }
}

/// At least one: a worker whose part is a single place has one more for calls.
fn half(places: usize) -> usize {
    (places / 2).max(1)
}
