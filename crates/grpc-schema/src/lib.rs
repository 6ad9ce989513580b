//! Messages of gRPC: between JSON and bytes, by the descriptors of their methods.
//!
//! A lab reads messages before a system runs, and the load writes them when they are sent. Both use this
//! crate, so a message that the lab accepts can be sent. It is pure: the load asks a server with
//! reflection, with the questions of [`reflection`].

#![warn(missing_docs)]

mod details;
mod expected;
mod fit;
pub mod reflection;
mod schema;
mod status;
mod wire;

pub use details::StatusDetails;
pub use expected::{Difference, ExpectedFields};
pub use schema::{CallSchema, Method};
pub use status::{connect_code, connect_http, deadline, named, of_connect, of_http};

use std::fmt;

/// Bytes before each message: the flag of compression and the length.
pub const PREFIX_BYTES: usize = 5;

/// Headers that a call writes itself.
const OWN_HEADERS: [&str; 11] = [
    "content-type",
    "content-length",
    "te",
    "grpc-timeout",
    "grpc-encoding",
    "grpc-accept-encoding",
    "x-grpc-web",
    "connect-protocol-version",
    "connect-timeout-ms",
    "connect-content-encoding",
    "connect-accept-encoding",
];

/// True if a call writes this header itself, so that its metadata cannot contain it.
#[must_use]
pub fn is_own_header(name: &str) -> bool {
    OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Adds a message with its prefix to a body.
///
/// # Panics
/// If the message has 4 GiB or more, which no prefix can express.
pub fn frame(message: &[u8], is_compressed: bool, body: &mut Vec<u8>) {
    let length = u32::try_from(message.len()).expect("a message is shorter than 4 GiB");
    body.push(u8::from(is_compressed));
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(message);
}

/// A message that does not fit its descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The field, as a path such as `items.0.price`. Empty for the message as a whole.
    pub path: String,
    /// The expected and the found content.
    pub reason: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.reason),
            path => write!(out, "`{path}`: {}", self.reason),
        }
    }
}

impl std::error::Error for Unfit {}
