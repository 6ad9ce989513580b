//! Addresses in the configuration: services, listeners, key sets, origins.

use std::fmt;
use std::path::PathBuf;

use http::Uri;

use super::Form;

/// The address of an HTTP service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceAddress {
    /// Over TCP: an absolute `http` or `https` URL.
    Http(Uri),
    /// Over a Unix socket.
    Unix {
        /// Absolute path of the socket.
        socket: PathBuf,
        /// Path and query of each request.
        path: String,
    },
}

impl ServiceAddress {
    /// Reads `http://…`, `https://…` or `unix:///sock?path=/p`.
    ///
    /// # Errors
    /// Returns the expected form and the actual text, as one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        <Self as Form>::read(text)
    }
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.write())
    }
}

impl Form for ServiceAddress {
    const NAME: &'static str = "endpoint";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "`{text}` is not a URL that can be called: {why}; expected `http://host:port/path` or `unix:///path/to/socket?path=/p`"
            )
        };
        if let Some(rest) = text.strip_prefix("unix://") {
            let (socket, query) = rest.split_once('?').unwrap_or((rest, ""));
            if !socket.starts_with('/') || socket.len() == 1 {
                return Err(wrong("the path of the socket must be absolute"));
            }
            // Other parameters are ignored, as in Apollo Router.
            let mut path = "/".to_owned();
            for parameter in query.split('&') {
                if let Some(value) = parameter.strip_prefix("path=") {
                    path = if value.starts_with('/') {
                        value.to_owned()
                    } else {
                        format!("/{value}")
                    };
                }
            }
            return Ok(Self::Unix {
                socket: socket.into(),
                path,
            });
        }
        let uri: Uri = text.parse().map_err(|_| wrong("it cannot be read"))?;
        match uri.scheme_str() {
            // `http:///path` parses as a URI without a host.
            Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => {
                Ok(Self::Http(uri))
            }
            Some("http" | "https") => Err(wrong("the host is missing")),
            Some(_) => Err(wrong("its scheme is not known")),
            None => Err(wrong("the scheme is missing")),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Http(uri) => uri.to_string(),
            Self::Unix { socket, path } => format!("unix://{}?path={path}", socket.display()),
        }
    }
}

/// The address of a Redis server.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress(pub String);

// Not derived: an address may contain a password, which must not be logged.
impl fmt::Debug for RedisAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RedisAddress(…)")
    }
}

impl Form for RedisAddress {
    const NAME: &'static str = "redis-address";

    fn read(text: &str) -> Result<Self, String> {
        let scheme = text.split("://").next().unwrap_or_default();
        // The message omits the address, because it may contain a password.
        let why = match scheme {
            "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" => {
                return Ok(Self(text.to_owned()));
            }
            "redis-cluster" | "rediss-cluster" => {
                "clusters are not followed; name one Redis, or a proxy before them"
            }
            "redis-sentinel" | "rediss-sentinel" => {
                "this form of sentinels is not read; write `redis+sentinel://HOST:PORT,HOST:PORT/MASTER/DATABASE`, or `rediss+sentinel` for TLS"
            }
            _ => "its scheme is not known",
        };
        Err(format!(
            "this address of a Redis cannot be used: {why}; expected `redis://host:port/database`, or `rediss` for TLS"
        ))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// Host and port. Port 0 selects a free port.
    Tcp(String),
    /// Path of a Unix socket, which is created at start.
    Unix(PathBuf),
}

impl Listen {
    /// Reads `127.0.0.1:4000`, `[::1]:4000`, `localhost:4000`, or the path of a Unix socket.
    ///
    /// # Errors
    /// Returns the expected form and the actual text, as one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        <Self as Form>::read(text)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => formatter.write_str(address),
            Self::Unix(path) => write!(formatter, "unix://{}", path.display()),
        }
    }
}

impl Form for Listen {
    const NAME: &'static str = "listen-address";

    fn read(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix://") {
            return Ok(Self::Unix(path.into()));
        }
        // Neither a host nor a port contains a slash.
        if text.contains('/') {
            return Ok(Self::Unix(text.into()));
        }
        let wrong = || {
            format!(
                "expected an address such as `127.0.0.1:4000` or the path of a Unix socket, found `{text}`"
            )
        };
        // Split from the right, because an IPv6 address contains colons.
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        Ok(Self::Tcp(text.to_owned()))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// The source of a key set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A JWKS file.
    File(PathBuf),
    /// A URL that is polled.
    Url(Uri),
}

impl Form for KeySource {
    const NAME: &'static str = "key-source";

    fn read(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::File(path.into()));
        }
        match ServiceAddress::read(text) {
            Ok(ServiceAddress::Http(uri)) => Ok(Self::Url(uri)),
            _ => Err(format!(
                "expected `https://…`, `http://…` or `file://…`, found `{text}`"
            )),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::File(path) => format!("file://{}", path.display()),
            Self::Url(uri) => uri.to_string(),
        }
    }
}

/// A web origin as browsers send it: scheme, host and port, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOrigin(pub String);

impl Form for WebOrigin {
    const NAME: &'static str = "web-origin";

    fn read(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Err("`*` is not an origin; set `allow_any_origin: true` instead".to_owned());
        }
        if text.ends_with('/') {
            let without = text.trim_end_matches('/');
            return Err(format!(
                "an origin has no `/` at its end: write `{without}`"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}
