//! Long-lived connections, which belong to one caller: WebSockets.
//!
//! They count among the connections of calls. They are held for a long time, so they may have only half of
//! the places, per origin and in total. Calls always find the rest. The clients of one address get at most as
//! many of them as they leave for others.

use std::net::IpAddr;
use std::rc::{Rc, Weak};

use super::{Client, Tally};
use crate::connection::Stream;
use crate::endpoint::{Policy, UpstreamEndpoint};
use crate::error::SendError;
use crate::negotiation::Http2;
use crate::places::{Place, Places, Reserved};

/// A connection that holds its places until it is dropped.
pub(crate) struct OwnConnection {
    pub(crate) stream: Stream,
    pub(crate) held: Rc<HeldPlaces>,
}

/// The places of a long-lived connection: one of its origin, and one of all origins.
#[derive(Debug)]
pub(crate) struct HeldPlaces {
    _places: [Place; 2],
    reserved: [Reserved; 2],
}

/// Handle that assigns a long-lived connection to the clients of an address.
#[derive(Debug)]
pub struct ConnectionPlace(pub(crate) Weak<HeldPlaces>);

impl ConnectionPlace {
    /// Counts the connection for the clients of this address. `None` counts it for no client.
    pub fn count_for(&self, address: Option<IpAddr>) {
        if let Some(held) = self.0.upgrade() {
            held.reserved.iter().for_each(|it| it.count_for(address));
        }
    }
}

impl Client {
    /// Opens a separate HTTP/1.1 connection, for protocols that begin with HTTP/1.1. It counts for the
    /// clients of this address.
    pub(crate) async fn own_connection(
        &self,
        endpoint: &UpstreamEndpoint,
        address: Option<IpAddr>,
    ) -> Result<OwnConnection, SendError> {
        // A separate statement, because the pool must not be borrowed during the wait.
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
        Ok(OwnConnection {
            stream,
            held: Rc::new(held),
        })
    }

    /// Takes places for a long-lived connection. If calls have all of them, it waits like a call. It does not
    /// wait for another long-lived connection.
    async fn hold(
        &self,
        endpoint: &UpstreamEndpoint,
        places: &Rc<Places>,
        address: Option<IpAddr>,
    ) -> Result<HeldPlaces, SendError> {
        let total = half(self.part(self.0.limits.get().total));
        let own = places.reserve(self.most_reservations(endpoint, places, total), address);
        let any = self.0.places.reserve(total, address);
        let (Some(own), Some(any)) = (own, any) else {
            self.0.settings.traffic.refuse();
            return Err(SendError::Occupied {
                origin: endpoint.as_str().to_owned(),
            });
        };
        Ok(HeldPlaces {
            _places: self.place(endpoint, places).await?,
            reserved: [own, any],
        })
    }

    /// Maximum number of long-lived connections to this origin now, out of `total` for all origins.
    fn most_reservations(
        &self,
        endpoint: &UpstreamEndpoint,
        origin: &Places,
        total: usize,
    ) -> usize {
        match self.own_limit(endpoint) {
            Some(most) => half(self.part(most)),
            // As many as are left for others, as for calls.
            None => total.saturating_sub(origin.reservations_all()).max(1),
        }
    }
}

/// Half, but at least one. A worker with a single place then has one more for calls.
fn half(places: usize) -> usize {
    (places / 2).max(1)
}
