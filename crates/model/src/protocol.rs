//! Protocol of requests: the version of HTTP and TLS.

/// Protocol of requests. The default is HTTP/1.1 without TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protocol {
    /// Version of HTTP.
    pub version: Version,
    /// Certificates that are accepted. `None` if requests are sent without TLS.
    pub tls: Option<Trust>,
    /// The certificate that a target receives if it requests one. It has no effect without TLS.
    pub identity: Option<ClientIdentity>,
    /// Use of tickets of earlier connections. It has no effect without TLS.
    pub resumption: Resumption,
}

/// Use of the tickets of earlier connections in handshakes of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resumption {
    /// Every handshake is a full handshake, so that connect times are comparable.
    #[default]
    Off,
    /// A connection uses a ticket of its predecessor, if it has one.
    On,
    /// Requests with a safe method also leave before the handshake is complete (0-RTT). It needs HTTP/3.
    EarlyData,
}

/// The certificate of a client with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate and the certificates of its issuers, as PEM text.
    pub certificate: Vec<u8>,
    /// The private key, as PEM text.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for ClientIdentity {
    /// Writes no key, because logs contain this text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientIdentity(hidden)")
    }
}

/// The version of HTTP. It is fixed and never negotiated down. If a target does not support it, there is no
/// connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2. With TLS it is selected by ALPN, without TLS by prior knowledge (RFC 9113, sections 3.2 and
    /// 3.3).
    Http2 {
        /// Maximum number of requests in flight on one connection. The target may allow fewer. At least 1.
        /// Without keep-alive it is 1.
        streams: u32,
    },
    /// HTTP/3 over QUIC. It needs TLS, and is selected by ALPN (RFC 9114, section 3.1).
    Http3 {
        /// As with HTTP/2.
        streams: u32,
    },
}

impl Protocol {
    /// True for HTTP/1.1 without TLS.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Protocol::default()
    }
}

impl Version {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::Http1 => "HTTP/1.1",
            Version::Http2 { .. } => "HTTP/2",
            Version::Http3 { .. } => "HTTP/3",
        }
    }

    /// True for HTTP/3, which needs UDP and TLS.
    #[must_use]
    pub fn is_http3(self) -> bool {
        matches!(self, Version::Http3 { .. })
    }

    /// Maximum number of requests in flight on one connection.
    #[must_use]
    pub fn streams(self) -> u32 {
        match self {
            Version::Http1 => 1,
            Version::Http2 { streams } | Version::Http3 { streams } => streams,
        }
    }
}

/// Certificates that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates of the authorities that the operating system trusts.
    System,
    /// Only certificates of the authorities in this PEM text.
    Authorities(Vec<u8>),
    /// Any certificate, even an expired one or one for another name.
    SkipVerification,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_in_no_log() {
        let identity = ClientIdentity {
            certificate: b"public".to_vec(),
            key: b"secret".to_vec(),
        };
        assert_eq!(format!("{identity:?}"), "ClientIdentity(hidden)");
    }
}
