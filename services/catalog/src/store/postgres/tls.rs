//! TLS to PostgreSQL: `sslmode` and `sslrootcert` of the URL, with their meaning in PostgreSQL's own clients.
//!
//! Channel binding is absent on purpose, because the library would need a parser of certificates for it.

mod trust;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use percent_encoding::percent_decode_str;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Error, Socket};
use tokio_rustls::TlsConnector;

use super::{BoxedError, chain};

/// The parts of a URL that concern TLS, and the rest of the URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TlsUrl {
    /// The URL without these parts, for the library.
    pub(super) url: String,
    /// True if the connection must use TLS, may use it, or must not.
    pub(super) mode: SslMode,
    check: Check,
    authorities: Option<PathBuf>,
}

/// The check of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// No check. TLS then protects against readers of the network, but not against another server.
    Nothing,
    /// An authority must have signed it.
    Authority,
    /// An authority must have signed it for the host of the URL.
    AuthorityAndName,
}

/// The reason why the URL asks for no possible connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsUrlError {
    #[error("expected `sslmode` disable, prefer, require, verify-ca or verify-full, found `{0}`")]
    Mode(String),
    #[error("`{0}` is there twice; leave one out")]
    Twice(&'static str),
    #[error("`sslrootcert` has no effect with `sslmode={0}`; use verify-full, or leave it out")]
    UselessAuthorities(&'static str),
    #[error("cannot read the file `{path}` of `sslrootcert`: {source}")]
    File { path: String, source: io::Error },
    #[error("the file `{path}` of `sslrootcert` holds no certificate in PEM: {reason}")]
    Authorities { path: String, reason: String },
    #[error("the system has no authorities to trust; name some with `sslrootcert=FILE`")]
    NoAuthorities,
    #[error("the value of `{0}` is not UTF-8")]
    Encoding(&'static str),
}

impl TlsUrl {
    /// Takes the parts out of a URL.
    pub(super) fn read(url: &str) -> Result<Self, TlsUrlError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut authorities) = (None, None);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => set(&mut mode, "sslmode", value)?,
                Some(("sslrootcert", value)) => set(&mut authorities, "sslrootcert", value)?,
                _ => rest.push(pair),
            }
        }
        let (mode, mut check, refuses) = match mode.as_deref() {
            Some("disable") => (SslMode::Disable, Check::Nothing, Some("disable")),
            // The default of PostgreSQL's own clients.
            None | Some("prefer") => (SslMode::Prefer, Check::Nothing, Some("prefer")),
            Some("require") => (SslMode::Require, Check::Nothing, None),
            Some("verify-ca") => (SslMode::Require, Check::Authority, None),
            Some("verify-full") => (SslMode::Require, Check::AuthorityAndName, None),
            Some(other) => return Err(TlsUrlError::Mode(other.to_owned())),
        };
        if authorities.is_some() {
            if let Some(mode) = refuses {
                return Err(TlsUrlError::UselessAuthorities(mode));
            }
            // As PostgreSQL's own clients do: with an authority, `require` means `verify-ca`.
            if check == Check::Nothing {
                check = Check::Authority;
            }
        }
        let url = if rest.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", rest.join("&"))
        };
        Ok(Self {
            url,
            mode,
            check,
            authorities: authorities.filter(|it| it != "system").map(PathBuf::from),
        })
    }

    /// Reads the authorities, and returns the step from an open socket to TLS.
    pub(super) fn connector(&self) -> Result<Connector, TlsUrlError> {
        trust::config(self.check, self.authorities.as_deref())
            .map(|config| Connector(Arc::new(config)))
    }
}

fn set(into: &mut Option<String>, name: &'static str, value: &str) -> Result<(), TlsUrlError> {
    let value = percent_decode_str(value).decode_utf8();
    let value = value.map_err(|_| TlsUrlError::Encoding(name))?.into_owned();
    if into.replace(value).is_some() {
        return Err(TlsUrlError::Twice(name));
    }
    Ok(())
}

/// The step from an open socket to TLS. The library only takes it if `sslmode` and the server want it.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

/// The step for one host.
pub(super) struct ToHost {
    config: Arc<ClientConfig>,
    host: String,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Secured;
    type TlsConnect = ToHost;
    type Error = BoxedError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, BoxedError> {
        // The name is read later: sockets without TLS may lack it.
        Ok(ToHost {
            config: Arc::clone(&self.0),
            host: host.to_owned(),
        })
    }
}

impl TlsConnect<Socket> for ToHost {
    type Stream = Secured;
    type Error = BoxedError;
    type Future = Pin<Box<dyn Future<Output = Result<Secured, BoxedError>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.host)?;
            let connector = TlsConnector::from(self.config);
            Ok(Secured(connector.connect(name, stream).await?))
        })
    }
}

/// A connection with TLS.
pub(super) struct Secured(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(task, into)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(task)
    }
}

/// The remedy for an error that another attempt cannot repair. `None` if the error does not come from TLS.
pub(super) fn remedy(error: &Error) -> Option<&'static str> {
    // The library has no other sign of the kind. A test fails if its text changes.
    if error.to_string() != "error performing TLS handshake" {
        return None;
    }
    let text = chain(error);
    if text.contains("server does not support TLS") {
        return Some(
            "set `ssl = on` in PostgreSQL, or choose `sslmode=prefer` or `sslmode=disable`",
        );
    }
    if text.contains("invalid peer certificate") {
        return Some("name its authority with `sslrootcert=FILE`, and its host in the URL");
    }
    // A server that stops or starts may cut the handshake. Another attempt may help.
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<TlsUrl, String> {
        TlsUrl::read(&format!("postgres://u:p@h/n{query}")).map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_of_tls_are_taken_out_of_the_url() {
        let all =
            read("?connect_timeout=3&sslmode=verify-full&sslrootcert=%2Fca.pem&options=-c%20a");
        let expected = TlsUrl {
            url: "postgres://u:p@h/n?connect_timeout=3&options=-c%20a".to_owned(),
            mode: SslMode::Require,
            check: Check::AuthorityAndName,
            authorities: Some("/ca.pem".into()),
        };
        assert_eq!(all, Ok(expected));
        let plain = read("").unwrap();
        assert_eq!(
            (plain.url.as_str(), plain.mode),
            ("postgres://u:p@h/n", SslMode::Prefer)
        );
        let check = |query| read(query).unwrap().check;
        assert_eq!(check("?sslmode=require"), Check::Nothing);
        assert_eq!(check("?sslmode=require&sslrootcert=a"), Check::Authority);
        assert_eq!(
            check("?sslmode=verify-ca&sslrootcert=system"),
            Check::Authority
        );
    }

    #[test]
    fn a_url_that_would_check_less_than_it_says_is_refused() {
        let told = |query| read(query).unwrap_err();
        assert!(told("?sslmode=allow").contains("found `allow`"));
        assert!(told("?sslrootcert=a").contains("no effect with `sslmode=prefer`"));
        assert!(told("?sslmode=disable&sslrootcert=a").contains("`sslmode=disable`"));
        assert!(told("?sslmode=disable&sslmode=require").contains("`sslmode` is there twice"));
        let absent = read("?sslmode=verify-ca&sslrootcert=/absent").unwrap();
        let told = absent.connector().err().unwrap().to_string();
        assert!(told.contains("cannot read the file `/absent`"), "{told}");
    }
}
