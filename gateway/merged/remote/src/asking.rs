//! The inputs of an operation's execution.

use gateway_federation::Variables;
use http::HeaderMap;

use crate::session::Session;

/// The inputs of an operation's execution.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The checked variables of the request.
    pub variables: &'a Variables,
    /// The headers of the client's request.
    pub client: &'a HeaderMap,
    /// The session variables of the client.
    pub session: &'a Session,
}
