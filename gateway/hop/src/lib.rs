//! Hop-by-hop headers (RFC 9110, sections 7.6.1 and 11.7). The client's connection ends at the gateway, and
//! connections to subgraphs, handlers and coprocessors begin there.
//!
//! All crates share one list. If one side consumes a header and another side forwards it, requests can be
//! smuggled. Other removed headers (`host`, `content-length`, `expect`, `accept`) depend on the side, and its
//! code lists them.

mod end;

pub use end::end_connection_headers;

use http::HeaderMap;

/// Headers of one connection and of its message framing.
pub const OF_CONNECTION: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers for authentication between a client and the proxy next to it.
pub const OF_PROXY: [&str; 2] = ["proxy-authenticate", "proxy-authorization"];

/// Headers that the sender of a request writes itself, besides [`OF_CONNECTION`]. A body is sent with its head,
/// so `Expect: 100-continue` has no use.
const OF_SENDER: [&str; 3] = ["host", "content-length", "expect"];

/// True if a header is one of [`OF_CONNECTION`], ignoring case.
#[must_use]
pub fn is_of_connection(name: &str) -> bool {
    // Called for every header. Most names have another length than these names.
    matches!(name.len(), 2 | 7 | 10 | 16 | 17) && is_among(&OF_CONNECTION, name)
}

/// True if a header is one of [`OF_CONNECTION`] or [`OF_PROXY`], ignoring case.
#[must_use]
pub fn is_hop_by_hop(name: &str) -> bool {
    is_of_connection(name) || is_among(&OF_PROXY, name)
}

/// True for headers about the connection and the framing, which the sender of a request writes itself. Ignores
/// case.
#[must_use]
pub fn is_of_sender(name: &str) -> bool {
    is_of_connection(name) || is_among(&OF_SENDER, name)
}

/// Removes all headers in [`OF_CONNECTION`] and [`OF_PROXY`].
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have no such header. Scanning their few names costs less than nine lookups.
    if !headers.keys().any(|name| is_hop_by_hop(name.as_str())) {
        return;
    }
    for name in OF_CONNECTION.into_iter().chain(OF_PROXY) {
        headers.remove(name);
    }
}

fn is_among(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_lists_is_known_in_any_case() {
        for name in OF_CONNECTION {
            assert!(is_of_connection(name) && is_hop_by_hop(name), "{name}");
            assert!(is_of_connection(&name.to_uppercase()), "{name}");
        }
        for name in OF_PROXY {
            assert!(is_hop_by_hop(name) && !is_of_connection(name), "{name}");
        }
        for name in ["", "connections", "host", "content-length", "x-te"] {
            assert!(!is_hop_by_hop(name), "{name}");
        }
    }

    #[test]
    fn what_is_removed_is_what_is_on_the_lists() {
        let mut headers = HeaderMap::new();
        for name in OF_CONNECTION.into_iter().chain(OF_PROXY).chain(["host"]) {
            headers.append(name, "1".parse().unwrap());
            headers.append(name, "2".parse().unwrap());
        }
        remove_hop_by_hop(&mut headers);
        let names: Vec<&str> = headers.keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["host"]);
    }
}
