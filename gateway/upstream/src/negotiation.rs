//! The negotiation of HTTP/2.

/// The use of HTTP/2 on connections to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Http2 {
    /// Always HTTP/1.1.
    Disable,
    /// The protocol that the other side prefers, with TLS. HTTP/1.1 without TLS.
    #[default]
    Enable,
    /// Always HTTP/2. Without TLS, by prior knowledge (h2c).
    Only,
}
