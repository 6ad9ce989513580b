//! Removes the headers that the client's `Connection` header lists.
//!
//! They are removed when a request arrives: checks, stages and subgraphs all see the same request. The fixed
//! hop-by-hop headers stay visible for stages. Patterns of header rules skip them, and the subgraph client
//! sends no hop-by-hop headers.

use http::header::{CONNECTION, HeaderMap, HeaderName};

/// Removes `Connection` and the headers that it lists.
pub fn end_connection_headers(headers: &mut HeaderMap) {
    // HTTP/2 has no such header. Most clients of HTTP/1.1 send no such header or `keep-alive`.
    let Some(first) = headers.get(CONNECTION) else {
        return;
    };
    if !first.as_bytes().eq_ignore_ascii_case(b"keep-alive") || has_several(headers) {
        let values = headers.get_all(CONNECTION).iter();
        let options = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let named: Vec<HeaderName> = options
            .filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
    headers.remove(CONNECTION);
}

fn has_several(headers: &HeaderMap) -> bool {
    headers.get_all(CONNECTION).iter().nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(connection: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for value in connection {
            headers.append(CONNECTION, value.parse().unwrap());
        }
        headers.append("x-a", "1".parse().unwrap());
        headers.append("x-a", "2".parse().unwrap());
        headers.append("x-b", "1".parse().unwrap());
        end_connection_headers(&mut headers);
        let mut names: Vec<String> = headers.keys().map(ToString::to_string).collect();
        names.sort();
        names
    }

    #[test]
    fn what_the_connection_names_is_removed_with_it() {
        assert_eq!(left(&[]), ["x-a", "x-b"]);
        assert_eq!(left(&["keep-alive"]), ["x-a", "x-b"]);
        assert_eq!(left(&["close"]), ["x-a", "x-b"]);
        assert_eq!(left(&["keep-alive, X-A"]), ["x-b"]);
        assert_eq!(left(&["keep-alive", "x-b ,, \"odd\","]), ["x-a"]);
        assert!(left(&["x-b,x-a", "x-a"]).is_empty());
    }
}
