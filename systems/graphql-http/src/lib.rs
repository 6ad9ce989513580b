//! GraphQL over HTTP: what a request asks for and with which status it is answered.
//!
//! The rules are those of the GraphQL-over-HTTP draft (graphql.github.io) and of RFC 9110. They are
//! functions on plain types, so that they serve hyper, ntex and actix-web alike and tests need no
//! socket. A system takes what it needs: [`admit`] decides on a whole request head; a gateway, whose
//! extensions run in between, calls [`negotiate`] and [`is_json`] at the stages they belong to.
//!
//! Absent on purpose: batches, file uploads, subscriptions, and the text of GraphQL errors beyond a
//! message, because each system has error codes of its own.

mod accept;
mod admit;
pub mod body;
mod content_type;
mod media;
mod refusal;
mod request;

pub use accept::{
    EventFormat, IncrementalFormat, Negotiated, event_format, incremental_format, negotiate,
    parse_weight,
};
pub use admit::{Head, Step, admit};
pub use content_type::is_json;
pub use media::Media;
pub use refusal::Refusal;
pub use request::{
    DecodeError, DiscardedObject, Entries, GraphqlRequest, Incomplete, RawObject, RawObjectBuf,
    check_body, check_entries, from_body, from_checked_body_or_hash, from_parameters,
    from_parameters_or_hash, to_json,
};
