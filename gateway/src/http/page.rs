//! The page that a browser gets at the GraphQL endpoint: GraphiQL.

use http::StatusCode;
use http::header::{self, HeaderValue};

use crate::http::reply::{self, Reply};

/// Returns GraphiQL as HTML.
pub(crate) fn page() -> Reply {
    let html = HeaderValue::from_static(graphiql::CONTENT_TYPE);
    let mut reply = reply::with_body(StatusCode::OK, html, graphiql::PAGE.as_bytes());
    // With another `accept` header, this URL returns GraphQL. A cache must take this into account.
    let vary = HeaderValue::from_static("accept, origin");
    reply.headers.insert(header::VARY, vary);
    reply
}
