//! The inputs of a request.

use gateway_federation::Variables;
use http::HeaderMap;

use crate::session::Session;

/// The inputs of a request.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The variables, checked.
    pub variables: &'a Variables,
    /// The headers of the client.
    pub client: &'a HeaderMap,
    /// Who the client is.
    pub session: &'a Session,
}
