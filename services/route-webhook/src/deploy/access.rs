//! Access control of `PUT /route`: its clients and their namespaces.
//!
//! A client that writes a route starts pods in the cluster. So without a token, only clients on this machine
//! may write routes.

use std::net::IpAddr;
use std::path::Path;

use chassis::{HostFlags, Hosts};
use hyper::Uri;
use hyper::header::HeaderMap;

use super::order::RouteOrder;
use crate::credentials::{SecretError, SecretFile, given, is_equal};

/// The reason why a client may not write routes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Denied {
    #[error(
        "PUT /route is off, because this address can be reached from other machines and there is \
         no token; start the webhook with --route-token-file FILE, or with --host 127.0.0.1"
    )]
    Closed,
    #[error("PUT /route needs one header `Authorization: Bearer TOKEN`")]
    NoToken,
    #[error("the token in the header `Authorization` is not that of this webhook")]
    WrongToken,
    #[error("the token of this webhook cannot be read at the moment")]
    NoOwnToken,
    #[error(
        "expected a header `Host` with `localhost` or an IP address; for other names, start the \
         webhook with --route-token-file FILE"
    )]
    ForeignHost,
    #[error(
        "the namespace `{0}` is not one that routes may be put into; --route-namespaces names them"
    )]
    Namespace(String),
}

/// The rules for clients and namespaces.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    door: Door,
    /// Allowed namespaces. `*` is every namespace.
    namespaces: Vec<String>,
}

/// The condition that a client must fulfil.
#[derive(Clone, Debug)]
enum Door {
    /// The token in this file.
    Token(SecretFile),
    /// No token, because only this machine reaches the port. The request must use one of these names.
    Loopback(Hosts),
    /// All clients are refused.
    Closed,
}

impl Access {
    /// # Errors
    ///
    /// Fails if a token file is configured and contains no valid token.
    pub(crate) fn new(
        host: IpAddr,
        token_file: Option<&Path>,
        namespaces: &[String],
    ) -> Result<Self, SecretError> {
        let door = match token_file {
            Some(path) => Door::Token(SecretFile::new("--route-token-file", path)?),
            None if host.to_canonical().is_loopback() => {
                Door::Loopback(Hosts::of(host, &HostFlags::default()))
            }
            None => Door::Closed,
        };
        let namespaces = namespaces.iter().map(|name| name.trim().to_owned());
        let namespaces = namespaces.filter(|name| !name.is_empty()).collect();
        Ok(Self { door, namespaces })
    }

    /// Checks by its head that a request may write routes.
    pub(crate) fn admit(&self, headers: &HeaderMap, target: &Uri) -> Result<(), Denied> {
        match &self.door {
            Door::Closed => Err(Denied::Closed),
            // A web page can make a browser on this machine send a PUT under the page's own host name, after
            // that name points to 127.0.0.1.
            Door::Loopback(hosts) => {
                let checked = hosts.check(headers, target);
                checked.map_err(|_| Denied::ForeignHost)
            }
            Door::Token(file) => {
                let given = given(headers, "Bearer").ok_or(Denied::NoToken)?;
                let own = file.read().map_err(|error| {
                    tracing::error!(%error, "no token for PUT /route");
                    Denied::NoOwnToken
                })?;
                if is_equal(&own, given) {
                    Ok(())
                } else {
                    Err(Denied::WrongToken)
                }
            }
        }
    }

    /// Checks that all routes are in allowed namespaces.
    pub(crate) fn allow(&self, routes: &[RouteOrder]) -> Result<(), Denied> {
        let is_allowed = |name: &str| self.namespaces.iter().any(|it| it == "*" || it == name);
        let mut wanted = routes.iter().map(|route| &route.namespace);
        match wanted.find(|name| !is_allowed(name)) {
            Some(name) => Err(Denied::Namespace(name.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::Ipv4Addr;

    use hyper::header::{self, HeaderValue};

    use super::*;

    #[test]
    fn only_this_machine_needs_no_token() {
        let admits = |host: &str, header: Option<&'static str>| {
            let access = Access::new(host.parse().unwrap(), None, &[]).unwrap();
            let mut headers = HeaderMap::new();
            headers.extend(header.map(|it| (header::HOST, HeaderValue::from_static(it))));
            access.admit(&headers, &Uri::default())
        };
        for host in [
            None,
            Some("localhost"),
            Some("LOCALHOST:1"),
            Some("127.0.0.1:7080"),
            Some("[::1]:7080"),
        ] {
            assert!(admits("127.0.0.1", host).is_ok(), "{host:?}");
            assert!(admits("::1", host).is_ok(), "{host:?}");
        }
        for host in ["evil.example:7080", "localhost.evil.example", "", "["] {
            let denied = admits("127.0.0.1", Some(host));
            assert!(matches!(denied, Err(Denied::ForeignHost)), "{host}");
        }
        for everywhere in ["0.0.0.0", "::", "10.0.0.1"] {
            let denied = admits(everywhere, Some("localhost"));
            assert!(matches!(denied, Err(Denied::Closed)), "{everywhere}");
        }
    }

    #[test]
    fn a_token_is_compared_and_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let any = Ipv4Addr::UNSPECIFIED.into();
        let open = || Access::new(any, Some(&file), &[]);
        assert!(matches!(open(), Err(SecretError::Unreadable { .. })));
        fs::write(&file, "short\n").unwrap();
        assert!(matches!(
            open(),
            Err(SecretError::TooShort { found: 5, .. })
        ));
        fs::write(&file, "0123456789abcdef\n").unwrap();
        let access = open().unwrap();
        let admits = |lines: &[&'static str]| {
            let lines = lines.iter();
            let line = |it: &&'static str| (header::AUTHORIZATION, HeaderValue::from_static(it));
            let mut headers = HeaderMap::new();
            lines.map(line).for_each(|(name, value)| {
                headers.append(name, value);
            });
            access.admit(&headers, &Uri::default())
        };
        assert!(admits(&["Bearer 0123456789abcdef"]).is_ok());
        assert!(admits(&["bearer 0123456789abcdef"]).is_ok());
        for wrong in [
            "Bearer 0123456789abcdeg",
            "Bearer ",
            "Bearer 0123456789abcde",
        ] {
            assert!(
                matches!(admits(&[wrong]), Err(Denied::WrongToken)),
                "{wrong}"
            );
        }
        for none in [
            &[][..],
            &["Basic 0123456789abcdef"],
            &["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"],
        ] {
            assert!(matches!(admits(none), Err(Denied::NoToken)), "{none:?}");
        }
        fs::write(&file, "another-token-of-this-hook").unwrap();
        assert!(matches!(
            admits(&["Bearer 0123456789abcdef"]),
            Err(Denied::WrongToken)
        ));
        assert!(admits(&["Bearer another-token-of-this-hook"]).is_ok());
        fs::remove_file(&file).unwrap();
        assert!(matches!(
            admits(&["Bearer another-token-of-this-hook"]),
            Err(Denied::NoOwnToken)
        ));
    }
}
