//! The address of a call. It is checked once, and contains the rendered parts that every request repeats.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use crate::negotiation::Http2;
use crate::tls::{Trust, TrustError};

/// Settings for the connections to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The use of HTTP/2.
    pub http2: Http2,
    /// Maximum idle time of a connection. `None` keeps it until the other side closes it.
    pub pool_idle_timeout: Option<Duration>,
    /// Interval of pings on an HTTP/2 connection. `None` for no pings.
    pub keep_alive_interval: Option<Duration>,
    /// Time limit for the response to such a ping.
    pub keep_alive_timeout: Duration,
    /// Trusted authorities for `https`. `None` for the authorities of the operating system.
    pub trust: Option<Trust>,
    /// Maximum number of connections to the origin at a time, over all workers. Endpoints with another number
    /// are counted separately. `None` for the limit of every origin.
    pub connections_max: Option<NonZeroUsize>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            http2: Http2::default(),
            pool_idle_timeout: Some(Duration::from_secs(15)),
            keep_alive_interval: None,
            keep_alive_timeout: Duration::from_secs(20),
            trust: None,
            connections_max: None,
        }
    }
}

/// Reason why a text is not the address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text is not a URL.
    #[error("`{text}` is not a URL: {reason}")]
    NotAUrl {
        /// The text that was given.
        text: String,
        /// The message of the URL parser.
        reason: String,
    },
    /// The URL has an unsupported scheme.
    #[error("`{text}` has no scheme that can be called; expected http://, https:// or unix://")]
    Scheme {
        /// The text that was given.
        text: String,
    },
    /// The URL has no host, as in `http:///path`.
    #[error("`{text}` names no host")]
    NoHost {
        /// The text that was given.
        text: String,
    },
    /// The certificates or keys are unusable.
    #[error("tls: {0}")]
    Trust(#[from] TrustError),
    /// The socket path is empty or relative.
    #[error("`{text}` needs an absolute socket path, as in unix:///run/service.sock?path=/graphql")]
    SocketPath {
        /// The text that was given.
        text: String,
    },
}

/// Transport of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp { host: Box<str>, port: u16 },
    Tls { host: Box<str>, port: u16 },
    Unix { socket: PathBuf },
}

/// A checked address of a service. Cheap to clone, safe to share among workers.
#[derive(Clone, Debug)]
pub struct UpstreamEndpoint(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    text: String,
    uri: Uri,
    transport: Transport,
    policy: Policy,
    pool_key: Arc<str>,
    /// The request line after the method, and the host header: ` /path HTTP/1.1\r\nhost: authority\r\n`.
    request_line: Box<str>,
}

impl UpstreamEndpoint {
    /// Reads `http://host[:port]/path`, `https://…` or `unix:///socket[?path=/p]`.
    pub fn parse(text: &str, policy: Policy) -> Result<Self, EndpointError> {
        if let Some(rest) = text.strip_prefix("unix://") {
            return Self::parse_unix(text, rest, policy);
        }
        let uri: Uri =
            text.parse()
                .map_err(|error: http::uri::InvalidUri| EndpointError::NotAUrl {
                    text: text.to_owned(),
                    reason: error.to_string(),
                })?;
        Self::from_uri(&uri, policy)
    }

    /// Creates an endpoint from a parsed `http` or `https` URL.
    pub fn from_uri(uri: &Uri, policy: Policy) -> Result<Self, EndpointError> {
        let text = || uri.to_string();
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(EndpointError::Scheme { text: text() }),
        };
        let host = uri.host().unwrap_or_default();
        if host.is_empty() {
            return Err(EndpointError::NoHost { text: text() });
        }
        // Brackets mark IPv6 in a URL. The resolver requires the address without them.
        let host: Box<str> = host.trim_start_matches('[').trim_end_matches(']').into();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let transport = if is_tls {
            Transport::Tls { host, port }
        } else {
            Transport::Tcp { host, port }
        };
        Ok(Self::assemble(text(), uri.clone(), transport, policy))
    }

    fn parse_unix(text: &str, rest: &str, policy: Policy) -> Result<Self, EndpointError> {
        let (socket, query) = rest.split_once('?').unwrap_or((rest, ""));
        let wrong_socket = || EndpointError::SocketPath {
            text: text.to_owned(),
        };
        if !socket.starts_with('/') || socket.len() < 2 {
            return Err(wrong_socket());
        }
        let path = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("path="))
            .filter(|path| !path.is_empty())
            .unwrap_or("/");
        if !path.starts_with('/') {
            return Err(wrong_socket());
        }
        // HTTP over a Unix socket has no host, but servers require one.
        let uri: Uri =
            format!("http://localhost{path}")
                .parse()
                .map_err(|error: http::uri::InvalidUri| EndpointError::NotAUrl {
                    text: text.to_owned(),
                    reason: error.to_string(),
                })?;
        let transport = Transport::Unix {
            socket: socket.into(),
        };
        Ok(Self::assemble(text.to_owned(), uri, transport, policy))
    }

    fn assemble(text: String, uri: Uri, transport: Transport, policy: Policy) -> Self {
        let authority = uri.authority().map_or("localhost", |authority| {
            // The host header must not contain `user:secret@`.
            let text = authority.as_str();
            text.rsplit_once('@').map_or(text, |(_, host)| host)
        });
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        // A request target begins with a slash, also for `http://host` and `http://host?a=1`.
        let slash = if path.starts_with('/') { "" } else { "/" };
        let request_line = format!(" {slash}{path} HTTP/1.1\r\nhost: {authority}\r\n").into();
        let kind = policy.http2;
        // Endpoints at one address can have different limits.
        let most = policy.connections_max;
        // The protocol is part of the key, because a connection that selected HTTP/2 cannot carry HTTP/1.1.
        let pool_key = match &transport {
            Transport::Tcp { host, port } => format!("tcp {host} {port} {kind:?} {most:?}"),
            Transport::Tls { host, port } => {
                // A connection also cannot carry calls that require another certificate.
                let trust = policy.trust.as_ref().map(Trust::number);
                format!("tls {host} {port} {kind:?} {most:?} {trust:?}")
            }
            Transport::Unix { socket } => format!("unix {} {kind:?} {most:?}", socket.display()),
        }
        .into();
        Self(Arc::new(Parts {
            text,
            uri,
            transport,
            policy,
            pool_key,
            request_line,
        }))
    }

    /// The service under another URL, with the policy of this endpoint. It also keeps the socket, if there is
    /// one and only the path or the query changed.
    pub fn moved_to(&self, uri: &Uri) -> Result<Self, EndpointError> {
        // A script changes the path but not the socket. `http://localhost` stands for the socket.
        if matches!(self.0.transport, Transport::Unix { .. })
            && uri.authority() == self.0.uri.authority()
        {
            let transport = self.0.transport.clone();
            let text = uri.to_string();
            return Ok(Self::assemble(
                text,
                uri.clone(),
                transport,
                self.0.policy.clone(),
            ));
        }
        Self::from_uri(uri, self.0.policy.clone())
    }

    /// The URL for requests. For a Unix socket it is `http://localhost/path`.
    pub fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// The address as written in the configuration.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The settings for its connections.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// The path of the Unix socket. `None` for TCP.
    pub fn socket(&self) -> Option<&Path> {
        match &self.0.transport {
            Transport::Unix { socket } => Some(socket),
            Transport::Tcp { .. } | Transport::Tls { .. } => None,
        }
    }

    /// The port. 0 for a Unix socket.
    pub fn port(&self) -> u16 {
        match self.0.transport {
            Transport::Tcp { port, .. } | Transport::Tls { port, .. } => port,
            Transport::Unix { .. } => 0,
        }
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0.transport
    }

    pub(crate) fn pool_key(&self) -> &Arc<str> {
        &self.0.pool_key
    }

    pub(crate) fn request_line(&self) -> &str {
        &self.0.request_line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Result<UpstreamEndpoint, EndpointError> {
        UpstreamEndpoint::parse(text, Policy::default())
    }

    #[test]
    fn request_lines_are_rendered_once() {
        let cases = [
            (
                "http://a:8080/graphql?x=1",
                " /graphql?x=1 HTTP/1.1\r\nhost: a:8080\r\n",
            ),
            ("http://a", " / HTTP/1.1\r\nhost: a\r\n"),
            ("http://a?x=1", " /?x=1 HTTP/1.1\r\nhost: a\r\n"),
            ("https://me:secret@a/q", " /q HTTP/1.1\r\nhost: a\r\n"),
            ("http://[::1]:9/q", " /q HTTP/1.1\r\nhost: [::1]:9\r\n"),
            ("unix:///run/a.sock", " / HTTP/1.1\r\nhost: localhost\r\n"),
            (
                "unix:///run/a.sock?x=1&path=/p",
                " /p HTTP/1.1\r\nhost: localhost\r\n",
            ),
        ];
        for (text, line) in cases {
            assert_eq!(endpoint(text).unwrap().request_line(), line, "{text}");
        }
    }

    #[test]
    fn addresses_that_cannot_be_called_say_why() {
        for (text, part) in [
            ("ftp://a/b", "no scheme that can be called"),
            ("/graphql", "no scheme that can be called"),
            ("http://a b", "is not a URL"),
            ("unix://", "absolute socket path"),
            ("unix://run/a.sock", "absolute socket path"),
            ("unix:///run/a.sock?path=p", "absolute socket path"),
        ] {
            let error = endpoint(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_moved_endpoint_keeps_its_socket_unless_the_host_changes() {
        let socket = endpoint("unix:///run/a.sock?path=/p").unwrap();
        let near = socket
            .moved_to(&"http://localhost/q".parse().unwrap())
            .unwrap();
        assert_eq!(near.transport(), socket.transport());
        assert_eq!(near.uri().path(), "/q");
        let far = socket.moved_to(&"http://b:1/q".parse().unwrap()).unwrap();
        assert_eq!(
            far.transport(),
            &Transport::Tcp {
                host: "b".into(),
                port: 1
            }
        );
    }
}
