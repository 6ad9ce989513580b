//! Requests of these tests, and the parts of responses that must be equal.

pub(crate) use test_client::{Request, Response, get};

/// A POST of this JSON text to `/graphql`.
pub(crate) const fn post(body: &str) -> Request<'_> {
    test_client::post_json("/graphql", body)
}

/// Status, media type, allowed methods and body.
pub(crate) fn plain(response: &Response) -> (u16, Option<&str>, Option<&str>, &str) {
    let (media, allow) = (response.header("content-type"), response.header("allow"));
    (response.status, media, allow, response.text())
}
