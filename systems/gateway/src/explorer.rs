//! The page that a browser gets at the GraphQL endpoint: type a query, send it, read the answer.
//!
//! One file with its own script and style, so that it works without a network. Absent on
//! purpose: completion and highlighting; a GraphQL client of one's own brings both.

use http::StatusCode;
use http::header::{self, HeaderValue};

use crate::reply::{self, Reply};

/// The page.
pub(crate) fn page() -> Reply {
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let page = include_str!("explorer.html").as_bytes();
    let mut reply = reply::with_body(StatusCode::OK, html, page);
    let vary = HeaderValue::from_static("accept, origin");
    reply.headers.insert(header::VARY, vary);
    reply
}
