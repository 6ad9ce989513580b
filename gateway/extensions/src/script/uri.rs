//! URIs in scripts.

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use rhai::{Dynamic, EvalAltResult};

type Thrown<T> = Result<T, Box<EvalAltResult>>;

/// A URI that scripts can read and change.
#[derive(Clone)]
pub(super) struct ScriptUri(pub(super) Uri);

impl ScriptUri {
    pub(super) fn scheme(&mut self) -> Dynamic {
        text(self.0.scheme_str())
    }

    pub(super) fn host(&mut self) -> Dynamic {
        text(self.0.host())
    }

    pub(super) fn port(&mut self) -> Dynamic {
        self.0
            .port_u16()
            .map_or(Dynamic::UNIT, |port| Dynamic::from(i64::from(port)))
    }

    pub(super) fn path(&mut self) -> String {
        self.0.path().to_owned()
    }

    pub(super) fn set_scheme(&mut self, scheme: &str) -> Thrown<()> {
        let scheme: Scheme = scheme.parse().map_err(wrong)?;
        self.change(|parts| {
            parts.scheme = Some(scheme);
            Ok(())
        })
    }

    /// Sets the host and keeps the port.
    pub(super) fn set_host(&mut self, host: &str) -> Thrown<()> {
        let authority = match self.0.port_u16() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        self.set_authority(&authority)
    }

    pub(super) fn set_port(&mut self, port: i64) -> Thrown<()> {
        let host = self.0.host().ok_or("a URI without a host has no port")?;
        let port = u16::try_from(port).map_err(wrong)?;
        self.set_authority(&format!("{host}:{port}"))
    }

    /// Sets the path and keeps the query.
    pub(super) fn set_path(&mut self, path: &str) -> Thrown<()> {
        let path = match self.0.query() {
            Some(query) if !path.contains('?') => format!("{path}?{query}"),
            _ => path.to_owned(),
        };
        let path: PathAndQuery = path.parse().map_err(wrong)?;
        self.change(|parts| {
            parts.path_and_query = Some(path);
            Ok(())
        })
    }

    fn set_authority(&mut self, authority: &str) -> Thrown<()> {
        let authority: Authority = authority.parse().map_err(wrong)?;
        self.change(|parts| {
            // A URI with an authority must also have a scheme.
            parts.scheme.get_or_insert(Scheme::HTTP);
            parts.authority = Some(authority);
            Ok(())
        })
    }

    fn change(&mut self, change: impl FnOnce(&mut http::uri::Parts) -> Thrown<()>) -> Thrown<()> {
        // Split and joined again, because a `Uri` cannot be changed.
        let mut parts = self.0.clone().into_parts();
        change(&mut parts)?;
        self.0 = Uri::from_parts(parts).map_err(wrong)?;
        Ok(())
    }
}

fn wrong(error: impl std::fmt::Display) -> Box<EvalAltResult> {
    error.to_string().into()
}

fn text(text: Option<&str>) -> Dynamic {
    text.map_or(Dynamic::UNIT, |text| Dynamic::from(text.to_owned()))
}
