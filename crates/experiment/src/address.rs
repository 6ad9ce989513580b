//! Targets of the load: URLs and their addresses.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use load::{Address, Protocol, Target};

use crate::exit::Failure;

/// The form of a URL, for messages.
const URL_HELP: &str = "Write it as http://127.0.0.1:8080/path";

/// Reads a URL as a target of load.
///
/// A host name with letters outside of ASCII becomes its ASCII form for the resolver. An address without a
/// protocol, such as `localhost:9000`, is an address of HTTP.
pub fn url(text: &str) -> Result<Uri, String> {
    let written = ascii_host(&with_protocol(text))?;
    let url: Uri = written.parse().map_err(|error| {
        let place = wrong_character(&written);
        let why = place.unwrap_or_else(|| format!("{error}"));
        format!("{why}. {URL_HELP}")
    })?;
    match url.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => {
            return Err(format!(
                "expected http or https, found `{other}`. {URL_HELP}"
            ));
        }
        None => {
            return Err(format!(
                "expected http or https, found no protocol. {URL_HELP}"
            ));
        }
    }
    let (_, host) = split_authority(&url);
    let behind_name = host.rfind(']').map_or(0, |at| at + 1);
    if let Some((_, port)) = host[behind_name..].split_once(':')
        && !port.is_empty()
        && !port.parse().is_ok_and(|port: u16| port > 0)
    {
        return Err(format!(
            "expected a port from 1 to 65535, found `{port}`. {URL_HELP}"
        ));
    }
    Ok(url)
}

/// Reads a URL as a target of load, also of WebSocket: `ws://…` or `wss://…`.
///
/// # Errors
/// If the text is no URL of HTTP or WebSocket.
pub fn socket_url(text: &str) -> Result<Uri, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    if !matches!(scheme, "ws" | "wss") {
        return url(text);
    }
    let over_http = url(&format!("http{}://{rest}", &scheme[2..]))?;
    with_scheme(&over_http, scheme)
}

/// Returns a URL of WebSocket as the URL of HTTP with the same connection. Other URLs stay the same.
pub fn over_http(url: &Uri) -> Uri {
    let scheme = match url.scheme_str() {
        Some("ws") => "http",
        Some("wss") => "https",
        _ => return url.clone(),
    };
    with_scheme(url, scheme).unwrap_or_else(|_| url.clone())
}

fn with_scheme(url: &Uri, scheme: &str) -> Result<Uri, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{error}. {URL_HELP}");
    let mut parts = url.clone().into_parts();
    let scheme: Result<http::uri::Scheme, _> = scheme.parse();
    parts.scheme = Some(scheme.map_err(|error| wrong(&error))?);
    parts.path_and_query = parts.path_and_query.or_else(|| "/".parse().ok());
    Uri::from_parts(parts).map_err(|error| wrong(&error))
}

/// True for a URL of WebSocket.
pub fn is_websocket(url: &Uri) -> bool {
    matches!(url.scheme_str(), Some("ws" | "wss"))
}

/// The text as a URL: `localhost:9000` becomes `http://localhost:9000`. Only an IP address, `localhost` and a host
/// with a port are certainly an address. Any other word can be a mistake.
fn with_protocol(text: &str) -> Cow<'_, str> {
    let end = text.find(['/', '?', '#']).unwrap_or(text.len());
    let authority = &text[..end];
    let is_address = match authority.rsplit_once(':') {
        // In `[::1]` the last colon is a part of the address.
        Some((host, port)) if !port.contains(']') => {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            !host.is_empty() && is_number
        }
        _ => {
            let bare = authority.trim_start_matches('[').trim_end_matches(']');
            authority == "localhost" || bare.parse::<IpAddr>().is_ok()
        }
    };
    match is_address {
        true => Cow::Owned(format!("http://{text}")),
        false => Cow::Borrowed(text),
    }
}

/// The byte range of host and port in a URL, including credentials before an `@`.
fn authority_range(text: &str) -> Option<std::ops::Range<usize>> {
    let from = text.find("://")? + 3;
    let length = text[from..]
        .find(['/', '?', '#'])
        .unwrap_or(text.len() - from);
    Some(from..from + length)
}

/// Converts the host of a URL to ASCII: `http://bücher.example` becomes `http://xn--bcher-kva.example`.
fn ascii_host(text: &str) -> Result<String, String> {
    let Some(range) = authority_range(text) else {
        return Ok(text.to_owned());
    };
    let authority = &text[range.clone()];
    let host_from = range.start + authority.rfind('@').map_or(0, |at| at + 1);
    let host_to = text[host_from..range.end]
        .rfind(':')
        .map_or(range.end, |at| host_from + at);
    let host = &text[host_from..host_to];
    if host.is_ascii() {
        return Ok(text.to_owned());
    }
    let ascii = idna::domain_to_ascii(host)
        .map_err(|_| format!("expected a host name, found `{host}`. {URL_HELP}"))?;
    Ok(format!("{}{ascii}{}", &text[..host_from], &text[host_to..]))
}

/// The first invalid character of a URL, with its place.
fn wrong_character(text: &str) -> Option<String> {
    // After the authority, every valid URL remains valid if it is cut, so the characters can be checked one
    // by one.
    let from = authority_range(text)?.end;
    text.get(..from)?.parse::<Uri>().ok()?;
    let mut places = text[from..].char_indices();
    let (at, wrong) = places.find(|(at, letter)| {
        text[..from + at + letter.len_utf8()]
            .parse::<Uri>()
            .is_err()
    })?;
    let place = text[..from + at].chars().count() + 1;
    let mut bytes = [0; 4];
    let encoded: String = wrong
        .encode_utf8(&mut bytes)
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    Some(format!(
        "character {place}, `{}`, is not allowed in a URL. Encode it as {encoded}",
        wrong.escape_debug()
    ))
}

/// The raw user name and password of a URL, and its host and port.
fn split_authority(url: &Uri) -> (Option<&str>, &str) {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    match authority.rsplit_once('@') {
        Some((credentials, host)) => (Some(credentials), host),
        None => (None, authority),
    }
}

/// The value of the `Authorization` header for the credentials in a URL. `None` without credentials.
pub fn authorization(url: &Uri) -> Option<String> {
    let (credentials, _) = split_authority(url);
    let (name, password) = match credentials?.split_once(':') {
        Some(both) => both,
        None => (credentials?, ""),
    };
    let mut pair: Vec<u8> = percent_encoding::percent_decode_str(name).collect();
    pair.push(b':');
    pair.extend(percent_encoding::percent_decode_str(password));
    Some(format!("Basic {}", STANDARD.encode(pair)))
}

/// Adds the header `Authorization` for the name and password in a URL. `defaults` are headers that requests
/// without their own get later.
///
/// # Errors
/// Fails if the URL has credentials and one of the headers is `Authorization`.
pub fn with_authorization(
    url: &Uri,
    headers: &mut Vec<(String, String)>,
    defaults: &[(String, String)],
) -> Result<(), String> {
    let Some(value) = authorization(url) else {
        return Ok(());
    };
    let is_given = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    if headers.iter().chain(defaults).any(is_given) {
        return Err(
            "expected either a name and password in the URL or a header `Authorization`, found \
             both. Remove one of them"
                .to_owned(),
        );
    }
    headers.push(("Authorization".to_owned(), value));
    Ok(())
}

/// Returns the URL without user name and password.
pub fn without_credentials(url: &Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    let (_, host) = split_authority(url);
    parts.authority = host.parse().ok().or(parts.authority);
    // `http` requires a path if there is an authority.
    parts.path_and_query = parts.path_and_query.or_else(|| "/".parse().ok());
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

/// True if the URL uses TLS.
pub fn is_encrypted(url: &Uri) -> bool {
    matches!(url.scheme_str(), Some("https" | "wss"))
}

fn port(url: &Uri) -> u16 {
    let usual = if is_encrypted(url) { 443 } else { 80 };
    url.port_u16().unwrap_or(usual)
}

/// Path and query of a URL. An empty path is sent as `/` (RFC 9112, 3.2.1).
pub fn path(url: &Uri) -> String {
    let written = url.path_and_query().map_or("/", |path| path.as_str());
    match written.strip_prefix('?') {
        Some(query) => format!("/?{query}"),
        None => written.to_owned(),
    }
}

/// A URL without path and query: `http://127.0.0.1:8080`.
pub fn root(url: &Uri) -> String {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}", url.scheme_str().unwrap_or("http"))
}

/// Row names for two URLs: without the scheme, because it is mostly equal. If both URLs are equal, the second
/// name gets a suffix.
pub fn names(urls: [&Uri; 2]) -> [String; 2] {
    let short = |url: &Uri| {
        let (_, authority) = split_authority(url);
        let whole = format!("{authority}{}", path(url));
        whole.strip_suffix('/').unwrap_or(&whole).to_owned()
    };
    let [first, mut second] = urls.map(short);
    if first == second {
        second += " again";
    }
    [first, second]
}

/// Host and port of a URL, for comparison with another URL.
pub fn origin(url: &Uri) -> (String, u16) {
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    (host, port(url))
}

/// Resolves the URL once, so that the load measures one address and not the resolver.
pub fn target(
    url: &Uri,
    unix_socket: Option<&Path>,
    protocol: Protocol,
) -> Result<Target, Failure> {
    let host = url.host().ok_or_else(|| {
        Failure::bad_input(format!(
            "expected a host in `{url}`, found none. {URL_HELP}"
        ))
    })?;
    let (_, authority) = split_authority(url);
    let address = match unix_socket {
        Some(path) => Address::Unix(path.to_owned()),
        None => {
            let addresses = resolve(host, port(url))?;
            let reach = |address: &SocketAddr| reach(*address, authority, &protocol);
            Address::Tcp(first_accepting(host, &addresses, reach)?)
        }
    };
    Ok(Target {
        address,
        // Never contains credentials, because servers and proxies log this header.
        host: authority.to_owned(),
        protocol,
    })
}

/// The addresses of a host, in the order of the resolver.
///
/// # Errors
/// When it has no address.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let found = (bare(host), port).to_socket_addrs().map_err(|error| {
        Failure::not_ready(format!("the host `{host}` has no address: {error}"))
    })?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    match addresses.is_empty() {
        true => Err(Failure::not_ready(format!(
            "the host `{host}` has no address"
        ))),
        false => Ok(addresses),
    }
}

/// The host for the resolver: an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// True if a host is an address and not a name.
pub(crate) fn is_address(host: &str) -> bool {
    bare(host).parse::<IpAddr>().is_ok()
}

/// Time limit of a connection attempt to one of several addresses.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// Connects once, over TCP or, for HTTP/3, over QUIC.
pub(crate) fn reach(address: SocketAddr, host: &str, protocol: &Protocol) -> Result<(), String> {
    if !protocol.version.is_http3() {
        return reach_over_tcp(&address);
    }
    let target = Target {
        address: Address::Tcp(address),
        host: host.to_owned(),
        protocol: protocol.clone(),
    };
    load::reach(&target, CONNECT_MAX).map_err(|failure| failure.to_string())
}

/// Connects once over TCP.
fn reach_over_tcp(address: &SocketAddr) -> Result<(), String> {
    TcpStream::connect_timeout(address, CONNECT_MAX)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// The first of several addresses that accepts a connection. A single address is not tried, because the load
/// will show if it accepts.
///
/// # Errors
/// When there are several addresses and all refuse.
pub(crate) fn first_accepting(
    host: &str,
    addresses: &[SocketAddr],
    reach: impl Fn(&SocketAddr) -> Result<(), String>,
) -> Result<SocketAddr, Failure> {
    if let [only] = addresses {
        return Ok(*only);
    }
    let mut refused = Vec::new();
    for address in addresses {
        match reach(address) {
            Ok(()) => return Ok(*address),
            Err(error) => refused.push(format!("{address} ({error})")),
        }
    }
    Err(Failure::not_ready(format!(
        "all {} addresses of `{host}` refuse the connection: {}",
        addresses.len(),
        refused.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn urls_of_websocket_keep_their_scheme() {
        for (text, encrypted, plain) in [
            ("ws://a:81/b?c", false, "http://a:81/b?c"),
            ("wss://a/", true, "https://a/"),
        ] {
            let found = socket_url(text).unwrap();
            assert_eq!(found.to_string(), text);
            assert_eq!(
                (is_encrypted(&found), is_websocket(&found)),
                (encrypted, true)
            );
            assert_eq!(over_http(&found).to_string(), plain);
        }
        assert!(!is_websocket(&socket_url("localhost:81").unwrap()));
        assert!(socket_url("ws://a:99999/").unwrap_err().contains("port"));
        assert!(url("ws://a/").is_err(), "only for loads");
    }

    #[test]
    fn a_port_that_does_not_exist_is_refused() {
        for text in [
            "http://127.0.0.1:99999/x",
            "https://127.0.0.1:70000/",
            "http://[::1]:65536/",
            "http://me:pw@host:80800/",
            "http://host:0/",
        ] {
            let error = url(text).unwrap_err();
            assert!(
                error.contains("expected a port from 1 to 65535"),
                "{text}: {error}"
            );
        }
        for text in [
            "http://[::1]/",
            "http://h:65535/",
            "http://h:/",
            "http://a:70000@h/",
        ] {
            assert!(url(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn an_address_without_a_protocol_is_one_of_http() {
        for (text, expected) in [
            ("localhost:9000", "http://localhost:9000/"),
            ("localhost", "http://localhost/"),
            ("127.0.0.1/x?y=1", "http://127.0.0.1/x?y=1"),
            ("[::1]:81/x", "http://[::1]:81/x"),
            ("[::1]", "http://[::1]/"),
            ("api.test:80/a:b", "http://api.test:80/a:b"),
        ] {
            assert_eq!(url(text).unwrap().to_string(), expected, "{text}");
        }
        for text in [
            "api",
            "api.test/x",
            "/x",
            ":80",
            "localhost:",
            "localhost:x",
            "ftp://h/",
        ] {
            let error = url(text).unwrap_err();
            assert!(error.contains("Write it as http://"), "{text}: {error}");
        }
    }

    #[test]
    fn a_name_and_password_are_a_header_and_not_the_host() {
        let with = url("http://user:pa%20ss@127.0.0.1:81/x").unwrap();
        // Base64 of `user:pa ss`.
        assert_eq!(authorization(&with).unwrap(), "Basic dXNlcjpwYSBzcw==");
        let target = target(&with, None, Protocol::default()).unwrap();
        assert_eq!(target.host, "127.0.0.1:81");
        assert_eq!(without_credentials(&with), "http://127.0.0.1:81/x");
        let without = url("http://127.0.0.1:81/@x").unwrap();
        assert_eq!(authorization(&without), None);
        let mut headers = vec![("authorization".to_owned(), "Bearer x".to_owned())];
        let error = with_authorization(&with, &mut headers, &[]).unwrap_err();
        assert!(error.contains("Remove one of them"), "{error}");
        with_authorization(&without, &mut headers, &[]).unwrap();
        assert_eq!(headers.len(), 1);
        // Like curl with a user name alone: the password is empty.
        let named = url("http://user@h/").unwrap();
        assert_eq!(authorization(&named).unwrap(), "Basic dXNlcjo=");
    }

    #[test]
    fn an_empty_path_before_a_query_is_a_slash() {
        assert_eq!(path(&url("http://h:1?x=1").unwrap()), "/?x=1");
        assert_eq!(path(&url("http://h:1/?x=1").unwrap()), "/?x=1");
        assert_eq!(path(&url("http://h:1").unwrap()), "/");
    }

    #[test]
    fn a_wrong_character_is_named_with_its_place() {
        for (text, expected) in [
            ("http://h/a?b<c", "character 13, `<`"),
            ("http://h/ü b", "character 11, ` `"),
            ("http://h/a^\u{1}", "character 12, `\\u{1}`"),
        ] {
            let error = url(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = url("http://h/a b").unwrap_err();
        assert!(error.contains("Encode it as %20"), "{error}");
    }

    #[test]
    fn an_international_host_gets_the_name_that_the_resolver_knows() {
        let found = url("http://bücher.example:8080/ü").unwrap();
        assert_eq!(found.host(), Some("xn--bcher-kva.example"));
        assert_eq!(port(&found), 8080);
        let with_name = url("https://me:pw@BÜCHER.example").unwrap();
        assert_eq!(with_name.host(), Some("xn--bcher-kva.example"));
        let error = url("http://b\u{200e}ü\u{ad}\u{378}/").unwrap_err();
        assert!(error.contains("expected a host name"), "{error}");
    }

    #[test]
    fn the_first_address_that_accepts_is_kept() {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let [open_at, closed_at] = [&open, &closed].map(|it| it.local_addr().unwrap());
        drop(closed);
        let found = first_accepting("h", &[closed_at, open_at], reach_over_tcp).unwrap();
        assert_eq!(found, open_at);
        drop(open);
        let error = first_accepting("h", &[closed_at, open_at], reach_over_tcp).unwrap_err();
        assert_eq!(error.exit, crate::exit::Exit::NotReady);
        for address in [closed_at, open_at] {
            assert!(
                error.message.contains(&address.to_string()),
                "{}",
                error.message
            );
        }
    }
}
