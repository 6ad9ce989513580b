//! One connection to a null server, and its requests.

use std::os::fd::OwnedFd;

use super::stream::Streaming;

/// The largest number of headers of a request.
const HEADERS_MAX: usize = 64;

/// The largest size of a request head or body. A larger request is refused.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// The state of one connection.
pub(super) struct Client {
    pub(super) socket: OwnedFd,
    /// Received bytes that are not yet a whole request.
    pub(super) inbox: Vec<u8>,
    pub(super) activity: Activity,
    /// Number of responses.
    pub(super) answered: u64,
}

/// The current activity of a connection.
#[derive(Debug)]
pub(super) enum Activity {
    /// It waits for the next request.
    Listening,
    /// The response leaves at its time.
    Waiting(PlannedAnswer),
    /// The response is partly written.
    Writing(Outgoing),
    /// The events of the response leave at their times.
    Streaming(Streaming),
    /// There will be no response.
    Ignored,
}

/// A planned response.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedAnswer {
    pub(super) is_wrong: bool,
    pub(super) is_last: bool,
    /// True for the response to a HEAD request.
    pub(super) is_bodiless: bool,
    pub(super) ready_ns: u64,
}

/// A response that is being written.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) text: Text,
    pub(super) written: usize,
    pub(super) end: usize,
    pub(super) is_last: bool,
}

/// The bytes of a response.
#[derive(Debug)]
pub(super) enum Text {
    /// Index of the rendered response.
    Rendered(usize),
    /// Written for this client alone.
    Own(Vec<u8>),
}

/// A complete request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParsedRequest {
    /// Length in bytes, with its body.
    pub(super) bytes: usize,
    /// True if the client wants no further response on this connection.
    pub(super) is_last: bool,
    pub(super) is_head: bool,
    /// True for `GET /seen`.
    pub(super) is_about_seen: bool,
}

/// The received bytes are no request that a null server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Returns the first request in `inbox`, if it is complete.
pub(super) fn first_request(inbox: &[u8]) -> Result<Option<ParsedRequest>, Malformed> {
    if inbox.is_empty() {
        return Ok(None);
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let head_bytes = match request.parse(inbox) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) if inbox.len() < REQUEST_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) | Err(_) => return Err(Malformed),
    };
    let mut body_bytes = 0;
    let mut is_last = request.version == Some(0);
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            body_bytes = number(header.value).ok_or(Malformed)?;
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            // Chunks are not supported here, and would look like the next request.
            return Err(Malformed);
        } else if header.name.eq_ignore_ascii_case("connection") {
            // An HTTP/1.0 client such as `ab -k` requests keep-alive, which later versions have by default.
            is_last = match header.value.to_ascii_lowercase().as_slice() {
                b"close" => true,
                b"keep-alive" => false,
                _ => is_last,
            };
        }
    }
    // An unlimited length could also make the sum below overflow.
    if body_bytes > REQUEST_BYTES_MAX {
        return Err(Malformed);
    }
    let bytes = head_bytes + body_bytes;
    if inbox.len() < bytes {
        return Ok(None);
    }
    Ok(Some(ParsedRequest {
        bytes,
        is_last,
        is_head: request.method == Some("HEAD"),
        is_about_seen: request.method == Some("GET") && request.path == Some("/seen"),
    }))
}

fn number(value: &[u8]) -> Option<usize> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POST: &[u8] = b"POST /graphql HTTP/1.1\r\nhost: a\r\nContent-Length: 3\r\n\r\nabcGET";

    #[test]
    fn a_request_is_complete_with_the_last_byte_of_its_body() {
        let whole = POST.len() - 3;
        for cut in 0..whole {
            assert_eq!(first_request(&POST[..cut]), Ok(None), "{cut}");
        }
        let asked = first_request(POST).unwrap().unwrap();
        assert_eq!((asked.bytes, asked.is_last), (whole, false));
    }

    #[test]
    fn guests_say_when_they_leave() {
        let last = |head: &str| {
            let text = format!("{head}\r\n\r\n");
            first_request(text.as_bytes()).unwrap().unwrap().is_last
        };
        assert!(last("GET / HTTP/1.1\r\nConnection: Close"));
        assert!(last("GET / HTTP/1.0"));
        assert!(!last("GET / HTTP/1.0\r\nConnection: Keep-Alive"));
        assert!(!last("GET / HTTP/1.1"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in [
            "\0\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        ] {
            assert_eq!(first_request(text.as_bytes()), Err(Malformed), "{text:?}");
        }
    }
}
