//! GraphQL over HTTP: reads requests, and chooses the status and media type of responses.
//!
//! The rules come from the GraphQL-over-HTTP draft (graphql.github.io) and RFC 9110. They are functions on
//! plain types, so that hyper, ntex and actix-web can all use them, and tests need no socket. [`admit`]
//! decides on a whole request head. A gateway runs extensions in between, so it calls [`negotiate`] and
//! [`is_json`] at the right stages.
//!
//! Absent on purpose: batches, file uploads and subscriptions. GraphQL errors have only a message, because
//! each system has its own error codes.

mod accept;
mod admit;
pub mod body;
mod content_type;
mod escapes;
mod media;
mod refusal;
mod request;

pub use accept::{
    EventFormat, IncrementalFormat, Negotiated, event_format, incremental_format, negotiate,
    parse_weight,
};
pub use admit::{Admission, Head, admit};
pub use content_type::is_json;
pub use escapes::with_old_escapes;
pub use media::Media;
pub use refusal::RequestRefusal;
pub use request::{
    DecodeError, DiscardedObject, Entries, GraphqlRequest, Incomplete, RawObject, RawObjectBuf,
    check_body, check_entries, from_body, from_checked_body_or_hash, from_parameters,
    from_parameters_or_hash, to_json,
};
