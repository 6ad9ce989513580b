//! The HTTP client of the gateway: subgraphs, coprocessors and key sets.
//!
//! The one idea: a gateway worker is single-threaded, so an HTTP/1.1 exchange
//! needs no task, no channel and no lock. [`Client::send`] takes an idle
//! connection out of a plain list, writes one buffer, reads the answer into
//! another, hands out slices of it and puts the connection back. Dropping the
//! future drops the connection, which closes it.
//!
//! HTTP/2 shares one connection among many requests and therefore is driven by
//! a task of its own (hyper's).
//!
//! There are so many connections and no more, in total and to one origin (`places`); a call beyond that
//! waits, and beyond so many that wait it fails at once.
//!
//! Absent on purpose: redirects, cookies, proxies, and unrequested
//! compression (no `accept-encoding` is sent unless the caller does).

mod call;
mod client;
mod connection;
mod counters;
mod endpoint;
mod error;
mod http1;
mod http2;
mod negotiation;
mod places;
mod pool;
mod reply;
mod tls;
mod unix_socket;
mod websocket;

pub use call::Call;
pub use client::{Client, ClientSettings, ConnectionLimits, LastingPlace};
pub use counters::{Counters, Traffic};
pub use endpoint::{Endpoint, EndpointError, Policy};
pub use error::SendError;
pub use negotiation::Http2;
pub use reply::Reply;
pub use tls::{Trust, TrustError};
pub use websocket::{Received, Upgrade, WebSocket, WebSocketError};
