//! How requests travel.

/// How requests travel. The default is HTTP/1.1 in the clear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protocol {
    /// Which HTTP.
    pub version: Version,
    /// Which certificates are accepted; absent, it is sent in the clear.
    pub tls: Option<Trust>,
}

/// The version of HTTP. It is agreed on beforehand and never negotiated down: a target that does not
/// speak it gives no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2: with TLS by ALPN, in the clear by prior knowledge (RFC 9113, sections 3.2 and 3.3).
    Http2 {
        /// Requests under way at once on one connection, fewer where the target allows fewer. At
        /// least 1; without keep-alive it is 1.
        streams: u32,
    },
}

impl Protocol {
    /// Whether it is HTTP/1.1 in the clear.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Protocol::default()
    }
}

impl Version {
    /// Requests that may be under way at once on one connection.
    #[must_use]
    pub fn streams(self) -> u32 {
        match self {
            Version::Http1 => 1,
            Version::Http2 { streams } => streams,
        }
    }
}

/// Which certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those of the authorities that the system trusts.
    System,
    /// Those of the authorities in this PEM text, and of no other.
    Authorities(Vec<u8>),
    /// Any at all, even expired ones and those for other names.
    SkipVerification,
}
