//! The HTTP client of the gateway, for subgraphs, coprocessors and key sets.
//!
//! A gateway worker is single-threaded. So an HTTP/1.1 exchange needs no task, no channel and no lock.
//! [`Client::send`] takes an idle connection out of a plain list, writes one buffer and reads the response
//! into another. It returns slices of this buffer and puts the connection back. Dropping the future drops the
//! connection, which closes it.
//!
//! HTTP/2 shares one connection among many requests. So a separate task (hyper's) drives it.
//!
//! The number of connections is limited, in total and per origin (`places`). A call beyond the limit waits.
//! If too many calls wait, further calls fail at once.
//!
//! The client deliberately has no redirects, cookies and proxies. It sends `accept-encoding` only if the
//! caller does.

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
pub use client::{Client, ClientSettings, ConnectionLimits, ConnectionPlace};
pub use counters::{Counters, Traffic};
pub use endpoint::{EndpointError, Policy, UpstreamEndpoint};
pub use error::SendError;
pub use negotiation::Http2;
pub use reply::Reply;
pub use tls::{Trust, TrustError};
pub use websocket::{Received, Upgrade, WebSocket, WebSocketError};
