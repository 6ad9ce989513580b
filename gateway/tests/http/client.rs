//! Requests of these tests, and a helper for their responses.

pub(crate) use test_client::{Connection, Request, Response, get};

/// A POST of this JSON text to `/`.
pub(crate) const fn post(body: &str) -> Request<'_> {
    test_client::post_json("/", body)
}

/// `extensions.code` of the first error.
pub(crate) fn code(response: &Response) -> String {
    let json = response.json();
    let code = &json["errors"][0]["extensions"]["code"];
    code.as_str().unwrap_or("(no code)").to_owned()
}
