//! The page that a browser gets at `/graphql`: type a query, send it, read the answer.
//!
//! One file with its own script and style, so that it works without a network. Absent on
//! purpose: completion and highlighting; a GraphQL client of one's own brings both.

/// The page.
pub(crate) const PAGE: &str = include_str!("explorer.html");
