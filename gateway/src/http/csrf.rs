//! Protection against requests that a foreign page makes a browser send.
//!
//! Before any request that is not simple, a browser asks the server with a preflight. So CORS has allowed
//! every request that is not simple.

use gateway_config::Csrf;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};

use crate::http::reply::{self, Reply};

/// Media types that a page may send to any server without a preflight.
const SIMPLE: [&[u8]; 4] = [
    b"",
    b"application/x-www-form-urlencoded",
    b"multipart/form-data",
    b"text/plain",
];

/// The rejection of a request that a foreign page could have made a browser send.
pub(crate) fn refusal(csrf: &Csrf, headers: &HeaderMap) -> Option<Reply> {
    let message = problem(csrf, headers)?;
    Some(reply::error(
        StatusCode::BAD_REQUEST,
        &message,
        "CSRF_ERROR",
    ))
}

/// The error message for such a request.
pub(crate) fn problem(csrf: &Csrf, headers: &HeaderMap) -> Option<String> {
    if csrf.unsafe_disabled || is_preflighted(csrf, headers) {
        return None;
    }
    let names: Vec<&str> = csrf.required_headers.iter().map(|it| it.as_str()).collect();
    Some(format!(
        "This operation has been blocked as a potential Cross-Site Request Forgery (CSRF). \
         Please either specify a 'content-type' header (with a mime-type that is not one of \
         application/x-www-form-urlencoded, multipart/form-data, text/plain) or provide one of \
         the following headers: {}",
        names.join(", ")
    ))
}

fn is_preflighted(csrf: &Csrf, headers: &HeaderMap) -> bool {
    // A request without a content type is simple, too, because `all` is true for no values.
    let is_simple = headers.get_all(CONTENT_TYPE).iter().all(|value| {
        let media = value.as_bytes().split(|byte| *byte == b';').next();
        let media = media.unwrap_or_default().trim_ascii();
        SIMPLE.iter().any(|it| media.eq_ignore_ascii_case(it))
    });
    !is_simple
        || csrf
            .required_headers
            .iter()
            .any(|name| headers.get(&name.0).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn is_refused(headers: &[(&'static str, &'static str)]) -> bool {
        let map = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        refusal(&Csrf::default(), &map).is_some()
    }

    #[test]
    fn what_a_page_can_send_without_asking_is_refused() {
        assert!(is_refused(&[]));
        assert!(is_refused(&[("content-type", "text/plain")]));
        assert!(is_refused(&[("content-type", "Text/Plain; charset=utf-8")]));
        assert!(is_refused(&[("apollo-require-preflight", "")]));
    }

    #[test]
    fn what_a_page_cannot_send_passes() {
        assert!(!is_refused(&[("content-type", "application/json")]));
        assert!(!is_refused(&[("apollo-require-preflight", "1")]));
        assert!(!is_refused(&[("x-apollo-operation-name", "Q")]));
    }

    #[test]
    fn it_can_be_turned_off() {
        let csrf = Csrf {
            unsafe_disabled: true,
            ..Csrf::default()
        };
        assert!(refusal(&csrf, &HeaderMap::new()).is_none());
    }
}
