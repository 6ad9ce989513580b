//! The negotiation of HTTP/2.

/// Whether HTTP/2 is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Http2 {
    /// HTTP/1.1 only.
    Disable,
    /// Over TLS whatever the other side prefers; without TLS HTTP/1.1.
    #[default]
    Enable,
    /// HTTP/2 always; without TLS by prior knowledge (h2c).
    Only,
}
