//! The id of a request, which a client or a proxy gives and finds again in the response.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The header with the id of a request.
pub const REQUEST_ID: &str = "x-request-id";

const NAME: HeaderName = HeaderName::from_static(REQUEST_ID);

/// Maximum length of an id. Longer ones are not returned.
const BYTES_MAX: usize = 128;

/// The id of a request, if it has one that can be returned.
///
/// Services make no ids themselves, because a client cannot refer to an id that it does not have.
#[must_use]
pub fn request_id(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(NAME).filter(|id| is_request_id(id.as_bytes()))
}

/// True if a service may return the id.
#[must_use]
pub fn is_request_id(id: &[u8]) -> bool {
    (1..=BYTES_MAX).contains(&id.len())
}

/// Returns the id of a request in its response, unless the service has set one itself.
pub fn set_request_id(id: Option<HeaderValue>, headers: &mut HeaderMap) {
    if let Some(id) = id {
        headers.entry(NAME).or_insert(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_bytes_is_returned_and_an_endless_one_is_not() {
        let returned = |id: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(NAME, HeaderValue::from_bytes(id).unwrap());
            let mut answer = HeaderMap::new();
            set_request_id(request_id(&headers).cloned(), &mut answer);
            answer.get(NAME).map(|id| id.as_bytes().to_vec())
        };
        assert_eq!(returned(b"a-1").as_deref(), Some(&b"a-1"[..]));
        assert_eq!(returned(&[b'a'; 128]).map(|id| id.len()), Some(128));
        assert_eq!(returned(&[b'a'; 129]), None);
        assert_eq!(returned(b""), None);
    }
}
