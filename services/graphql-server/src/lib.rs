//! Two GraphQL servers with the same schema and equal responses.
//!
//! The programs are juniper on ntex and async-graphql on actix-web. Their responses are equal. Weighbridge
//! compares their cost. So all code except the four libraries is here once: the data behind the schema,
//! configuration, metrics, log and start. Each program contains the schema in the terms of its GraphQL
//! library, and the glue to its HTTP library.

mod clock;
pub mod config;
pub mod connections;
pub mod content;
pub mod exchange;
pub mod identity;
pub mod introspection;
pub mod metrics;
pub mod reply;
pub mod startup;
pub mod wire;
pub mod worker;
