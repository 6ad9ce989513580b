//! Where the load goes: URLs, and the one address that they name.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;

use http::Uri;
use load::{Address, Protocol, Target};

use crate::exit::Failure;

/// How a URL is written.
const URL_HELP: &str = "write it as http://127.0.0.1:8080/path";

/// Reads a URL that can be loaded.
pub(crate) fn url(text: &str) -> Result<Uri, String> {
    let url: Uri = text
        .parse()
        .map_err(|error| format!("{error}; {URL_HELP}"))?;
    match url.scheme_str() {
        Some("http" | "https") => Ok(url),
        Some(other) => Err(format!(
            "`{other}` is not a protocol that weigh load speaks; {URL_HELP}"
        )),
        None => Err(format!("it names no protocol; {URL_HELP}")),
    }
}

/// Does the URL ask for TLS?
pub(crate) fn is_encrypted(url: &Uri) -> bool {
    url.scheme_str() == Some("https")
}

fn port(url: &Uri) -> u16 {
    let usual = if is_encrypted(url) { 443 } else { 80 };
    url.port_u16().unwrap_or(usual)
}

/// Path and query of a URL.
pub(crate) fn path(url: &Uri) -> String {
    url.path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned()
}

/// A URL without path and query: `http://127.0.0.1:8080`.
pub(crate) fn root(url: &Uri) -> String {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}", url.scheme_str().unwrap_or("http"))
}

/// URLs as rows are called: without the scheme, which they mostly share. Of one URL twice, the second is
/// told apart.
pub(crate) fn names(urls: [&Uri; 2]) -> [String; 2] {
    let short = |url: &Uri| {
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let whole = format!("{authority}{}", path(url));
        whole.strip_suffix('/').unwrap_or(&whole).to_owned()
    };
    let [first, mut second] = urls.map(short);
    if first == second {
        second += " again";
    }
    [first, second]
}

/// Host and port of a URL, comparable with those of another.
pub(crate) fn origin(url: &Uri) -> (String, u16) {
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    (host, port(url))
}

/// Resolves the URL once: what is measured is one address, not the resolver.
pub(crate) fn target(
    url: &Uri,
    unix_socket: Option<&Path>,
    protocol: Protocol,
) -> Result<Target, Failure> {
    let host = url
        .host()
        .ok_or_else(|| Failure::bad_input(format!("`{url}` names no host; {URL_HELP}")))?;
    let authority = url.authority().map_or(host, |authority| authority.as_str());
    let address = match unix_socket {
        Some(path) => Address::Unix(path.to_owned()),
        None => Address::Tcp(resolve(host, port(url))?),
    };
    Ok(Target {
        address,
        host: authority.to_owned(),
        protocol,
    })
}

/// The first address of a host.
///
/// # Errors
/// When it has none.
pub(crate) fn resolve(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    // The resolver takes an IPv6 address without its brackets.
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port).to_socket_addrs().map_err(|error| {
        Failure::not_ready(format!("the host `{host}` has no address: {error}"))
    })?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| Failure::not_ready(format!("the host `{host}` has no address")))
}
